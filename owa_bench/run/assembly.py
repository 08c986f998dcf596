"""Assembly of timelines and envs: a generated world, then the schedule's operators.

The entry point of every Gymnasium id. Nothing else joins suites with operators.
"""

import contextlib
from collections.abc import Iterable
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, Self

import gymnasium
import msgspec

from owa_bench.calendars import drift_order, nested, share
from owa_bench.discovery import get
from owa_bench.errors import InstanceError, UsageError
from owa_bench.interfaces import (
    DriftEvent,
    EnumerableSchedule,
    HasEffectiveClass,
    HasProcedure,
    HasSchedule,
    HasScheduleOptions,
    NeedsLaboratory,
    Operator,
    Schedule,
    Setting,
    Suite,
    TimelineSource,
    View,
    World,
)
from owa_bench.records.instance import Change, Instance, Timeline
from owa_bench.run.laboratory_process import LaboratoryProcess
from owa_bench.seeding import stream
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.instances import Instances, plain_instances
from owa_bench.shells.seat_policy import ONE_READER, SeatEnv, SeatPolicy, check_seat_policy
from owa_bench.shells.solution import OracleSolution, solve
from owa_bench.shells.standard_tools import tools_of

_WORLDS_KEPT = 64  # base worlds per process; a world is about 0.1 MB
_TIMELINES_KEPT = 16  # per source: arms and replays meet the same instances


def source(suite_name: str, schedule: Schedule | None = None) -> TimelineSource:
    """Return the function from an instance to its timeline.

    Args:
        suite_name: Name of the suite.
        schedule: Its drift; None is the suite's own schedule, or the nested calendar
            of its domain.

    Returns:
        The function; it keeps the last few timelines.
    """
    return SuiteTimelines(suite_name, schedule)


class SuiteTimelines:
    """The function from an instance of a suite to its timeline.

    It can be pickled where its schedule can; a copy has the same timelines.

    Args:
        suite_name: Name of the suite.
        schedule: As for `source`.
    """

    def __init__(self, suite_name: str, schedule: Schedule | None = None) -> None:
        self._named = (suite_name, schedule)
        self._schedule = schedule or own_schedule(get("suites", suite_name))
        self._timeline = lru_cache(maxsize=_TIMELINES_KEPT)(self._make)

    def __call__(self, instance: Instance) -> Timeline:
        """Return the timeline of an instance."""
        return self._timeline(instance)

    def __reduce__(self) -> tuple[type[Self], tuple[str, Schedule | None]]:
        return type(self), self._named

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def _make(self, instance: Instance) -> Timeline:
        world = base_world(instance)
        events = self._schedule(instance, world)
        realised = 0.0
        if events:
            realised = share(events, _possible(self._schedule, instance, world))
        return _drifted(instance, world, events, realised)


def own_schedule(suite: Suite) -> EnumerableSchedule:
    """Return the schedule of a suite that has one, else its domain's nested calendar.

    CartPole3D has one: its families say which operator is applied.
    """
    if isinstance(suite, HasSchedule):
        return suite.schedule
    return nested(suite.card.domain)


def drift_step(
    suite: str, instance: Instance, delta: float, schedule: EnumerableSchedule | None = None
) -> int:
    """Return the drift step of a nominal magnitude for an instance.

    Args:
        suite: Name of the suite.
        instance: The instance, without drift.
        delta: The magnitude, in [0, 1].
        schedule: The drift; None is the suite's own.

    Returns:
        The drift step.
    """
    calendar = schedule or own_schedule(get("suites", suite))
    return calendar.steps_for(instance, base_world(instance), delta)


def tool_names(suite: str, families: Iterable[str]) -> set[str]:
    """Return the names of the tools that a suite offers in some families.

    Args:
        suite: Name of a suite with tools.
        families: Whose first instance of the lowest tier is asked.

    Returns:
        Names, the standard ones among them; none for a suite that needs a laboratory.
    """
    plugin: Suite = get("suites", suite)
    card, names = plugin.card, set[str]()
    if isinstance(plugin, NeedsLaboratory):
        return names
    for family in families:
        instance = Instance(
            suite=suite, version=card.version, family=family, tier=card.tiers[0], seed=0
        )
        session = plugin.session(source(suite)(instance), NullSink(), Setting())
        names |= {tool.name for tool in tools_of(session.tools)}
        session.close()
    return names


def make_env(
    suite: str,
    tier: int = 1,
    family: str | None = None,
    drift_step: int = 0,
    delta: float | None = None,
    view: View = "language",
    schedule: EnumerableSchedule | None = None,
    site: str | None = None,
    seat_policy: SeatPolicy | None = None,
    **options: Any,
) -> gymnasium.Env[Any, Any]:
    """Return an env of a suite: the entry point of its Gymnasium id.

    Args:
        suite: Name of the suite.
        tier: Tier of the instances.
        family: Family of the instances; None for all.
        drift_step: Drift step of the instances.
        delta: The drift as a magnitude in [0, 1], in place of `drift_step`.
        view: What is observed.
        schedule: The drift; None is the suite's own.
        site: Picks among the families that are called `site/...`.
        seat_policy: Who plays the seats of a crew; None where there is one seat.
        **options: For the suite's env.

    Returns:
        The env.

    Raises:
        UsageError: Both `delta` and `drift_step` are given, or nobody says who plays
            the seats of a crew.
    """
    if delta is not None and drift_step:
        raise UsageError(f"Give `delta` or `drift_step`, got {delta} and {drift_step}.")
    plugin: Suite = get("suites", suite)
    check_seat_policy(plugin.card, seat_policy)
    instances = plain_instances(
        plugin.card, tier=tier, family=family, site=site, drift_step=drift_step
    )
    if delta is not None:
        instances = partial(_at_magnitude, suite, instances, delta, schedule)
    played = source(suite, schedule)
    options = {**options, **laboratory_options(plugin)}
    if seat_policy == ONE_READER:
        options["one_reader"] = True
    env = plugin.env(played, view=view, instances=instances, **options)
    return env if seat_policy is None else SeatEnv(env, seat_policy)


def laboratory_options(suite: Suite) -> dict[str, Any]:
    """Return the env option that gives a suite its laboratory, if it needs one."""
    needs = isinstance(suite, NeedsLaboratory) and suite.needs_laboratory
    return {"laboratories": LaboratoryProcess()} if needs else {}


def make_native_env(suite: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the env of a native suite: the entry point of its Gymnasium id.

    Args:
        suite: Name of the suite.
        **options: For its env; the suite says which schedule they name.

    Returns:
        The env.
    """
    plugin: Suite = get("suites", suite)
    if not isinstance(plugin, HasScheduleOptions):
        return plugin.env(source(suite), **options)
    return plugin.env(source(suite, plugin.schedule_for(options)), **options)


def make_suite_env(suite: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the env of a suite of another package, native or not.

    Args:
        suite: Its name.
        options: As for `make_env` or `make_native_env`.
    Returns: A Gymnasium env.
    """
    native = get("suites", suite).card.native
    return (make_native_env if native else make_env)(suite, **options)


def script(suite: str, instance: Instance) -> tuple[str, ...]:
    """Return the oracle's actions in an instance's world without any drift.

    Args:
        suite: Name of the suite.
        instance: The instance.

    Returns:
        The actions, as text.
    """
    still = msgspec.structs.replace(instance, drift_step=0)
    return solution(suite, source(suite)(still)).actions


def solution(suite: str, timeline: Timeline) -> OracleSolution:
    """Return the oracle's own solution, with a laboratory for a suite that needs one.

    Args:
        suite: Name of the suite.
        timeline: The episode's.

    Returns:
        The actions and their result.
    """
    plugin: Suite = get("suites", suite)
    process = laboratory_options(plugin).get("laboratories")
    if process is None:
        return solve(plugin, timeline)
    with contextlib.closing(process):
        return solve(plugin, timeline, laboratory=process.of(timeline.instance))


def procedure(suite: str, instance: Instance) -> tuple[str, ...]:
    """Return the script that a replay agent gets.

    Args:
        suite: Name of the suite.
        instance: The instance.

    Returns:
        The oracle's actions in the undrifted world; where the suite can tell, answers
        are replaced by how they are derived.
    """
    plugin: Suite = get("suites", suite)
    actions = script(suite, instance)
    if isinstance(plugin, HasProcedure):
        return plugin.procedure(base_world(instance), actions)
    return actions


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


def _possible(schedule: Schedule, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
    """Return all that could have been applied to the instance."""
    if isinstance(schedule, EnumerableSchedule):
        return schedule.possible(instance, world)
    domain = get("suites", instance.suite).card.domain
    return drift_order(instance, world, domain)


def _at_magnitude(
    suite: str, instances: Instances, delta: float, schedule: EnumerableSchedule | None, seed: int
) -> Instance:
    """Return the instance of a seed with the drift step that `delta` is for it."""
    plain = instances(seed)
    step = drift_step(suite, plain, delta, schedule)
    return msgspec.structs.replace(plain, drift_step=step)


def _drifted(
    instance: Instance, world: World, events: tuple[DriftEvent, ...], realised: float
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
        applied = _with_effective_classes(instance, applied, (*steps, world))
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

    Each (operator, target) has a stream of its own, so a longer prefix leaves the
    changes of a shorter one as they were.
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
    instance: Instance, changes: list[Change], worlds: tuple[World, ...]
) -> list[Change]:
    """Return changes with the classes that they have in effect.

    Args:
        instance: Names the suite; where it cannot tell, a change has its own class.
        changes: The changes of one moment, in order.
        worlds: The world before each, then the one that the agent meets.

    Returns:
        The changes.
    """
    suite: Suite = get("suites", instance.suite)
    if not isinstance(suite, HasEffectiveClass):
        return changes
    return [
        msgspec.structs.replace(change, effective=suite.effective_class(before, after, worlds[-1]))
        for change, before, after in zip(changes, worlds, worlds[1:], strict=False)
    ]
