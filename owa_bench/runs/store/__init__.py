"""Run directories: recording, redaction, keys, memory snapshots, provenance."""
