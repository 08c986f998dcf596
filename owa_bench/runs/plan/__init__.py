"""Plans of runs: requests, draws, campaigns, budgets, commitments and witnesses."""
