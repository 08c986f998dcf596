"""Estimates of one agent and of pairs of agents, before any gate reads them."""
