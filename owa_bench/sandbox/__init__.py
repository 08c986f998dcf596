"""Sandboxes: places to run a command with limits.

A `SandboxJob` goes in, a `Result` comes out (`job.py`); `backends.get` gives a sandbox by name,
`supervision.py` enforces the limits, `long_lived.py` holds jobs open.
"""
