"""Goals of the family webhook_replay: send again what failed, each once."""

from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.skills.api_solver.rule_tables import (
    AnswerRows,
    FamilyRule,
    RoleRow,
    Tables,
    clues,
    linked,
)


def compute(tables: Tables, rule: Mapping[str, Any]) -> AnswerRows:
    """Return delivery, number of the attempt and value in cents of each replay due."""
    message_of = linked(tables, "deliveries", "event", "message")
    messages = {row["message"]: row for row in tables["messages"]}
    endpoints = {row["endpoint"]: row for row in tables["endpoints"]}
    queued = {
        row["delivery"]
        for row in tables["replays"]
        if row["status"] == rule["open_status"]
    }
    due = []
    for (event, name), group in _grouped(tables["deliveries"]).items():
        failed = [row for row in group if row["outcome"] == rule["outcome"]]
        endpoint, message = endpoints.get(name), messages.get(message_of.get(event))
        if not failed or endpoint is None or message is None:
            continue
        if _is_settled(group, queued, rule) or not _is_open(endpoint, rule):
            continue
        last = min(failed, key=lambda row: (-row["attempts"], str(row["id"])))
        kept = message["kept_until"][:10] >= rule["today"]
        if kept and _may_be_tried(last["attempts"], endpoint):
            due.append([last["id"], last["attempts"] + 1, message["value"]])
    return sorted(due)


def _grouped(deliveries: Sequence[RoleRow]) -> dict[tuple[Any, Any], list[RoleRow]]:
    """Return the deliveries by event and endpoint."""
    groups: dict[tuple[Any, Any], list[RoleRow]] = {}
    for row in deliveries:
        groups.setdefault((row["event"], row["endpoint"]), []).append(row)
    return groups


def _is_settled(
    group: Sequence[RoleRow], queued: set[Any], rule: Mapping[str, Any]
) -> bool:
    """Return whether one of the deliveries arrived or waits to be replayed."""
    return any(
        row["outcome"] == rule["done_outcome"] or row["id"] in queued for row in group
    )


def _is_open(endpoint: RoleRow, rule: Mapping[str, Any]) -> bool:
    return bool(endpoint["status"] == rule["endpoint_status"])


def _may_be_tried(attempts: int, endpoint: RoleRow) -> bool:
    """Return whether an endpoint takes one more attempt."""
    most = endpoint["most_attempts"]
    return bool(attempts < most or (attempts == most and endpoint["at_limit"]))


RULE = FamilyRule(
    compute,
    {
        "endpoints": clues(
            "endpoint unique; endpoint kin deliveries.endpoint; "
            "status holds endpoint_status"
        ),
        "deliveries": clues(
            "id unique; id kin replays.delivery; endpoint kin endpoints.endpoint; "
            "event kin links.event; message kin messages.message; "
            "outcome holds outcome"
        ),
        "replays": clues(
            "id unique; delivery kin deliveries.id; status holds open_status; "
            "value adds"
        ),
        "messages": clues(
            "message unique; message kin deliveries.message; "
            "message kin links.message; value adds"
        ),
        "links": clues("event kin deliveries.event; message kin messages.message"),
    },
)
