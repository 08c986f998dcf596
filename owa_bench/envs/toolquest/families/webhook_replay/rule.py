"""The rule of webhook_replay: from rows to the right answer."""

from owa_bench.envs.toolquest.rows import (
    AnswerRow,
    RuleParameters,
    SourceRow,
    Sources,
    linked,
)
from owa_bench.worlds.api import Value

Pair = tuple[Value, Value]  # event and endpoint


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (delivery id, attempt, value in cents) of every replay that is due."""
    endpoints = {e["endpoint"]: e for e in sources["endpoints"]}
    messages = {m["message"]: m for m in sources["messages"]}
    message_of = linked(sources, sources["deliveries"], "event", "message")
    settled = _settled(sources, rule)
    due: list[AnswerRow] = []
    for pair, delivery in _last_failures(sources, rule).items():
        endpoint = endpoints[delivery["endpoint"]]
        message = messages[message_of[delivery["event"]]]
        spare = int(endpoint["most_attempts"]) - int(delivery["attempts"])
        open_to_it = endpoint["status"] == rule["endpoint_status"]
        open_to_it &= spare > 0 or (spare == 0 and bool(endpoint["at_limit"]))
        kept = str(message["kept_until"]) >= str(rule["today"])
        if pair not in settled and open_to_it and kept:
            attempt = int(delivery["attempts"]) + 1
            due.append((delivery["id"], attempt, int(message["value"])))
    return due


def _settled(sources: Sources, rule: RuleParameters) -> set[Pair]:
    """Return the pairs that were delivered, or whose replay is queued."""
    deliveries = {d["id"]: d for d in sources["deliveries"]}
    queued = [
        deliveries[r["delivery"]]
        for r in sources["replays"]
        if r["status"] == rule["open_status"] and r["delivery"] in deliveries
    ]
    done = [d for d in deliveries.values() if d["outcome"] == rule["done_outcome"]]
    return {_pair(d) for d in (*queued, *done)}


def _last_failures(sources: Sources, rule: RuleParameters) -> dict[Pair, SourceRow]:
    """Return the failed delivery of each pair with the most attempts, lowest id."""
    failed = [d for d in sources["deliveries"] if d["outcome"] == rule["outcome"]]
    last: dict[Pair, SourceRow] = {}
    for delivery in sorted(failed, key=lambda d: (-int(d["attempts"]), str(d["id"]))):
        last.setdefault(_pair(delivery), delivery)
    return last


def _pair(delivery: SourceRow) -> Pair:
    return delivery["event"], delivery["endpoint"]
