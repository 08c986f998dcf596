"""The frozen values that pass between plug-ins and the harness, and the two cards.

In the order of `owa_bench.interfaces`: agents, drift, one episode, suites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from owa_bench.records.events import Event, Meter, Outcome, fixed
from owa_bench.records.instance import Timeline

if TYPE_CHECKING:
    from owa_bench.interfaces import Agent, Oracle

State = Any  # a session's frozen state; two are compared with ==


# --- agents ---------------------------------------------------------------------------


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as an agent sees it; `parameters` is a JSON Schema object."""

    name: str
    about: str
    parameters: Mapping[str, Any]


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """The task that an agent gets at reset; `interventions_left` None: no limit.

    `role_cap` limits how many roles an agent may keep apart (None: any number); roles
    of a `muted` agent may not pass messages to each other.
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
    """Free options of an agent, and the script for agents that replay one."""

    options: Mapping[str, str] = field(default_factory=dict)
    script: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """An agent in the registry.

    `needs` "script": it is given the oracle's drift-free actions (the fixed archetype);
    "privilege": a suite's control policy of this name is played, `make` is None.
    `suites` empty: any tool suite. `options` maps each option to a line about it;
    `required` names those without which the agent cannot be made.
    """

    name: str
    about: str
    make: Callable[[AgentConfig], Agent] | None
    needs: Literal["nothing", "script", "privilege"] = "nothing"
    suites: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()


# --- drift ----------------------------------------------------------------------------


class DriftEvent(NamedTuple):
    """One entry of a schedule: at `at_ms`, `operator` acts on `target`."""

    at_ms: int
    operator: str
    target: str
    intensity: float


# --- one episode ----------------------------------------------------------------------


class Task(NamedTuple):
    """A task in prose, the same goal as JSON, and its propositions.

    `propositions` maps an id to its text; the agent may state p for each.
    """

    text: str
    goal: Mapping[str, Any]
    propositions: Mapping[str, str]


class ToolResult(NamedTuple):
    """The result of one tool call inside a session.

    `text` is what the agent reads (the shell caps it). `elapsed_ms` moves the
    simulated clock. `digest` names the result so that a repeat is recognised;
    `action_key` names the call for that where its arguments do not (the number of a
    control on a page that changes). `events` are those of the call itself, in order.
    """

    text: str
    ok: bool
    elapsed_ms: int = 0
    digest: str = ""
    events: tuple[Event, ...] = ()
    action_key: str = ""


class Ending(NamedTuple):
    """The outcome of an episode by the world's own state; `stated` is the agent's p."""

    outcome: Outcome
    reason: str
    q_state: float
    quality: float
    success: bool
    stated: float | None


def stated_quality(
    q_state: float, p: float | None, success: bool, share: float
) -> float:
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
    """A world proposition with its class and truth."""

    name: str
    kind: str
    truth: bool


class OracleAccess(NamedTuple):
    """The oracle, the timeline and the state: for a suite's control policies only."""

    oracle: Oracle
    observe: Callable[[], tuple[Timeline, State]]


# --- suites ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """A disallowed behaviour of a suite."""

    name: str
    text: str
    severity: Literal["flag", "disqualify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCard:
    """A suite in the registry, for lists, plans and reports.

    `theta` is the success threshold on q_state, `horizon` H (verified actions) and
    `depth_target` D* of the axes A and P. `domain` names the folder of its operators.
    A `native` suite has a Box / Discrete view of its own and none of: tools, finish, a
    stated p, an oracle; its episodes enter no axis.
    `extra` is the optional part of the package that playing it needs, "" for none.
    `episode_s` is how many seconds an episode takes one worker of a run, by an agent
    that answers at once: measured (`benchmarks/episodes.py`), for estimates alone.
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
    episode_s: float = 0.3
