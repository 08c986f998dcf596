"""Operators on site worlds; each file exports `OPERATOR`."""
