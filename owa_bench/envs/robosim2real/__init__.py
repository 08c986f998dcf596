"""Suite RoboSim2Real: an arm in a cell, in simulation and on a guarded surrogate device."""
