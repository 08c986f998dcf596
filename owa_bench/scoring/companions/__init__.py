"""Measures that stand beside the AAI axes: plain functions of anybody's arrays."""
