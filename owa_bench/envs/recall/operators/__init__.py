"""Operators of Recall: exercises and their register."""

DOMAIN = "recall"
