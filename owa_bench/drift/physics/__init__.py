"""Operators on physics worlds."""
