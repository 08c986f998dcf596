"""The vendors of the family webhook_replay: a deliverer, a publisher, a directory."""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_EVENT = FieldTemplate(
    "event",
    ("event", "event_no", "trigger"),
    "string",
    "Number of the event.",
    filterable=True,
)
_MESSAGE = FieldTemplate(
    "message",
    ("message", "message_no", "payload_ref"),
    "string",
    "Number of the publisher's message.",
    filterable=True,
)
_ENDPOINTS = ResourceTemplate(
    "endpoints",
    "Endpoints that receive webhooks.",
    ("endpoints", "targets", "receivers", "hooks", "sinks"),
    (
        FieldTemplate(
            "endpoint",
            ("endpoint", "target", "endpoint_code"),
            "string",
            "Code of the endpoint.",
        ),
        FieldTemplate(
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
        FieldTemplate(
            "most_attempts",
            ("most_attempts", "retry_limit", "attempt_cap"),
            "integer",
            "Attempts after which a delivery is given up.",
        ),
        FieldTemplate(
            "at_limit",
            ("at_limit", "inclusive", "limit_included"),
            "boolean",
            "Whether a delivery with exactly that many attempts is still replayed.",
        ),
    ),
    paged=False,
)
_DELIVERIES = ResourceTemplate(
    "deliveries",
    "Deliveries of events, tried and done.",
    ("deliveries", "dispatches", "send-log", "transmissions", "sendings"),
    (
        FieldTemplate(
            "id",
            ("id", "delivery_id", "log_no"),
            "string",
            "Identifier of the delivery.",
            identifier=True,
            filterable=True,
        ),
        FieldTemplate(
            "endpoint",
            ("endpoint", "target", "sent_to"),
            "string",
            "Code of the endpoint it is for.",
            filterable=True,
        ),
        _EVENT,
        FieldTemplate(
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
        FieldTemplate(
            "attempts",
            ("attempts", "tries", "sends"),
            "integer",
            "Attempts made so far.",
        ),
        _MESSAGE,
    ),
)
_REPLAYS = ResourceTemplate(
    "replays",
    "Replays that were asked for.",
    ("replays", "redeliveries", "resends", "repeats", "second-sends"),
    (
        FieldTemplate(
            "id",
            ("id", "replay_id", "replay_no"),
            "string",
            "Identifier of the replay, given by the vendor.",
            identifier=True,
            filterable=True,
        ),
        FieldTemplate(
            "delivery",
            ("delivery", "delivery_ref", "of_delivery"),
            "string",
            "Identifier of the delivery that is replayed.",
            identifier=True,
            filterable=True,
            writable=True,
        ),
        FieldTemplate(
            "attempt",
            ("attempt", "attempt_no", "try_no"),
            "integer",
            "Number of the attempt that the replay is.",
            writable=True,
        ),
        FieldTemplate(
            "value",
            ("value", "declared_value", "worth"),
            "money",
            "Declared value of the message that is replayed.",
            writable=True,
        ),
        FieldTemplate(
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

HOOKS = ProviderTemplate(
    "hooks",
    "webhooks",
    ("Hooks", "Relay", "Courier"),
    "Delivers webhooks and takes replays.",
    (_ENDPOINTS, _DELIVERIES, _REPLAYS, CONTROL),
)
OUTBOX = ProviderTemplate(
    "outbox",
    "outbox",
    ("Outbox", "Streams", "Publisher"),
    "Keeps the messages behind events.",
    (
        ResourceTemplate(
            "messages",
            "Messages that were published.",
            ("messages", "payloads", "outbox", "publications", "letters"),
            (
                FieldTemplate(
                    "message",
                    ("message", "number", "message_no"),
                    "string",
                    "Number of the message.",
                    filterable=True,
                ),
                FieldTemplate(
                    "topic",
                    ("topic", "subject", "theme"),
                    "string",
                    "Topic of the message.",
                    filterable=True,
                ),
                FieldTemplate(
                    "kept_until",
                    ("kept_until", "expires", "valid_to"),
                    "date",
                    "Last day on which the message is kept.",
                ),
                FieldTemplate(
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
