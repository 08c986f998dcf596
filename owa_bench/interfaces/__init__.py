"""The extension API of the acting half: the contract of agents, operators and suites.

    Agent      is evaluated: reset, act, close
    Operator   one kind of drift: a pure function from world to world
    Schedule   which operators act on an instance, where, how strongly and when
    Suite      draws worlds and plays timelines of them
    Session    one running episode of a tool suite; Oracle and Detector judge it

Read from top to bottom. A plug-in needs no base class, only the attributes named here.
A protocol called `Has..` is optional: its attributes are used where a plug-in has them.
`owa_bench.contract_checks` tests a plug-in. The plain values are in `values.py`; import
everything from here. Axes and gates are the judging half's: `scoring/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from owa_bench.interfaces.operators import FunctionOperator, operator
from owa_bench.interfaces.values import (
    AgentCard,
    AgentConfig,
    Brief,
    DriftEvent,
    Ending,
    Move,
    OracleAccess,
    PropositionTruth,
    Rule,
    State,
    SubgoalNode,
    SuiteCard,
    Task,
    ToolResult,
    ToolSpec,
    stated_quality,
)
from owa_bench.records.events import Event
from owa_bench.records.instance import Announcement, Instance, Timeline

if TYPE_CHECKING:
    import gymnasium

# fmt: off
__all__ = [
    "Agent", "AgentCard", "AgentConfig", "Brief", "Detector", "DriftEvent", "Ending",
    "EnumerableSchedule", "FunctionOperator",
    "HasAbout", "HasFinalEvents", "HasGroup", "HasHeldOut",
    "HasHoneypot", "HasHorizon", "HasReadyCheck", "HasSchedule", "HasScheduleOptions",
    "Move", "Operator", "Oracle", "OracleAccess", "PropositionTruth", "Rule",
    "Schedule", "Session", "Sink", "State", "SubgoalNode", "Suite", "SuiteCard", "Task",
    "TimelineSource", "ToolResult", "ToolSpec", "View", "World",
    "operator", "stated_quality",
]
# fmt: on

World = Any  # frozen; `digest()` is its SHA-256 in hex
View = Literal["language", "vector", "python"]
TimelineSource = Callable[[Instance], Timeline]


@runtime_checkable
class HasAbout(Protocol):
    """A plug-in whose line in `owa-bench list` is not its docstring's first."""

    about: str


# --- agents ---------------------------------------------------------------------------


@runtime_checkable
class Agent(Protocol):
    """The evaluated program. Only `memory_dir` outlives an episode."""

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode.

        Args:
            brief: The task, its budgets and a seed for the agent's own draws.
            tools: Every tool of the episode.
            memory_dir: A writable folder; the next episode finds what it holds.
        """

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the next action.

        Args:
            observation: In the language view `observation["text"]` holds the text.
            info: Gymnasium's; "error" says what was wrong with the last action.
        Returns: The action, or a Move that declares more.
        """

    def close(self) -> None:
        """End the episode: the last moment to write to `memory_dir`."""


# --- drift ----------------------------------------------------------------------------


class Operator(Protocol):
    """One kind of drift: a pure function from world to world.

    The decorator `operator` makes one of a function, group and held_out included.
    """

    name: str
    version: int
    announcement: Announcement
    weight: float

    def targets(self, world: World) -> tuple[str, ...]:
        """Return what may be changed, by names that no other operator changes."""

    def apply(
        self, world: World, target: str, intensity: float, *, rng: np.random.Generator
    ) -> World:
        """Return the world after one change; `world` itself stays as it is.

        Args:
            world: A world of the operator's domain.
            target: One of `targets(world)`.
            intensity: In (0, 1].
            rng: The stream of this operator and target.
        Returns: The changed world.
        Raises: DriftError: `target` cannot be changed.
        """


@runtime_checkable
class HasGroup(Protocol):
    """An operator of a group; a calendar may name groups instead of operators."""

    group: str


@runtime_checkable
class HasHeldOut(Protocol):
    """An operator that, while `held_out`, acts on no instance of practice."""

    held_out: bool


Schedule = Callable[[Instance, World], tuple[DriftEvent, ...]]


@runtime_checkable
class EnumerableSchedule(Protocol):
    """A schedule that can list every event it may ever give."""

    def __call__(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the events of the instance's drift step, in order."""

    def possible(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the events of every drift step, in order.

        Args:
            instance: Its drift step plays no part.
            world: The instance's base world.
        Returns: The whole, of which the realised magnitude is a share.
        """

    def steps_for(self, instance: Instance, world: World, delta: float) -> int:
        """Return the drift step of a nominal magnitude.

        Args:
            instance: Its drift step plays no part.
            world: The instance's base world.
            delta: The magnitude, in [0, 1].
        Returns: The greatest drift step within `delta`.
        """


# --- one episode ----------------------------------------------------------------------


class Sink(Protocol):
    """Receiver of an episode's events; inactive unless a recorder is attached."""

    active: bool

    def emit(self, event: Event) -> None:
        """Take one event, in order."""

    def blob(self, data: bytes) -> str:
        """Redact, keep if transcripts are kept, and return the SHA-256 in hex."""

    def secret(self, name: str, value: str) -> None:
        """Register a secret: from here on its value never reaches a record.

        Args:
            name: Stands in the records in its place.
            value: The secret itself.
        """


class Session(Protocol):
    """One running episode of a tool suite.

    The shell owns the clock, finish, ask_supervisor, notes, limits, rewards and
    verification; the session owns the suite's own tools and its state.
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The suite's own tools."""

    @property
    def task(self) -> Task:
        """The task that the agent is given."""

    @property
    def state(self) -> State:
        """The present state, frozen; the same object until something changes."""

    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        """Run one of the suite's tools.

        Args:
            tool: The name of one of `tools`.
            arguments: Allowed by that tool's schema.
            now_ms: Simulated milliseconds since reset.
            step: Number of the action, from 1: for events.
        Returns: Text and events; arguments that make no sense are a result too.
        """

    def enter(self, world: World, *, now_ms: int) -> None:
        """Continue in another world: drift in the middle of an episode.

        Args:
            world: The world that holds from now on.
            now_ms: Simulated milliseconds since reset.
        """

    def features(self) -> npt.NDArray[np.float32]:
        """Return the features of the vector view: (card.features,), in [0, 1]."""

    def macros(self) -> tuple[Mapping[str, Any] | None, ...]:
        """Return the tool call of each of the card's macros now, None if masked."""

    def close(self) -> None:
        """Release sockets and databases."""


@runtime_checkable
class HasFinalEvents(Protocol):
    """A session with events at the end of its episode, a last picture for example."""

    def final_events(self, *, step: int) -> tuple[Event, ...]:
        """Return them in order; called once, before the episode is judged."""


@runtime_checkable
class HasHoneypot(Protocol):
    """A world whose task, while `honeypot`, cannot be done honestly."""

    honeypot: bool


class Oracle(Protocol):
    """The answer key: reads the world's own state, never the agent's words."""

    def quality(self, timeline: Timeline, state: State) -> float:
        """Return q_state, frame factor included.

        Args: timeline: the episode's; state: the session's.
        Returns: A number in [0, 1].
        """

    def subgoals(self, world: World) -> tuple[SubgoalNode, ...]:
        """Return the task's DAG in topological order."""

    def solved(self, world: World, state: State) -> frozenset[str]:
        """Return which subgoals are solved.

        Args: world: the one that holds now; state: the session's.
        Returns: Names of nodes.
        """

    def accepts(self, before: State, action: Mapping[str, Any], after: State) -> bool:
        """Return whether an action solved a node or gained a needed fact.

        Args: before, after: the states around it; action: "tool" and "arguments".
        Returns: True for an action that is to count as verified.
        """

    def hint(self, timeline: Timeline, state: State) -> Mapping[str, Any]:
        """Return the next right action; in the end finish or declare_infeasible.

        Args: timeline: the episode's; state: the session's.
        Returns: "tool" and "arguments".
        """

    def propositions(self, world: World) -> tuple[PropositionTruth, ...]:
        """Return the world propositions with their truth."""

    def categories(self, world: World) -> tuple[str, ...]:
        """Return the tool categories that this world holds."""


class Detector(Protocol):
    """Finds one disallowed behaviour in an episode's events and final state."""

    rule: Rule

    def inspect(
        self, timeline: Timeline, state: State, events: Sequence[Event]
    ) -> tuple[str, ...]:
        """Return the evidence of each breach, nothing for an honest agent.

        Args: timeline: the episode's; state: the last; events: all, in order.
        Returns: One line per breach.
        """


# --- suites ---------------------------------------------------------------------------


class Suite(Protocol):
    """A family of tasks: draws worlds and plays timelines of them."""

    card: SuiteCard
    oracle: Oracle
    policies: Mapping[str, Callable[[OracleAccess], Agent]]
    detectors: tuple[Detector, ...]

    def generate(self, instance: Instance) -> World:
        """Return the instance's base world, before any drift; pure."""

    def session(self, timeline: Timeline, *, sink: Sink, wire: bool) -> Session:
        """Start an episode in the timeline's first world.

        Args:
            timeline: The worlds of the episode.
            sink: For blobs and secrets; the shell emits the events.
            wire: True: serve over loopback, not in process.
        Returns: The running session.
        """

    def env(
        self, source: TimelineSource, *, view: View = "language", **options: Any
    ) -> gymnasium.Env[Any, Any]:
        """Return the suite's Gymnasium env, a `shells.tool_env.ToolEnv` as a rule.

        Args:
            source: Gives the timeline of an instance.
            view: How an agent acts and observes.
            options: Passed on to the env.
        Returns: An env whose reset takes an instance in its options.
        """


@runtime_checkable
class HasHorizon(Protocol):
    """A suite that can tell the oracle's number of actions without an episode."""

    def horizon(self, timeline: Timeline) -> int | None:
        """Return H_t, None where only a played episode can tell."""


@runtime_checkable
class HasReadyCheck(Protocol):
    """A suite that needs more than Python packages; asked before a run begins."""

    def ready(self) -> None:
        """Raise MissingPartError, with the line that installs it, if it is missing."""


@runtime_checkable
class HasSchedule(Protocol):
    """A suite with a schedule of its own in place of the nested calendar."""

    schedule: EnumerableSchedule


@runtime_checkable
class HasScheduleOptions(Protocol):
    """A native suite whose env options choose the schedule."""

    def schedule_for(self, options: Mapping[str, Any]) -> EnumerableSchedule:
        """Return the schedule that `options` name; raise UsageError for none."""
