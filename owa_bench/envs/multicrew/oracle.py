"""The answer key: effort share of accepted items, a node an item, the next right step.

Source: docs/multicrew.md#quality
"""

import bisect
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from owa_bench.envs.multicrew.acceptance import STAMP, accepted_items
from owa_bench.envs.multicrew.claims import truths
from owa_bench.envs.multicrew.generate import family_of
from owa_bench.envs.multicrew.planner import tails
from owa_bench.envs.multicrew.state import TICK_MS, CrewState
from owa_bench.interfaces import PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline
from owa_bench.worlds.crew import CrewItem, CrewWorld

_HARM = 0.1  # exponent of an accepted item that was made worse
_SETTLE = "settle/"


class CrewOracle:
    """Knows every value; it plans with full information and never reads or tells."""

    def quality(self, timeline: Timeline, state: CrewState) -> float:
        """Return the effort share of accepted items, less for items made worse.

        Args:
            timeline: Its last world in force was entered by the session.
            state: The last state.
        Returns: q_state.
        """
        now = bisect.bisect_right(timeline.starts, state.tick * TICK_MS) - 1
        world: CrewWorld = timeline.worlds[now]
        worth = {item.name: item.effort * item.priority for item in world.items}
        whole, done = sum(worth.values()), sum(worth[name] for name in state.accepted)
        return done / whole * math.exp(-_HARM * state.harm)

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

    def solved(self, world: CrewWorld, state: CrewState) -> frozenset[str]:
        """Return the accepted items and the clauses that were settled rightly.

        Args:
            world: Knows the values.
            state: The session's.
        Returns: Names of nodes.
        """
        right = state.settled.items() & world.contested.items()
        return state.accepted | {f"{_SETTLE}{name}" for name, _ in right}

    def gained(
        self, before: CrewState, action: Mapping[str, Any], after: CrewState
    ) -> frozenset[str]:
        """Return new facts, values told to who needs them, clauses and items.

        Args:
            before: The state before the action.
            action: Plays no part.
            after: The state after it.
        Returns: Names.
        """
        new = (after.served - before.served) | (after.accepted - before.accepted)
        if after.settled is before.settled:
            return new
        settled = after.settled.keys() - before.settled.keys()
        return new | {f"{_SETTLE}{name}" for name in settled}

    def hint(self, timeline: Timeline, state: CrewState) -> Mapping[str, Any]:
        """Return the next right step of the seat that acts.

        Args:
            timeline: The last world says what will hold.
            state: The session's.
        Returns: "tool" and "arguments".
        """
        world: CrewWorld = timeline.worlds[-1]
        good = accepted_items(world, state.merged, state.settled)
        if len(good) == len(world.items):
            if state.accepted == good and not _ahead(timeline, state):
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

    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the claims of the first world with their truth in the last one."""
        return truths(timeline)

    def categories(self, world: CrewWorld) -> tuple[str, ...]:
        """Return none: no item needs an outside tool."""
        return ()


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def _ahead(timeline: Timeline, state: CrewState) -> bool:
    """Return whether the world will still change."""
    return bool(timeline.starts[-1] > state.tick * TICK_MS)


def _next_item(
    world: CrewWorld, state: CrewState, good: frozenset[str]
) -> CrewItem | None:
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
