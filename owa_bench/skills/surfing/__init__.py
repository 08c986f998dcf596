"""Working on web pages from their text alone, as the archetypes do."""
