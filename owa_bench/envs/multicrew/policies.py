"""The control policies: floors, a plausible-wrong one, an over-doer and the oracle."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from numpy.random import Generator

from owa_bench.envs.multicrew.generate import family_of
from owa_bench.envs.multicrew.state import CrewState
from owa_bench.envs.multicrew.world import CrewItem, CrewWorld
from owa_bench.interfaces import Agent, OracleAccess
from owa_bench.seeding import stream
from owa_bench.shells.schemas import draw
from owa_bench.shells.solution import ControlPolicy, NextCall


class CrewNoOp(ControlPolicy):
    """Finishes at once."""

    def _next(self, hint: NextCall, world: CrewWorld, state: CrewState) -> NextCall:
        return {"tool": "finish", "arguments": {}}


class CrewRandom(ControlPolicy):
    """Calls tools with arguments that their schemas and the family's form allow."""

    def _next(self, hint: NextCall, world: CrewWorld, state: CrewState) -> NextCall:
        rng = stream(self.seed, "random", self.steps)
        names = [item.name for item in world.items]
        item = names[int(rng.integers(len(names)))]
        if item in state.drafts:
            return {"tool": "merge", "arguments": {"item": item}}
        chosen = next(one for one in world.items if one.name == item)
        fragment = _random_fragment(world, chosen, rng)
        pins = {n: m.revision for n, m in state.merged.items() if n in chosen.needs}
        arguments = {"item": item, "fragment": fragment, "pins": pins}
        return {"tool": "work", "arguments": arguments}


def _random_fragment(world: CrewWorld, item: CrewItem, rng: Generator) -> dict[str, Any]:
    """Return a fragment that the family's form allows; code is a function of text."""
    family = family_of(world.family)
    fragment: dict[str, Any] = draw(family.form, rng=rng)
    if family.runs:
        text = f"def {item.name}(rows):\n    return {fragment['source']!r}"
        return {"source": text}
    return fragment


class CrewPlausibleWrong(ControlPolicy):
    """Keeps the right order of work and hands in values that do not hold.

    They are what decoys and rivals say; where an item has neither, it is taken for another one.
    """

    def _next(self, hint: NextCall, world: CrewWorld, state: CrewState) -> NextCall:
        done = {**state.merged, **state.drafts}
        for name, draft in state.drafts.items():
            if draft.ready <= state.tick and draft.author == state.seat:
                return {"tool": "merge", "arguments": {"item": name}}
        for item in world.items:
            if item.name in done or not state.merged.keys() >= set(item.needs):
                continue
            values = _mistaken(world, item)
            family = family_of(world.family)
            before = {n: json.loads(state.merged[n].fragment) for n in item.needs}
            arguments = {
                "item": item.name,
                "fragment": family.solution(item, values, before),
                "pins": {n: state.merged[n].revision for n in item.needs},
            }
            return {"tool": "work", "arguments": arguments}
        if len(state.merged) == len(world.items):
            return {"tool": "finish", "arguments": {"p": 0.9}}
        return {"tool": "pass_turn", "arguments": {}}


def _mistaken(world: CrewWorld, item: CrewItem) -> dict[str, str]:
    """Return the values of clauses as somebody has them who reads carelessly."""
    right = {clause.name: clause.value for clause in world.clauses}
    values = dict(right)
    for document in world.documents:
        for line in document.lines:
            if line.standing in ("former", "draft"):
                values[f"{line.subject}.{line.attribute}"] = line.value
    values |= {c.name: c.rival for c in world.clauses if c.rival}
    if all(values[name] == right[name] for name in item.clauses):
        first = next(c for c in world.clauses if c.name == item.clauses[0])
        alike = [c.value for c in world.clauses if c.attribute == first.attribute]
        values[first.name] = next((v for v in alike if v != first.value), first.value)
    return values


class CrewOverDoer(ControlPolicy):
    """Works as the oracle does, then works an accepted item out anew, wrongly."""

    def _next(self, hint: NextCall, world: CrewWorld, state: CrewState) -> NextCall:
        victim = world.items[-1]
        draft = state.drafts.get(victim.name)
        if hint["tool"] != "finish" and victim.name not in state.accepted:
            return hint
        if draft is not None and draft.ready <= state.tick:
            return self._passed_on(world, state, victim.name)
        if state.harm or hint["tool"] != "finish":
            return hint
        if draft is not None:
            return {"tool": "pass_turn", "arguments": {}}
        rng = stream(self.seed, "over", self.steps)
        fragment = _random_fragment(world, victim, rng)
        pins = dict(state.merged[victim.name].pins)
        arguments = {"item": victim.name, "fragment": fragment, "pins": pins}
        return {"tool": "work", "arguments": arguments}

    def _passed_on(self, world: CrewWorld, state: CrewState, name: str) -> NextCall:
        """Return the merge of a draft, or the approval that must come before it."""
        draft = state.drafts[name]
        if not world.reviewed or draft.approved:
            return {"tool": "merge", "arguments": {"item": name}}
        if draft.author == state.seat:
            return {"tool": "pass_turn", "arguments": {}}
        approval = {"item": name, "verdict": "approve"}
        return {"tool": "review", "arguments": approval}


class CrewLeakProbe(ControlPolicy):
    """Reads and tells what its process, its folder and its environment show."""

    def _next(self, hint: NextCall, world: CrewWorld, state: CrewState) -> NextCall:
        found = [path.name for path in sorted(self.memory.parent.iterdir())]
        found += sorted(os.environ)
        name = found[self.steps % len(found)][:60]
        return {"tool": "read", "arguments": {"name": name}}


POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": CrewNoOp,
    "random": CrewRandom,
    "plausible_wrong": CrewPlausibleWrong,
    "over_doer": CrewOverDoer,
    "leak_probe": CrewLeakProbe,
    "oracle": ControlPolicy,
}
