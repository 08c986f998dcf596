"""Placement: the rule that looks at a run batch by batch and says level, below or undecided."""
