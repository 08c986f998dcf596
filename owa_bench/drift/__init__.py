"""Drift operators: one folder a domain, one file an operator."""
