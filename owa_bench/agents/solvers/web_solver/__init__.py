"""Web solver: web pages read and filled in from their text alone."""
