"""Merge the events of two vendors into one timeline."""
