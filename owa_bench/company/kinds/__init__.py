"""Kinds of case over a company: each draws worlds, knows what is right, and judges."""
