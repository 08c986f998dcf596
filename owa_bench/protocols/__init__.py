"""Protocols and price cards that ship with the package: every published number."""
