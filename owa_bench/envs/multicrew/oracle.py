"""The answer key: effort share of accepted items, a node an item, the next right step.

List schedules with full information give the oracle's next item and the bound C*_m.

Source: docs/multicrew.md#quality, docs/multicrew.md#bound
"""

import bisect
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from typing_extensions import override

from owa_bench.envs.multicrew.acceptance import STAMP, accepted_items
from owa_bench.envs.multicrew.claims import truths
from owa_bench.envs.multicrew.generate import MERGE, family_of
from owa_bench.envs.multicrew.state import TICK_MS, CrewState, holder
from owa_bench.envs.multicrew.world import CrewItem, CrewWorld
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline


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

    Nobody reads, tells or settles anything; a free seat takes the item that the longest chain
    begins with. A reference, not the optimum: a list schedule may miss it.

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


_HARM = 0.1  # exponent of an accepted item that was made worse
_SETTLE = "settle/"


class CrewOracle(Oracle):
    """Knows every value; it plans with full information and never reads or tells."""

    @override
    def quality(self, timeline: Timeline, state: CrewState) -> float:
        """Return the effort share of accepted items, less for items made worse."""
        now = bisect.bisect_right(timeline.starts, state.tick * TICK_MS) - 1
        world: CrewWorld = timeline.worlds[now]
        worth = {item.name: item.effort * item.priority for item in world.items}
        whole, done = sum(worth.values()), sum(worth[name] for name in state.accepted)
        return done / whole * math.exp(-_HARM * state.harm)

    @override
    def subgoals(self, world: CrewWorld) -> tuple[SubgoalNode, ...]:
        """Return a node a contested clause and a node an item."""
        contested = world.contested
        nodes = [SubgoalNode(f"{_SETTLE}{name}", 1) for name in sorted(contested)]
        depths: dict[str, int] = {}
        for item in world.items:
            every = (*item.clauses, *item.hidden)
            open_ = [f"{_SETTLE}{name}" for name in every if name in contested]
            before = [depths[need] for need in item.needs] + [1] * bool(open_)
            depths[item.name] = 1 + max(before, default=0)
            needs = (*item.needs, *open_)
            nodes.append(SubgoalNode(item.name, depths[item.name], needs))
        return tuple(nodes)

    @override
    def solved(self, world: CrewWorld, state: CrewState) -> frozenset[str]:
        """Return the accepted items and the clauses that were settled rightly."""
        right = state.settled.items() & world.contested.items()
        return state.accepted | {f"{_SETTLE}{name}" for name, _ in right}

    @override
    def gained(
        self, before: CrewState, action: Mapping[str, Any], after: CrewState
    ) -> frozenset[str]:
        """Return new facts, values told to who needs them, clauses and items."""
        new = (after.served - before.served) | (after.accepted - before.accepted)
        if after.settled is before.settled:
            return new
        settled = after.settled.keys() - before.settled.keys()
        return new | {f"{_SETTLE}{name}" for name in settled}

    @override
    def hint(self, timeline: Timeline, state: CrewState) -> Mapping[str, Any]:
        """Return the next right step of the seat that acts."""
        world: CrewWorld = timeline.worlds[-1]
        good = accepted_items(world, state.merged, state.settled)
        if len(good) == len(world.items):
            if state.accepted == good and not _will_change(timeline, state):
                return _call("finish", p=1.0)
            return _call("pass_turn", ticks=1)
        for name, draft in state.drafts.items():
            away = state.free.get(draft.author, state.tick + 1) > state.tick
            if draft.ready > state.tick:
                continue
            if not world.reviewed or draft.approved:
                if away or draft.author == state.seat:
                    return _call("merge", item=name)
            elif draft.author != state.seat:
                return _call("review", item=name, verdict="approve")
            elif len(state.free) == 1:
                return _call("arbitrate", name=name)
        item = _next_item(world, state, good)
        if item is None:
            return _call("pass_turn", ticks=1)
        return _step_on(world, state, item)

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the claims of the first world with their truth in the last one."""
        return truths(timeline)

    @override
    def categories(self, world: CrewWorld) -> tuple[str, ...]:
        """Return none: one role that works alone can do without messages."""
        return ()


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def _will_change(timeline: Timeline, state: CrewState) -> bool:
    """Return whether the world will still change."""
    return bool(timeline.starts[-1] > state.tick * TICK_MS)


def _next_item(world: CrewWorld, state: CrewState, good: frozenset[str]) -> CrewItem | None:
    """Return the item to work on: ready, in nobody's work, before the longest chain."""
    longest = tails(world.items)
    ready = [
        item
        for item in world.items
        if item.name not in good
        and item.name not in state.drafts
        and state.claims.get(item.name, state.seat) == state.seat
        and good.issuperset(item.needs)
        and state.hours[state.seat] >= item.effort
    ]
    return max(ready, key=lambda item: longest[item.name], default=None)


def _step_on(world: CrewWorld, state: CrewState, item: CrewItem) -> dict[str, Any]:
    """Return the settling of a clause of an item, else the work on it."""
    values = {clause.name: clause.value for clause in world.clauses}
    for name in (*item.clauses, *item.hidden):
        if name in world.contested and name not in state.settled:
            return _call("arbitrate", name=name)
    before = {n: msgspec.json.decode(state.merged[n].fragment) for n in item.needs}
    pins = {name: state.merged[name].revision for name in item.needs}
    fragment = dict(family_of(world.family).solution(item, values, before))
    if item.stamp:
        fragment[STAMP] = item.stamp
    return _call("work", item=item.name, fragment=fragment, pins=pins)
