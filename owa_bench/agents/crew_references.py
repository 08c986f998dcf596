"""Reference agents of crews: one player of a seat, and habits each.

Source: docs/multicrew.md#agents.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills.crew.habits import (
    ALONE,
    ANSWERING,
    IN_ORDER,
    QUIET,
    STAR,
    TEAM,
    Habits,
)
from owa_bench.skills.crew.player import CrewPlayer


class _Seat:
    """An agent that plays its seat by habits."""

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._player: CrewPlayer | None = None

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Take a seat."""
        self._player = CrewPlayer(brief, self._habits)

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call."""
        assert self._player is not None  # noqa: S101  reset comes first
        return self._player.advance(str(observation["text"])).text()

    def close(self) -> None:
        """Leave the seat; nothing is kept."""


HABITS = {
    "list_scheduler": (
        "Works alone whoever else is there: longest chain first, reads all itself.",
        ALONE,
    ),
    "fifo": (
        "Takes its own items in order; asks, and answers what it was asked.",
        IN_ORDER,
    ),
    "contract_net": (
        "Tells what others' items need, proposes on law, waits for messages.",
        TEAM,
    ),
    "star_critic": (
        "Tells the lead alone, who passes it on; the last seat checks what is merged.",
        STAR,
    ),
    "quiet_partner": (
        "Works on its own items in order and says nothing.",
        QUIET,
    ),
    "answering_partner": (
        "Works on its own items in order and answers what it is asked.",
        ANSWERING,
    ),
}


def _card(name: str, about: str, habits: Habits) -> AgentCard:
    def make(config: AgentConfig) -> _Seat:
        return _Seat(habits)

    return AgentCard(name=name, about=about, make=make, suites=("multicrew",))


AGENTS = tuple(_card(name, *entry) for name, entry in HABITS.items())
