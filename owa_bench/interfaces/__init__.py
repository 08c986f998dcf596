"""The extension API of the acting half: the contract of agents, operators and suites.

    Agent      is evaluated: reset, act, close
    Operator   one kind of drift: a pure function from world to world
    Schedule   which operators act on an instance, where, how strongly and when
    Suite      draws worlds and plays timelines of them
    Session    one running episode of a tool suite; Oracle and Detector judge it

Read from top to bottom. A plug-in needs no base class, only the attributes named here.
A protocol called `Has..` is optional, and so is `Seated`: its attributes are used where
a plug-in has them.
`owa_bench.contract_checks` tests a plug-in. The plain values are in `values.py`; import
everything from here; the protocols of one episode are in `sessions.py`. Axes and gates
are the judging half's: `scoring/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from owa_bench.interfaces.sessions import (
    Detector,
    HasAttachment,
    HasCrewBound,
    HasEar,
    HasFinalEvents,
    HasFinishRefusal,
    HasHoneypot,
    HasOffer,
    HasProducts,
    HasRounds,
    HoldoutResult,
    InnerDraw,
    Laboratory,
    NeedsLaboratory,
    Oracle,
    PlayedAttempt,
    PlayedPair,
    Seated,
    Session,
    Sink,
    Subject,
    Ticket,
    World,
)
from owa_bench.interfaces.values import (
    AgentCard,
    AgentConfig,
    Brief,
    DriftEvent,
    Ending,
    Move,
    Needs,
    OracleAccess,
    PropositionTruth,
    Rule,
    Setting,
    State,
    SubgoalNode,
    SuiteCard,
    Task,
    Terms,
    ToolResult,
    ToolSpec,
    stated_quality,
)
from owa_bench.records.instance import Announcement, Instance, Timeline

if TYPE_CHECKING:
    import gymnasium

# fmt: off
__all__ = [
    "Agent", "AgentCard", "AgentConfig", "Brief", "Detector", "DriftEvent",
    "Ending", "EnumerableSchedule", "HasAbout", "HasAttachment",
    "HasCrewBound", "HasEar", "HasEffectiveClass", "HasFinalEvents",
    "HasFinishRefusal", "HasGroup", "HasHeldOut", "HasHoneypot", "HasHorizon",
    "HasOffer",
    "HasProcedure", "HasProducts", "HasReadyCheck", "HasRounds", "HasSchedule",
    "HasScheduleOptions", "HasTerms", "HoldoutResult", "InnerDraw", "Laboratory",
    "Move", "Needs", "NeedsLaboratory", "Operator", "Oracle", "OracleAccess",
    "PlayedAttempt", "PlayedPair", "PropositionTruth", "Rule", "Schedule", "Seated",
    "Session", "Setting", "Sink", "State", "SubgoalNode", "Subject", "Suite",
    "SuiteCard", "Task", "Terms", "Ticket", "TimelineSource", "ToolResult",
    "ToolSpec", "View", "World", "stated_quality",
]
# fmt: on

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

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
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


@runtime_checkable
class Operator(Protocol):
    """One kind of drift: a pure function from world to world.

    The decorator of `owa_bench.drift.operator` makes one of a function.
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


# --- suites ---------------------------------------------------------------------------


class Suite(Protocol):
    """A family of tasks: draws worlds and plays timelines of them."""

    card: SuiteCard
    oracle: Oracle
    policies: Mapping[str, Callable[[OracleAccess], Agent]]
    detectors: tuple[Detector, ...]

    def generate(self, instance: Instance) -> World:
        """Return the instance's base world, before any drift; pure."""

    def session(
        self, timeline: Timeline, sink: Sink, setting: Setting, laboratory: Laboratory | None = None
    ) -> Session:
        """Start an episode in the timeline's first world.

        Args:
            timeline: The worlds of the episode.
            sink: For blobs and secrets; the shell emits the events.
            setting: The terms from the plan entry, which the session enforces.
            laboratory: For suites that play attempts inside an episode.
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
class HasTerms(Protocol):
    """A suite whose threshold, limits or tools differ between instances."""

    def terms(self, instance: Instance) -> Terms:
        """Return an instance's terms; pure."""


@runtime_checkable
class HasEffectiveClass(Protocol):
    """A suite that can tell what its worlds show of a change."""

    def effective_class(self, before: World, after: World, met: World) -> Announcement:
        """Return the class that a change has in effect; pure.

        Args:
            before: The world just before the change.
            after: The world just after it.
            met: The world that the agent meets, after all changes of that moment.
        Returns: D0 to D3.
        """


@runtime_checkable
class HasProcedure(Protocol):
    """A suite whose oracle's answers are replaced in scripts by how they are made."""

    def procedure(self, world: World, actions: Sequence[str]) -> tuple[str, ...]:
        """Return the lines of a script, for replays that derive their answers.

        Args:
            world: The undrifted world.
            actions: The oracle's actions in it.
        Returns: JSON lines, one a call; further keys say how an answer is derived.
        """


@runtime_checkable
class HasHorizon(Protocol):
    """A suite that can tell the oracle's number of actions without an episode."""

    def horizon(self, timeline: Timeline) -> int | None:
        """Return H_t, None where only a played episode can tell."""


@runtime_checkable
class HasProcess(Protocol):
    """A session that may hold a process, a server or a folder outside of Python."""

    @property
    def process(self) -> str:
        """What it holds now, for a message, "" for nothing: then its env is copied."""


@runtime_checkable
class HasReadyCheck(Protocol):
    """A suite that needs more than Python packages; asked before a run begins."""

    def ready(self, families: tuple[str, ...]) -> None:
        """Raise MissingPartError, with the line that installs it, if it is missing.

        Args: families: those that are to be played.
        """


@runtime_checkable
class HasSchedule(Protocol):
    """A suite with a schedule of its own in place of the nested calendar."""

    schedule: EnumerableSchedule


@runtime_checkable
class HasScheduleOptions(Protocol):
    """A native suite whose env options choose the schedule."""

    def schedule_for(self, options: Mapping[str, Any]) -> EnumerableSchedule:
        """Return the schedule that `options` name; raise UsageError for none."""
