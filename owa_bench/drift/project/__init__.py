"""Operators on projects: libraries that change, and the terms of the pipeline."""
