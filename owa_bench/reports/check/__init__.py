"""Checks of a run's evidence and the assurance level that follows."""
