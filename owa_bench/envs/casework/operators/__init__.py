"""Drift operators of cases: access, structure, meaning, rules, records."""

DOMAIN = "casework"
