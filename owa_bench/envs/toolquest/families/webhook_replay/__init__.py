"""Replay the webhooks that failed, each once."""
