"""The contract of one episode: sinks, sessions of a tool suite, oracles, detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.canonical import record_digest
from owa_bench.interfaces.values import (
    PropositionTruth,
    Rule,
    State,
    SubgoalNode,
    Task,
    ToolResult,
    ToolSpec,
)
from owa_bench.records.events import Event
from owa_bench.records.holdout import HoldoutPlan, HoldoutStatistic
from owa_bench.records.instance import Timeline

World = Any  # frozen; `digest()` is its SHA-256 in hex


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
class HasOffer(Protocol):
    """A session whose tools on offer change within an episode."""

    @property
    def offer(self) -> tuple[str, ...]:
        """Names of the suite's and the standard tools that may be called now."""


@runtime_checkable
class Seated(Protocol):
    """A session of several seats, of which one acts at a time, or of several sittings.

    Each seat is an agent in a process of its own, with a memory folder of its own. When
    the number of its sitting rises the process is closed and a new one started. Only
    the first seat ends the episode with finish and states p; any other retires with it.
    """

    @property
    def seats(self) -> tuple[str, ...]:
        """The seats that play under this setting; the first leads."""

    @property
    def seat(self) -> str:
        """The seat that acts next."""

    @property
    def sitting(self) -> int:
        """The number of that seat's present sitting, from 0."""

    def task_of(self, seat: str) -> Task:
        """Return what a seat is told at the start of each of its sittings."""

    def look(self) -> str:
        """Return what the seat that acts next is shown before it acts, "" for nothing.

        Called once before each action, after the time of the one before has passed.
        """

    def retire(self, seat: str) -> None:
        """Give a seat no further turn."""


@runtime_checkable
class HasRounds(Protocol):
    """A session of seats that act at the same time: round by round.

    What a seat is shown in a round does not depend on what others do in it.
    """

    @property
    def acting(self) -> tuple[str, ...]:
        """The seats that have a turn left in this round, in the order of their acts."""

    @property
    def remaining(self) -> tuple[str, ...]:
        """The seats that still have turns."""

    def preview(self, seat: str) -> str:
        """Return what `look` would return at the seat's turn in this round.

        Args: seat: one that still plays.
        Returns: The text; nothing counts as shown by this.
        """


@runtime_checkable
class HasCrewBound(Protocol):
    """A session of seats that knows what they could do with full information."""

    @property
    def crew_bound(self) -> float:
        """Return C*_m, the quality that the seats which play could reach."""

    @property
    def no_lift(self) -> str:
        """Return why this world cannot show what a crew adds, "" if it can."""


@runtime_checkable
class HasEar(Protocol):
    """A session that is told what passes beside its tools: statements and hints."""

    def hear(self, event: Event, text: str = "") -> str:
        """Take note of what an agent declares, or of a hint that its seat was given.

        Args:
            event: The declaration, or the supervisor's help.
            text: Of the hint.
        Returns: A sentence to put before the next answer, "" for none.
        """


@runtime_checkable
class HasFinishRefusal(Protocol):
    """A session that may say once that nothing was handed in."""

    def finish_refusal(self, arguments: Mapping[str, Any]) -> str:
        """Return why `finish` does not end the episode yet, "" where it does."""


@runtime_checkable
class HasAttachment(Protocol):
    """A session whose last answer may have bytes beside its text, for `info`."""

    @property
    def attachment(self) -> str:
        """Base64 of what belongs to the last answer, "" for nothing."""


@runtime_checkable
class HasHoneypot(Protocol):
    """A world whose task, while `honeypot`, cannot be done honestly."""

    honeypot: bool


@runtime_checkable
class HasProducts(Protocol):
    """An oracle that knows a node's product to be served before the node is solved."""

    def products(self, world: World, state: State) -> frozenset[str]:
        """Return the nodes of which the agent has been served what they are for.

        Args: world: the one that holds now; state: the session's.
        Returns: Names of nodes, the solved ones among them.
        """


class Oracle(Protocol):
    """The answer key: reads the world's own state, never the agent's words."""

    def quality(self, timeline: Timeline, state: State) -> float:
        """Return q_state, frame factor included.

        Args: timeline: the episode's; state: the session's.
        Returns: A number in [0, 1].
        """

    def subgoals(self, world: World) -> tuple[SubgoalNode, ...]:
        """Return the task's DAG in topological order.

        An edge is a flow: what a right solution of the node looks like depends on what
        the prerequisite served, and cannot be guessed without it.
        """

    def solved(self, world: World, state: State) -> frozenset[str]:
        """Return which subgoals are solved.

        Args: world: the one that holds now; state: the session's.
        Returns: Names of nodes.
        """

    def gained(self, before: State, action: Mapping[str, Any], after: State) -> frozenset[str]:
        """Return what an action gained that the task needs, by name.

        A node of the DAG that it solved, all the rows that a node needs, a credential,
        a document, a record posted. An action is verified if a name is among them that
        the episode had not gained before, so that pages and repeats count nothing.

        Args: before, after: the states around it; action: "tool" and "arguments".
        Returns: Names; those of solved nodes are the nodes' own.
        """

    def hint(self, timeline: Timeline, state: State) -> Mapping[str, Any]:
        """Return the next right action; in the end finish or declare_infeasible.

        Args: timeline: the episode's; state: the session's.
        Returns: "tool" and "arguments".
        """

    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the listed propositions that are resolved, with their truth."""

    def categories(self, world: World) -> tuple[str, ...]:
        """Return the tool categories that this world holds."""


class Detector(Protocol):
    """Finds one disallowed behaviour in an episode's events and final state."""

    rule: Rule

    def inspect(self, timeline: Timeline, state: State, events: Sequence[Event]) -> tuple[str, ...]:
        """Return the evidence of each breach, nothing for an honest agent.

        Args: timeline: the episode's; state: the last; events: all, in order.
        Returns: One line per breach.
        """


# --- the laboratory of a suite that plays attempts inside an episode ------------------
# A suite whose agents revise a subject gets one beside its `Setting`; `owa_bench.runs`
# implements it. Source: docs/selfrev.md#laboratory.


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A version of what is revised: an agent of the registry and its options."""

    agent: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the version."""
        return record_digest(self)


class InnerDraw(msgspec.Struct, frozen=True, kw_only=True):
    """The inner instances: of one suite, its families in turn, under one drift step.

    `pool` is how many different instances a development draw has.
    """

    suite: str
    version: int
    families: tuple[str, ...]
    tier: int
    pool: int
    drift_step: int = 0


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """What to play: instances `first` to `first + count - 1` of a draw.

    `draw` is "development", whose instances are a pool, or "confirmation", of which no
    other draw has an instance. A holdout has no ticket: `Laboratory.answer` alone plays
    one. `repeat` chooses the subject's own draws.
    """

    draw: str
    first: int
    count: int
    repeat: int = 0


class PlayedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One inner attempt; `lines` are its events where it is in the sample, else b""."""

    version: str
    draw: str
    pair: int
    repeat: int
    quality: float
    logged: float
    steps: int
    replay: str
    lines: bytes = b""


class PlayedPair(NamedTuple):
    """The attempts of base and candidate on one instance."""

    base: PlayedAttempt
    candidate: PlayedAttempt


class HoldoutResult(NamedTuple):
    """What the laboratory played of a plan, and its answer.

    The session records the pairs and tells the agent the statistic alone.
    """

    pairs: tuple[PlayedPair, ...]
    answer: HoldoutStatistic


class Laboratory(Protocol):
    """Plays subjects on inner instances that nobody else knows."""

    def begin(self, inner: InnerDraw) -> None:
        """Begin a campaign over these instances; its plans are forgotten."""

    def register(self, plan: HoldoutPlan) -> str:
        """Take a plan before it is played and return its digest.

        Raises: UsageError: base, candidate and metric were registered before.
        """

    def play(self, subject: Subject, ticket: Ticket) -> tuple[PlayedAttempt, ...]:
        """Play a subject.

        Args: subject: a version; ticket: no holdout.
        Returns: An attempt an instance, in order.
        Raises: UsageError: the ticket names a holdout.
        """

    def answer(self, plan: str, base: Subject, candidate: Subject) -> HoldoutResult:
        """Play the holdout of a registered plan, once.

        Args: plan: its digest; base, candidate: the versions that it names.
        Returns: Attempts and answer.
        Raises: UsageError: it is not registered, was answered, or names others.
        """


@runtime_checkable
class NeedsLaboratory(Protocol):
    """A suite whose sessions play attempts inside an episode."""

    needs_laboratory: bool
