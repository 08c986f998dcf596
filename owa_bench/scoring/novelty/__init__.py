"""Novelty: how an agent detects and takes a change of its task (SAIL-ON metrics)."""
