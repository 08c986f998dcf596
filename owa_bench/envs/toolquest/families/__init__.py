"""One folder, one family of tasks; its `family.py` exports `FAMILY`."""
