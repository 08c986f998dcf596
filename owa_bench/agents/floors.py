"""Floor agents of every suite (no-op, random), and the suites' own policies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from owa_bench import seeding
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.shells.schemas import draw

FINISH = {"tool": "finish", "arguments": {"answer": "", "p": 0.0, "beliefs": {}}}


class _NoOp:
    """Finishes in its first step, sure that it has not succeeded."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode; nothing is kept."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the call that finishes."""
        return json.dumps(FINISH)

    def close(self) -> None:
        """End the episode."""


class _Random:
    """Draws a tool and arguments its schema accepts, from the brief's seed.

    Where there are no tools it draws one of the actions that the goal counts, or numbers of a body.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._tools: tuple[ToolSpec, ...] = ()
        self._actions = self._numbers = 0
        self._rng: np.random.Generator = seeding.stream(0, "random")

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode with the stream of the brief's seed."""
        self._tools = tools
        self._actions = int(brief.goal.get("actions", 0))
        self._numbers = int(brief.goal.get("numbers", 0))
        self._rng = seeding.stream(brief.seed, "random")

    def act(self, observation: Any, info: Mapping[str, Any]) -> str | int | list[float]:
        """Return one valid call or action."""
        if self._numbers:
            drawn: list[float] = (2.0 * self._rng.random(self._numbers) - 1.0).tolist()
            return drawn
        if not self._tools:
            return int(self._rng.integers(self._actions))
        tool = self._tools[int(self._rng.integers(len(self._tools)))]
        arguments = draw(tool.parameters, rng=self._rng)
        return json.dumps({"tool": tool.name, "arguments": arguments})

    def close(self) -> None:
        """End the episode."""


FLOORS = (
    AgentCard(name="noop", about="Finishes at once; the floor of every suite.", make=_NoOp),
    AgentCard(
        name="random",
        about="Valid calls or actions drawn from the brief's seed.",
        make=_Random,
        native=True,
    ),
)


# --- the suites' own control policies, which see the world ----------------------------
# Every suite brings its own policy of each name; `owa_bench.runs` hands it the oracle.


_ABOUT = {
    "oracle": "The suite's own solution, which sees the world; the ceiling.",
    "over_doer": "The oracle's solution plus one destructive act; must score below it.",
    "plausible_wrong": ("Plays by the rules and hands in a likely but wrong answer; at most 0.5."),
    "leak_probe": "Looks for the answer in its own process; must score as the no-op.",
}

SUITE_POLICIES = tuple(
    AgentCard(name=name, about=about, make=None, needs="privilege")
    for name, about in _ABOUT.items()
)

AGENTS = (*FLOORS, *SUITE_POLICIES)
