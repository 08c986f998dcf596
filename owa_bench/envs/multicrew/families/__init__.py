"""The families of MultiCrew: `family.py` says what one is, each other file has one."""
