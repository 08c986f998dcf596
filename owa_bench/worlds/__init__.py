"""Frozen world types, one module a domain, each with `distance(a, b)`."""
