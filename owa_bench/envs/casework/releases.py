"""A chain of releases: one company whose systems and rules change from release to release."""

from collections.abc import Iterator
from typing import NamedTuple

from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.discovery import find
from owa_bench.errors import DriftError
from owa_bench.seeding import pick, stream

_MOST = 3  # changes of one release
_TRIES = 20
# The chain changes systems and rules; single records belong to the case.
_GROUPS = ("access", "structure", "meaning", "rules")


class CaseRelease(NamedTuple):
    """A release of a world: its number from 1 on, the world, and the operators that made it."""

    number: int
    world: CaseWorld
    changes: tuple[str, ...]


def releases(world: CaseWorld, seed: int, count: int) -> Iterator[CaseRelease]:
    """Yield releases of a world, each made of the one before it.

    Args:
        world: Release 0.
        seed: Draws the changes.
        count: How many releases.
    """
    operators = {
        name: entry.plugin
        for name, entry in find("operators").items()
        if name.startswith("casework/") and entry.plugin.group in _GROUPS
    }
    for number in range(1, count + 1):
        rng = stream(seed, "release", number)
        wanted, changes = 1 + int(rng.integers(_MOST)), list[str]()
        for _ in range(_TRIES):
            if len(changes) == wanted:
                break
            name = pick(sorted(operators), rng)
            targets = operators[name].targets(world)
            if not targets:
                continue
            try:
                after = operators[name].apply(world, pick(targets, rng), 1.0, rng=rng)
            except DriftError:
                continue
            if after.digest() != world.digest():
                world = after
                changes.append(name)
        yield CaseRelease(number, world, tuple(changes))
