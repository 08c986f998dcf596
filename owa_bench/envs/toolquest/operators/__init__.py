"""Operators of ToolQuest: access, contracts and documents of its providers."""

DOMAIN = "api"
