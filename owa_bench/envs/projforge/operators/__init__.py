"""Operators of ProjForge: its libraries and its pipeline."""

DOMAIN = "project"
