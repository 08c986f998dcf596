"""A run directory read as records: attempts, outcomes, terms, pairs, tables."""
