"""Batteries that ship with the package: NAME.toml, what is drawn."""
