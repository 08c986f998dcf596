"""The truth of a month: the rules applied to the world's records, with and without care."""

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from owa_bench.company.kinds.close.world import CORRECTED
from owa_bench.company.kinds.contract import CaseTruth, CaseWorld, ItemTruth
from owa_bench.company.kinds.keeping import kept_per_world
from owa_bench.company.language.close_policy import DISCOUNT_CLAUSE
from owa_bench.company.language.close_records import Receivables, RecordRow
from owa_bench.company.language.close_rules import (
    BLINDNESS,
    MonthResult,
    apply_month,
    line_answer,
    open_items,
)
from owa_bench.company.language.close_texts import NOTICE, read_advice
from owa_bench.company.tables import BankLine

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


def _terms(contracts: list[RecordRow]) -> list[RecordRow]:
    """Return the contracts on cash discount, with their percentages and days."""
    found = []
    for contract in contracts:
        for reading in DISCOUNT_CLAUSE.read(contract["text"]):
            found.append({**contract, **reading.values})
    return sorted(found, key=lambda row: str(row["valid_from"]))


def _notices(world: CaseWorld) -> list[RecordRow]:
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


def month_result(
    world: CaseWorld, records: Receivables, happened: Set[str], blind: Set[str]
) -> MonthResult:
    """Return what becomes of the lines of a world's month.

    Args:
        world: The one that is played.
        records: Of the world then.
        happened: Names of the events that have happened.
        blind: What the reader overlooks.
    """
    policy = world.policy.known_with(happened)
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
    found = {name: month_result(world, records, happened, {name}) for name in BLINDNESS}
    if CORRECTED in happened:
        unseen = happened - {CORRECTED}
        before = month_records(world, unseen)
        found[CORRECTION] = month_result(world, before, unseen, frozenset())
    return found


class _Evidence:
    """The rows and mails that the answer on a line follows from."""

    def __init__(self, world: CaseWorld, records: Receivables) -> None:
        self._records = records
        self._by: dict[str, set[str]] = {}
        for table in ("contracts", "credit_notes"):
            for row in world.tables[table]:
                self._by.setdefault(row.customer, set()).add(f"{table}/{row.id}")
        for row in world.tables["payers"]:
            self._by.setdefault(row.payer.upper(), set()).add(f"payers/{row.id}")
        for mail in world.mails:
            names = [reading.values["payer"].upper() for reading in NOTICE.read(mail.text)]
            advice = read_advice(mail.text)
            for name in [*names, advice.advice] if advice else names:
                self._by.setdefault(name, set()).add(f"mail/{mail.id}")

    def of(self, line: BankLine, invoices: list[str]) -> frozenset[str]:
        """Return "table/key" of what the answer on a line follows from."""
        customers = {self._records.invoices[key]["customer"] for key in invoices}
        names = {line.payer, self._records.advice_of.get(line.id, ""), *customers}
        found = {f"bank_lines/{line.id}", *(f"invoices/{key}" for key in invoices)}
        found |= {f"customers/{key}" for key in customers}
        return frozenset(found.union(*(self._by.get(name, ()) for name in names)))


def month_truth(world: CaseWorld, happened: Set[str], blind: Set[str]) -> CaseTruth:
    """Return what is right of a month, or what a reader without some care would find.

    Args:
        world: The one that is played.
        happened: Names of the events that have happened.
        blind: What is overlooked; then no reasons are given.
    """
    return _kept_truth(world, frozenset(happened), frozenset(blind))


@kept_per_world(8)
def _kept_truth(world: CaseWorld, happened: frozenset[str], blind: frozenset[str]) -> CaseTruth:
    """Return what is right; a session asks for it at every step."""
    happened = happened - {CORRECTED} if CORRECTION in blind else happened
    records = month_records(world, happened)
    result = month_result(world, records, happened, blind - {CORRECTION})
    careless = {} if blind else careless_results(world, happened, records)
    evidence = _Evidence(world, records)
    items = []
    for line in world.tables["bank_lines"]:
        allocated, codes = answer = line_answer(result, line.id)
        reasons = tuple(n for n, other in careless.items() if line_answer(other, line.id) != answer)
        told = {"rows": tuple(allocated), "exceptions": tuple(sorted(codes.items()))}
        rows = evidence.of(line, [row["invoice"] for row in allocated])
        items.append(ItemTruth(line.id, told, reasons, rows))
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
