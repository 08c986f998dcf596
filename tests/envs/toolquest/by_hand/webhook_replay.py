"""Family webhook_replay: its roles, its bound, its answer worked out in another way."""

from tests.envs.toolquest.by_hand.rows import linked, rows_of

ROLES = {
    "endpoints": "endpoint status most_attempts at_limit",
    "deliveries": "id endpoint event outcome attempts message",
    "replays": "id delivery attempt value status",
    "links": "event message",
    "messages": "message topic kept_until value",
    "hooks_control": "list count total",
    "outbox_control": "list count total",
}
LINKED = "message"  # which the directory holds from T3 on
BOUND = ("hooks", "endpoints", "at_limit")
WRITES = True


def answer(world, tier, rule):
    message_of = linked(world, tier, "hooks", "deliveries", "event", "message")
    log = rows_of(world, "hooks", "deliveries")
    replays = rows_of(world, "hooks", "replays")
    waiting = [r["delivery"] for r in replays if r["status"] == "queued"]
    found = []
    for endpoint in rows_of(world, "hooks", "endpoints"):
        most = endpoint["most_attempts"] + (1 if endpoint["at_limit"] else 0)
        if endpoint["status"] != "enabled":
            continue
        for event, number in message_of.items():
            messages = rows_of(world, "outbox", "messages")
            [message] = [m for m in messages if m["message"] == number]
            mine = [d for d in log if d["endpoint"] == endpoint["endpoint"] and d["event"] == event]
            failed = [d for d in mine if d["outcome"] == "failed"]
            if len(failed) == 0 or message["kept_until"] < rule["today"]:
                continue
            if "delivered" in [d["outcome"] for d in mine]:
                continue
            if any(d["id"] in waiting for d in mine):
                continue
            tried = max(d["attempts"] for d in failed)
            if tried < most:
                first = min(d["id"] for d in failed if d["attempts"] == tried)
                found.append((first, tried + 1, message["value"]))
    return found
