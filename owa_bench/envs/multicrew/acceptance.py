"""Which merged items hold: run by their family against the values in force."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from owa_bench.envs.multicrew.generate import family_of
from owa_bench.envs.multicrew.state import MergedItem
from owa_bench.worlds.crew import CrewItem, CrewWorld

STAMP = "stamp"  # field that any fragment may carry
_CACHED = 8192
_REVISION = 8  # hex digits


def revision(code: str, item: str, fragment: str, pins: Iterable[Any]) -> str:
    """Return the revision of a merged fragment.

    Args:
        code: Of the world, so that no revision is known before.
        item: Name of the item.
        fragment: JSON text.
        pins: What it builds on.
    Returns: Hexadecimal digits.
    """
    text = repr((code, item, fragment, tuple(pins)))
    return hashlib.sha256(text.encode()).hexdigest()[:_REVISION]


def accepted_items(
    world: CrewWorld, merged: Mapping[str, MergedItem], settled: Mapping[str, str]
) -> frozenset[str]:
    """Return the items whose merged fragments hold in a world.

    An item holds if those that it needs do, its pins are their revisions, no clause of
    it is contested and unsettled, and its family accepts the fragment.

    Args:
        world: The world that holds now.
        merged: By name of an item.
        settled: Contested clauses that were settled.
    Returns: Names.
    """
    open_ = world.contested.keys() - settled.keys()
    clauses = world.clause_of
    found: set[str] = set()
    for item in world.items:
        made = merged.get(item.name)
        if made is None or not found.issuperset(item.needs):
            continue
        every = (*item.clauses, *item.hidden)
        if not open_.isdisjoint(every):
            continue
        pins = dict(made.pins)
        if any(pins.get(name) != merged[name].revision for name in item.needs):
            continue
        before = tuple((name, merged[name].result) for name in item.needs)
        own = tuple((name, clauses[name].value) for name in every)
        if item.stamp and msgspec.json.decode(made.fragment).get(STAMP) != item.stamp:
            continue
        if _holds(world.family, item, own, before, made.result):
            found.add(item.name)
    return frozenset(found)


@lru_cache(_CACHED)
def _holds(
    family: str,
    item: CrewItem,
    values: tuple[tuple[str, str], ...],
    before: tuple[tuple[str, str], ...],
    fragment: str,
) -> bool:
    """Return whether a family accepts a fragment; the same arguments come often."""
    earlier = {name: msgspec.json.decode(text) for name, text in before}
    made = msgspec.json.decode(fragment)
    made.pop(STAMP, None)
    return family_of(family).accepts(item, dict(values), earlier, made)
