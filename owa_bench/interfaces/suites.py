"""What a suite is: its card, its rules, and how it draws worlds and plays them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from owa_bench.interfaces.agents import Agent
from owa_bench.interfaces.drift import Source, World
from owa_bench.interfaces.episodes import Oracle, OracleAccess, Session, Sink, State
from owa_bench.records.events import Event
from owa_bench.records.instance import Instance, Timeline

if TYPE_CHECKING:
    import gymnasium

View = Literal["language", "vector", "python"]


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
    policies: Mapping[str, Callable[[OracleAccess], Agent]]
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
class HasHorizon(Protocol):
    """A suite that can say what the oracle takes without playing an episode."""

    def horizon(self, timeline: Timeline) -> int | None:
        """Return H_t, None where only a played episode can tell."""
