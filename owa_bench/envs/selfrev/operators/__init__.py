"""Operators of SelfRev: its terms."""

DOMAIN = "revision"
