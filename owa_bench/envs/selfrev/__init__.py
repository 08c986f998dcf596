"""SelfRev: an agent revises a subject and must prove the gain."""
