"""Plans of runs: requests, draws, campaigns, budgets, commitments, witnesses and dates."""
