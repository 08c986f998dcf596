"""One episode from the world's side: its session, its events and its answer key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from owa_bench.interfaces.agents import ToolSpec
from owa_bench.interfaces.drift import World
from owa_bench.records.events import Event, Outcome, fixed
from owa_bench.records.instance import Timeline

State = Any


class Sink(Protocol):
    """Where an episode's events go; a no-op unless a recorder is attached."""

    active: bool

    def emit(self, event: Event) -> None:
        """Take one event, in order."""

    def blob(self, data: bytes) -> str:
        """Redact, keep if transcripts are kept, and return the SHA-256 in hex."""

    def secret(self, name: str, value: str) -> None:
        """Learn a secret: from here on its value never reaches a record."""


class ToolResult(NamedTuple):
    """What came of one tool call inside a session.

    `text` is what the agent reads (the shell caps it). `elapsed_ms` moves the
    simulated clock. `digest` names the result so that a repeat is seen; `action_key`
    names the call for that where its arguments do not (the number of a control on a
    page that changes). `events` are those of the call itself, in order.
    """

    text: str
    ok: bool
    elapsed_ms: int = 0
    digest: str = ""
    events: tuple[Event, ...] = ()
    action_key: str = ""


class Ending(NamedTuple):
    """How an episode ended, by the world's own state."""

    outcome: Outcome
    reason: str
    q_state: float
    quality: float
    success: bool
    stated: float | None


class SubgoalNode(NamedTuple):
    """A node of a task's DAG; `depth` counts from 1 along the longest path."""

    name: str
    depth: int
    prerequisites: tuple[str, ...] = ()


class Task(NamedTuple):
    """What the agent is told: prose, the same goal for machines, and propositions.

    `propositions` maps an id to its text; the agent may state p for each.
    """

    text: str
    goal: Mapping[str, Any]
    propositions: Mapping[str, str]


class PropositionTruth(NamedTuple):
    """A world proposition with its class and truth."""

    name: str
    kind: str
    truth: bool


class Session(Protocol):
    """One episode's live world: what a tool suite hands to the env shell.

    The shell owns the clock, finish, ask_supervisor, notes, limits, rewards and
    verification; the session owns the suite's own tools and its state.
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The suite's own tools."""

    @property
    def task(self) -> Task:
        """What the agent is told."""

    @property
    def state(self) -> State:
        """The present state as a frozen value; two of them may be compared."""

    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        """Run one of the suite's tools; bad arguments are a result, not an error."""

    def enter(self, world: World, *, now_ms: int) -> None:
        """Go on in another world: drift struck while the agent was working."""

    def features(self) -> npt.NDArray[np.float32]:
        """Return the fixed-length feature vector of the vector view, in [0, 1]."""

    def macros(self) -> tuple[Mapping[str, Any] | None, ...]:
        """Return the tool call each vector macro stands for now, None if masked."""

    def close(self) -> None:
        """Release sockets and databases."""


@runtime_checkable
class HasFinalEvents(Protocol):
    """A session that leaves evidence behind when its episode ends."""

    def part(self, *, step: int) -> tuple[Event, ...]:
        """Return what is left behind, in order; asked once, before the judgement."""


class Oracle(Protocol):
    """The answer key: reads the world's own state, never the agent's words."""

    def quality(self, timeline: Timeline, state: State) -> float:
        """Return q_state in [0, 1], frame factor included."""

    def subgoals(self, world: World) -> tuple[SubgoalNode, ...]:
        """Return the task's DAG in topological order."""

    def solved(self, world: World, state: State) -> frozenset[str]:
        """Return the names of the nodes that `state` has solved."""

    def accepts(self, before: State, action: Mapping[str, Any], after: State) -> bool:
        """Return whether an action that ran solved a node or won a needed fact."""

    def hint(self, timeline: Timeline, state: State) -> Mapping[str, Any]:
        """Return the next right tool call; in the end finish or declare_infeasible."""

    def propositions(self, world: World) -> tuple[PropositionTruth, ...]:
        """Return the world propositions with their truth."""

    def categories(self, world: World) -> tuple[str, ...]:
        """Return the tool categories that this world holds."""


class OracleAccess(NamedTuple):
    """What assembly hands to a suite's own control policy, in process only."""

    oracle: Oracle
    observe: Callable[[], tuple[Timeline, State]]


def stated_quality(
    q_state: float, p: float | None, success: bool, share: float
) -> float:
    """Return Q = (1 - l) q_state + l (1 - (p - y)^2), p = .5 when none was stated.

    Proper in p; sabotage never pays while l <= theta / (1 + theta).
    Source: `suites.md` section 0, Quality.
    """
    gap = (0.5 if p is None else p) - float(success)
    return fixed((1.0 - share) * q_state + share * (1.0 - gap * gap))
