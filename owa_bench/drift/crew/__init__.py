"""Operators on the work, the documents and the terms of a crew."""
