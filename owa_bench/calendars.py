"""Schedules of drift: which operators act on an instance, where, how strongly, when.

Every instance has one drift order: all (operator, target) pairs of its base world,
shuffled with its drift stream, each with an intensity drawn once. A calendar keeps some
of them; drift step d is its first d entries, and magnitude delta the longest prefix
whose weight share is at most delta. So step and magnitude are one object, drift at 0.3
is part of drift at 0.7, and comparisons across delta are paired. Calendars of days run
along the same order, forth and, where they recur or reverse, back again.

Source: `suites.md` section 0, "Drift is nested".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from owa_bench.discovery import find, get
from owa_bench.errors import FieldError
from owa_bench.interfaces import DriftEvent, HasGroup, HasHeldOut, Operator, World
from owa_bench.records.events import fixed
from owa_bench.records.instance import ANNOUNCEMENTS, Announcement, Instance
from owa_bench.seeding import is_practice, stream

_TOLERANCE = 1e-9
_LEAST_INTENSITY = 0.25
Course = Literal["rising", "recurring", "reversing"]
_LEAST_TURN: dict[Course, int] = {"rising": 0, "recurring": 2, "reversing": 1}
# What a plan calls a calendar of days, and its course.
DAILY: dict[str, Course] = {
    "daily": "rising",
    "recurring": "recurring",
    "reversing": "reversing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """A schedule over the operators of one domain.

    `classes` empty: all four announcement classes. `groups` empty: operators of every
    group (what they change: a domain may sort its operators so). `operator` empty:
    every operator; otherwise that one alone, at intensity `magnitude`. `pace` "entry":
    drift step d is d entries; "day": it is day d, and `share` of the whole weight
    strikes per day. `course` of the days: "rising" for ever; "recurring", all is undone
    every `turn` days and comes again; "reversing", from day `turn` on it is undone day
    by day. `onset_ms` is the simulated time at which the drift strikes, 0 before the
    episode.
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
        if self.classes or self.groups:
            self._check_names()

    def __call__(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the strikes of the instance's drift step, in order."""
        if instance.drift_step == 0:
            return ()
        strikes = self.possible(instance, world)
        if self.pace == "entry":
            return strikes[: instance.drift_step]
        day = min(1.0, self._risen(instance.drift_step) * self.share)
        return strikes[: longest_prefix(strikes, day)]

    @property
    def reach(self) -> float:
        """The greatest magnitude that it ever comes to."""
        last = self._last
        return 1.0 if last is None else min(1.0, fixed(last * self.share))

    def possible(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return every strike of the calendar's operators, in order."""
        return tuple(
            strike._replace(
                at_ms=self.onset_ms,
                intensity=strike.intensity
                if self.magnitude is None
                else self.magnitude,
            )
            for strike in drift_order(instance, world, self.domain)
            if self._keeps(strike)
        )

    def steps_for(self, instance: Instance, world: World, delta: float) -> int:
        """Return the drift step of nominal magnitude `delta`.

        For a calendar of days that is the last day of the first rise within `delta`.
        """
        if not 0 <= delta <= 1:
            raise FieldError("delta", delta, "must be in [0, 1]")
        if delta > self.reach + _TOLERANCE:
            raise FieldError(
                "delta",
                delta,
                f"must be at most {self.reach:g}, all that this calendar reaches",
            )
        if self.pace == "day":
            day = math.floor(delta / self.share + _TOLERANCE)
            return day if self._last is None else min(day, self._last)
        return longest_prefix(self.possible(instance, world), delta)

    @property
    def _last(self) -> int | None:
        """The last day of the first rise, None where it never ends."""
        return {"rising": None, "recurring": self.turn - 1, "reversing": self.turn}[
            self.course
        ]

    def _risen(self, day: int) -> int:
        """Return how many days' worth of drift is in force on a day."""
        if self.course == "recurring":
            return day % self.turn
        if self.course == "reversing":
            return max(0, min(day, 2 * self.turn - day))
        return day

    def _check_names(self) -> None:
        known = (*ANNOUNCEMENTS, *groups(self.domain))
        for name in (*self.classes, *self.groups):
            if name not in known:
                raise FieldError("classes", name, f"must be one of {', '.join(known)}")

    def _keeps(self, strike: DriftEvent) -> bool:
        if self.operator and strike.operator != self.operator:
            return False
        operator: Operator = get("operators", strike.operator)
        if self.groups and group_of(operator) not in self.groups:
            return False
        return not self.classes or operator.announcement in self.classes


def nested(
    domain: str, classes: Sequence[Announcement] = (), *, onset_ms: int = 0
) -> Calendar:
    """Return the calendar of nested prefixes, of some announcement classes if given."""
    return Calendar(domain=domain, classes=tuple(classes), onset_ms=onset_ms)


def single(
    domain: str, operator: str, magnitude: float = 1.0, *, onset_ms: int = 0
) -> Calendar:
    """Return the calendar of one operator at one magnitude on all its targets."""
    get("operators", operator)
    if not operator.startswith(f"{domain}/"):
        raise FieldError(
            "operator",
            operator,
            f"must be one of domain {domain}, which this suite drifts by",
        )
    return Calendar(
        domain=domain, operator=operator, magnitude=magnitude, onset_ms=onset_ms
    )


def daily(
    domain: str,
    share: float,
    *,
    course: Course = "rising",
    turn: int = 0,
    onset_ms: int = 0,
) -> Calendar:
    """Return the calendar of days: `share` of the whole weight strikes every day."""
    return Calendar(
        domain=domain,
        pace="day",
        share=share,
        course=course,
        turn=turn,
        onset_ms=onset_ms,
    )


def parse(text: str, domain: str) -> Calendar:
    """Return the calendar that a plan names.

    "nested", "nested:D3", "nested:Label" (classes and groups joined by "+"),
    "single:OPERATOR@MAGNITUDE", "daily:SHARE", "recurring:SHARE@DAYS",
    "reversing:SHARE@DAYS"; "^MS" after it sets the onset.
    """
    body, _, onset = text.partition("^")
    kind, colon, rest = body.partition(":")
    onset_ms = _whole(text, onset or "0")
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
    raise FieldError(
        "calendar",
        text,
        (
            "must be nested[:CLASS+GROUP+..], single:OPERATOR[@MAGNITUDE], "
            "daily:SHARE, recurring:SHARE@DAYS or reversing:SHARE@DAYS"
        ),
    )


def _of_days(kind: str, text: str, rest: str, domain: str, onset_ms: int) -> Calendar:
    """Return the calendar of days that `kind:rest` says."""
    share, at, turn = rest.partition("@")
    course = DAILY[kind]
    if bool(at) != bool(_LEAST_TURN[course]):
        raise FieldError(
            "calendar",
            text,
            f"must be {kind}:SHARE{'@DAYS' if _LEAST_TURN[course] else ''}",
        )
    return daily(
        domain,
        _number(text, share),
        course=course,
        turn=_whole(text, turn or "0"),
        onset_ms=onset_ms,
    )


def groups(domain: str) -> dict[str, tuple[str, ...]]:
    """Return the groups of a domain's operators with the names of those in each."""
    found: dict[str, list[str]] = {}
    for name, entry in find("operators").items():
        group = group_of(entry.plugin)
        if group and name.startswith(f"{domain}/"):
            found.setdefault(group, []).append(name)
    return {group: tuple(names) for group, names in sorted(found.items())}


def group_of(operator: Operator) -> str:
    """Return the group that an operator says it belongs to, "" for none."""
    return operator.group if isinstance(operator, HasGroup) else ""


def drift_order(
    instance: Instance, world: World, domain: str
) -> tuple[DriftEvent, ...]:
    """Return every (operator, target) of a base world in the instance's own order.

    A target that an operator cannot change has no entry, so weight shares are real.
    Operators that are `held_out` never strike an instance of practice.
    """
    practice = is_practice(instance.seed)
    pairs = [
        (name, target)
        for name, found in find("operators").items()
        if name.startswith(f"{domain}/")
        and not (practice and _is_held_out(found.plugin))
        for target in sorted(found.plugin.targets(world))
    ]
    rng = stream(instance.seed, "drift", "order")
    shuffled = rng.permutation(len(pairs)).tolist()
    spread = 1.0 - _LEAST_INTENSITY
    intensities = (_LEAST_INTENSITY + spread * rng.random(len(pairs))).tolist()
    return tuple(
        DriftEvent(0, pairs[i][0], pairs[i][1], fixed(intensity))
        for i, intensity in zip(shuffled, intensities, strict=True)
    )


def _is_held_out(operator: Operator) -> bool:
    return isinstance(operator, HasHeldOut) and operator.held_out


def weight(strikes: Sequence[DriftEvent]) -> float:
    """Return the summed weight of strikes."""
    return math.fsum(_weight(strike) for strike in strikes)


def share(applied: Sequence[DriftEvent], possible: Sequence[DriftEvent]) -> float:
    """Return the weight share of `applied` in `possible`; 0 where nothing is possible.

    This is the realised magnitude that stands beside the nominal one.
    """
    total = weight(possible)
    return fixed(weight(applied) / total) if total else 0.0


def longest_prefix(strikes: Sequence[DriftEvent], delta: float) -> int:
    """Return how many first strikes weigh at most `delta` of all of them."""
    limit = delta * weight(strikes) + _TOLERANCE
    running = 0.0
    for count, strike in enumerate(strikes):
        running += _weight(strike)
        if running > limit:
            return count
    return len(strikes)


def _weight(strike: DriftEvent) -> float:
    operator: Operator = get("operators", strike.operator)
    return operator.weight


def _number(text: str, number: str) -> float:
    """Return a number of a calendar's text; FieldError holds the whole text."""
    try:
        value = float(number)
    except ValueError as error:
        raise FieldError("calendar", text, "must end in a number") from error
    if not math.isfinite(value):
        raise FieldError("calendar", text, "must end in a finite number")
    return value


def _whole(text: str, number: str) -> int:
    value = _number(text, number)
    if not value.is_integer():
        raise FieldError("calendar", text, "must end in a whole number")
    return int(value)
