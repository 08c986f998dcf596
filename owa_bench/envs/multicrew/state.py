"""The state of a crew's episode, and the rules of turns: pure functions.

Source: docs/multicrew.md#rounds
"""

from collections.abc import Mapping

import msgspec

from owa_bench.envs.multicrew.world import CrewWorld

TICK_MS = 60_000


class WorkDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment as JSON text, what it builds on, and when it is worked out."""

    fragment: str
    pins: tuple[tuple[str, str], ...]
    author: str
    ready: int
    approved: bool = False


class MergedItem(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment in the repository, with its revision.

    `answers` are what main answered for it when it was last run, as JSON text, "" for fragments
    that are no code.
    """

    fragment: str
    pins: tuple[tuple[str, str], ...]
    author: str
    revision: str
    answers: str = ""

    @property
    def result(self) -> str:
        """What the item is judged by: answers of code, else the fragment itself."""
        return self.answers or self.fragment


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A breach of a rule: by whom, at which step."""

    rule: str
    seat: str
    step: int
    evidence: str


class CrewState(msgspec.Struct, frozen=True, kw_only=True):
    """How far the crew is.

    `free` is the tick at which each seat acts next, by seat; `asleep` those that a message wakes;
    `hours` what each seat may still spend. `settled` are contested clauses with the value agreed
    on, `proposed` (value, seat). `known` are (seat, clause) served to a seat. `served` names what
    the crew has gained, `accepted` the items whose fragments hold now. `conflicted` are items whose
    branch met a conflict once. `harm` counts accepted items made worse. `breaches` are what was
    noted against the rules of engagement.
    """

    tick: int
    seat: str
    free: Mapping[str, int]
    hours: Mapping[str, int]
    asleep: frozenset[str] = frozenset()
    claims: Mapping[str, str] = {}
    drafts: Mapping[str, WorkDraft] = {}
    merged: Mapping[str, MergedItem] = {}
    proposed: Mapping[str, tuple[str, str]] = {}
    settled: Mapping[str, str] = {}
    known: frozenset[tuple[str, str]] = frozenset()
    served: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()
    conflicted: frozenset[str] = frozenset()
    harm: int = 0
    breaches: tuple[Breach, ...] = ()

    @property
    def seats(self) -> tuple[str, ...]:
        """The seats that still have turns, in their order."""
        return tuple(self.free)


def first_state(world: CrewWorld, seats: tuple[str, ...]) -> CrewState:
    """Return the state at reset.

    Args:
        world: The first world.
        seats: Those that play.
    Returns: The state; a seat that fills several roles has the hours of all.
    """
    holders = [holder(world, seats, role) for role in world.seats]
    hours = {seat: world.hours * holders.count(seat) for seat in seats}
    state = CrewState(tick=0, seat=seats[0], free=dict.fromkeys(seats, 0), hours=hours)
    return advanced(world, state)


def holder(world: CrewWorld, seats: tuple[str, ...], role: str) -> str:
    """Return the seat that fills a role.

    Args:
        world: Knows all roles.
        seats: Those that play at the start.
        role: One of the world's.
    Returns: The role's own seat where it plays, else one of the others in turn.
    """
    return seats[world.seats.index(role) % len(seats)]


def advanced(world: CrewWorld, state: CrewState, *, busy: int = 0) -> CrewState:
    """Return the state at the next turn: of this tick, or of the next that has one.

    In a tick each seat that is free acts once, in the order of seats. A seat that is away is free
    when it returns.

    Args:
        world: Knows who is away.
        state: After an action.
        busy: Ticks for which the present seat is.
    Returns: The state with tick and seat of the next action.
    """
    free = dict(state.free)
    if busy:
        free[state.seat] = state.tick + busy
    for seat, first, until in world.away:
        if seat in free and first <= max(free[seat], state.tick) < until:
            free[seat] = until
    tick = max(state.tick, min(free.values()))
    seat = next(name for name, at in free.items() if at <= tick)
    asleep = state.asleep - {seat}
    return msgspec.structs.replace(state, free=free, tick=tick, seat=seat, asleep=asleep)


def woken(state: CrewState, seats: tuple[str, ...]) -> CrewState:
    """Return the state with waiting seats free in the next tick.

    Args:
        state: The state.
        seats: Those that were sent something.
    """
    chosen = state.asleep.intersection(seats)
    if not chosen:
        return state
    free = {
        seat: min(at, state.tick + 1) if seat in chosen else at for seat, at in state.free.items()
    }
    return msgspec.structs.replace(state, free=free, asleep=state.asleep - chosen)
