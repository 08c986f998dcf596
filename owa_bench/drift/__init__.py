"""Drift: operators, magnitude and order, calendars, timelines."""
