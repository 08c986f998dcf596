"""The laboratory of one episode: its key, its registered plans, its draws.

Seeds come from a key that follows from the episode's instance, and so from the run's master:
HMAC(key, draw | number). The draw of a holdout is the digest of its plan, so it exists only once a
plan is registered, and it is played once.
"""

import contextlib
import tempfile
from pathlib import Path
from typing import Self

from owa_bench.canonical import keyed_digest
from owa_bench.errors import UsageError
from owa_bench.interfaces import (
    HoldoutResult,
    InnerDraw,
    PlayedAttempt,
    PlayedPair,
    Subject,
    Ticket,
)
from owa_bench.records.holdout import HoldoutPlan, has_stopped, holdout_statistic
from owa_bench.runs.laboratory.player import InnerPlayer
from owa_bench.seeding import PRACTICE_BIT

DEVELOPMENT = "development"
HOLDOUT = "holdout/"
SAMPLE = 64  # one attempt in so many keeps its lines


class LocalLaboratory:
    """A laboratory in this process; a context manager.

    Args:
        key: Of this episode.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._open = contextlib.ExitStack()
        folder = self._open.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        self._folder = Path(folder)
        self._plans: dict[str, HoldoutPlan] = {}
        self._answered: set[str] = set()
        self._player: InnerPlayer | None = None

    def begin(self, inner: InnerDraw) -> None:
        """Begin a campaign over these instances; write the expert's log of its pool."""
        self._plans.clear()
        self._answered.clear()
        if self._player is not None:
            self._player.close()
        self._player = player = InnerPlayer(inner, self._folder)
        player.write_expert_log(
            [
                player.instance(self._seed(DEVELOPMENT, number), number)
                for number in range(inner.pool)
            ]
        )

    def register(self, plan: HoldoutPlan) -> str:
        """Take a plan before it is played.

        Raises: UsageError: Base, candidate and metric were registered before.
        """
        tested = {(old.base, old.candidate, old.metric) for old in self._plans.values()}
        if (plan.base, plan.candidate, plan.metric) in tested:
            raise UsageError(
                "This candidate was registered against this base before; a candidate "
                "has one holdout."
            )
        self._plans[plan.digest] = plan
        return plan.digest

    def play(self, subject: Subject, ticket: Ticket) -> tuple[PlayedAttempt, ...]:
        """Play a subject.

        Args:
            subject: The version.
            ticket: No holdout.
        Returns: An attempt an instance, in order.
        Raises: UsageError: The ticket names a holdout.
        """
        if ticket.draw.startswith(HOLDOUT):
            raise UsageError(f"`draw` must be no holdout, got `{ticket.draw}`.")
        numbers = range(ticket.first, ticket.first + ticket.count)
        return tuple(
            self._attempt(subject, ticket.draw, number, ticket.repeat) for number in numbers
        )

    def answer(self, plan: str, base: Subject, candidate: Subject) -> HoldoutResult:
        """Play the holdout of a registered plan, once.

        Args:
            plan: Its digest.
            base: The version that it names.
            candidate: The other one.
        Returns: Attempts and answer.
        Raises: UsageError: It is not registered, was answered, or names others.
        """
        terms = self._plans.get(plan)
        if terms is None or plan in self._answered:
            state = "was answered before" if terms else "is not registered"
            raise UsageError(f"The plan {plan[:12]} {state}: register another.")
        if (terms.base, terms.candidate) != (base.digest, candidate.digest):
            raise UsageError(f"The plan {plan[:12]} names other versions.")
        self._answered.add(plan)
        draw, pairs, differences = f"{HOLDOUT}{plan}", [], []
        for number in range(terms.pairs):
            pair = PlayedPair(
                self._attempt(base, draw, number, 0), self._attempt(candidate, draw, number, 0)
            )
            pairs.append(pair)
            differences.append(difference(terms, pair))
            if has_stopped(terms, differences):
                break
        return HoldoutResult(tuple(pairs), holdout_statistic(terms, differences))

    def trial(self, subject: Subject) -> str:
        """Return why a program fails on the first development instance, "" if not."""
        player = self._playing()
        result = player.play(subject, player.instance(self._seed(DEVELOPMENT, 0), 0))
        return result.failure

    def close(self) -> None:
        """End what plays, and remove the folder."""
        if self._player is not None:
            self._player.close()
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _seed(self, draw: str, number: int) -> int:
        digest = keyed_digest(self._key, draw, str(number))
        return int.from_bytes(digest[:8], "big") & (PRACTICE_BIT - 1)

    def _playing(self) -> InnerPlayer:
        if self._player is None:
            raise UsageError("A laboratory must begin before it plays.")
        return self._player

    def _attempt(self, subject: Subject, draw: str, number: int, repeat: int) -> PlayedAttempt:
        player = self._playing()
        place = number % player.inner.pool if draw == DEVELOPMENT else number
        result = player.play(subject, player.instance(self._seed(draw, place), place, repeat))
        sampled = keyed_digest(self._key, "sample", draw, f"{number}/{repeat}")
        kept = int.from_bytes(sampled[:4], "big") % SAMPLE == 0
        return PlayedAttempt(
            version=subject.digest,
            draw=draw,
            pair=number,
            repeat=repeat,
            quality=result.quality,
            logged=result.logged,
            steps=result.steps,
            replay=result.replay,
            lines=result.lines if kept else b"",
        )


def difference(plan: HoldoutPlan, pair: PlayedPair) -> float:
    """Return candidate less base in the plan's metric.

    Args:
        plan: The plan.
        pair: Both attempts.
    Returns: In [-1, 1].
    """
    if plan.metric == "logged":
        return pair.candidate.logged - pair.base.logged
    return pair.candidate.quality - pair.base.quality
