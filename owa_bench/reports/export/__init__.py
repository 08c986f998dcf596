"""Exports: leaderboard, norms, pages and tables of one run or of several."""
