"""What is made of several runs or leaves the report: leaderboard, norms, tables."""
