"""Operators on campaigns of revision: budgets, noise, and drift of the inner suite."""
