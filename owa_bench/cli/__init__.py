"""The command line: parses, calls, prints; joins the two halves."""
