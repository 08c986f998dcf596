"""The queue view of a case: look-ups and decisions as numbers, for training."""
