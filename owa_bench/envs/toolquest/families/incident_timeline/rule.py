"""The rule of incident_timeline: from rows to the right answer."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from owa_bench.envs.toolquest.rows import (
    AnswerRow,
    RuleParameters,
    SourceRow,
    Sources,
    distinct,
    linked,
)
from owa_bench.worlds.api import Value

BEGINNING = datetime(2031, 1, 1, tzinfo=UTC)  # of the rollout tool's seconds, in UTC


class Happened(NamedTuple):
    """An event in whole minutes of UTC, rounded down; the order is the timeline's."""

    at: datetime
    reference: Value
    cents: int


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (reference, position, time in UTC, amount in cents) of every event."""
    window = next(w for w in sources["windows"] if w["name"] == rule["window"])
    events = [
        event
        for event in (*_alerts(sources, rule), *_changes(sources, rule))
        if _within(window, event.at.date().isoformat())
    ]
    return [
        (event.reference, position, f"{event.at:%Y-%m-%dT%H:%M}Z", event.cents)
        for position, event in enumerate(sorted(events), start=1)
    ]


def _alerts(sources: Sources, rule: RuleParameters) -> Iterator[Happened]:
    """Yield the alerts of the services in question, their local time turned to UTC."""
    ahead = {
        s["service"]: int(s["minutes_ahead"])
        for s in sources["services"]
        if s["status"] == rule["service_status"]
    }
    for alert in distinct(sources["alerts"]):
        if alert["service"] in ahead:
            minutes = int(alert["minute"]) - ahead[alert["service"]]
            day = datetime.fromisoformat(f"{alert['day']}T00:00Z")
            at = day + timedelta(minutes=minutes)
            yield Happened(at, alert["reference"], int(alert["loss"]))


def _changes(sources: Sources, rule: RuleParameters) -> Iterator[Happened]:
    """Yield the changes of the components that run the services in question."""
    component_of = linked(sources, sources["services"], "service", "component")
    components = {
        component_of.get(s["service"])
        for s in sources["services"]
        if s["status"] == rule["service_status"]
    }
    for change in distinct(sources["changes"]):
        if change["component"] in components:
            at = BEGINNING + timedelta(minutes=int(change["second"]) // 60)
            yield Happened(at, change["reference"], int(change["cost"]))


def _within(window: SourceRow, day: str) -> bool:
    """Return whether an ISO day lies in the window."""
    last = str(window["last_day"])
    return str(window["first_day"]) <= day and (
        day < last or (day == last and bool(window["last_day_included"]))
    )
