"""Suites, one folder each; `suite.py` exports `SUITE`."""
