"""The distance of two worlds that are told as sets of facts."""

from collections.abc import Set


def jaccard_distance(first: Set[object], second: Set[object]) -> float:
    """Return the share of facts that only one of two sets holds.

    Args:
        first: The facts of one world.
        second: The facts of the other.
    Returns: 0 for equal sets, 1 where nothing is shared.

    >>> jaccard_distance({1, 2, 3}, {2, 3, 4})
    0.5
    """
    union = first | second
    return len(first ^ second) / len(union) if union else 0.0
