"""Operators on API worlds, one module for each part of a vendor they change."""
