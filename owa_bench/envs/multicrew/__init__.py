"""MultiCrew: several agents with private facts, one channel, one deliverable."""
