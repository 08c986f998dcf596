"""The extension API of the acting half: what a suite, operator or agent must be.

    Suite      draws worlds and brings a timeline of them to life
    Operator   a pure function from world to world: one kind of drift
    Schedule   which operators act on an instance, where, how strongly and when
    Agent      reset, act, close
    Detector   finds one disallowed behaviour in an episode

A plug-in folder's entry exports one of SUITE, OPERATOR, AGENT, AXIS, GATE. The last two
belong to the judging half: `scoring/axis.py` and `scoring/gate.py` say what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.records.events import Event, Meter, Outcome, fixed
from owa_bench.records.instance import Announcement, Instance, Timeline

if TYPE_CHECKING:
    import gymnasium

World = Any
State = Any
View = Literal["language", "vector", "python"]
Source = Callable[[Instance], Timeline]


# --- events ---------------------------------------------------------------------


class Sink(Protocol):
    """Where an episode's events go; a no-op unless a recorder is attached."""

    active: bool

    def emit(self, event: Event) -> None:
        """Take one event, in order."""

    def blob(self, data: bytes) -> str:
        """Redact, keep if transcripts are kept, and return the SHA-256 in hex."""

    def secret(self, name: str, value: str) -> None:
        """Learn a secret: from here on its value never reaches a record."""


# --- tools and episodes -----------------------------------------------------------


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


class ToolResult(NamedTuple):
    """What came of one tool call inside a session.

    `text` is what the agent reads (the shell caps it). `elapsed_ms` moves the
    simulated clock. `digest` names the result so that a repeat is seen. `events` are
    those of the call itself, in order.
    """

    text: str
    ok: bool
    elapsed_ms: int = 0
    digest: str = ""
    events: tuple[Event, ...] = ()


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


class Resolved(NamedTuple):
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
class Parting(Protocol):
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

    def propositions(self, world: World) -> tuple[Resolved, ...]:
        """Return the world propositions with their truth."""

    def categories(self, world: World) -> tuple[str, ...]:
        """Return the tool categories that this world holds."""


class Privilege(NamedTuple):
    """What assembly hands to a suite's own control policy, in process only."""

    oracle: Oracle
    observe: Callable[[], tuple[Timeline, State]]


# --- suites -------------------------------------------------------------------------


class Rule(NamedTuple):
    """A disallowed behaviour of a suite."""

    name: str
    text: str
    severity: Literal["flag", "disqualify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCard:
    """What a suite is, for lists, plans and reports.

    `theta` is the success threshold on q_state, `horizon` H (verified actions) and
    `depth_target` D* of the axes A and P. `domain` names the folder of its operators.
    A `native` suite has a Box / Discrete view of its own and none of: tools, finish, a
    stated p, an oracle; its episodes enter no axis.
    `extra` is the optional part of the package that playing it needs, "" for none.
    """

    name: str
    version: int
    title: str
    about: str
    source: str
    env_id: str
    domain: str
    families: tuple[str, ...]
    tiers: tuple[int, ...]
    theta: float
    horizon: int
    depth_target: int
    step_limit: int
    categories: tuple[str, ...]
    proposition_kinds: tuple[str, ...]
    axes: tuple[str, ...]
    rules: tuple[Rule, ...]
    features: int = 0
    macros: tuple[str, ...] = ()
    native: bool = False
    extra: str = ""


class Detector(Protocol):
    """Finds one disallowed behaviour in an episode's events and final state."""

    rule: Rule

    def inspect(
        self, timeline: Timeline, state: State, events: Sequence[Event]
    ) -> tuple[str, ...]:
        """Return one line of evidence per breach; nothing when the agent is honest."""


class Suite(Protocol):
    """A family of tasks: draws worlds and brings a timeline of them to life."""

    card: SuiteCard
    oracle: Oracle
    policies: Mapping[str, Callable[[Privilege], Agent]]
    detectors: tuple[Detector, ...]

    def generate(self, instance: Instance) -> World:
        """Return the instance's base world, before any drift; pure."""

    def session(self, timeline: Timeline, *, sink: Sink, wire: bool) -> Session:
        """Bring a timeline's first world to life, in process or over loopback."""

    def env(
        self, source: Source, *, view: View = "language", **options: Any
    ) -> gymnasium.Env[Any, Any]:
        """Return the Gymnasium env over `source`."""


@runtime_checkable
class Foreseeing(Protocol):
    """A suite that can say what the oracle takes without playing an episode."""

    def horizon(self, timeline: Timeline) -> int | None:
        """Return H_t, None where only a played episode can tell."""


# --- drift --------------------------------------------------------------------------


class Operator(Protocol):
    """One kind of drift: a pure function from world to world."""

    name: str
    version: int
    announcement: Announcement
    weight: float

    def targets(self, world: World) -> tuple[str, ...]:
        """Return what may be changed, by names that no other operator changes."""

    def apply(
        self, world: World, target: str, intensity: float, *, rng: np.random.Generator
    ) -> World:
        """Return the changed world; DriftError if `target` cannot be changed."""


class Strike(NamedTuple):
    """One entry of a schedule: at `at_ms`, `operator` acts on `target`."""

    at_ms: int
    operator: str
    target: str
    intensity: float


Schedule = Callable[[Instance, World], tuple[Strike, ...]]


class Almanac(Protocol):
    """A schedule that knows all it could ever do, and the step of a magnitude.

    A suite with a `schedule` of this kind has it in place of the nested calendar.
    """

    def __call__(self, instance: Instance, world: World) -> tuple[Strike, ...]:
        """Return the strikes of the instance's drift step, in order."""

    def whole(self, instance: Instance, world: World) -> tuple[Strike, ...]:
        """Return every strike that it could ever make, in order."""

    def steps_for(self, instance: Instance, world: World, delta: float) -> int:
        """Return the drift step of nominal magnitude `delta`."""


# --- agents -------------------------------------------------------------------------


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


# --- quality ------------------------------------------------------------------------


def stated_quality(
    q_state: float, p: float | None, success: bool, share: float
) -> float:
    """Return Q = (1 - l) q_state + l (1 - (p - y)^2), p = .5 when none was stated.

    Proper in p; sabotage never pays while l <= theta / (1 + theta).
    Source: `suites.md` section 0, Quality.
    """
    gap = (0.5 if p is None else p) - float(success)
    return fixed((1.0 - share) * q_state + share * (1.0 - gap * gap))
