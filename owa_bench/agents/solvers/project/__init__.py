"""Skills of agents that write a project's code: issues, library calls, contracts."""
