"""Placement: plays an agent batch by batch, looks, and stops as soon as its level is decided."""
