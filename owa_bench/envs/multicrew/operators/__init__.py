"""Operators of MultiCrew: its documents and terms."""

DOMAIN = "crew"
