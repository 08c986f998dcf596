"""The vendors of the family incident_timeline: a monitor, a rollout tool, a directory.

The monitor tells local time in days and minutes, the rollout tool seconds of UTC.
"""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_SERVICE = FieldTemplate(
    "service",
    ("service", "service_code", "system"),
    "string",
    "Code of the service.",
    filterable=True,
)
_COMPONENT = FieldTemplate(
    "component",
    ("component", "component_no", "package"),
    "string",
    "Number of the component that runs it.",
    filterable=True,
)
_WINDOWS = ResourceTemplate(
    "windows",
    "Review windows and their bounds.",
    ("windows", "reviews", "review-windows", "spans", "postmortems"),
    (
        FieldTemplate(
            "name", ("name", "window", "label"), "string", "Name of the window."
        ),
        FieldTemplate(
            "first_day",
            ("first_day", "starts", "from_date"),
            "date",
            "First day of the window, in UTC.",
        ),
        FieldTemplate(
            "last_day",
            ("last_day", "ends", "to_date"),
            "date",
            "Day on which the window ends, in UTC.",
            bound=True,
        ),
        FieldTemplate(
            "last_day_included",
            ("last_day_included", "end_inclusive", "closes_after"),
            "boolean",
            "Whether the last day belongs to the window.",
        ),
    ),
    paged=False,
)
_SERVICES = ResourceTemplate(
    "services",
    "Services that are watched.",
    ("services", "systems", "inventory", "watched", "applications"),
    (
        _SERVICE,
        FieldTemplate(
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
        FieldTemplate(
            "minutes_ahead",
            ("minutes_ahead", "utc_offset", "clock_offset"),
            "integer",
            "Minutes by which the service's local clock is ahead of UTC.",
        ),
        _COMPONENT,
    ),
)
_ALERTS = ResourceTemplate(
    "alerts",
    "Alerts that services raised.",
    ("alerts", "alarms", "signals", "notices", "warnings"),
    (
        FieldTemplate(
            "id",
            ("id", "alert_id", "alarm_no"),
            "string",
            "Identifier of the alert.",
            identifier=True,
            filterable=True,
        ),
        FieldTemplate(
            "service",
            ("service", "raised_by", "system"),
            "string",
            "Code of the service that raised it.",
            filterable=True,
        ),
        FieldTemplate(
            "reference",
            ("reference", "alert_ref", "case"),
            "string",
            "Reference of the alert in reports.",
        ),
        FieldTemplate(
            "day",
            ("day", "local_day", "raised_on"),
            "date",
            "Day by the service's local clock.",
        ),
        FieldTemplate(
            "minute",
            ("minute", "local_minute", "minute_of_day"),
            "integer",
            "Minute of that day, 0 to 1439.",
        ),
        FieldTemplate(
            "loss",
            ("loss", "damage", "impact"),
            "money",
            "Loss that the alert stands for.",
        ),
    ),
    methods=("GET", "DELETE"),
)

MONITOR = ProviderTemplate(
    "monitor",
    "monitoring",
    ("Monitor", "Watch", "Sensors"),
    "Watches services and keeps their alerts.",
    (_WINDOWS, _SERVICES, _ALERTS, CONTROL),
)
ROLLOUT = ProviderTemplate(
    "rollout",
    "rollouts",
    ("Rollout", "Deploys", "Release"),
    "Rolls changes out.",
    (
        ResourceTemplate(
            "changes",
            "Changes that were rolled out.",
            ("changes", "deployments", "rollouts", "releases", "pushes"),
            (
                FieldTemplate(
                    "id",
                    ("id", "change_id", "push_no"),
                    "string",
                    "Identifier of the change.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "component",
                    ("component", "part", "module"),
                    "string",
                    "Number of the component that was changed.",
                    filterable=True,
                ),
                FieldTemplate(
                    "reference",
                    ("reference", "change_ref", "docket"),
                    "string",
                    "Reference of the change in reports.",
                ),
                FieldTemplate(
                    "second",
                    ("second", "at_second", "elapsed"),
                    "integer",
                    "Seconds from the beginning of 2031, in UTC, to the change.",
                ),
                FieldTemplate(
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
