"""Agents, one file or folder each; the file exports `AGENT`."""
