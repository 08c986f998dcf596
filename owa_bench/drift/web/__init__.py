"""Operators on site worlds, one module a group."""
