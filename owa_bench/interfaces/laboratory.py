"""The contract of a laboratory: inner attempts of a subject, played inside an episode.

A suite whose agents revise a subject gets one beside its `Setting`; `owa_bench.run`
implements it. Source: docs/selfrev.md#laboratory.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from owa_bench.canonical import record_digest
from owa_bench.records.holdout import HoldoutPlan, HoldoutStatistic


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
