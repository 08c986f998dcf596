"""Resolution: what a plan entry stands for, found once and handed on.

The loop, replay, preflight and the bridges resolve entries here.
"""

import dataclasses
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from owa_bench import discovery
from owa_bench.drift import calendar as calendars
from owa_bench.drift.calendar import Calendar
from owa_bench.drift.timeline import SuiteTimelines, own_schedule
from owa_bench.interfaces import EnumerableSchedule, Setting, Suite
from owa_bench.records.instance import Instance
from owa_bench.records.plan import Plan, PlanEntry


class DriftedSuite(NamedTuple):
    """A suite under one calendar: what entries with one env have in common."""

    suite: Suite
    source: SuiteTimelines


class ResolvedEntry(NamedTuple):
    """A plan entry with its suite, its instance, its session's terms and its timelines."""

    entry: PlanEntry
    suite: Suite
    instance: Instance
    setting: Setting
    source: SuiteTimelines


class Resolver:
    """Resolves the entries of one plan; a suite under one calendar is made once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.drifted_suite = lru_cache(maxsize=None)(self._drifted_suite)

    def __call__(self, entry: PlanEntry, seed: int, fleet: int = 0) -> ResolvedEntry:
        """Return an entry, resolved.

        Args:
            entry: One of the plan's.
            seed: The seed of its pair (`seeding.instance_seed`).
            fleet: That of the fleet of an embodied suite.
        Returns: The entry with the drift step of its magnitude or day.
        """
        suite, source = self.drifted_suite(entry.suite, entry.calendar)
        step = (entry.day or 0) if entry.world_day is None else entry.world_day
        instance = Instance(
            suite=entry.suite,
            version=entry.version,
            family=entry.family,
            tier=entry.tier,
            seed=seed,
            repeat=entry.repeat,
            drift_step=step,
        )
        if entry.delta is not None:
            instance = source.at_magnitude(instance, entry.delta)
        setting = Setting(
            role_cap=entry.role_cap,
            muted=entry.muted,
            tools_off=entry.tools_off,
            side=entry.side,
            unit=0 if isinstance(entry.unit, msgspec.UnsetType) else entry.unit,
            fleet=fleet,
        )
        return ResolvedEntry(entry, suite, instance, setting, source)

    def _drifted_suite(self, suite_name: str, calendar: str = "") -> DriftedSuite:
        """Return a suite under the calendar of an entry; "" is the plan's."""
        suite: Suite = discovery.get("suites", suite_name)
        schedule = schedule_of(suite, calendar or self.plan.calendar)
        return DriftedSuite(suite, SuiteTimelines(suite, schedule))


def schedule_of(suite: Suite, calendar: str) -> EnumerableSchedule:
    """Return the drift of a suite under a calendar.

    "nested" is the suite's own schedule where it has one; any other calendar selects among its
    events, at their own times. A native suite's own has no times to keep: any other calendar
    replaces it.

    Args:
        suite: The suite.
        calendar: As a plan names it.
    """
    parsed = calendars.parse(calendar, suite.card.domain)
    own: Any = own_schedule(suite)
    whole = calendar.partition("^")[0] == "nested"
    timed = not isinstance(own, Calendar) or own.times is not None
    if not timed or (suite.card.native and not whole):
        return parsed
    if whole and not parsed.onset_ms:
        return own  # type: ignore[no-any-return]
    if not suite.card.native:
        return dataclasses.replace(parsed, suite_schedule=own)
    delayed: EnumerableSchedule = dataclasses.replace(own, onset_ms=parsed.onset_ms)
    return delayed
