"""Browser driving: one process, its pages, their observation."""
