"""The right answers of a credit case: decisions, credits by customer, exceptions."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from msgspec.structs import replace

from owa_bench.company.kinds.contract import CaseTruth, CaseWorld, ItemTruth
from owa_bench.company.kinds.credits.records import FACT_SOURCES, CreditRecords, served_rows
from owa_bench.company.kinds.credits.requests import CreditRequest
from owa_bench.company.kinds.keeping import kept_per_world
from owa_bench.company.language.credits_rules import AskingCustomer, CreditDesk, PastCredit
from owa_bench.company.language.policy import Policy

SOURCES = (
    *FACT_SOURCES,
    "amendments",
    "news",
    "check_order",
    "cap",
    "cap_notes",
    "cap_period",
    "absences",
    "other_desk",
)
EXCEPTIONS = ("false_statement", "record_conflict", "instruction")
_NO_EVENTS: frozenset[str] = frozenset()


@kept_per_world(4)
def records_of(world: CaseWorld) -> CreditRecords:
    """Return the indexed tables of a world, made once for the last worlds.

    Args:
        world: Of the kind.
    """
    return CreditRecords(world)


def policy_in_force(policy: Policy, happened: Set[str], blind: Set[str]) -> Policy:
    """Return the policy with the amendments that a reader knows.

    Args:
        policy: Of the world.
        happened: Names of the events so far.
        blind: "amendments": those of the page of changes are not known; "news": those that an
            event tells.
    """
    missed = {"amendments": False, "news": True}
    known = tuple(
        a
        for a in policy.known_with(happened).amendments
        if not any(source in blind and bool(a.event) == mailed for source, mailed in missed.items())
    )
    return replace(policy, amendments=known)


def decide(
    world: CaseWorld,
    happened: Set[str] = _NO_EVENTS,
    blind: Set[str] = _NO_EVENTS,
    *,
    among: Sequence[CreditRequest] | None = None,
    records: CreditRecords | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the right answer of every request, by its key.

    Args:
        world: Of the kind.
        happened: Names of the events so far.
        blind: Sources that are not looked at.
        among: Only these requests, in order of receipt: with one of a customer all of that
            customer, who share a limit. None: all.
        records: Of the world; None: those of the last worlds are kept.
    Returns: decision, code, amount_cents and approver of each.
    """
    policy = policy_in_force(world.policy, happened, blind)
    records = records or records_of(world)
    desk = CreditDesk(records.people, world.begins.date(), blind)
    known = happened - _other_desk(world) if "other_desk" in blind else happened
    seen: list[CreditRequest] = []
    for request in world.matter.requests if among is None else among:
        terms = desk.terms(policy.at(request.received.date()))
        facts = records.facts(request, terms, seen, known, blind)
        seen.append(request)
        customer = records.customers[records.orders[request.order].customer]
        notes = tuple(
            PastCredit(note.kind, note.cents, note.issued)
            for note in records.notes.get(customer.id, ())
        )
        asking = AskingCustomer(customer.id, customer.plan, customer.region, notes)
        desk.settle(request.id, terms, facts, asking)
    return desk.answers


def _other_desk(world: CaseWorld) -> frozenset[str]:
    return frozenset(r.other_desk for r in world.matter.requests if r.other_desk)


def by_customer(
    world: CaseWorld, answers: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """Return the credits of each customer, approved and proposed.

    Args:
        world: Of the kind.
        answers: By the key of the request; some may lack.
    """
    records = records_of(world)
    rows: dict[str, dict[str, Any]] = {}
    for request in world.matter.requests:
        answer = answers.get(request.id)
        if answer is None or not answer["amount_cents"]:
            continue
        key = records.orders[request.order].customer
        row = rows.setdefault(key, {"customer": key, "approved_cents": 0, "proposed_cents": 0})
        column = "proposed_cents" if answer["decision"] == "escalate" else "approved_cents"
        row[column] += answer["amount_cents"]
    return tuple(rows.values())


def exceptions(world: CaseWorld, happened: Set[str] = _NO_EVENTS) -> tuple[dict[str, Any], ...]:
    """Return the exceptions of every request, of the kinds that the level asks for.

    Args:
        world: Of the kind.
        happened: Names of the events so far.
    """
    records = records_of(world)
    policy = policy_in_force(world.policy, happened, _NO_EVENTS)
    return tuple(
        {"request": request.id, "what": what}
        for request in world.matter.requests
        for what in request_exceptions(records, request, policy, world.level)
    )


def request_exceptions(
    records: CreditRecords,
    request: CreditRequest,
    policy: Policy,
    level: int,
    blind: Set[str] = _NO_EVENTS,
) -> tuple[str, ...]:
    """Return the exceptions of a request, of the kinds that a level asks for.

    Args:
        records: Of the world.
        request: Of the world.
        policy: With the amendments that the reader knows.
        level: 1 to 3.
        blind: Sources that are not looked at.
    """
    terms = policy.at(request.received.date())
    kinds = (
        (EXCEPTIONS[0], _states_wrongly(records, request, terms, blind)),
        (EXCEPTIONS[1], _conflict(records, request, blind)),
        (EXCEPTIONS[2], request.letter.instruction),
    )
    return tuple(what for what, holds in kinds[:level] if holds)


def _states_wrongly(
    records: CreditRecords, request: CreditRequest, terms: Mapping[str, Any], blind: Set[str]
) -> bool:
    """Return whether the letter states what the records contradict."""
    letter, order = request.letter, records.orders[request.order]
    delivered = records.delivered(order.id, terms, blind)
    stated = (
        (letter.delivered, delivered),
        (letter.promised, records.shipments[order.shipment].promised),
        (letter.ordered, order.day),
    )
    if any(said is not None and said != true for said, true in stated):
        return True
    line = records.line_of.get(request.line)
    if not letter.unit or line is None:
        return False
    return letter.unit != money_text(line.unit_cents)


def money_text(cents: int) -> str:
    """Return an amount as letters write it: "12.50".

    Args:
        cents: At least 0.
    """
    return f"{cents // 100}.{cents % 100:02d}"


def _conflict(records: CreditRecords, request: CreditRequest, blind: Set[str]) -> bool:
    """Return whether two records of the order differ on a fact that both hold."""
    order = records.orders[request.order]
    total = sum(row.quantity * row.unit_cents for row in records.lines[order.id])
    if total != order.net_cents and "lines" not in blind:
        return True
    if "proofs" in blind:
        return False
    signed, scanned = (
        records.delivered(order.id, {"delivery": {"stamp": stamp}}, blind)
        for stamp in ("signature on the proof of delivery", "carrier's scan")
    )
    return signed != scanned


@kept_per_world(8)
def _truth(world: CaseWorld, happened: frozenset[str], blind: frozenset[str]) -> CaseTruth:
    answers = decide(world, happened, blind)
    reasons: dict[str, list[str]] = {key: [] for key in answers}
    if not blind:
        for source in SOURCES:
            without = decide(world, happened, frozenset({source}))
            for key, answer in answers.items():
                if without[key] != answer:
                    reasons[key].append(source)
    records = records_of(world)
    items = tuple(
        ItemTruth(r.id, answers[r.id], tuple(reasons[r.id]), served_rows(records, r))
        for r in world.matter.requests
    )
    deliverables = {"table": by_customer(world, answers), "exceptions": exceptions(world, happened)}
    return CaseTruth(items, deliverables)


def credit_truth(
    world: CaseWorld, happened: Set[str] = _NO_EVENTS, blind: Set[str] = _NO_EVENTS
) -> CaseTruth:
    """Return what is right of a case, made once for the last worlds.

    Args:
        world: Of the kind.
        happened: Names of the events so far.
        blind: Sources that are not looked at; then no reasons are given.
    """
    return _truth(world, frozenset(happened), frozenset(blind))
