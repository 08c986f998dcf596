"""The facts of a request, from the tables of a world, with or without a source."""

import datetime as dt
from collections.abc import Iterable, Set
from functools import lru_cache
from typing import Any

import msgspec

from owa_bench.company.calendars import BusinessCalendar, calendar, local_day
from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.kinds.credits.requests import CreditRequest
from owa_bench.company.language.credits_policy import CLAUSES, SIGNATURE
from owa_bench.company.language.credits_rules import ContractClause, CreditFacts
from owa_bench.company.language.policy import PolicyTerms
from owa_bench.company.language.text import read_all
from owa_bench.company.tables import CustomerContract, ListPrice

# What a reader may leave out, each a class of trap: `CreditRecords.facts` and the truth know them.
FACT_SOURCES = (
    "proofs",
    "zones",
    "holidays",
    "hours",
    "lines",
    "contracts",
    "contract_dates",
    "price_lists",
    "senders",
    "left_contacts",
    "duplicates",
    "arrears",
    "follow_ups",
    "withdrawals",
    "goodwill_history",
    "credited",
)
DAMAGE_WORD = "damage"


class CreditRecords:
    """The tables of a world, indexed.

    Args:
        world: Of the kind.
    """

    def __init__(self, world: CaseWorld) -> None:
        self._world = world
        self._today = world.begins.date()
        tables = world.tables
        self.orders = {row.id: row for row in tables["orders"]}
        self.lines = _grouped(tables["order_lines"], "order")
        self.shipments = {row.id: row for row in tables["shipments"]}
        self.proofs = {row.shipment: row for row in tables["proofs"]}
        self.delays = _grouped(tables["delays"], "shipment")
        self.customers = {row.id: row for row in tables["customers"]}
        self.contacts = _grouped(tables["contacts"], "email")
        self.contracts = _grouped(tables["contracts"], "customer")
        self.invoices = _grouped(tables["invoices"], "order")
        self.bills = _grouped(tables["invoices"], "customer")
        self.notes = _grouped(tables["credit_notes"], "customer")
        self.prices: dict[str, list[ListPrice]] = _grouped(tables["prices"], "product")
        self.people = [msgspec.to_builtins(row) for row in tables["people"]]
        for person in self.people:
            person["away_from"] = person["away_from"] or ""
            person["away_to"] = person["away_to"] or ""
        self.line_of = {row.id: row for row in tables["order_lines"]}

    def business_days(self, country: str, blind: Set[str]) -> BusinessCalendar:
        """Return the business days of a country; blind to holidays: Monday to Friday.

        Args:
            country: Its code.
            blind: Sources that are not looked at.
        """
        if "holidays" in blind:
            return _weekdays(self._today.year)
        return calendar(country, self._today.year)

    def delivered(self, order_id: str, terms: PolicyTerms, blind: Set[str]) -> dt.date:
        """Return the day of delivery as the policy counts it.

        Args:
            order_id: Of the order.
            terms: They say which stamp counts.
            blind: Sources that are not looked at: "proofs": the other stamp is taken.
        """
        order = self.orders[order_id]
        shipment = self.shipments[order.shipment]
        signed = (terms["delivery"]["stamp"] == SIGNATURE) != ("proofs" in blind)
        proof = self.proofs[shipment.id]
        stamp: dt.datetime = proof.signed_at if signed else shipment.delivered_at
        if "zones" in blind:
            return stamp.date()
        return local_day(self.customers[order.customer].country, stamp)

    def clauses(self, customer: str, day: dt.date, blind: Set[str]) -> tuple[ContractClause, ...]:
        """Return the clauses of a customer's contracts that count on a day.

        Args:
            customer: Its key.
            day: Of delivery or order.
            blind: "contracts": none counts; "contract_dates": all count, signed and in force or
                not.
        """
        if "contracts" in blind:
            return ()
        found = []
        for contract in self.contracts.get(customer, ()):
            counts = contract.signed and contract.valid_from <= day <= contract.valid_to
            if counts or "contract_dates" in blind:
                found += contract_clauses(contract)
        return tuple(found)

    def facts(
        self,
        request: CreditRequest,
        terms: PolicyTerms,
        earlier: Iterable[CreditRequest],
        happened: Set[str],
        blind: Set[str],
    ) -> CreditFacts:
        """Return what is known of a request.

        Args:
            request: Of the world.
            terms: In force for its day of receipt.
            earlier: Requests that were received before it.
            happened: Names of the events so far.
            blind: Sources that are not looked at.
        """
        order, ground = self.orders[request.order], request.letter.ground
        customer = self.customers[order.customer]
        received = request.received.date()
        delivered = self.delivered(order.id, terms, blind)
        promised = self.shipments[order.shipment].promised
        days = self.business_days(customer.country, blind)
        lines = self.lines[order.id]
        line = self.line_of.get(request.line)
        counted = order.day if ground == "price" else delivered
        same = [r for r in earlier if (r.order, r.letter.ground) == (order.id, ground)]
        pieces = request.letter.pieces if ground == "damage" else line.quantity if line else 0
        picture = request.letter.picture
        if "follow_ups" not in blind:
            pieces = request.corrected or pieces
            picture = picture or request.picture_later
        back = request.withdrawn
        remark = self.proofs[order.shipment].remark
        return CreditFacts(
            ground=ground,
            received=received,
            withdrawn=(back == "mail" or back in happened) and "withdrawals" not in blind,
            other_desk=request.other_desk in happened,
            known_sender=self._is_known(request.sender, customer.id, blind),
            repeated=bool(same) and "duplicates" not in blind,
            delivered=delivered,
            late_days=days.between(promised, delivered),
            days_since=days.between(delivered, received),
            cause=self._cause(order.shipment, blind),
            net_cents=order.net_cents
            if "lines" in blind
            else sum(row.quantity * row.unit_cents for row in lines),
            overdue_days=-1 if "arrears" in blind else self._arrears(customer.id),
            clauses=self.clauses(customer.id, counted, blind),
            pieces=pieces,
            unit_cents=line.unit_cents if line else 0,
            list_cents=self._list_price(line.product, order.day, blind) if line else 0,
            discount=customer.discount,
            remark=DAMAGE_WORD in remark,
            picture=picture,
            second_cents=self._second(order.id),
            credited="credited" not in blind and self._credited(order.id),
            last_goodwill=None
            if "goodwill_history" in blind
            else self._last_goodwill(customer.id, received),
            plan=customer.plan,
        )

    def _is_known(self, address: str, customer: str, blind: Set[str]) -> bool:
        return "senders" in blind or any(
            row.customer == customer and (row.status == "active" or "left_contacts" in blind)
            for row in self.contacts.get(address, ())
        )

    def _cause(self, shipment: str, blind: Set[str]) -> str:
        rows = self.delays.get(shipment, ())
        if not rows:
            return ""
        if "hours" in blind:
            return str(rows[0].cause)
        return str(max(rows, key=lambda row: row.hours).cause)

    def _arrears(self, customer: str) -> int:
        late = [(self._today - b.due).days for b in self.bills[customer] if b.status == "open"]
        return max(late, default=-1)

    def _list_price(self, product: str, day: dt.date, blind: Set[str]) -> int:
        rows = sorted(self.prices[product], key=lambda row: row.valid_from)
        if "price_lists" not in blind:
            rows = [row for row in rows if row.valid_from <= day]
        return rows[-1].cents

    def _second(self, order: str) -> int:
        bills = sorted(self.invoices[order], key=lambda bill: (bill.issued, bill.id))
        return bills[-1].net_cents if len(bills) > 1 else 0

    def _credited(self, order: str) -> bool:
        numbers = {bill.id for bill in self.invoices[order]}
        notes = self.notes.get(self.orders[order].customer, ())
        return any(note.kind == "double" and note.invoice in numbers for note in notes)

    def _last_goodwill(self, customer: str, received: dt.date) -> int | None:
        days = [
            (received - note.issued).days
            for note in self.notes.get(customer, ())
            if note.kind == "goodwill" and note.issued <= received
        ]
        return min(days, default=None)


def contract_clauses(contract: CustomerContract) -> list[ContractClause]:
    """Return the clauses that a contract's text states.

    Args:
        contract: Signed or not.
    """
    return [
        ContractClause(reading.name, next(iter(reading.values.values())))
        for reading in read_all(CLAUSES, contract.text)
    ]


def _grouped(rows: Iterable[Any], field: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(getattr(row, field), []).append(row)
    return found


@lru_cache(maxsize=16)
def _weekdays(year: int) -> BusinessCalendar:
    return BusinessCalendar("", year)


def served_rows(records: CreditRecords, request: CreditRequest) -> frozenset[str]:
    """Return "table/key" of the rows that a request's answer may follow from.

    Args:
        records: Of the world.
        request: Of the world.
    """
    order = records.orders[request.order]
    names = [f"requests/{request.id}", f"mail/{request.mail}", f"orders/{order.id}"]
    names.append(f"customers/{order.customer}")
    names.append(f"shipments/{order.shipment}")
    names += [f"order_lines/{row.id}" for row in records.lines[order.id]]
    names += [f"delays/{row.id}" for row in records.delays.get(order.shipment, ())]
    names += [f"contracts/{row.id}" for row in records.contracts.get(order.customer, ())]
    names += [f"contacts/{row.id}" for row in records.contacts.get(request.sender, ())]
    names += [f"invoices/{row.id}" for row in records.invoices[order.id]]
    names.append(f"proofs/{records.proofs[order.shipment].id}")
    return frozenset(names)
