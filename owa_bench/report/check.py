"""One line of `verify`: what was checked, whether it holds, and how one sees it."""

from collections.abc import Iterable
from typing import NamedTuple

_NAMED = 3  # faults named in one line; the rest is counted


class Check(NamedTuple):
    """A check by name; `skipped` marks one that had nothing to check yet.

    A skipped check does not fail a run and proves nothing; its detail says why.
    """

    name: str
    ok: bool
    detail: str
    skipped: bool = False


def settled(name: str, faults: Iterable[str], good: str) -> Check:
    """Return a check that holds if there are no faults, with the first of them."""
    found = list(faults)
    if not found:
        return Check(name, True, good)
    more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return Check(name, False, "; ".join(found[:_NAMED]) + more)


def skipped(name: str, why: str) -> Check:
    """Return a check that had nothing to check."""
    return Check(name, True, f"not checked: {why}", skipped=True)
