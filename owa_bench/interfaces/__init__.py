"""The extension API of the acting half: the contract of agents, operators and suites.

    Agent      is evaluated: reset, act, close
    Operator   one kind of drift: a pure function from world to world
    Schedule   which operators act on an instance, where, how strongly and when
    Suite      draws worlds and plays timelines of them
    Session    one running episode of a tool suite; Oracle and Detector judge it

Read from top to bottom. Suites, sessions, oracles and operators are subclasses of these classes:
what is abstract they must define, all else has a default. An agent, a schedule and a detector need
no base class, only the attributes named here. `owa_bench.contract_checks` tests a plug-in. The
plain values are in `values.py`; import everything from here; what one episode is made of is in
`sessions.py`. Axes and gates are the judging half's: `scoring/`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from owa_bench.errors import UsageError
from owa_bench.interfaces.sessions import (
    BodySession,
    Detector,
    HoldoutResult,
    InnerDraw,
    Laboratory,
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
    EpisodeWork,
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
    "Agent", "AgentCard", "AgentConfig", "BodySession", "Brief", "Detector", "DriftEvent", "Ending",
    "EnumerableSchedule", "EpisodeWork", "HoldoutResult", "InnerDraw", "Laboratory",
    "Move", "Needs",
    "Operator", "Oracle", "OracleAccess", "PlayedAttempt", "PlayedPair",
    "PropositionTruth", "Rule", "Schedule", "Seated", "Session", "Setting", "Sink",
    "State", "SubgoalNode", "Subject", "Suite", "SuiteCard", "Task", "Terms", "Ticket",
    "TimelineSource", "ToolResult", "ToolSpec", "View", "World", "stated_quality",
]
# fmt: on

View = Literal["language", "vector", "python"]
TimelineSource = Callable[[Instance], Timeline]


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


class Operator(ABC):
    """One kind of drift: a pure function from world to world.

    The decorator `owa_bench.operator` makes one of a function. A calendar may name a `group` in
    place of operators; while `held_out`, it acts on no instance of practice.
    """

    name: str
    announcement: Announcement
    weight: float
    version: int = 1
    group: str = ""
    held_out: bool = False

    @abstractmethod
    def targets(self, world: World) -> tuple[str, ...]:
        """Return what may be changed, by names that no other operator changes."""

    @abstractmethod
    def apply(
        self, world: World, target: str, intensity: float, *, rng: np.random.Generator
    ) -> World:
        """Return the world after one change; `world` itself stays as it is.

        Args:
            world: A world of the operator's domain.
            target: One of `targets(world)`.
            intensity: In (0, 1].
            rng: The stream of this operator and target.
        Raises: DriftError: `target` cannot be changed.
        """


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


class Suite(ABC):
    """A family of tasks: draws worlds and plays timelines of them.

    A suite has `card`, `generate` and `env` (`shells.tool_env.ToolSuite` has an `env`), and one
    with tools has `oracle` and `session`. All else has a default. `policies` are control policies
    by name, made from an `OracleAccess`, or of an embodied suite from its `BodySession`,
    `detectors` find breaches of the card's rules, `schedule` is the drift in place of the nested
    calendar of the card's domain, and `needs_laboratory` says that sessions play attempts inside an
    episode.
    """

    card: SuiteCard
    policies: Mapping[str, Callable[[Any], Agent]] = {}
    detectors: tuple[Detector, ...] = ()
    schedule: EnumerableSchedule | None = None
    needs_laboratory: bool = False

    @abstractmethod
    def generate(self, instance: Instance) -> World:
        """Return the instance's base world, before any drift; pure."""

    @abstractmethod
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

    @property
    def oracle(self) -> Oracle:
        """The answer key; UsageError: a native suite has none."""
        raise UsageError(
            f"{self.card.title} has no oracle: an episode's rewards sum to its quality."
        )

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
        Raises: UsageError: a native suite has none.
        """
        raise UsageError(f"{self.card.title} has no tools: play it as a Gymnasium env.")

    def body(self, timeline: Timeline, setting: Setting) -> BodySession:
        """Start an episode of an embodied suite in the timeline's first world.

        Args:
            timeline: The worlds of the episode.
            setting: The terms from the plan entry: side, unit and fleet.
        Returns: The running episode.
        Raises: UsageError: the suite has no body.
        """
        raise UsageError(f"{self.card.title} has no body: its card is not `embodied`.")

    def ready(self, families: tuple[str, ...]) -> None:  # noqa: B027  most need Python alone
        """Raise MissingPartError, with the line that installs it, if a part is missing.

        Asked before a run begins, by a suite that needs more than Python packages.

        Args: families: those that are to be played.
        """

    def terms(self, instance: Instance) -> Terms:
        """Return an instance's threshold, limits and tools: the card's; pure."""
        return Terms(self.card.theta, self.card.step_limit)

    def horizon(self, timeline: Timeline) -> int | None:
        """Return H_t, the oracle's actions; None where only a played episode can tell."""
        return None

    def honeypot(self, world: World) -> bool:
        """Return whether the task of a world cannot be done honestly; pure."""
        return False

    def effective_class(self, before: World, after: World, met: World) -> Announcement | None:
        """Return the class that a change has in effect; pure.

        Args:
            before: The world just before the change.
            after: The world just after it.
            met: The world that the agent meets, after all changes of that moment.
        Returns: D0 to D3; None: its operator's.
        """
        return None

    def procedure(self, world: World, actions: tuple[str, ...]) -> tuple[str, ...]:
        """Return the lines of a script, for replays that derive their answers.

        Args:
            world: The undrifted world.
            actions: The oracle's actions in it.
        Returns: JSON lines, one a call; further keys say how an answer is derived.
        """
        return actions

    def schedule_for(self, options: Mapping[str, Any]) -> EnumerableSchedule | None:
        """Return the schedule that the env options of a native suite name.

        Args: options: of `env`; UsageError for those that name none.
        Returns: None: the suite's own.
        """
        return None
