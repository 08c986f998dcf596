"""Work with vendors' interfaces: from a goal to fetched tables, an answer and odds."""
