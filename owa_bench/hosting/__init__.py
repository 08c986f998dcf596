"""Hosting of agents: how one is named, started in a process of its own, and spoken to."""
