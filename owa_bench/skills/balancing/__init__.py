"""Balancing a pole on a cart: reading observations, a model, laws of control."""
