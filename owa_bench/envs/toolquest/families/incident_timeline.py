"""Task family incident_timeline: the events of two vendors in one timeline of UTC.

The monitor gives local time in days and minutes, the rollout tool seconds of UTC.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
monitor/monitoring (Monitor|Watch|Sensors) Watches services and keeps their alerts.
  windows unpaged (windows|reviews|review-windows|spans|postmortems) Review windows and
      their bounds.
    name:string (name|window|label) Name of the window.
    first_day:date (first_day|starts|from_date) First day of the window, in UTC.
    last_day:date^ (last_day|ends|to_date) Day on which the window ends, in UTC.
    last_day_included:boolean (last_day_included|end_inclusive|closes_after) Whether the
      last day belongs to the window.
  services (services|systems|inventory|watched|applications) Services that are watched.
    service:string? (service|service_code|system) Code of the service.
    status:enum? (status|state|health) degraded=impaired|ailing|affected healthy=fine
      retired=gone Status of the service: degraded, healthy or retired.
    minutes_ahead:integer (minutes_ahead|utc_offset|clock_offset) Minutes by which the
      service's local clock is ahead of UTC.
    component:string? (component|component_no|package) Number of the component that runs
      it.
  alerts DELETE (alerts|alarms|signals|notices|warnings) Alerts that services raised.
    id:string! (id|alert_id|alarm_no) Identifier of the alert.
    service:string? (service|raised_by|system) Code of the service that raised it.
    reference:string (reference|alert_ref|case) Reference of the alert in reports.
    day:date (day|local_day|raised_on) Day by the service's local clock.
    minute:integer (minute|local_minute|minute_of_day) Minute of that day, 0 to 1439.
    loss:money (loss|damage|impact) Loss that the alert stands for.
  control
rollout/rollouts (Rollout|Deploys|Release) Rolls changes out.
  changes (changes|deployments|rollouts|releases|pushes) Changes that were rolled out.
    id:string! (id|change_id|push_no) Identifier of the change.
    component:string? (component|part|module) Number of the component that was changed.
    reference:string (reference|change_ref|docket) Reference of the change in reports.
    second:integer (second|at_second|elapsed) Seconds from the beginning of 2031, in
      UTC, to the change.
    cost:money (cost|expense|charge) Cost of the change.
  control
"""
_WINDOWS = 4
# Minutes ahead of UTC: none of them shifts an hour and no minutes alone.
_ZONES = (-570, -300, -210, 60, 330, 345, 540, 630)
_FIRST_HOURS, _NOON, _DAY = 300, 720, 1440
_INSIDE = 65  # of 100 events lie in the window
_BEGINNING = datetime(2031, 1, 1, tzinfo=UTC)  # of the rollout tool's seconds
_Days = tuple[int, int]  # first and last day of a window, numbers in the year
_TimelineEvent = tuple[datetime, Value, int]  # time, reference, cents


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of services, alerts, changes and repeated alerts.
    Returns: Windows that meet without a gap, services, their alerts and changes.
    """
    spans = _spans(rng)
    asked = rng.below(_WINDOWS - 1)  # the next one says how long it lasts
    numbers = rng.sample(range(100, 1000), _WINDOWS)
    windows = [
        {"name": f"RW-{number}", **draws.day_bounds(rng, *span)}
        for number, span in zip(numbers, spans, strict=True)
    ]
    services = _services(rng, size["services"])
    alerts = _alerts(rng, size, services, spans[asked])
    changes = _changes(rng, size["changes"], services, spans[asked])
    name = windows[asked]["name"]
    return task_spec.TaskData(
        tables={
            "windows": windows,
            "services": rng.shuffled(services),
            "alerts": draws.by_id(alerts.rows),
            "changes": changes,
        },
        links=services,
        rule={"window": name, "service_status": "degraded"},
        pairs=alerts.pairs,
        where={"name": name},
    )


def _spans(rng: draws.IntegerDraws) -> Sequence[_Days]:
    """Return windows that meet without a gap, a day clear of either end of the year."""
    first = rng.between(3, 150)
    spans = []
    for _ in range(_WINDOWS):
        last = first + rng.between(12, 45)
        spans.append((first, last))
        first = last + 1
    return spans


def _services(rng: draws.IntegerDraws, count: int) -> list[task_spec.SourceRow]:
    """Return services; the first two are degraded, one behind UTC and one ahead."""
    codes = draws.random_codes(rng, "SV", count, 4)
    components = draws.random_codes(rng, "CO", count, 5)
    return [
        {
            "service": code,
            "status": draws.status(rng, i, "degraded", ("healthy", "retired"), 55),
            "minutes_ahead": (-300, 330)[i] if i < 2 else rng.pick(_ZONES),
            "component": component,
        }
        for i, (code, component) in enumerate(zip(codes, components, strict=True))
    ]


def _alerts(
    rng: draws.IntegerDraws, size: task_spec.Sizes, services: task_spec.SourceRows, span: _Days
) -> draws.Postings:
    """Return alerts; the first lies on the window's last day.

    By its local clock that is the day before. Two that look alike are equal but for their
    reference.
    """
    count = size["alerts"] + size["repeats"]
    references = iter(draws.random_codes(rng, "AL-", count, 5))
    rows: list[task_spec.SourceRow] = []
    for i in range(size["alerts"]):
        service = services[i] if i < 2 else rng.pick(services)
        at = _instant(rng, span, i) + int(service["minutes_ahead"])
        rows.append(
            {
                "service": service["service"],
                "reference": next(references),
                "day": draws.DAYS[at // _DAY],
                "minute": at % _DAY,
                "loss": rng.cents(10, 4000),
            }
        )

    def alter(row: dict[str, Value]) -> None:
        row["reference"] = next(references)

    return draws.with_copies(rng, rows, size["repeats"], alter, "at-7001", first=2)


def _changes(
    rng: draws.IntegerDraws, count: int, services: task_spec.SourceRows, span: _Days
) -> list[task_spec.SourceRow]:
    """Return changes; the first is of a degraded service, on the window's last day."""
    rows: list[task_spec.SourceRow] = []
    for i, reference in enumerate(draws.random_codes(rng, "CH-", count, 5)):
        service = services[0] if i == 0 else rng.pick(services)
        at = _instant(rng, span, i)
        rows.append(
            {
                "id": f"ch-{301 + i}",
                "component": service["component"],
                "reference": reference,
                "second": 60 * at + rng.below(60),
                "cost": rng.cents(10, 4000),
            }
        )
    return rng.shuffled(rows)


def _instant(rng: draws.IntegerDraws, span: _Days, i: int) -> int:
    """Return minutes of UTC since the year began.

    The first ones lie early on the last day and on the one after: what a bound read the other way
    leaves out or takes in.
    """
    first, last = span
    minute = rng.below(_DAY)
    if i < 2:
        return (last + i) * _DAY + rng.below(_FIRST_HOURS)
    if rng.percent(10):  # near either bound, where clocks disagree on the day
        edge = rng.pick((first, last + 1))
        return edge * _DAY + rng.between(-_NOON, _NOON)
    inside = rng.percent(_INSIDE)
    day = rng.between(first, last) if inside else rng.between(2, 362)
    return day * _DAY + minute


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return the events of the window in order of time.

    Args:
        sources: Rows by source.
        rule: `window` and `service_status`.
    Returns: (reference, position from 1, minute in UTC, amount in cents) of every event.
    """
    window = next(w for w in sources["windows"] if w["name"] == rule["window"])
    events = sorted(
        event
        for event in (*_alert_events(sources, rule), *_change_events(sources, rule))
        if task_spec.within(window, event[0].date().isoformat())
    )
    return [
        (reference, position, f"{at:%Y-%m-%dT%H:%M}Z", cents)
        for position, (at, reference, cents) in enumerate(events, start=1)
    ]


def _alert_events(
    sources: task_spec.Sources, rule: task_spec.RuleParameters
) -> Iterator[_TimelineEvent]:
    """Yield the alerts of the services in question, their local time turned to UTC."""
    ahead = {
        s["service"]: int(s["minutes_ahead"])
        for s in sources["services"]
        if s["status"] == rule["service_status"]
    }
    for alert in task_spec.distinct(sources["alerts"]):
        if alert["service"] in ahead:
            minutes = int(alert["minute"]) - ahead[alert["service"]]
            day = datetime.fromisoformat(f"{alert['day']}T00:00Z")
            at = day + timedelta(minutes=minutes)
            yield at, alert["reference"], int(alert["loss"])


def _change_events(
    sources: task_spec.Sources, rule: task_spec.RuleParameters
) -> Iterator[_TimelineEvent]:
    """Yield the changes of the components that run the services in question."""
    component_of = task_spec.key_map(sources, sources["services"], "service", "component")
    components = {
        component_of.get(s["service"])
        for s in sources["services"]
        if s["status"] == rule["service_status"]
    }
    for change in task_spec.distinct(sources["changes"]):
        if change["component"] in components:
            at = _BEGINNING + timedelta(minutes=int(change["second"]) // 60)
            yield at, change["reference"], int(change["cost"])


FAMILY = task_spec.TaskFamily(
    name="incident_timeline",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink(
        "services", "service", "component", "Which component runs which service."
    ),
    sizes="services 5 9 12; alerts 14 30 44; changes 8 20 30; repeats 2 2 4",
    columns=("reference", "position", "at", "amount_cents"),
    sources=("windows", "services", "alerts", "links", "changes"),
    text=(
        "Merge the alerts of {monitor} and the changes of {rollout} into one timeline "
        "of the window {window}, of every service that is degraded: its alerts, and "
        "the changes of the component that runs it. {monitor} tells an alert's time by "
        "the local clock of its service, {rollout} in seconds of UTC. An event belongs "
        "to the window by its day in UTC (the window says whether its last day is "
        "included). A repeated posting, equal in all but its id, counts once. Report "
        "per event reference, position (from 1, by time, then by reference), at (UTC, "
        "whole minutes rounded down, as 2031-01-31T23:59Z) and amount_cents (loss or "
        "cost, in whole cents)."
    ),
    duplicates="alerts",
    bound="windows.last_day_included",
    bound_text="The last day of {name} belongs to the window.",
    documents=("alerts", "changes"),
    last="changes",
    invariants=(
        task_spec.Invariant(
            "gapless",
            ("windows",),
            "Windows follow one another without a gap: each lasts until the next one begins.",
        ),
    ),
    draw=draw,
    solve=solve,
)
