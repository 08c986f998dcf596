"""Intelligence Test: how often an agent fails before it is right."""
