"""Calls of a seat: where one is made, and what comes of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from owa_bench.envs.multicrew.code_repository import CodeRepository
from owa_bench.envs.multicrew.state import CrewState
from owa_bench.records.events import Event
from owa_bench.worlds.crew import Clause, CrewItem, CrewWorld


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
