"""Family incident_timeline: roles, bound, and its answer worked out in another way."""

from datetime import UTC, date, datetime, timedelta, timezone

from tests.envs.toolquest.by_hand.rows import linked, rows_of, unique

ROLES = {
    "windows": "name first_day last_day last_day_included",
    "services": "service status minutes_ahead component",
    "alerts": "id service reference day minute loss",
    "links": "service component",
    "changes": "id component reference second cost",
    "monitor_control": "list count total",
    "rollout_control": "list count total",
}
LINKED = "component"  # which the directory holds from T3 on
BOUND = ("monitor", "windows", "last_day_included")
WRITES = False
EPOCH = datetime(2031, 1, 1, tzinfo=UTC).timestamp()


def answer(world, tier, rule):
    component_of = linked(world, tier, "monitor", "services", "service", "component")
    moments = []
    for service in rows_of(world, "monitor", "services"):
        if service["status"] != "degraded":
            continue
        clock = timezone(timedelta(minutes=service["minutes_ahead"]))
        for alert in unique(rows_of(world, "monitor", "alerts")):
            if alert["service"] == service["service"]:
                hour, minute = divmod(alert["minute"], 60)
                day = date.fromisoformat(alert["day"])
                local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=clock)
                moments.append((local.timestamp(), alert["reference"], alert["loss"]))
        for change in unique(rows_of(world, "rollout", "changes")):
            if change["component"] == component_of[service["service"]]:
                seconds = EPOCH + change["second"] - change["second"] % 60
                moments.append((seconds, change["reference"], change["cost"]))
    [window] = [w for w in rows_of(world, "monitor", "windows") if w["name"] == rule["window"]]
    end = date.fromisoformat(window["last_day"])
    end += timedelta(days=1 if window["last_day_included"] else 0)
    found = []
    for at, reference, cents in sorted(moments):
        there = datetime.fromtimestamp(at, tz=UTC)
        if date.fromisoformat(window["first_day"]) <= there.date() < end:
            text = there.strftime("%Y-%m-%dT%H:%MZ")
            found.append((reference, len(found) + 1, text, cents))
    return found
