"""The vendors of the family incident_timeline: a monitor, a rollout tool, a directory.

The monitor tells local time in days and minutes, the rollout tool seconds of UTC.
"""

from owa_bench.envs.toolquest.blueprints import (
    CONTROL,
    FieldPlan,
    ResourcePlan,
    VendorPlan,
)
from owa_bench.envs.toolquest.story import link_vendor, shed

_SERVICE = FieldPlan(
    "service",
    ("service", "service_code", "system"),
    "string",
    "Code of the service.",
    filterable=True,
)
_COMPONENT = FieldPlan(
    "component",
    ("component", "component_no", "package"),
    "string",
    "Number of the component that runs it.",
    filterable=True,
)
_WINDOWS = ResourcePlan(
    "windows",
    "Review windows and their bounds.",
    ("windows", "reviews", "review-windows", "spans", "postmortems"),
    (
        FieldPlan("name", ("name", "window", "label"), "string", "Name of the window."),
        FieldPlan(
            "first_day",
            ("first_day", "starts", "from_date"),
            "date",
            "First day of the window, in UTC.",
        ),
        FieldPlan(
            "last_day",
            ("last_day", "ends", "to_date"),
            "date",
            "Day on which the window ends, in UTC.",
            bound=True,
        ),
        FieldPlan(
            "last_day_included",
            ("last_day_included", "end_inclusive", "closes_after"),
            "boolean",
            "Whether the last day belongs to the window.",
        ),
    ),
    paged=False,
)
_SERVICES = ResourcePlan(
    "services",
    "Services that are watched.",
    ("services", "systems", "inventory", "watched", "applications"),
    (
        _SERVICE,
        FieldPlan(
            "status",
            ("status", "state", "health"),
            "enum",
            "Status of the service: degraded, healthy or retired.",
            choices=(
                ("degraded", "impaired", "ailing", "affected"),
                ("healthy", "fine"),
                ("retired", "gone"),
            ),
            filterable=True,
        ),
        FieldPlan(
            "minutes_ahead",
            ("minutes_ahead", "utc_offset", "clock_offset"),
            "integer",
            "Minutes by which the service's local clock is ahead of UTC.",
        ),
        _COMPONENT,
    ),
)
_ALERTS = ResourcePlan(
    "alerts",
    "Alerts that services raised.",
    ("alerts", "alarms", "signals", "notices", "warnings"),
    (
        FieldPlan(
            "id",
            ("id", "alert_id", "alarm_no"),
            "string",
            "Identifier of the alert.",
            identifier=True,
            filterable=True,
        ),
        FieldPlan(
            "service",
            ("service", "raised_by", "system"),
            "string",
            "Code of the service that raised it.",
            filterable=True,
        ),
        FieldPlan(
            "reference",
            ("reference", "alert_ref", "case"),
            "string",
            "Reference of the alert in reports.",
        ),
        FieldPlan(
            "day",
            ("day", "local_day", "raised_on"),
            "date",
            "Day by the service's local clock.",
        ),
        FieldPlan(
            "minute",
            ("minute", "local_minute", "minute_of_day"),
            "integer",
            "Minute of that day, 0 to 1439.",
        ),
        FieldPlan(
            "loss",
            ("loss", "damage", "impact"),
            "money",
            "Loss that the alert stands for.",
        ),
    ),
    methods=("GET", "DELETE"),
)

MONITOR = VendorPlan(
    "monitor",
    "monitoring",
    ("Monitor", "Watch", "Sensors"),
    "Watches services and keeps their alerts.",
    (_WINDOWS, _SERVICES, _ALERTS, CONTROL),
)
ROLLOUT = VendorPlan(
    "rollout",
    "rollouts",
    ("Rollout", "Deploys", "Release"),
    "Rolls changes out.",
    (
        ResourcePlan(
            "changes",
            "Changes that were rolled out.",
            ("changes", "deployments", "rollouts", "releases", "pushes"),
            (
                FieldPlan(
                    "id",
                    ("id", "change_id", "push_no"),
                    "string",
                    "Identifier of the change.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "component",
                    ("component", "part", "module"),
                    "string",
                    "Number of the component that was changed.",
                    filterable=True,
                ),
                FieldPlan(
                    "reference",
                    ("reference", "change_ref", "docket"),
                    "string",
                    "Reference of the change in reports.",
                ),
                FieldPlan(
                    "second",
                    ("second", "at_second", "elapsed"),
                    "integer",
                    "Seconds from the beginning of 2031, in UTC, to the change.",
                ),
                FieldPlan(
                    "cost",
                    ("cost", "expense", "charge"),
                    "money",
                    "Cost of the change.",
                ),
            ),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_SERVICE, _COMPONENT, "Which component runs which service.")
MONITOR_WITHOUT_LINK = shed(MONITOR, "services", "component")
