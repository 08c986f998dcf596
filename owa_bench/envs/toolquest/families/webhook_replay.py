"""Task family webhook_replay: failed webhooks sent again, each once, by writing."""

from collections.abc import Iterator, Mapping

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
hooks/webhooks (Hooks|Relay|Courier) Delivers webhooks and takes replays.
  endpoints unpaged (endpoints|targets|receivers|hooks|sinks) Endpoints that receive
      webhooks.
    endpoint:string (endpoint|target|endpoint_code) Code of the endpoint.
    status:enum? (status|state|mode) enabled=live|on|receiving paused=held removed=gone
      Status of the endpoint: enabled, paused or removed.
    most_attempts:integer (most_attempts|retry_limit|attempt_cap) Attempts after which a
      delivery is given up.
    at_limit:boolean (at_limit|inclusive|limit_included) Whether a delivery with exactly
      that many attempts is still replayed.
  deliveries (deliveries|dispatches|send-log|transmissions|sendings) Deliveries of
      events, tried and done.
    id:string! (id|delivery_id|log_no) Identifier of the delivery.
    endpoint:string? (endpoint|target|sent_to) Code of the endpoint it is for.
    event:string? (event|event_no|trigger) Number of the event.
    outcome:enum? (outcome|result|verdict) failed=bounced|refused|broken
      delivered=accepted pending=waiting Outcome of the delivery: failed, delivered or
      pending.
    attempts:integer (attempts|tries|sends) Attempts made so far.
    message:string? (message|message_no|payload_ref) Number of the publisher's message.
  replays keyed POST DELETE (replays|redeliveries|resends|repeats|second-sends) Replays
      that were asked for.
    id:string! (id|replay_id|replay_no) Identifier of the replay, given by the vendor.
    delivery:string!+ (delivery|delivery_ref|of_delivery) Identifier of the delivery
      that is replayed.
    attempt:integer+ (attempt|attempt_no|try_no) Number of the attempt that the replay
      is.
    value:money+ (value|declared_value|worth) Declared value of the message that is
      replayed.
    status:enum? (status|state|progress) queued=scheduled|in_line|waiting
      dropped=cancelled Status of the replay: queued or dropped.
  control
outbox/outbox (Outbox|Streams|Publisher) Keeps the messages behind events.
  messages (messages|payloads|outbox|publications|letters) Messages that were published.
    message:string? (message|number|message_no) Number of the message.
    topic:string? (topic|subject|theme) Topic of the message.
    kept_until:date (kept_until|expires|valid_to) Last day on which the message is kept.
    value:money (value|declared_value|worth) Declared value of the message.
  control
"""
_TOPICS = ("billing", "signup", "shipment", "refund", "login", "quota", "audit")
# Outcomes of the deliveries of one pair, and how many of 100 pairs go that way.
_COURSES = (
    (("failed",), 45),
    (("failed", "failed"), 15),
    (("failed", "delivered"), 20),
    (("delivered",), 12),
    (("pending",), 8),
)
# The first pairs go these ways, so that every outcome occurs.
_FIRST_COURSES = (("failed",), ("failed",), ("failed",), ("delivered",), ("pending",))
_SURE = 2  # pairs that are due, or would be if the limit were read the other way
_KEPT_DAYS = 60
_SHUT = ("paused", "removed")
_EventAndEndpoint = tuple[Value, Value]


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of endpoints, events, pairs of event and endpoint that have a delivery or
            more, repeated deliveries, and earlier replays.
    Returns: Endpoints, deliveries, replays, and the messages behind the events.
    """
    today = rng.between(60, 290)
    endpoints = list(_endpoints(rng, size["endpoints"]))
    events = draws.random_codes(rng, "EV", size["events"], 5)
    messages = list(_messages(rng, size["events"], today))
    message_of = {e: m["message"] for e, m in zip(events, messages, strict=True)}
    deliveries = _deliveries(rng, size, endpoints, message_of)
    replays = list(_replays(rng, size["replays"], deliveries.rows, messages))
    return task_spec.TaskData(
        tables={
            "endpoints": endpoints,
            "deliveries": draws.by_id(deliveries.rows),
            "replays": replays,
            "messages": rng.shuffled(messages),
        },
        links=[{"event": e, "message": m} for e, m in message_of.items()],
        rule={
            "outcome": "failed",
            "done_outcome": "delivered",
            "endpoint_status": "enabled",
            "open_status": "queued",
            "today": draws.DAYS[today],
        },
        pairs=deliveries.pairs,
        where={"endpoint": deliveries.rows[0]["endpoint"]},
    )


def _endpoints(rng: draws.IntegerDraws, count: int) -> Iterator[task_spec.SourceRow]:
    """Yield endpoints; every status occurs, so that drift can be seen."""
    for i, code in enumerate(draws.random_codes(rng, "EP-", count, 4, near=30)):
        status = "enabled" if rng.percent(70) else rng.pick(_SHUT)
        if i < _SURE:
            status = "enabled"
        elif i < _SURE + len(_SHUT):
            status = _SHUT[i - _SURE]
        yield {
            "endpoint": code,
            "status": status,
            "most_attempts": rng.between(3, 9),
            "at_limit": rng.coin(),
        }


def _messages(rng: draws.IntegerDraws, count: int, today: int) -> Iterator[task_spec.SourceRow]:
    """Yield one message for each event; the first ones are still kept today."""
    for i, number in enumerate(draws.random_codes(rng, "MS", count, 6)):
        last = today + (0 if i == 1 else rng.between(0, _KEPT_DAYS))
        if i >= _SURE and rng.percent(20):
            last = today - rng.between(1, 40)
        yield {
            "message": number,
            "topic": rng.pick(_TOPICS),
            "kept_until": draws.DAYS[last],
            "value": rng.cents(5, 900),
        }


def _deliveries(
    rng: draws.IntegerDraws,
    size: task_spec.Sizes,
    endpoints: task_spec.SourceRows,
    message_of: Mapping[str, Value],
) -> draws.Postings:
    """Return what became of every pair of event and endpoint, the first ones first.

    The first has exactly the most attempts of its endpoint, the second fewer. Two that look alike
    are equal but for their attempts.
    """
    events = list(message_of)
    pairs = [(events[i], endpoints[i]) for i in range(_SURE)]
    others = [(e, p) for e in events for p in endpoints if (e, p) not in pairs]
    pairs += rng.sample(others, size["pairs"] - len(pairs))
    rows: list[task_spec.SourceRow] = []
    for i, (event, endpoint) in enumerate(pairs):
        attempts = _attempts(rng, int(endpoint["most_attempts"]), i)
        first = i < len(_FIRST_COURSES)
        for outcome in _FIRST_COURSES[i] if first else _course(rng):
            rows.append(
                {
                    "endpoint": endpoint["endpoint"],
                    "event": event,
                    "outcome": outcome,
                    "attempts": attempts,
                    "message": message_of[event],
                }
            )
            attempts += rng.between(0, 2)

    def alter(row: dict[str, Value]) -> None:
        row["attempts"] = int(row["attempts"]) + rng.between(1, 2)

    return draws.with_copies(rng, rows, size["repeats"], alter, "dl-6001", first=_SURE)


def _course(rng: draws.IntegerDraws) -> tuple[str, ...]:
    """Return the outcomes of one pair's deliveries."""
    number = rng.below(100)
    for outcomes, share in _COURSES:
        number -= share
        if number < 0:
            return outcomes
    return _COURSES[-1][0]


def _attempts(rng: draws.IntegerDraws, most: int, i: int) -> int:
    """Return attempts at, below or beyond the limit."""
    if i == 0 or (i > 1 and rng.percent(15)):
        return most
    if i > 1 and rng.percent(20):
        return most + rng.between(1, 3)
    return rng.between(1, most - 1)


def _replays(
    rng: draws.IntegerDraws,
    count: int,
    deliveries: task_spec.SourceRows,
    messages: task_spec.SourceRows,
) -> Iterator[task_spec.SourceRow]:
    """Yield earlier replays; one of the first two deliveries was dropped."""
    values = {m["message"]: int(m["value"]) for m in messages}
    failed = [d for d in deliveries if d["outcome"] == "failed"]
    for i in range(count):
        delivery = failed[i + 1] if i < 2 else rng.pick(failed[_SURE:])
        dropped = i == 0 or (i > 1 and rng.percent(40))
        yield {
            "id": f"rp-{801 + i}",
            "delivery": delivery["id"],
            "attempt": int(delivery["attempts"]) + 1,
            "value": values[delivery["message"]],
            "status": "dropped" if dropped else "queued",
        }


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return the replays that are due.

    Args:
        sources: Rows by source.
        rule: `outcome`, `done_outcome`, `endpoint_status`, `open_status`, `today`.
    Returns: (delivery id, attempt, value in cents) of every replay that is due.
    """
    endpoints = {e["endpoint"]: e for e in sources["endpoints"]}
    messages = {m["message"]: m for m in sources["messages"]}
    message_of = task_spec.key_map(sources, sources["deliveries"], "event", "message")
    closed = _closed_pairs(sources, rule)
    due: list[task_spec.AnswerRow] = []
    for pair, delivery in _last_failures(sources, rule).items():
        endpoint = endpoints[delivery["endpoint"]]
        message = messages[message_of[delivery["event"]]]
        left = int(endpoint["most_attempts"]) - int(delivery["attempts"])
        tries = left > 0 or (left == 0 and bool(endpoint["at_limit"]))
        enabled = endpoint["status"] == rule["endpoint_status"]
        available = str(message["kept_until"]) >= str(rule["today"])
        if pair not in closed and enabled and tries and available:
            attempt = int(delivery["attempts"]) + 1
            due.append((delivery["id"], attempt, int(message["value"])))
    return due


def _closed_pairs(
    sources: task_spec.Sources, rule: task_spec.RuleParameters
) -> set[_EventAndEndpoint]:
    """Return the pairs that were delivered, or whose replay is queued."""
    deliveries = {d["id"]: d for d in sources["deliveries"]}
    queued = [
        deliveries[r["delivery"]]
        for r in sources["replays"]
        if r["status"] == rule["open_status"] and r["delivery"] in deliveries
    ]
    done = [d for d in deliveries.values() if d["outcome"] == rule["done_outcome"]]
    return {(d["event"], d["endpoint"]) for d in (*queued, *done)}


def _last_failures(
    sources: task_spec.Sources, rule: task_spec.RuleParameters
) -> dict[_EventAndEndpoint, task_spec.SourceRow]:
    """Return the failed delivery of each pair with the most attempts, lowest id."""
    failed = [d for d in sources["deliveries"] if d["outcome"] == rule["outcome"]]
    last: dict[_EventAndEndpoint, task_spec.SourceRow] = {}
    for delivery in sorted(failed, key=lambda d: (-int(d["attempts"]), str(d["id"]))):
        last.setdefault((delivery["event"], delivery["endpoint"]), delivery)
    return last


FAMILY = task_spec.TaskFamily(
    name="webhook_replay",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink(
        "deliveries", "event", "message", "Which message an event stands for."
    ),
    sizes=("endpoints 4 5 6; events 8 14 20; pairs 12 24 36; repeats 2 2 4; replays 4 8 10"),
    columns=("delivery", "attempt", "value"),
    sources=("endpoints", "deliveries", "replays", "links", "messages"),
    text=(
        "Replay the webhooks that {hooks} failed to deliver. Of the failed deliveries "
        "of one event to one endpoint take the one with the most attempts (the lowest "
        "delivery id in a tie). It is due when no delivery of that event to that "
        "endpoint was delivered, no replay of one is queued, the endpoint is enabled, "
        "the attempts are fewer than the most attempts of the endpoint (or as many, "
        "where the endpoint says so), and {outbox} keeps the event's message until "
        "{today} or longer. Ask {hooks} for one replay per delivery that is due, "
        "exactly once and under an idempotency key: delivery, attempt (the attempts so "
        "far plus one) and value (of the message, in the unit of that field). Write "
        "nothing else."
    ),
    duplicates="deliveries",
    bound="endpoints.at_limit",
    bound_text=(
        "At endpoint {endpoint}, a delivery with exactly the most attempts is still replayed."
    ),
    documents=("deliveries", "messages"),
    last="messages",
    draw=draw,
    solve=solve,
    writes="replays",
)
