"""The axes, one file each; the file exports `AXIS`."""
