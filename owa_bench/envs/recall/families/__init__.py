"""Families of tasks, one file each: `draw` makes the content of a world."""
