"""The parts of a verdict: findings, scores, tables, norms."""
