"""Playing a plan: the episode loop, its setup, workers and batches."""
