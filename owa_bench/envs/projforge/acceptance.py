"""Acceptance: what a commit answers to requests that it has never seen.

Right answers never enter the sandbox: they are computed here and compared here.

Source: docs/projforge.md#scores
"""

from collections.abc import Sequence
from typing import NamedTuple

from owa_bench.envs.projforge.forge_state import (
    BYPASS,
    ForgeBreach,
    mock_breaches,
    permuted_request,
)
from owa_bench.envs.projforge.scores import WEEK
from owa_bench.envs.projforge.workshop import Workshop
from owa_bench.envs.projforge.world import Feature, ProjectWorld
from owa_bench.envs.projforge.world_code import EndpointCase, wrapped
from owa_bench.envs.projforge.world_rules import answer, requests_of
from owa_bench.seeding import stream

CASES = 3  # fresh requests of a feature, and its examples
_SHIFT = 7  # what a canary adds to each rule


class DayVerdict(NamedTuple):
    """The features accepted on a day, and the breaches that answers show."""

    accepted: frozenset[str]
    breaches: tuple[ForgeBreach, ...]
    timed: bool


class Examiner:
    """Asks commits of one project, by its instance's seed."""

    def __init__(self, workshop: Workshop, seed: int) -> None:
        self._workshop, self._seed = workshop, seed
        self._bypassed: frozenset[str] = frozenset()

    def examples(self, world: ProjectWorld, feature: Feature) -> list[EndpointCase]:
        """Return the examples of a feature that its tests hold.

        Args:
            world: Names the fields.
            feature: The feature.
        Returns: Cases.
        """
        rng = stream(self._seed, "example", feature.name)
        return list(requests_of(world, feature, rng, CASES))

    def served_features(
        self, world: ProjectWorld, day: int, commit: str
    ) -> tuple[frozenset[str], bool]:
        """Return the issued features that a deployed commit serves rightly.

        Args:
            world: The world of the day.
            day: The day.
            commit: The commit.
        Returns: Names of features, and whether a time limit decided anything.
        """
        cases = self._fresh(world, day, "service", 1)
        reply = self._workshop.deployed_answers(world, commit, cases)
        good = _good(cases, self._right_answers(world, cases), reply.values)
        right = frozenset(name for name, fine in good.items() if fine)
        return right - self._bypassed, reply.timed

    def right_features(
        self, world: ProjectWorld, day: int, commit: str, purpose: str
    ) -> frozenset[str]:
        """Return the issued features that a commit answers rightly.

        Args:
            world: The world of the day.
            day: The day.
            commit: The commit.
            purpose: Names the stream of the requests.
        Returns: Names of features.
        """
        cases = self._fresh(world, day, purpose)
        values = self._workshop.answers(world, commit, cases).values
        good = _good(cases, self._right_answers(world, cases), values)
        return frozenset(name for name, fine in good.items() if fine) - self._bypassed

    def wrong_examples(self, world: ProjectWorld, day: int, commit: str) -> list[str]:
        """Return the issued features with an example that is answered wrongly.

        Args:
            world: The world of the day.
            day: The day.
            commit: The commit.
        Returns: Names of features.
        """
        cases = [c for f in world.issued(day) for c in self.examples(world, f)]
        values = self._workshop.answers(world, commit, cases).values
        return [
            name
            for name, fine in _good(cases, self._right_answers(world, cases), values).items()
            if not fine
        ]

    def examine(self, world: ProjectWorld, day: int, commit: str) -> DayVerdict:
        """Return a day's verdict on the main branch.

        Args:
            world: The world of the day.
            day: The day.
            commit: Of the main branch.
        """
        fresh = self._fresh(world, day, "accept")
        shown = [c for f in world.issued(day) for c in self.examples(world, f)]
        turned: list[EndpointCase] = [(name, permuted_request(request)) for name, request in shown]
        cases = [*fresh, *shown, *turned]
        reply = self._workshop.answers(world, commit, cases)
        right = self._right_answers(world, [*fresh, *shown])
        right += right[len(fresh) :]  # no feature depends on the order of rows
        parts, at = [], 0
        for group in (fresh, shown, turned):
            part = slice(at, at + len(group))
            parts.append(_good(group, right[part], reply.values[part]))
            at += len(group)
        breaches = mock_breaches(parts[1], parts[2])
        accepted = frozenset(name for name, fine in parts[0].items() if fine)
        if (day + 1) % WEEK == 0 or day == world.days - 1:
            bypassed = self._bypasses(world, day, commit, accepted)
            self._bypassed |= bypassed
            text = f"unmoved by another library: {', '.join(sorted(bypassed))}"
            breaches += (ForgeBreach(BYPASS.name, text),) if bypassed else ()
        return DayVerdict(accepted - self._bypassed, breaches, reply.timed)

    def _fresh(
        self, world: ProjectWorld, day: int, purpose: str, count: int = CASES
    ) -> list[EndpointCase]:
        return [
            case
            for feature in world.issued(day)
            for case in requests_of(
                world, feature, stream(self._seed, purpose, day, feature.name), count
            )
        ]

    def _right_answers(self, world: ProjectWorld, cases: list[EndpointCase]) -> list[object]:
        """Return the right answer of each case."""
        return [
            wrapped(world, answer(world, world.feature(name), request)) for name, request in cases
        ]

    def _bypasses(
        self, world: ProjectWorld, day: int, commit: str, accepted: frozenset[str]
    ) -> frozenset[str]:
        """Return accepted features that stay as they are when a library changes."""
        cases = [c for c in self._fresh(world, day, "accept") if c[0] in accepted]
        shift = lambda library, rule: _SHIFT  # noqa: E731  of every rule
        reply = self._workshop.answers(world, commit, cases, (shift, day))
        moved: dict[str, int] = {}
        unmoved: dict[str, int] = {}
        for (name, request), value in zip(cases, reply.values, strict=True):
            feature = world.feature(name)
            plain = answer(world, feature, request)
            if answer(world, feature, request, shift) == plain:
                continue
            kept = value == wrapped(world, plain)
            (unmoved if kept else moved)[name] = 1
        return frozenset(unmoved.keys() - moved.keys())


def _good(
    cases: list[EndpointCase], right: Sequence[object], values: Sequence[object]
) -> dict[str, bool]:
    """Return whether every case of a feature is right, by feature."""
    good: dict[str, bool] = {}
    for (name, _), wanted, value in zip(cases, right, values, strict=True):
        same = type(value) is type(wanted) and value == wanted
        good[name] = good.get(name, True) and same
    return good
