"""List schedules with full information: the oracle's next item, and the bound C*_m.

Source: docs/multicrew.md#bound
"""

from functools import lru_cache

from owa_bench.envs.multicrew.generate import MERGE
from owa_bench.envs.multicrew.state import holder
from owa_bench.worlds.crew import CrewItem, CrewWorld


@lru_cache(256)
def tails(items: tuple[CrewItem, ...]) -> dict[str, int]:
    """Return the ticks of the longest chain that begins with each item."""
    found: dict[str, int] = {}
    for item in reversed(items):
        after = (found[other.name] for other in items if item.name in other.needs)
        found[item.name] = item.effort + MERGE + max(after, default=0)
    return found


def bound(world: CrewWorld, seats: int) -> float:
    """Return C*_m: what a list schedule with full information gets accepted.

    Nobody reads, tells or settles anything; a free seat takes the item that the longest
    chain begins with. A reference, not the optimum: a list schedule may miss it.

    Args:
        world: The world at reset.
        seats: m.
    Returns: Share of the effort that is merged by the deadline, in [0, 1].
    """
    playing = world.seats[: max(1, min(seats, len(world.seats)))]
    hours = {
        seat: world.hours * sum(holder(world, playing, r) == seat for r in world.seats)
        for seat in playing
    }
    longest = tails(world.items)
    free = dict.fromkeys(playing, 0)
    done: dict[str, int] = {}
    left = sorted(world.items, key=lambda item: -longest[item.name])
    while left:
        starts = [
            (max([free[seat], *(done[need] for need in item.needs)]), place, seat)
            for place, item in enumerate(left)
            if done.keys() >= set(item.needs)
            for seat in playing
            if hours[seat] >= item.effort + MERGE
        ]
        if not starts:
            break
        start, place, seat = min(starts, key=lambda one: one[:2])
        item = left[place]
        end = _worked(world, seat, start, item.effort + MERGE)
        if end > world.deadline:
            left.pop(place)  # it and all after it come too late
            continue
        left.pop(place)
        free[seat] = done[item.name] = end
        hours[seat] -= item.effort + MERGE
    whole = sum(item.effort for item in world.items)
    return sum(item.effort for item in world.items if item.name in done) / whole


def _worked(world: CrewWorld, seat: str, start: int, ticks: int) -> int:
    """Return when work of some ticks ends that begins at `start`, absence included."""
    for name, first, until in world.away:
        if name == seat and first <= start < until:
            start = until
    return start + ticks
