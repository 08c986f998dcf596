"""Family incident_timeline: merge two vendors' events into one timeline of UTC."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import DAYS, IntegerDraws, numbered
from owa_bench.envs.toolquest.families.incident_timeline.rule import solve
from owa_bench.envs.toolquest.families.incident_timeline.vendors import (
    DIRECTORY,
    MONITOR,
    MONITOR_WITHOUT_LINK,
    ROLLOUT,
)
from owa_bench.envs.toolquest.provider_templates import (
    ProviderTemplate,
    Row,
    Rows,
    control_rows,
)
from owa_bench.envs.toolquest.task_spec import (
    BoundQuestion,
    SourcePlan,
    TaskFamily,
    TaskSpec,
)
from owa_bench.worlds.api import Value


class Size(NamedTuple):
    """Rows of a tier."""

    services: int
    alerts: int
    changes: int
    repeats: int


class Span(NamedTuple):
    """First and last day of a window, as numbers in the year."""

    first: int
    last: int


SIZES = {
    1: Size(5, 14, 8, 2),
    2: Size(9, 30, 20, 2),
    3: Size(12, 44, 30, 4),
    4: Size(12, 44, 30, 4),
}
_WINDOWS = 4
# Minutes ahead of UTC: none of them shifts an hour and no minutes alone.
_ZONES = (-570, -300, -210, 60, 330, 345, 540, 630)
_FIRST_HOURS, _NOON, _DAY = 300, 720, 1440
_IDLE = ("healthy", "retired")
_INSIDE = 65  # of 100 events lie in the window


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    spans = _spans(draws)
    asked = draws.below(_WINDOWS)
    windows = _windows(draws, spans)
    services = _services(draws, size)
    alerts, pairs = _alerts(draws, size, services, spans[asked])
    changes = _changes(draws, size, services, spans[asked])
    monitor: Mapping[str, Rows] = {
        "windows": windows,
        "services": draws.shuffled(services),
        "alerts": sorted(alerts, key=lambda row: str(row["id"])),
        "control": control_rows({"alerts": [a["loss"] for a in alerts]}),
    }
    rollout: Mapping[str, Rows] = {
        "changes": changes,
        "control": control_rows({"changes": [c["cost"] for c in changes]}),
    }
    links = [{"service": s["service"], "component": s["component"]} for s in services]
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((MONITOR, monitor), (ROLLOUT, rollout))
    if tier >= 3:
        vendors = (
            (MONITOR_WITHOUT_LINK, monitor),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (ROLLOUT, rollout),
        )
    name = windows[asked]["name"]
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={"window": name, "service_status": "degraded"},
        text=_TEXT.format(window=name),
        units=(("alerts", "loss"), ("changes", "cost")),
        duplicate=("alerts", *pairs[draws.below(2)]),
        bound=BoundQuestion(
            "windows",
            "last_day_included",
            {"name": name},
            f"The last day of {name} belongs to the window.",
        ),
        docs=("alerts", "changes") if tier < 3 else ("alerts",),
        last="changes",
    )


_TEXT = (
    "Merge the alerts of {{monitor}} and the changes of {{rollout}} into one timeline "
    "of the window {window}, of every service that is degraded: its alerts, and the "
    "changes of the component that runs it. {{monitor}} tells an alert's time by the "
    "local clock of its service, {{rollout}} in seconds of UTC. An event belongs to "
    "the window by its day in UTC (the window says whether its last day is included). "
    "A repeated posting, equal in all but its id, counts once. Report per event "
    "reference, position (from 1, by time, then by reference), at (UTC, whole minutes "
    "rounded down, as 2031-01-31T23:59Z) and amount_cents (loss or cost, in whole "
    "cents)."
)


def _spans(draws: IntegerDraws) -> list[Span]:
    """Return windows that meet without a gap, a day clear of either end of the year."""
    first = draws.between(3, 150)
    spans = []
    for _ in range(_WINDOWS):
        last = first + draws.between(12, 45)
        spans.append(Span(first, last))
        first = last + 1
    return spans


def _windows(draws: IntegerDraws, spans: Sequence[Span]) -> list[Row]:
    """Return the windows; some name the day after their last one."""
    rows: list[Row] = []
    for number, span in zip(
        draws.sample(range(100, 1000), _WINDOWS), spans, strict=True
    ):
        included = draws.coin()
        rows.append(
            {
                "name": f"RW-{number}",
                "first_day": DAYS[span.first],
                "last_day": DAYS[span.last if included else span.last + 1],
                "last_day_included": included,
            }
        )
    return rows


def _services(draws: IntegerDraws, size: Size) -> list[Row]:
    """Return services; the first two are degraded, one behind UTC and one ahead."""
    codes = numbered(draws, "SV", size.services, 4, near=40)
    components = numbered(draws, "CO", size.services, 5, near=40)
    rows: list[Row] = []
    for i, (code, component) in enumerate(zip(codes, components, strict=True)):
        status = "degraded" if i < 2 or draws.percent(55) else draws.pick(_IDLE)
        if 2 <= i < 2 + len(_IDLE):
            status = _IDLE[i - 2]  # every status occurs, so that drift can be seen
        rows.append(
            {
                "service": code,
                "status": status,
                "minutes_ahead": (-300, 330)[i] if i < 2 else draws.pick(_ZONES),
                "component": component,
            }
        )
    return rows


def _alerts(
    draws: IntegerDraws, size: Size, services: Rows, span: Span
) -> tuple[list[Row], tuple[tuple[str, str], tuple[str, str]]]:
    """Return alerts, and the ids of a repeated pair and of a twin pair.

    The first lies on the last day of the window, but on the day before by its local
    clock. The twin of an alert is equal but for its reference, so it is another alert.
    """
    count = size.alerts + size.repeats
    references = numbered(draws, "AL-", count, 5, near=40)
    rows: list[dict[str, Value]] = []
    for i in range(size.alerts):
        service = services[i] if i < 2 else draws.pick(services)
        at = _instant(draws, span, i) + int(service["minutes_ahead"])
        rows.append(
            {
                "service": service["service"],
                "reference": references[i],
                "day": DAYS[at // _DAY],
                "minute": at % _DAY,
                "loss": draws.cents(10, 4000),
            }
        )
    chosen = draws.sample(range(2, len(rows)), size.repeats)
    copies = [dict(rows[i]) for i in chosen]
    for i, copy in enumerate(copies[: size.repeats // 2]):
        copy["reference"] = references[size.alerts + i]
    order = draws.shuffled(range(count))
    ids = [f"at-{7001 + place}" for place in order]
    both: list[Row] = [
        {"id": name, **row} for name, row in zip(ids, rows + copies, strict=True)
    ]
    repeat = (ids[chosen[-1]], ids[count - 1])
    twin = (ids[chosen[0]], ids[len(rows)])
    return both, (repeat, twin)


def _changes(draws: IntegerDraws, size: Size, services: Rows, span: Span) -> list[Row]:
    """Return changes; the first is of a degraded service, on the window's last day."""
    rows: list[Row] = []
    for i, reference in enumerate(numbered(draws, "CH-", size.changes, 5, near=40)):
        service = services[0] if i == 0 else draws.pick(services)
        at = _instant(draws, span, i)
        rows.append(
            {
                "id": f"ch-{301 + i}",
                "component": service["component"],
                "reference": reference,
                "second": 60 * at + draws.below(60),
                "cost": draws.cents(10, 4000),
            }
        )
    return draws.shuffled(rows)


def _instant(draws: IntegerDraws, span: Span, i: int) -> int:
    """Return minutes of UTC since the year began.

    The first ones lie early on the last day and on the one after: what a bound read the
    other way leaves out or takes in.
    """
    minute = draws.below(_DAY)
    if i < 2:
        return (span.last + i) * _DAY + draws.below(_FIRST_HOURS)
    if draws.percent(10):  # near either bound, where clocks disagree on the day
        edge = draws.pick((span.first, span.last + 1))
        return edge * _DAY + draws.between(-_NOON, _NOON)
    inside = draws.percent(_INSIDE)
    day = draws.between(*span) if inside else draws.between(2, 362)
    return day * _DAY + minute


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("windows", "monitor", "windows"),
        SourcePlan("services", "monitor", "services"),
        SourcePlan("alerts", "monitor", "alerts"),
        *links,
        SourcePlan("changes", "rollout", "changes"),
        SourcePlan("monitor_control", "monitor", "control", optional=True),
        SourcePlan("rollout_control", "rollout", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="incident_timeline",
    vendors=(MONITOR, ROLLOUT, DIRECTORY),
    columns=("reference", "position", "at", "amount_cents"),
    story=story,
    solve=solve,
)
