"""What is right of a month: the rules applied to the world's records, with and without care."""

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from owa_bench.company.kinds.close.world import CORRECTED
from owa_bench.company.kinds.contract import CaseTruth, CaseWorld, ItemTruth
from owa_bench.company.language.close_policy import DISCOUNT_CLAUSE
from owa_bench.company.language.close_records import Receivables, Row
from owa_bench.company.language.close_rules import (
    BLINDNESS,
    MonthResult,
    apply_month,
    line_answer,
    open_items,
)
from owa_bench.company.language.close_texts import NOTICE, read_advice

CORRECTION = "correction"
CLASSES = (*BLINDNESS, CORRECTION)


def month_records(world: CaseWorld, happened: Set[str]) -> Receivables:
    """Return the records of a world, indexed for the rules.

    Args:
        world: The one that is played.
        happened: Names of the events that have happened.
    """
    tables = dict(world.tables)
    for event in world.events:
        if event.name in happened:
            changed = {row.id: row for table, row in event.rows if table == "bank_lines"}
            gone = {key for table, key in event.dropped if table == "bank_lines"}
            tables["bank_lines"] = tuple(
                changed.get(line.id, line) for line in tables["bank_lines"] if line.id not in gone
            )
    records: dict[str, list[Any]] = {
        name: msgspec.to_builtins(tables[name])
        for name in ("bank_lines", "invoices", "customers", "credit_notes", "payers")
    }
    records["terms"] = _terms(msgspec.to_builtins(tables["contracts"]))
    records["notices"] = _notices(world)
    records["advices"] = [
        {"advice": advice.advice, "at": mail.at.isoformat(), "parts": advice.parts}
        for mail in world.mails
        if (advice := read_advice(mail.text))
    ]
    records["closed"] = [day.isoformat() for day in world.matter.closed]
    return Receivables(records)


def _terms(contracts: list[Row]) -> list[Row]:
    """Return the contracts on cash discount, with their percentages and days."""
    found = []
    for contract in contracts:
        for reading in DISCOUNT_CLAUSE.read(contract["text"]):
            found.append({**contract, **reading.values})
    return sorted(found, key=lambda row: str(row["valid_from"]))


def _notices(world: CaseWorld) -> list[Row]:
    """Return the announcements of payers by contacts."""
    contacts = {row.email: row for row in world.tables["contacts"]}
    return [
        {
            "payer": reading.values["payer"],
            "customer": contacts[mail.sender].customer,
            "first": reading.values["first"].isoformat(),
            "active": contacts[mail.sender].status == "active",
        }
        for mail in world.mails
        if mail.sender in contacts
        for reading in NOTICE.read(mail.text)
    ]


def month_result(world: CaseWorld, records: Receivables, blind: Set[str]) -> MonthResult:
    """Return what becomes of the lines of a world's month.

    Args:
        world: The one that is played.
        records: Of the world.
        blind: What the reader overlooks.
    """
    policy = world.policy
    amendments = [(a.first.isoformat(), a.sentence, a.values) for a in policy.amendments]
    return apply_month(records, world.matter.month, policy.terms, amendments, frozenset(blind))


def careless_results(
    world: CaseWorld, happened: Set[str], records: Receivables
) -> Mapping[str, MonthResult]:
    """Return the result of a reader without each class of care.

    Args:
        world: The one that is played.
        happened: Names of the events that have happened.
        records: Of the world then.
    """
    found = {name: month_result(world, records, {name}) for name in BLINDNESS}
    if happened:
        found[CORRECTION] = month_result(world, month_records(world, frozenset()), frozenset())
    return found


def month_truth(world: CaseWorld, happened: Set[str], blind: Set[str]) -> CaseTruth:
    """Return what is right of a month, or what a reader without some care would find.

    Args:
        world: The one that is played.
        happened: Names of the events that have happened.
        blind: What is overlooked; then no reasons are given.
    """
    happened = frozenset() if CORRECTION in blind else happened & {CORRECTED}
    records = month_records(world, happened)
    result = month_result(world, records, blind - {CORRECTION})
    careless = {} if blind else careless_results(world, happened, records)
    customer = {key: row["customer"] for key, row in records.invoices.items()}
    items = []
    for line in (row.id for row in world.tables["bank_lines"]):
        allocated, codes = answer = line_answer(result, line)
        reasons = tuple(n for n, other in careless.items() if line_answer(other, line) != answer)
        keys = [row["invoice"] for row in allocated]
        rows = {f"bank_lines/{line}", *(f"invoices/{key}" for key in keys)}
        rows |= {f"customers/{customer[key]}" for key in keys}
        told = {"rows": tuple(allocated), "exceptions": tuple(sorted(codes.items()))}
        items.append(ItemTruth(line, told, reasons, frozenset(rows)))
    exceptions = tuple(
        {"line": item.id, "code": code, "amount_cents": cents}
        for item in items
        for code, cents in item.answer["exceptions"]
    )
    month, terms = world.matter.month, world.policy.terms
    owed = tuple(
        {"customer": customer, "open_cents": open_items(records, month, terms, result, customer)}
        for customer in world.matter.customers
    )
    return CaseTruth(tuple(items), {"exceptions": exceptions, "open_items": owed})
