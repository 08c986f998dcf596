"""Parsers of cases: they play by the texts and rows that they are served, and nothing else."""
