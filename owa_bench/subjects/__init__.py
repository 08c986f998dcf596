"""Makers of the raw tables that companion measures read; extras inside functions."""
