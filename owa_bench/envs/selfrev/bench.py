"""Versions played in the laboratory of a session, with the events of each."""

from collections.abc import Sequence
from typing import NamedTuple

from owa_bench.envs.selfrev.world import RevisionWorld, lines_changed
from owa_bench.interfaces import InnerDraw, Laboratory, PlayedAttempt, Sink, Subject, Ticket
from owa_bench.records.events import Event, HoldoutAnswer, InnerAttempt
from owa_bench.records.holdout import HoldoutPlan, HoldoutStatistic
from owa_bench.records.laboratory_events import InnerCondition

DEVELOPMENT = "development"
# What is played of each version at the end, and with which of the subject's draws.
SETS: tuple[tuple[InnerCondition, str, int], ...] = (
    ("before", "start", 0),
    ("after", "final", 0),
    ("control_before", "start", 1),
    ("control_after", "start", 2),
    ("ablated", "start", 3),
    ("best", "best", 0),
)
COMPARED = ("before", "after", "best")


class PlayedBatch(NamedTuple):
    """Attempts of one call in order, and their events."""

    attempts: tuple[PlayedAttempt, ...]
    events: tuple[Event, ...]

    @property
    def quality(self) -> float:
        """Mean quality."""
        return sum(a.quality for a in self.attempts) / len(self.attempts)

    @property
    def logged(self) -> float:
        """Mean score an item of the subject's own log."""
        return sum(a.logged for a in self.attempts) / len(self.attempts)


class AnsweredPlan(NamedTuple):
    """The answer to a plan, and its events."""

    answer: HoldoutStatistic
    attempts: int
    events: tuple[Event, ...]


class VersionPlayer:
    """Plays versions of a world's subject in a laboratory that begins when it must.

    Args:
        world: Names subject and inner suite.
        laboratory: Of the episode.
        sink: Keeps the lines of sampled attempts.
    """

    def __init__(self, world: RevisionWorld, laboratory: Laboratory, sink: Sink) -> None:
        self._world = world
        self._laboratory = laboratory
        self._sink = sink
        self._batches = 0
        self._begun = False

    def enter(self, world: RevisionWorld) -> None:
        """Go on with the options of another world; its draws are as before."""
        self._world = world

    def subject(self, components: frozenset[str]) -> Subject:
        """Return the version of the subject with these components."""
        options = self._world.options(components)
        return Subject(agent=self._world.subject, options=options)

    def register(self, plan: HoldoutPlan) -> str:
        """Register a plan and return its digest.

        Raises: UsageError: the laboratory refuses it.
        """
        return self._open().register(plan)

    def play(
        self,
        components: frozenset[str],
        draw: str,
        count: int,
        *,
        step: int,
        first: int = 0,
        repeat: int = 0,
        condition: InnerCondition = "",
    ) -> PlayedBatch:
        """Play a version.

        Args:
            components: Of the version.
            draw: Which instances.
            count: How many.
            step: Of the action, for the events.
            first: The first of them.
            repeat: Chooses the subject's own draws.
            condition: What the attempts stand for.
        Returns: Attempts and events.
        """
        ticket = Ticket(draw=draw, first=first, count=count, repeat=repeat)
        attempts = self._open().play(self.subject(components), ticket)
        kind = "d" if draw == DEVELOPMENT else "c"
        conditions = (condition,) * len(attempts)
        return PlayedBatch(attempts, self._events(kind, attempts, conditions, step))

    def answer(
        self, plan: str, base: frozenset[str], candidate: frozenset[str], *, step: int
    ) -> AnsweredPlan:
        """Play the holdout of a registered plan.

        Args:
            plan: Its digest.
            base: Components of the version that it names.
            candidate: Those of the other.
            step: Of the action.
        Returns: The answer.
        Raises: UsageError: the laboratory refuses it.
        """
        found = self._open().answer(plan, self.subject(base), self.subject(candidate))
        attempts = tuple(attempt for pair in found.pairs for attempt in pair)
        sides: tuple[InnerCondition, ...] = ("base", "candidate")
        events = self._events("h", attempts, sides * len(found.pairs), step)
        told = HoldoutAnswer(
            step=step,
            plan=plan,
            batch=f"h{self._batches}",
            pairs=found.answer.pairs,
            statistic=found.answer.statistic,
            e_value=found.answer.e_value,
        )
        return AnsweredPlan(found.answer, len(attempts), (*events, told))

    def _open(self) -> Laboratory:
        if not self._begun:
            world = self._world
            inner = InnerDraw(
                suite=world.suite,
                version=world.suite_version,
                families=world.families,
                tier=world.suite_tier,
                pool=world.pool,
                drift_step=world.inner_step,
            )
            self._laboratory.begin(inner)
            self._begun = True
        return self._laboratory

    def _events(
        self,
        kind: str,
        attempts: Sequence[PlayedAttempt],
        conditions: Sequence[InnerCondition],
        step: int,
    ) -> tuple[Event, ...]:
        """Return an event an attempt; the lines of sampled ones become blobs."""
        self._batches += 1
        for attempt in attempts:
            if attempt.lines:
                self._sink.blob(attempt.lines)
        return tuple(
            InnerAttempt(
                step=step,
                batch=f"{kind}{self._batches}",
                number=number,
                version=attempt.version,
                draw=attempt.draw,
                condition=condition,
                pair=attempt.pair,
                repeat=attempt.repeat,
                quality=attempt.quality,
                logged=attempt.logged,
                steps=attempt.steps,
                replay=attempt.replay,
                full=bool(attempt.lines),
            )
            for number, (attempt, condition) in enumerate(zip(attempts, conditions, strict=True))
        )


def change_by_family(families: Sequence[str], first: PlayedBatch, last: PlayedBatch) -> str:
    """Return how the logged score changed in each inner family, in words.

    Args:
        families: They take turns in a draw.
        first: Attempts of the first version.
        last: Those of the current one, on the same instances.
    """
    parts = []
    for place, family in enumerate(families):
        old, new = (
            [a.logged for a in batch.attempts if a.pair % len(families) == place]
            for batch in (first, last)
        )
        if old:
            parts.append(f"{family}: {(sum(new) - sum(old)) / len(old):+.3f}")
    return "; ".join(parts)


def changed_lines(world: RevisionWorld, final: frozenset[str]) -> int:
    """Return how many lines of a version's options are not those of the first.

    An option is one line, a file of a program has its own.

    Args:
        world: Holds the options.
        final: Components of the version.
    """
    first, last = dict(world.start), dict(world.options(final))
    return max(lines_changed(first, last))
