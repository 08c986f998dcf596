"""Entropy decay: how a language model's uncertainty falls with its context."""
