"""Measures of the companion papers: plain functions of arrays."""
