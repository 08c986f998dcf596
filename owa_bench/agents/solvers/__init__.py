"""Solvers of the reference agents, and skills that several agents share."""
