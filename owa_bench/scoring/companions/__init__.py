"""Companion measures beside the AAI axes: plain functions of arrays."""
