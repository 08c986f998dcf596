"""The language view of RoboSim2Real: the arm on its device, played by tool calls."""
