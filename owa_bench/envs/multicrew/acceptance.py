"""Calls of a seat, which merged items hold, and how contested clauses are settled.

Merged items are run by their family against the values in force; a contested clause is settled by
proposal and acceptance, or by arbitration. Pure functions.

Source: docs/multicrew.md#tools
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from owa_bench.envs.multicrew.code_repository import CodeRepository
from owa_bench.envs.multicrew.generate import family_of
from owa_bench.envs.multicrew.state import CrewState, MergedItem, holder
from owa_bench.envs.multicrew.world import Clause, CrewItem, CrewWorld
from owa_bench.records.events import Conflict, Event


class ActionOutcome(NamedTuple):
    """The result of a call: `news` is what the board tells the other seats."""

    state: CrewState
    text: str
    ok: bool = True
    ticks: int = 1
    events: tuple[Event, ...] = ()
    news: str = ""
    timed: bool = False


class Place(NamedTuple):
    """Where a call is made: world, state, the seats of the episode, the step.

    `code` is the repository where fragments are code.
    """

    world: CrewWorld
    state: CrewState
    seats: tuple[str, ...]
    step: int
    code: CodeRepository | None = None

    @property
    def seat(self) -> str:
        """The seat that acts."""
        return self.state.seat

    def refused(self, text: str) -> ActionOutcome:
        """Return the outcome of a call that changes nothing."""
        return ActionOutcome(self.state, text, ok=False)

    def item(self, name: str) -> CrewItem | None:
        """Return an item by its name."""
        return self.world.item_of.get(name)

    def clause(self, name: str) -> Clause | None:
        """Return a clause by its name."""
        return self.world.clause_of.get(name)


Arguments = Mapping[str, Any]


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

    An item holds if those that it needs do, its pins are their revisions, no clause of it is
    contested and unsettled, and its family accepts the fragment.

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


def propose(at: Place, arguments: Arguments) -> ActionOutcome:
    """Propose a value for a contested clause; one of its sides must do so.

    Args:
        at: Where.
        arguments: `clause`, `value`.
    Returns: The outcome.
    """
    clause = at.clause(arguments["clause"])
    sides = clause.sides if clause else ()
    if at.seat not in {holder(at.world, at.seats, role) for role in sides}:
        return at.refused(f"{arguments['clause']} is not yours to settle.")
    if clause is None or not clause.rival:
        return at.refused(f"{arguments['clause']} is not contested.")
    value = arguments["value"]
    proposed = {**at.state.proposed, clause.name: (value, at.seat)}
    open_ = Conflict(step=at.step, item=clause.name)
    news = f"{at.seat} proposes for {clause.name}: {value}"
    state = replace(at.state, proposed=proposed)
    return ActionOutcome(state, "Proposed.", events=(open_,), news=news)


def accept(at: Place, arguments: Arguments) -> ActionOutcome:
    """Accept what another seat proposed: the clause is settled.

    Args:
        at: Where.
        arguments: `clause`.
    Returns: The outcome.
    """
    name = arguments["clause"]
    value, proposer = at.state.proposed.get(name, ("", at.seat))
    if proposer == at.seat:
        return at.refused(f"Nobody else has proposed a value for {name}.")
    clause = at.clause(name)
    settler = clause.settler if clause else ""
    if settler and holder(at.world, at.seats, settler) not in (at.seat, proposer):
        return at.refused(f"Neither of you decides about {name}.")
    return _news_outcome(at, name, value)


def arbitrate(at: Place, arguments: Arguments) -> ActionOutcome:
    """Have a clause settled, or a draft approved, from outside; takes longer.

    Args:
        at: Where.
        arguments: `name` of a clause or an item.
    Returns: The outcome.
    """
    name = arguments["name"]
    draft = at.state.drafts.get(name)
    if draft is not None and at.world.reviewed:
        approved = replace(draft, approved=True)
        state = replace(at.state, drafts={**at.state.drafts, name: approved})
        text, ticks = f"{name} is approved.", at.world.arbitration
        return ActionOutcome(state, text, ticks=ticks, news=f"{name} approved from outside")
    clause = at.clause(name)
    if clause is None or not clause.rival:  # to find that out takes as long
        nothing = at.refused(f"There is nothing to decide about {name}.")
        return nothing._replace(ticks=at.world.arbitration if clause else 1)
    outcome = _news_outcome(at, name, clause.value)
    state = outcome.state
    known = state.known | {(at.seat, name)}
    state = replace(state, known=known)
    return outcome._replace(state=state, ticks=at.world.arbitration)


def _news_outcome(at: Place, name: str, value: str) -> ActionOutcome:
    state = at.state
    settled = {**state.settled, name: value}
    state = replace(
        state,
        settled=settled,
        proposed={one: it for one, it in state.proposed.items() if one != name},
        accepted=accepted_items(at.world, state.merged, settled),
    )
    done = Conflict(step=at.step, item=name, resolved=True)
    news = f"{name} settled: {value}"
    return ActionOutcome(state, f"{news}.", events=(done,), news=news)
