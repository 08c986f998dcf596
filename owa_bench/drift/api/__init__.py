"""Operators on API worlds; each file exports `OPERATOR`."""
