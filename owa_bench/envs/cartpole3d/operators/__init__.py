"""Operators of CartPole3D: the levels of novelty."""

DOMAIN = "physics"
