"""Closures: what an agent keeps up by itself."""
