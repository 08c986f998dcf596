"""Slices of long tests: CI plays a part drawn by the commit, `make long` all of it."""

import os
from collections.abc import Sequence
from typing import TypeVar

from benchmarks.sweep import of_commit

Item = TypeVar("Item")
WHOLE = os.environ.get("OWA_LONG_TESTS") == "1"


def by_commit(items: Sequence[Item], parts: int) -> list[Item]:
    """Return every item whose place is the commit's number modulo `parts`.

    Args:
        items: What a long test would go through.
        parts: One of so many parts is returned; all of them in a long run.

    Returns:
        The items, in order.
    """
    if WHOLE:
        return list(items)
    turn = of_commit() % parts
    return [item for place, item in enumerate(items) if place % parts == turn]
