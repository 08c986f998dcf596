"""Family webhook_replay: send again what failed, each once. The last step writes."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import DAYS, IntegerDraws, numbered
from owa_bench.envs.toolquest.families.webhook_replay.rule import solve
from owa_bench.envs.toolquest.families.webhook_replay.vendors import (
    DIRECTORY,
    HOOKS,
    HOOKS_WITHOUT_LINK,
    OUTBOX,
)
from owa_bench.envs.toolquest.provider_templates import (
    ProviderTemplate,
    Row,
    Rows,
    control_rows,
)
from owa_bench.envs.toolquest.task_spec import (
    BoundQuestion,
    SourcePlan,
    TaskFamily,
    TaskSpec,
)
from owa_bench.worlds.api import Value


class Size(NamedTuple):
    """Rows of a tier; `pairs` of event and endpoint, each with a delivery or more."""

    endpoints: int
    events: int
    pairs: int
    repeats: int
    replays: int


SIZES = {
    1: Size(4, 8, 12, 2, 4),
    2: Size(5, 14, 24, 2, 8),
    3: Size(6, 20, 36, 4, 10),
    4: Size(6, 20, 36, 4, 10),
}
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


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    today = draws.between(60, 290)
    endpoints = _endpoints(draws, size)
    messages, message_of = _messages(draws, size, today)
    deliveries, pairs = _deliveries(draws, size, endpoints, message_of)
    replays = _replays(draws, size, deliveries, messages)
    hooks: Mapping[str, Rows] = {
        "endpoints": endpoints,
        "deliveries": sorted(deliveries, key=lambda row: str(row["id"])),
        "replays": replays,
        "control": control_rows({"replays": [r["value"] for r in replays]}),
    }
    outbox: Mapping[str, Rows] = {
        "messages": draws.shuffled(messages),
        "control": control_rows({"messages": [m["value"] for m in messages]}),
    }
    links = [{"event": e, "message": m} for e, m in message_of.items()]
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((HOOKS, hooks), (OUTBOX, outbox))
    if tier >= 3:
        vendors = (
            (HOOKS_WITHOUT_LINK, hooks),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (OUTBOX, outbox),
        )
    asked = deliveries[0]["endpoint"]
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={
            "outcome": "failed",
            "done_outcome": "delivered",
            "endpoint_status": "enabled",
            "open_status": "queued",
            "today": DAYS[today],
        },
        text=_TEXT.format(today=DAYS[today]),
        units=(("replays", "value"), ("messages", "value")),
        duplicate=("deliveries", *pairs[draws.below(2)]),
        bound=BoundQuestion(
            "endpoints",
            "at_limit",
            {"endpoint": asked},
            f"At endpoint {asked}, a delivery with exactly the most attempts is still "
            "replayed.",
        ),
        docs=("deliveries", "messages") if tier < 3 else ("deliveries",),
        last="messages",
        writes="replays",
    )


_TEXT = (
    "Replay the webhooks that {{hooks}} failed to deliver. Of the failed deliveries of "
    "one event to one endpoint take the one with the most attempts (the lowest "
    "delivery id in a tie). It is due when no delivery of that event to that endpoint "
    "was delivered, no replay of one is queued, the endpoint is enabled, the attempts "
    "are fewer than the most attempts of the endpoint (or as many, where the endpoint "
    "says so), and {{outbox}} keeps the event's message until {today} or longer. Ask "
    "{{hooks}} for one replay per delivery that is due, exactly once and under an "
    "idempotency key: delivery, attempt (the attempts so far plus one) and value (of "
    "the message, in the unit of that field). Write nothing else."
)


def _endpoints(draws: IntegerDraws, size: Size) -> list[Row]:
    """Return endpoints; every status occurs, so that drift can be seen."""
    rows: list[Row] = []
    for i, code in enumerate(numbered(draws, "EP-", size.endpoints, 4, near=30)):
        status = "enabled" if draws.percent(70) else draws.pick(_SHUT)
        if i < _SURE:
            status = "enabled"
        elif i < _SURE + len(_SHUT):
            status = _SHUT[i - _SURE]
        rows.append(
            {
                "endpoint": code,
                "status": status,
                "most_attempts": draws.between(3, 9),
                "at_limit": draws.coin(),
            }
        )
    return rows


def _messages(
    draws: IntegerDraws, size: Size, today: int
) -> tuple[list[Row], dict[str, str]]:
    """Return messages and the message of each event; the first ones are kept."""
    events = numbered(draws, "EV", size.events, 5, near=40)
    numbers = numbered(draws, "MS", size.events, 6, near=40)
    rows: list[Row] = []
    for i, number in enumerate(numbers):
        last = today + (0 if i == 1 else draws.between(0, _KEPT_DAYS))
        if i >= _SURE and draws.percent(20):
            last = today - draws.between(1, 40)
        rows.append(
            {
                "message": number,
                "topic": draws.pick(_TOPICS),
                "kept_until": DAYS[last],
                "value": draws.cents(5, 900),
            }
        )
    return rows, dict(zip(events, numbers, strict=True))


def _deliveries(
    draws: IntegerDraws, size: Size, endpoints: Rows, message_of: Mapping[str, str]
) -> tuple[list[Row], tuple[tuple[str, str], tuple[str, str]]]:
    """Return deliveries, and the ids of a repeated pair and of a twin pair.

    The first has exactly the most attempts of its endpoint, the second fewer. The twin
    of a delivery is equal but for its attempts, so it is another delivery.
    """
    rows = _courses(draws, size, endpoints, message_of)
    chosen = draws.sample(range(_SURE, len(rows)), size.repeats)
    copies = [dict(rows[i]) for i in chosen]
    for copy in copies[: size.repeats // 2]:
        copy["attempts"] = int(copy["attempts"]) + draws.between(1, 2)
    order = draws.shuffled(range(len(rows) + len(copies)))
    ids = [f"dl-{6001 + place}" for place in order]
    both: list[Row] = [
        {"id": name, **row} for name, row in zip(ids, rows + copies, strict=True)
    ]
    repeat = (ids[chosen[-1]], ids[len(both) - 1])
    twin = (ids[chosen[0]], ids[len(rows)])
    return both, (repeat, twin)


def _courses(
    draws: IntegerDraws, size: Size, endpoints: Rows, message_of: Mapping[str, str]
) -> list[dict[str, Value]]:
    """Return what became of every pair of event and endpoint, the first ones first."""
    events = list(message_of)
    pairs = [(events[i], endpoints[i]) for i in range(_SURE)]
    others = [(e, p) for e in events for p in endpoints if (e, p) not in pairs]
    pairs += draws.sample(others, size.pairs - len(pairs))
    rows: list[dict[str, Value]] = []
    for i, (event, endpoint) in enumerate(pairs):
        first = i < len(_FIRST_COURSES)
        attempts = _attempts(draws, int(endpoint["most_attempts"]), i)
        for outcome in _FIRST_COURSES[i] if first else _course(draws):
            rows.append(
                {
                    "endpoint": endpoint["endpoint"],
                    "event": event,
                    "outcome": outcome,
                    "attempts": attempts,
                    "message": message_of[event],
                }
            )
            attempts += draws.between(0, 2)
    return rows


def _course(draws: IntegerDraws) -> tuple[str, ...]:
    """Return the outcomes of one pair's deliveries."""
    fate = draws.below(100)
    for outcomes, share in _COURSES:
        fate -= share
        if fate < 0:
            return outcomes
    return _COURSES[-1][0]


def _attempts(draws: IntegerDraws, most: int, i: int) -> int:
    """Return attempts at, below or beyond the limit."""
    if i == 0 or (i > 1 and draws.percent(15)):
        return most
    if i > 1 and draws.percent(20):
        return most + draws.between(1, 3)
    return draws.between(1, most - 1)


def _replays(
    draws: IntegerDraws, size: Size, deliveries: Rows, messages: Rows
) -> list[Row]:
    """Return earlier replays; one of the first two deliveries was dropped."""
    values = {m["message"]: int(m["value"]) for m in messages}
    failed = [d for d in deliveries if d["outcome"] == "failed"]
    rows: list[Row] = []
    for i in range(size.replays):
        delivery = failed[i + 1] if i < 2 else draws.pick(failed[_SURE:])
        dropped = i == 0 or (i > 1 and draws.percent(40))
        rows.append(
            {
                "id": f"rp-{801 + i}",
                "delivery": delivery["id"],
                "attempt": int(delivery["attempts"]) + 1,
                "value": values[delivery["message"]],
                "status": "dropped" if dropped else "queued",
            }
        )
    return rows


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("endpoints", "hooks", "endpoints"),
        SourcePlan("deliveries", "hooks", "deliveries"),
        SourcePlan("replays", "hooks", "replays"),
        *links,
        SourcePlan("messages", "outbox", "messages"),
        SourcePlan("hooks_control", "hooks", "control", optional=True),
        SourcePlan("outbox_control", "outbox", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="webhook_replay",
    vendors=(HOOKS, OUTBOX, DIRECTORY),
    columns=("delivery", "attempt", "value"),
    story=story,
    solve=solve,
)
