"""Operators of ChangeSurf: access, DOM, flow and labels of its sites."""

DOMAIN = "web"
