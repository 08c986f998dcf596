"""What the traces of a run hold, as tables and samples."""
