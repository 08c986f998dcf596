"""Calendars of drift: which part of an instance's drift order acts, and when.

A calendar selects some events of the drift order (`order.py`). Calendars of days follow the same
order, and back again where they recur or reverse.

Source: docs/suites.md#drift
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from owa_bench.discovery import get
from owa_bench.drift.order import TOLERANCE, drift_order, groups, longest_prefix
from owa_bench.errors import FieldError
from owa_bench.interfaces import DriftEvent, EnumerableSchedule, Operator, World
from owa_bench.records.events import fixed
from owa_bench.records.instance import ANNOUNCEMENTS, Announcement, Instance

Course = Literal["rising", "recurring", "reversing"]
_LEAST_TURN: dict[Course, int] = {"rising": 0, "recurring": 2, "reversing": 1}
# The names of calendars of days in a plan, with their courses.
DAILY: dict[str, Course] = {"daily": "rising", "recurring": "recurring", "reversing": "reversing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """A schedule over the operators of one domain.

    `classes` empty: all four announcement classes. `groups` empty: operators of every group.
    `operator` empty: every operator; otherwise that one alone, at intensity `magnitude`. `pace`
    "entry": drift step d is d events; "day": it is day d, and `share` of the whole weight is
    applied per day. `course` of the days: "rising" without end; "recurring": all is undone every
    `turn` days and applied again; "reversing": from day `turn` on it is undone day by day.
    `onset_ms` is the simulated time of the drift, 0 for before the episode. `suite_schedule` is a
    suite's own, of whose events it selects in place of its domain's drift order; these keep their
    times, `onset_ms` later. `times` draws a simulated time for each event from the instance, its
    base world and the event.
    """

    domain: str
    classes: tuple[Announcement, ...] = ()
    groups: tuple[str, ...] = ()
    operator: str = ""
    magnitude: float | None = None
    pace: Literal["entry", "day"] = "entry"
    share: float = 0.0
    course: Course = "rising"
    turn: int = 0
    onset_ms: int = 0
    suite_schedule: EnumerableSchedule | None = None
    times: Callable[[Instance, Any, DriftEvent], int] | None = None

    def __post_init__(self) -> None:
        """Refuse numbers and classes outside their range."""
        if self.onset_ms < 0:
            raise FieldError("onset_ms", self.onset_ms, "must be at least 0")
        if self.magnitude is not None and not 0 < self.magnitude <= 1:
            raise FieldError("magnitude", self.magnitude, "must be in (0, 1]")
        if self.pace == "day" and not 0 < self.share <= 1:
            raise FieldError("share", self.share, "must be in (0, 1]")
        least = _LEAST_TURN[self.course]
        if self.turn < least:
            raise FieldError("turn", self.turn, f"must be at least {least} days")
        named = (*self.classes, *self.groups)
        known = (*ANNOUNCEMENTS, *groups(self.domain)) if named else ()
        for name in named:
            if name not in known:
                raise FieldError("classes", name, f"must be one of {', '.join(known)}")

    def __call__(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the events of the instance's drift step, in order."""
        if instance.drift_step == 0:
            return ()
        events = self.possible(instance, world)
        if self.pace == "entry":
            return events[: instance.drift_step]
        delta = min(1.0, self._days_in_force(instance.drift_step) * self.share)
        return events[: longest_prefix(events, delta)]

    @property
    def reach(self) -> float:
        """The greatest magnitude that it ever reaches."""
        last = self._last
        return 1.0 if last is None else min(1.0, fixed(last * self.share))

    def possible(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return every event of the calendar's operators, in order.

        Args:
            instance: its drift step plays no part.
            world: its base world.
        Returns: The part of its drift order that this calendar selects.
        """
        if self.suite_schedule is None:
            order = drift_order(instance, world, self.domain)
        else:
            order = self.suite_schedule.possible(instance, world)
        if self.times is not None:
            drawn = (self.times(instance, world, event) for event in order)
            order = tuple(e._replace(at_ms=t) for e, t in zip(order, drawn, strict=True))
        events = [
            event._replace(at_ms=event.at_ms + self.onset_ms)
            for event in order
            if self._selects(event)
        ]
        if self.magnitude is None:
            return tuple(events)
        return tuple(e._replace(intensity=self.magnitude) for e in events)

    def steps_for(self, instance: Instance, world: World, delta: float) -> int:
        """Return the drift step of a nominal magnitude.

        Args:
            instance: its drift step plays no part.
            world: its base world.
            delta: the magnitude, in [0, 1].
        Returns: The greatest step within `delta`; of days, the last of the first rise.
        Raises: FieldError: `delta` is outside [0, 1] or beyond `reach`.
        """
        if not 0 <= delta <= 1:
            raise FieldError("delta", delta, "must be in [0, 1]")
        if delta > self.reach + TOLERANCE:
            rule = f"must be at most {self.reach:g}, all that this calendar reaches"
            raise FieldError("delta", delta, rule)
        if self.pace == "day":
            day = math.floor(delta / self.share + TOLERANCE)
            return day if self._last is None else min(day, self._last)
        return longest_prefix(self.possible(instance, world), delta)

    @property
    def _last(self) -> int | None:
        """The last day of the first rise, None where it never ends."""
        return {"rising": None, "recurring": self.turn - 1, "reversing": self.turn}[self.course]

    def _days_in_force(self, day: int) -> int:
        """Return how many days' worth of drift holds on a day."""
        if self.course == "recurring":
            return day % self.turn
        if self.course == "reversing":
            return max(0, min(day, 2 * self.turn - day))
        return day

    def _selects(self, event: DriftEvent) -> bool:
        """Return whether an event of the drift order belongs to this calendar."""
        if self.operator and event.operator != self.operator:
            return False
        operator: Operator = get("operators", event.operator)
        if self.groups and operator.group not in self.groups:
            return False
        return not self.classes or operator.announcement in self.classes


def nested(domain: str, classes: Sequence[Announcement] = (), *, onset_ms: int = 0) -> Calendar:
    """Return the calendar of nested prefixes.

    Args: domain: the operators'. classes: empty for all. onset_ms: simulated time.
    """
    return Calendar(domain=domain, classes=tuple(classes), onset_ms=onset_ms)


def single(domain: str, operator: str, magnitude: float = 1.0, *, onset_ms: int = 0) -> Calendar:
    """Return the calendar of one operator on all its targets.

    Args:
        domain: the suite's domain.
        operator: "<domain>/<name>".
        magnitude: intensity of every event, in (0, 1].
        onset_ms: simulated time of the drift.
    Raises:
        UnknownNameError: there is no such operator.
        FieldError: it is of another domain, or a number is outside its range.
    """
    get("operators", operator)
    if not operator.startswith(f"{domain}/"):
        rule = f"must be one of domain {domain}, which this suite drifts by"
        raise FieldError("operator", operator, rule)
    return Calendar(domain=domain, operator=operator, magnitude=magnitude, onset_ms=onset_ms)


def daily(
    domain: str, share: float, *, course: Course = "rising", turn: int = 0, onset_ms: int = 0
) -> Calendar:
    """Return a calendar of days.

    Args:
        domain: the operators' domain.
        share: share of the whole weight that is applied per day, in (0, 1].
        course: what follows a rise.
        turn: days until then.
        onset_ms: simulated time of the drift.
    Raises: FieldError: a number is outside its range.
    """
    days: dict[str, Any] = {"share": share, "course": course, "turn": turn}
    return Calendar(domain=domain, pace="day", onset_ms=onset_ms, **days)


def parse(text: str, domain: str) -> Calendar:
    """Return the calendar that a plan names.

    Args:
        text: "nested", "nested:D3", "nested:Label" (classes and groups joined by "+"),
            "single:OPERATOR@MAGNITUDE", "daily:SHARE", "recurring:SHARE@DAYS" or
            "reversing:SHARE@DAYS"; "^MS" after it sets the onset.
        domain: the suite's domain.
    Raises: FieldError: the text is none of these, or a part of it breaks a rule.
    """
    body, _, onset = text.partition("^")
    kind, colon, rest = body.partition(":")
    onset_ms = _integer(text, onset or "0")
    if kind == "nested":
        names = rest.split("+") if colon else []
        return Calendar(
            domain=domain,
            classes=tuple(name for name in ANNOUNCEMENTS if name in names),
            groups=tuple(name for name in names if name not in ANNOUNCEMENTS),
            onset_ms=onset_ms,
        )
    if kind == "single" and rest:
        operator, at, magnitude = rest.partition("@")
        size = _number(text, magnitude if at else "1")
        return single(domain, operator, size, onset_ms=onset_ms)
    if kind in DAILY:
        return _of_days(kind, text, rest, domain, onset_ms)
    rule = (
        "must be nested[:CLASS+GROUP+..], single:OPERATOR[@MAGNITUDE], "
        "daily:SHARE, recurring:SHARE@DAYS or reversing:SHARE@DAYS"
    )
    raise FieldError("calendar", text, rule)


def _of_days(kind: str, text: str, rest: str, domain: str, onset_ms: int) -> Calendar:
    """Return the calendar of days that `kind:rest` names."""
    share, at, days = rest.partition("@")
    course = DAILY[kind]
    if bool(at) != bool(_LEAST_TURN[course]):
        rule = f"must be {kind}:SHARE{'@DAYS' if _LEAST_TURN[course] else ''}"
        raise FieldError("calendar", text, rule)
    turn = _integer(text, days or "0")
    size = _number(text, share)
    return daily(domain, size, course=course, turn=turn, onset_ms=onset_ms)


def _number(text: str, number: str) -> float:
    """Return a number within a calendar's text; FieldError names the whole text."""
    try:
        value = float(number)
    except ValueError as error:
        raise FieldError("calendar", text, "must end in a number") from error
    if not math.isfinite(value):
        raise FieldError("calendar", text, "must end in a finite number")
    return value


def _integer(text: str, number: str) -> int:
    """Return an integer within a calendar's text, as `_number` does."""
    value = _number(text, number)
    if not value.is_integer():
        raise FieldError("calendar", text, "must end in a whole number")
    return int(value)
