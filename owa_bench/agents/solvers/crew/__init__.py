"""Skills of agents that sit in a crew: reading documents, making fragments, turns."""
