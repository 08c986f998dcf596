"""The gates; each module exports a tuple `GATES`."""
