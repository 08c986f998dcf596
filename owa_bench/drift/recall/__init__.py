"""Operators on the register and the exercises of the micro-battery."""
