"""Places to run a command with limits: one interface.

A `Job` goes in, a `Result` comes out (`job.py`). Backends: `process.ProcessSandbox`
bounds trusted code, `bubblewrap.BubblewrapSandbox` also isolates it; `backends.get`
finds one by name. `binds.py` names the fewest files a program needs.
"""
