"""The agent's side: what it is told, what it answers, and its card in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from owa_bench.records.events import Event, Meter


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as an agent sees it; `parameters` is a JSON Schema object."""

    name: str
    about: str
    parameters: Mapping[str, Any]


class Move(NamedTuple):
    """What an agent answers; everything but the action is declared, not measured."""

    action: Any
    usage: tuple[tuple[Meter, float], ...] = ()
    messages: tuple[Event, ...] = ()
    model_calls: tuple[Event, ...] = ()
    beliefs: tuple[tuple[str, float], ...] = ()
    revision: Event | None = None


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is told at reset. `interventions_left` None: not limited.

    `role_cap` is how many roles of one agent may be held apart, None for any number;
    roles that are `muted` may not pass messages to each other.
    """

    text: str
    goal: Mapping[str, Any]
    propositions: Mapping[str, str] = {}
    budgets: Mapping[str, float] = {}
    interventions_left: int | None = None
    role: str = "agent"
    role_cap: int | None = None
    muted: bool = False
    session: int = 0
    day: int | None = None
    seed: int = 0


@runtime_checkable
class Agent(Protocol):
    """What is evaluated. Only `memory_dir` outlives an episode."""

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return an action, or a Move that says more."""

    def close(self) -> None:
        """End the episode; write what is to be remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How to make an agent: free options, and the script for those that replay one."""

    options: Mapping[str, str] = field(default_factory=dict)
    script: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """An agent in the registry.

    `needs` "script": the loop hands it the oracle's drift-free actions (the fixed
    archetype); "privilege": a suite's control policy of this name is played instead.
    `suites` empty: any tool suite. `options` are those it takes, each with a word on
    what it is; `required` are those it cannot do without.
    """

    name: str
    about: str
    make: Callable[[AgentConfig], Agent] | None
    needs: Literal["nothing", "script", "privilege"] = "nothing"
    suites: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
