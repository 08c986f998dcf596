"""The gates, one file each; the file exports `GATE`."""
