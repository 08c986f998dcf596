"""A package of somebody else: one agent, one operator, one axis."""
