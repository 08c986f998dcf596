"""Closures of self-improvement: expansion and maintenance."""
