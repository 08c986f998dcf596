"""Policies of an arm."""
