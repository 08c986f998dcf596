"""Parts of every world: the distance of sets of facts, what a drift target names."""

from collections.abc import Sequence, Set

from owa_bench.errors import DriftError


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


def named_part(target: str, prefix: str, names: Sequence[str]) -> str:
    """Return what a target names.

    Args:
        target: "prefix/name".
        prefix: The kind of target.
        names: The names there are.
    Raises: DriftError: it names none of them.
    """
    kind, _, name = target.partition("/")
    if kind != prefix or name not in names:
        known = ", ".join(names) or "none"
        raise DriftError(f"`target` must be {prefix}/.. ({known}), got `{target}`.")
    return name
