"""Observation: the traces of a run as tables and samples."""
