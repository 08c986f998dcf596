"""The contract of one episode: sinks, sessions of a tool suite, oracles, detectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.canonical import record_digest
from owa_bench.errors import UsageError
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
from owa_bench.records.observables import Floats

World = Any  # frozen; `digest()` is its SHA-256 in hex
NO_ROUNDS = "The session of this suite has no rounds."


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


class Session(ABC):
    """One running episode of a tool suite.

    The shell owns the clock, finish, ask_supervisor, notes, limits, rewards and verification; the
    session owns the suite's own tools and its state. It must have `tools`, `task` and `state`, each
    an attribute or a property, and the two abstract methods; all else has a default.

    `process` says what it holds outside of Python now, a process, a server or a folder, for a
    message; "" for nothing: then its env can be copied. `attachment` is the base64 of bytes that
    belong to the last answer, for `info`, "" for nothing. `reply_limit` is the most characters of a
    reply, 0 for the shell's own.
    """

    process: str = ""
    attachment: str = ""
    reply_limit: int = 0

    if TYPE_CHECKING:  # a property here would refuse `self.state = ..` in a session

        @property
        def tools(self) -> tuple[ToolSpec, ...]:
            """The suite's own tools."""

        @property
        def task(self) -> Task:
            """The task that the agent is given."""

        @property
        def state(self) -> State:
            """The present state, frozen; the same object until something changes."""

    @abstractmethod
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

    @abstractmethod
    def enter(self, world: World, *, now_ms: int) -> None:
        """Continue in another world: drift in the middle of an episode.

        Args:
            world: The world that holds from now on.
            now_ms: Simulated milliseconds since reset.
        """

    @property
    def offer(self) -> tuple[str, ...] | None:
        """Names of the suite's and the standard tools that may be called now.

        None: those of the suite's `terms`, for the whole episode.
        """
        return None

    def features(self) -> npt.NDArray[np.float32]:
        """Return the features of the vector view: (card.features,), in [0, 1]."""
        return np.zeros(0, dtype=np.float32)

    def macros(self) -> tuple[Mapping[str, Any] | None, ...]:
        """Return the tool call of each of the card's macros now, None if masked."""
        return ()

    def hear(self, event: Event, text: str = "") -> str:
        """Take note of what an agent declares, or of a hint that its seat was given.

        Args:
            event: The declaration, or the supervisor's help.
            text: Of the hint.
        Returns: A sentence to put before the next answer, "" for none.
        """
        return ""

    def finish_refusal(self, arguments: Mapping[str, Any]) -> str:
        """Return why `finish` does not end the episode yet, "" where it does."""
        return ""

    def final_events(self, *, step: int) -> tuple[Event, ...]:
        """Return events at the end, in order; called once, before the episode is judged."""
        return ()

    def close(self) -> None:  # noqa: B027  most sessions hold nothing
        """Release sockets and databases."""


class Seated(Session):
    """A session of several seats, of which one acts at a time, or of several sittings.

    Each seat is an agent in a process of its own, with a memory folder of its own. When the number
    of its sitting rises the process is closed and a new one started. Only the first seat ends the
    episode with finish and states p; any other retires with it.

    It is a class of its own: only together do its members say who acts and what that seat is told,
    so none has a default that is true of every session. `seats` are those that play under the
    setting; the first leads.
    """

    seats: tuple[str, ...]

    @property
    @abstractmethod
    def seat(self) -> str:
        """The seat that acts next."""

    @property
    def sitting(self) -> int:
        """The number of that seat's present sitting, from 0."""
        return 0

    @property
    def task(self) -> Task:
        """The task of the seat that leads."""
        return self.task_of(self.seats[0])

    @abstractmethod
    def task_of(self, seat: str) -> Task:
        """Return what a seat is told at the start of each of its sittings."""

    @abstractmethod
    def look(self) -> str:
        """Return what the seat that acts next is shown before it acts, "" for nothing.

        Called once before each action, after the time of the one before has passed.
        """

    def retire(self, seat: str) -> None:
        """Give a seat no further turn; never the one that leads."""
        raise UsageError(f"`{type(self).__name__}` has several seats and no `retire`.")

    # Seats that act at the same time, round by round: what one is shown in a round does
    # not depend on what others do in it.

    @property
    def acting(self) -> tuple[str, ...]:
        """The seats that have a turn left in this round, in the order of their acts."""
        raise UsageError(NO_ROUNDS)

    @property
    def remaining(self) -> tuple[str, ...]:
        """The seats that still have turns."""
        raise UsageError(NO_ROUNDS)

    def preview(self, seat: str) -> str:
        """Return what `look` would return at the seat's turn in this round.

        Args: seat: one that still plays.
        Returns: The text; nothing counts as shown by this.
        """
        raise UsageError(NO_ROUNDS)

    # What the seats could do with full information.

    @property
    def crew_bound(self) -> float | None:
        """C*_m, the quality that the seats which play could reach; None: unknown."""
        return None

    @property
    def no_lift(self) -> str:
        """Why this world cannot show what a crew adds, "" if it can."""
        return ""


class BodySession(ABC):
    """One running episode of a body, command by command.

    The suite owns engine, guard and judge; the shell owns the record. `hertz` commands a second of
    `numbers` numbers each. `over` says why the episode ended, "" while it goes on; `late`: the time
    is over; `broken`: the body failed by no fault of the agent's. `success` is strict and by the
    state alone, `quality` in [0, 1]. `moved_s` are the seconds that the guard counts as motion,
    `most_s` those that may count.
    """

    hertz: int
    numbers: int
    task: Task
    over: str
    late: bool
    broken: bool
    success: bool
    quality: float
    moved_s: float
    most_s: float

    @abstractmethod
    def tick(self, action: Floats | None) -> float:
        """Play a command.

        Args:
            action: (numbers,) in [-1, 1]; None: none could be read.
        Returns: The quality that it added.
        """

    @abstractmethod
    def observation(self) -> npt.NDArray[np.float32]:
        """Return what the body shows now."""

    @abstractmethod
    def events(self, step: int) -> tuple[Event, ...]:
        """Return what the guard wrote down since it was last asked.

        Args:
            step: The tick, from 1.
        """

    @abstractmethod
    def final_events(self, step: int) -> tuple[Event, ...]:
        """Return what is known at the end: faults and repairs.

        Args:
            step: The last tick.
        """

    def enter(self, world: World) -> None:
        """Continue in another world: drift in the middle of an episode.

        Args:
            world: The world that holds from now on.
        """
        raise UsageError(f"The body of `{type(self).__name__}` changes between episodes alone.")

    def close(self) -> None:  # noqa: B027  most bodies hold nothing
        """Release the body."""


class Oracle(ABC):
    """The answer key: reads the world's own state, never the agent's words."""

    @abstractmethod
    def quality(self, timeline: Timeline, state: State) -> float:
        """Return q_state, frame factor included.

        Args: timeline: the episode's; state: the session's.
        Returns: A number in [0, 1].
        """

    @abstractmethod
    def subgoals(self, world: World) -> tuple[SubgoalNode, ...]:
        """Return the task's DAG in topological order.

        An edge is a flow: what a right solution of the node looks like depends on what the
        prerequisite served, and cannot be guessed without it.
        """

    @abstractmethod
    def solved(self, world: World, state: State) -> frozenset[str]:
        """Return which subgoals are solved.

        Args: world: the one that holds now; state: the session's.
        Returns: Names of nodes.
        """

    def products(self, world: World, state: State) -> frozenset[str] | None:
        """Return the nodes of which the agent has been served what they are for.

        Args: world: the one that holds now; state: the session's.
        Returns: Names of nodes, the solved ones among them; None: those alone.
        """
        return None

    @abstractmethod
    def gained(self, before: State, action: Mapping[str, Any], after: State) -> frozenset[str]:
        """Return what an action gained that the task needs, by name.

        A node of the DAG that it solved, all the rows that a node needs, a credential, a document,
        a record posted. An action is verified if a name is among them that the episode had not
        gained before, so that pages and repeats count nothing.

        Args: before, after: the states around it; action: "tool" and "arguments".
        Returns: Names; those of solved nodes are the nodes' own.
        """

    @abstractmethod
    def hint(self, timeline: Timeline, state: State) -> Mapping[str, Any]:
        """Return the next right action; in the end finish or declare_infeasible.

        Args: timeline: the episode's; state: the session's.
        Returns: "tool" and "arguments".
        """

    @abstractmethod
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the listed propositions that are resolved, with their truth."""

    @abstractmethod
    def categories(self, world: World) -> tuple[str, ...]:
        """Return the kinds of tool that the answer key's way through this world takes.

        Axis T counts no other kind here; none: the task needs no tools.
        """


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

    `draw` is "development", whose instances are a pool, or "confirmation", of which no other draw
    has an instance. A holdout has no ticket: `Laboratory.answer` alone plays one. `repeat` chooses
    the subject's own draws.
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
