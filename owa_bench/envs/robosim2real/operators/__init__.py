"""Operators of RoboSim2Real: none yet."""

DOMAIN = "robosim2real"
