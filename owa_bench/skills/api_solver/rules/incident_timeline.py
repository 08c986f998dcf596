"""Goals of the family incident_timeline: events of two clocks in one order."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from owa_bench.skills.api_solver.rule_tables import (
    AnswerRows,
    FamilyRule,
    RoleRow,
    Tables,
    clues,
    linked,
)

MINUTES_OF_DAY = 1440
SECONDS_OF_MINUTE = 60
FIRST_DAY = date(2031, 1, 1)  # the day from which changes count their seconds
TimelineEvent = tuple[
    int, str, Any
]  # minutes since that day began in UTC, reference, cents


def compute(tables: Tables, rule: Mapping[str, Any]) -> AnswerRows:
    """Return reference, position, time in UTC and cents of each event of a window."""
    window = next(row for row in tables["windows"] if row["name"] == rule["window"])
    watched = {
        row["service"]: row
        for row in tables["services"]
        if row["status"] == rule["service_status"]
    }
    events = [*_alerts(tables, watched), *_changes(tables, watched)]
    inside = sorted(event for event in events if _inside(_written(event[0]), window))
    return [
        [reference, place, _written(at), cents]
        for place, (at, reference, cents) in enumerate(inside, 1)
    ]


def _alerts(tables: Tables, watched: Mapping[Any, RoleRow]) -> Iterator[TimelineEvent]:
    """Yield the alerts of watched services, local time turned to UTC."""
    for row in tables["alerts"]:
        service = watched.get(row["service"])
        if service is not None:
            days = (date.fromisoformat(row["day"][:10]) - FIRST_DAY).days
            local = days * MINUTES_OF_DAY + row["minute"]
            yield local - service["minutes_ahead"], row["reference"], row["loss"]


def _changes(tables: Tables, watched: Mapping[Any, RoleRow]) -> Iterator[TimelineEvent]:
    """Yield the changes of the components that run watched services."""
    component_of = linked(tables, "services", "service", "component")
    components = {component_of.get(name) for name in watched}
    for row in tables["changes"]:
        if row["component"] in components:
            yield row["second"] // SECONDS_OF_MINUTE, row["reference"], row["cost"]


def _written(at: int) -> str:
    """Return minutes since the first day as a time in UTC."""
    day = FIRST_DAY.toordinal() + at // MINUTES_OF_DAY
    hour, minute = divmod(at % MINUTES_OF_DAY, 60)
    written = datetime.fromordinal(day).replace(hour=hour, minute=minute, tzinfo=UTC)
    return f"{written:%Y-%m-%dT%H:%M}Z"


def _inside(written: str, window: RoleRow) -> bool:
    """Return whether a time lies in a window, bound as the window says."""
    day, last = written[:10], window["last_day"]
    before = day <= last if window["last_day_included"] else day < last
    return bool(window["first_day"] <= day and before)


RULE = FamilyRule(
    compute,
    {
        "windows": clues("name holds window; first_day below last_day; last_day meets"),
        "services": clues(
            "service unique; service kin alerts.service; status holds service_status; "
            "component kin changes.component; component kin links.component; "
            "service kin links.service"
        ),
        "alerts": clues("id unique; service kin services.service; loss adds"),
        "changes": clues(
            "id unique; component kin services.component; "
            "component kin links.component; cost adds"
        ),
        "links": clues("service kin services.service; component kin changes.component"),
    },
)
