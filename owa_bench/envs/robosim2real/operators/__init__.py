"""Operators of RoboSim2Real: the body and the cell around it."""

DOMAIN = "robosim2real"
