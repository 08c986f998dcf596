"""Operators on physics worlds, one for each level; each exports `OPERATOR`."""
