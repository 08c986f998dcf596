"""Timelines: an instance's base world, then the worlds that drift makes of it.

Source: docs/suites.md#drift
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Self

import msgspec

from owa_bench.discovery import get
from owa_bench.drift.calendar import nested
from owa_bench.drift.order import drift_order, share
from owa_bench.errors import InstanceError, UsageError
from owa_bench.interfaces import (
    DriftEvent,
    EnumerableSchedule,
    Operator,
    Schedule,
    Suite,
    TimelineSource,
    World,
)
from owa_bench.records.instance import Change, Instance, Timeline
from owa_bench.seeding import stream

_WORLDS_KEPT = 64  # base worlds per process; a world is about 0.1 MB
_TIMELINES_KEPT = 16  # per source: arms and replays meet the same instances


def source(suite_name: str, schedule: Schedule | None = None) -> TimelineSource:
    """Return the function from an instance to its timeline.

    Args:
        suite_name: Name of the suite.
        schedule: Its drift; None is the suite's own schedule, or the nested calendar of its domain.
    Returns: The function; it keeps the last few timelines.
    """
    return SuiteTimelines(get("suites", suite_name), schedule)


class SuiteTimelines:
    """The function from an instance of a suite to its timeline.

    It can be pickled where its schedule can; a copy has the same timelines.

    Args:
        suite: The suite.
        schedule: As for `source`.
    """

    def __init__(self, suite: Suite, schedule: Schedule | None = None) -> None:
        self._suite = suite
        self._given = schedule
        self._schedule = schedule or own_schedule(suite)
        self._timeline = lru_cache(maxsize=_TIMELINES_KEPT)(self._make)

    def __call__(self, instance: Instance) -> Timeline:
        """Return the timeline of an instance."""
        return self._timeline(instance)

    def at_magnitude(self, instance: Instance, delta: float) -> Instance:
        """Return an instance with the drift step of a nominal magnitude.

        Args:
            instance: Its own drift step plays no part.
            delta: The magnitude, in [0, 1].
        Raises: UsageError: the schedule cannot tell its steps.
        """
        if not isinstance(self._schedule, EnumerableSchedule):
            raise UsageError("A drift magnitude needs a schedule that lists its events.")
        step = self._schedule.steps_for(instance, base_world(instance), delta)
        return msgspec.structs.replace(instance, drift_step=step)

    def __reduce__(self) -> tuple[Callable[..., TimelineSource], tuple[str, Schedule | None]]:
        return source, (self._suite.card.name, self._given)

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def _make(self, instance: Instance) -> Timeline:
        world = base_world(instance)
        events = self._schedule(instance, world)
        realised = 0.0
        if events:
            realised = share(events, _possible(self._suite, self._schedule, instance, world))
        return _drifted(self._suite, instance, world, events, realised)


def own_schedule(suite: Suite) -> EnumerableSchedule:
    """Return the schedule of a suite that has one, else its domain's nested calendar.

    CartPole3D has one: its families say which operator is applied.
    """
    return nested(suite.card.domain) if suite.schedule is None else suite.schedule


def drift_step(
    suite: str, instance: Instance, delta: float, schedule: Schedule | None = None
) -> int:
    """Return the drift step of a nominal magnitude for an instance.

    Args:
        suite: Name of the suite.
        instance: The instance, without drift.
        delta: The magnitude, in [0, 1].
        schedule: The drift; None is the suite's own.
    """
    timelines = SuiteTimelines(get("suites", suite), schedule)
    return timelines.at_magnitude(instance, delta).drift_step


def base_world(instance: Instance) -> World:
    """Return the instance's world before any drift, from a small cache."""
    return _generated(msgspec.structs.replace(instance, repeat=0, drift_step=0))


@lru_cache(maxsize=_WORLDS_KEPT)
def _generated(instance: Instance) -> World:
    suite: Suite = get("suites", instance.suite)
    if instance.version != suite.card.version:
        rule = f"must be {suite.card.version}, the version of {suite.card.title} here"
        raise InstanceError("version", instance.version, rule)
    return suite.generate(instance)


def _possible(
    suite: Suite, schedule: Schedule, instance: Instance, world: World
) -> tuple[DriftEvent, ...]:
    """Return all that could have been applied to the instance."""
    if isinstance(schedule, EnumerableSchedule):
        return schedule.possible(instance, world)
    return drift_order(instance, world, suite.card.domain)


def _drifted(
    suite: Suite, instance: Instance, world: World, events: tuple[DriftEvent, ...], realised: float
) -> Timeline:
    """Return the timeline of a world under drift, one world per distinct time."""
    starts: list[int] = [0]
    worlds: list[World] = [world]
    changes: list[tuple[Change, ...]] = [()]
    digest = world.digest()
    in_time = sorted(events, key=lambda event: event.at_ms)
    for at_ms, group in groupby(in_time, key=lambda event: event.at_ms):
        applied: list[Change] = []
        steps: list[World] = []
        for event in group:
            steps.append(world)
            world, change = _applied(instance, world, event, digest)
            digest = change.after
            applied.append(change)
        applied = _with_effective_classes(suite, applied, (*steps, world))
        if at_ms == 0:
            worlds[0], changes[0] = world, tuple(applied)
        else:
            starts.append(at_ms)
            worlds.append(world)
            changes.append(tuple(applied))
    return Timeline(
        instance=instance,
        starts=tuple(starts),
        worlds=tuple(worlds),
        changes=tuple(changes),
        realised=realised,
    )


def _applied(
    instance: Instance, world: World, event: DriftEvent, before: str
) -> tuple[World, Change]:
    """Return the world after one drift event, and the change it was.

    Each (operator, target) has a stream of its own, so a longer prefix leaves the changes of a
    shorter one as they were.
    """
    operator: Operator = get("operators", event.operator)
    rng = stream(instance.seed, "drift", event.operator, event.target)
    try:
        after = operator.apply(world, event.target, event.intensity, rng=rng)
    except Exception as error:
        error.add_note(f"operator {event.operator} on target {event.target!r}")
        raise
    change = Change(
        operator=event.operator,
        version=operator.version,
        target=event.target,
        intensity=event.intensity,
        announcement=operator.announcement,
        effective=operator.announcement,
        weight=operator.weight,
        before=before,
        after=after.digest(),
    )
    return after, change


def _with_effective_classes(
    suite: Suite, changes: list[Change], worlds: tuple[World, ...]
) -> list[Change]:
    """Return changes with the classes that they have in effect.

    Args:
        suite: Where it cannot tell, a change has its own class.
        changes: The changes of one moment, in order.
        worlds: The world before each, then the one that the agent meets.
    """
    effective = [
        suite.effective_class(before, after, worlds[-1]) for before, after in pairwise(worlds)
    ]
    return [
        msgspec.structs.replace(change, effective=own or change.effective)
        for change, own in zip(changes, effective, strict=True)
    ]
