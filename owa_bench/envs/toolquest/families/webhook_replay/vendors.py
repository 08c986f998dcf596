"""The vendors of the family webhook_replay: a deliverer, a publisher, a directory."""

from owa_bench.envs.toolquest.blueprints import (
    CONTROL,
    FieldPlan,
    ResourcePlan,
    VendorPlan,
)
from owa_bench.envs.toolquest.story import link_vendor, shed

_EVENT = FieldPlan(
    "event",
    ("event", "event_no", "trigger"),
    "string",
    "Number of the event.",
    filterable=True,
)
_MESSAGE = FieldPlan(
    "message",
    ("message", "message_no", "payload_ref"),
    "string",
    "Number of the publisher's message.",
    filterable=True,
)
_ENDPOINTS = ResourcePlan(
    "endpoints",
    "Endpoints that receive webhooks.",
    ("endpoints", "targets", "receivers", "hooks", "sinks"),
    (
        FieldPlan(
            "endpoint",
            ("endpoint", "target", "endpoint_code"),
            "string",
            "Code of the endpoint.",
        ),
        FieldPlan(
            "status",
            ("status", "state", "mode"),
            "enum",
            "Status of the endpoint: enabled, paused or removed.",
            choices=(
                ("enabled", "live", "on", "receiving"),
                ("paused", "held"),
                ("removed", "gone"),
            ),
            filterable=True,
        ),
        FieldPlan(
            "most_attempts",
            ("most_attempts", "retry_limit", "attempt_cap"),
            "integer",
            "Attempts after which a delivery is given up.",
        ),
        FieldPlan(
            "at_limit",
            ("at_limit", "inclusive", "limit_included"),
            "boolean",
            "Whether a delivery with exactly that many attempts is still replayed.",
        ),
    ),
    paged=False,
)
_DELIVERIES = ResourcePlan(
    "deliveries",
    "Deliveries of events, tried and done.",
    ("deliveries", "dispatches", "send-log", "transmissions", "sendings"),
    (
        FieldPlan(
            "id",
            ("id", "delivery_id", "log_no"),
            "string",
            "Identifier of the delivery.",
            identifier=True,
            filterable=True,
        ),
        FieldPlan(
            "endpoint",
            ("endpoint", "target", "sent_to"),
            "string",
            "Code of the endpoint it is for.",
            filterable=True,
        ),
        _EVENT,
        FieldPlan(
            "outcome",
            ("outcome", "result", "verdict"),
            "enum",
            "Outcome of the delivery: failed, delivered or pending.",
            choices=(
                ("failed", "bounced", "refused", "broken"),
                ("delivered", "accepted"),
                ("pending", "waiting"),
            ),
            filterable=True,
        ),
        FieldPlan(
            "attempts",
            ("attempts", "tries", "sends"),
            "integer",
            "Attempts made so far.",
        ),
        _MESSAGE,
    ),
)
_REPLAYS = ResourcePlan(
    "replays",
    "Replays that were asked for.",
    ("replays", "redeliveries", "resends", "repeats", "second-sends"),
    (
        FieldPlan(
            "id",
            ("id", "replay_id", "replay_no"),
            "string",
            "Identifier of the replay, given by the vendor.",
            identifier=True,
            filterable=True,
        ),
        FieldPlan(
            "delivery",
            ("delivery", "delivery_ref", "of_delivery"),
            "string",
            "Identifier of the delivery that is replayed.",
            identifier=True,
            filterable=True,
            writable=True,
        ),
        FieldPlan(
            "attempt",
            ("attempt", "attempt_no", "try_no"),
            "integer",
            "Number of the attempt that the replay is.",
            writable=True,
        ),
        FieldPlan(
            "value",
            ("value", "declared_value", "worth"),
            "money",
            "Declared value of the message that is replayed.",
            writable=True,
        ),
        FieldPlan(
            "status",
            ("status", "state", "progress"),
            "enum",
            "Status of the replay: queued or dropped.",
            choices=(
                ("queued", "scheduled", "in_line", "waiting"),
                ("dropped", "cancelled"),
            ),
            filterable=True,
        ),
    ),
    methods=("GET", "POST", "DELETE"),
    keyed=True,
)

HOOKS = VendorPlan(
    "hooks",
    "webhooks",
    ("Hooks", "Relay", "Courier"),
    "Delivers webhooks and takes replays.",
    (_ENDPOINTS, _DELIVERIES, _REPLAYS, CONTROL),
)
OUTBOX = VendorPlan(
    "outbox",
    "outbox",
    ("Outbox", "Streams", "Publisher"),
    "Keeps the messages behind events.",
    (
        ResourcePlan(
            "messages",
            "Messages that were published.",
            ("messages", "payloads", "outbox", "publications", "letters"),
            (
                FieldPlan(
                    "message",
                    ("message", "number", "message_no"),
                    "string",
                    "Number of the message.",
                    filterable=True,
                ),
                FieldPlan(
                    "topic",
                    ("topic", "subject", "theme"),
                    "string",
                    "Topic of the message.",
                    filterable=True,
                ),
                FieldPlan(
                    "kept_until",
                    ("kept_until", "expires", "valid_to"),
                    "date",
                    "Last day on which the message is kept.",
                ),
                FieldPlan(
                    "value",
                    ("value", "declared_value", "worth"),
                    "money",
                    "Declared value of the message.",
                ),
            ),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_EVENT, _MESSAGE, "Which message an event stands for.")
HOOKS_WITHOUT_LINK = shed(HOOKS, "deliveries", "message")
