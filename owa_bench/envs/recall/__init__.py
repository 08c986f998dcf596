"""Recall: memory, retrieval, reasoning and literacy across restarts of the agent."""
