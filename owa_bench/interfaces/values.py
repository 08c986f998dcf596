"""The frozen values that pass between plug-ins and the harness, and the two cards.

In the order of `owa_bench.interfaces`: agents, drift, one episode, suites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from owa_bench.errors import FieldError, one_of
from owa_bench.records.events import Event, Meter, Outcome, Side, WitnessedMeter, fixed
from owa_bench.records.instance import Timeline
from owa_bench.records.protocol import SYMBOLS
from owa_bench.records.tool_kinds import TOOL_KINDS

if TYPE_CHECKING:
    from owa_bench.interfaces import Agent, Oracle

Needs = Literal["nothing", "script", "privilege"]
NEEDS: tuple[Needs, ...] = ("nothing", "script", "privilege")
State = Any  # a session's frozen state; two are compared with ==
# Fields of a suite's card that hold several names; one text would be read as letters.
_NAMES = ("families", "proposition_kinds", "axes", "macros", "roles")


_KINDS = ", ".join(TOOL_KINDS)
_KINDS_RULE = f'must map each tool to its kind of tool ({_KINDS}), or to "" where it is of none'


# --- agents ---------------------------------------------------------------------------


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as an agent sees it; `parameters` is a JSON Schema object."""

    name: str
    about: str
    parameters: Mapping[str, Any]

    @property
    def function(self) -> dict[str, Any]:
        """The tool in the function-calling form that chat models read."""
        described = {"name": self.name, "description": self.about}
        function = {**described, "parameters": self.parameters}
        return {"type": "function", "function": function}


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """The task that an agent gets at reset; `interventions_left` None: no limit.

    `role` is its seat, `session` the number of its sitting. Nothing in it tells a control from a
    scored episode: no ceiling on roles, mute, phase, lane or day.
    """

    text: str
    goal: Mapping[str, Any]
    propositions: Mapping[str, str] = {}
    budgets: Mapping[str, float] = {}
    interventions_left: int | None = None
    role: str = "agent"
    session: int = 0
    seed: int = 0


class Move(NamedTuple):
    """An agent's answer; everything but the action is declared, not measured."""

    action: Any
    usage: tuple[tuple[Meter, float], ...] = ()
    messages: tuple[Event, ...] = ()
    model_calls: tuple[Event, ...] = ()
    beliefs: tuple[tuple[str, float], ...] = ()
    revision: Event | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Free options of an agent, the script for agents that replay one, its variables.

    `environment` is its process's; in-process the harness' with the agent's own.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    script: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """An agent in the registry.

    `needs` "script": it is given the oracle's drift-free actions (the fixed archetype);
    "privilege": a suite's control policy of this name is played, `make` is None. `suites` empty:
    any tool suite; `native` adds suites without tools: True all of them, or their names. `options`
    maps each option to a line about it; `required` names those without which it cannot be made.
    `asks_model`: its first act asks a model, so it is played once up to that act in each suite
    before a plan is signed.
    """

    name: str
    about: str
    make: Callable[[AgentConfig], Agent] | None
    needs: Needs = "nothing"
    suites: tuple[str, ...] = ()
    native: bool | tuple[str, ...] = False
    options: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    asks_model: bool = False

    def __post_init__(self) -> None:
        """Refuse a need that no harness meets: the agent would play without it."""
        if self.needs not in NEEDS:
            raise FieldError("needs", self.needs, one_of(self.needs, NEEDS))


# --- drift ----------------------------------------------------------------------------


class DriftEvent(NamedTuple):
    """One entry of a schedule: at `at_ms`, `operator` acts on `target`."""

    at_ms: int
    operator: str
    target: str
    intensity: float


# --- one episode ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The terms of one episode from its plan entry, which no agent is told.

    `wire`: serve over loopback, not in process. At most `role_cap` seats play (None: all); seats of
    a `muted` crew cannot pass messages. `tools_off` are taken from those on offer. `side` is the
    body of an embodied suite, `unit` the one of the fleet whose seed is `fleet`. `one_reader`: one
    agent plays all seats and reads all their texts, as no run has it.
    """

    wire: bool = False
    role_cap: int | None = None
    muted: bool = False
    tools_off: tuple[str, ...] = ()
    side: Side = "sim"
    unit: int = 0
    fleet: int = 0
    one_reader: bool = False


class Terms(NamedTuple):
    """The terms that a suite sets for one instance.

    `theta` is the success threshold on q_state, `horizon` H (verified actions; 0: the card's),
    `tools` the names of the tools on offer at the start, standard ones included; None: all.
    `memory_bytes` is what `memory_dir` may hold when a sitting begins, names of files included; 0:
    no limit but the run's own.
    """

    theta: float
    step_limit: int
    horizon: int = 0
    tools: tuple[str, ...] | None = None
    memory_bytes: int = 0


class Task(NamedTuple):
    """A task in prose, the same goal as JSON, and its propositions.

    `propositions` maps an id to its text; the agent may state p for each.
    """

    text: str
    goal: Mapping[str, Any]
    propositions: Mapping[str, str]


class ToolResult(NamedTuple):
    """The result of one tool call inside a session.

    `text` is what the agent reads (the shell caps it). `elapsed_ms` moves the simulated clock.
    `digest` names the result so that a repeat is recognised; `action_key` names the call for that
    where its arguments do not (the number of a control on a page that changes). `events` are those
    of the call itself, in order. `over` says why the episode is over by the suite's own rules, ""
    while it goes on; `timed`: a limit of wall or CPU time decided the result, so a replay may
    differ. `waiting`: friction took the step (a limit sat out, a refusal that says when to come
    back, a sign-in that lapsed); it is counted apart and not against the step limit.
    """

    text: str
    ok: bool
    elapsed_ms: int = 0
    digest: str = ""
    events: tuple[Event, ...] = ()
    action_key: str = ""
    over: str = ""
    timed: bool = False
    waiting: bool = False


class Ending(NamedTuple):
    """The outcome of an episode by the world's own state; `stated` is the agent's p."""

    outcome: Outcome
    reason: str
    q_state: float
    quality: float
    success: bool
    stated: float | None


def stated_quality(q_state: float, p: float | None, success: bool, share: float) -> float:
    """Return Q = (1 - l) q_state + l (1 - (p - y)^2), p = .5 when none was stated.

    Proper in p; sabotage never pays while l <= theta / (1 + theta).

    Args:
        q_state: Quality of the world's state, in [0, 1].
        p: The agent's stated probability of success.
        success: y, whether q_state reaches the suite's theta.
        share: l, the share of Q that the forecast decides.
    Returns: Q in [0, 1], six decimals.
    Source: `docs/suites.md#quality`.
    """
    gap = (0.5 if p is None else p) - float(success)
    return fixed((1.0 - share) * q_state + share * (1.0 - gap * gap))


class SubgoalNode(NamedTuple):
    """A node of a task's DAG; `depth` counts from 1 along the longest path."""

    name: str
    depth: int
    prerequisites: tuple[str, ...] = ()


class PropositionTruth(NamedTuple):
    """A proposition of the timeline with its class and truth.

    From `deadline_ms` on everybody may know the truth: what is stated later does not count. None:
    any statement counts.
    """

    name: str
    kind: str
    truth: bool
    deadline_ms: int | None = None


class OracleAccess(NamedTuple):
    """The oracle, the timeline and the state: for a suite's control policies only."""

    oracle: Oracle
    observe: Callable[[], tuple[Timeline, State]]


# --- suites ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """A disallowed behaviour of a suite.

    `free_tries` tries of an episode are flags, and only a further one disqualifies: the suite
    refuses them with `warning`, so that they change nothing and tell nothing. It is 1 for what a
    player may try by mistake. It is 0 for what is seen in the finished work alone, where nothing is
    left to refuse; then the task says so from the start.
    """

    name: str
    text: str
    severity: Literal["flag", "disqualify"]
    free_tries: int = 0

    @property
    def warning(self) -> str:
        """What a tool says when it refuses a free try."""
        return (
            f"Not allowed: {self.text} It was refused and changes nothing; once more "
            "disqualifies the episode."
        )


def _check_kinds(categories: object) -> None:
    """Refuse a card that names no kind of tool, or one that is not on the list."""
    if not isinstance(categories, Mapping):
        raise FieldError("categories", categories, _KINDS_RULE)
    for tool, kind in categories.items():
        if kind and kind not in TOOL_KINDS:
            raise FieldError(f"categories.{tool}", kind, one_of(kind, TOOL_KINDS))


class EpisodeWork(NamedTuple):
    """What an episode is to whoever plays it, measured at rest (`benchmarks/work.py`).

    A chat model is resent what it was shown: the answer key's `steps`, and characters of the first
    observation (`brief`), of the tools' schemas, of later observations (`shown`) and of actions
    (`typed`); each of `conversations` (seats, sittings) begins anew. An expert is paid for
    characters to `read` and `written`, each text once, and for `decisions`: nodes of the task and
    questions asked.
    """

    steps: int
    brief: int
    tools: int
    shown: int
    typed: int
    conversations: int
    read: int
    decisions: int
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCard:
    """A suite in the registry, for lists, plans and reports.

    `theta` is the success threshold on q_state, `horizon` H (verified actions) and `depth_target`
    D* of the axes A and P. `domain` names the folder of its operators. A `native` suite has a Box /
    Discrete view of its own and none of: tools, finish, a stated p, an oracle; its episodes enter
    no axis, or where it is `embodied`, played by a body on several sides, axis E alone.
    `categories` maps each of the suite's tools to its kind of tool (`TOOL_KINDS`), or to "" where
    it is of none. `axes` are the symbols of those axes whose tasks a campaign's plan counts.
    `hints` say by family what its novelty is, the least first. `seats` is the most agents that an
    episode seats at once, `roles` their names; `sittings` whether it restarts them, and
    `keep_notes` whether note and recall outlast that. `meters` are the suite's own, called
    `name/..`. `honeypots` are families that cannot be done, `held_out` those of no public draw and
    of no practice; both are drawn only by name. `episode_s` is how many seconds an episode takes
    one worker of a run, by an agent that answers at once, `episode_bytes` how many bytes of the run
    directory are its record and its transcripts: measured (`benchmarks/episodes.py`), for
    estimates. `work` says by tier what an episode asks: axis $ prices an expert by it,
    `run --dry-run` a chat model; without it there is no $.
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
    categories: Mapping[str, str]
    proposition_kinds: tuple[str, ...]
    axes: tuple[str, ...]
    rules: tuple[Rule, ...]
    features: int = 0
    macros: tuple[str, ...] = ()
    native: bool = False
    embodied: bool = False
    hints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seats: int = 1
    roles: tuple[str, ...] = ()
    sittings: bool = False
    keep_notes: bool = False
    meters: tuple[WitnessedMeter, ...] = ()
    honeypots: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    episode_s: float = 0.3
    episode_bytes: tuple[int, int] = (11_300, 2_700)
    work: Mapping[int, EpisodeWork] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what a plan or a report could not hold."""
        for name in _NAMES:
            value = getattr(self, name)
            if isinstance(value, str):
                raise FieldError(name, value, "must be a tuple of names")
        _check_kinds(self.categories)
        for symbol in self.axes:
            if symbol not in SYMBOLS:
                raise FieldError("axes", symbol, one_of(symbol, SYMBOLS))
        if not 0 < self.theta <= 1:
            raise FieldError("theta", self.theta, "must be above 0 and at most 1")
        for name in ("version", "step_limit") + ("horizon",) * (not self.native):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise FieldError(name, value, "must be a whole number, at least 1")
        if not self.tiers or any(tier < 1 for tier in self.tiers):
            rule = "must hold a whole number, at least 1, for each tier"
            raise FieldError("tiers", self.tiers, rule)

    @property
    def drawable(self) -> tuple[str, ...]:
        """Every family that a draw may name."""
        return (*self.families, *self.held_out, *self.honeypots)

    def unmapped(self, tools: Sequence[ToolSpec]) -> str:
        """Return which tools `categories` leaves out and how to name them, "" for none."""
        left = ", ".join(f"`{tool.name}`" for tool in tools if tool.name not in self.categories)
        return left and f"the card's `categories` {_KINDS_RULE}; {left} has none of these"

    @property
    def isolated(self) -> bool:
        """Whether its agents must have processes of their own to be kept apart."""
        return self.seats > 1 or self.sittings
