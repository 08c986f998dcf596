"""Drift operators: one folder a domain, one module a group of operators."""
