"""Frozen data between the stages; a stage sees only what the stage before made."""
