"""Parser of the kind `credits`: it reads policy, letters and records as they are served.

`miss` names what a careless reader leaves out, in the words of the kind's sources.
"""

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from owa_bench.agents.solvers.cases.client import CaseClient, CaseMail, CaseRow
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan
from owa_bench.company.calendars import BusinessCalendar
from owa_bench.company.language import calendar_page
from owa_bench.company.language.calendar_page import ServedCalendar
from owa_bench.company.language.credits_letters import (
    FollowUp,
    RequestLetter,
    read_follow_up,
    read_request,
)
from owa_bench.company.language.credits_policy import CLAUSES, FORM, SIGNATURE
from owa_bench.company.language.credits_rules import (
    AskingCustomer,
    ContractClause,
    CreditDesk,
    CreditFacts,
    PastCredit,
)
from owa_bench.company.language.policy import Amendment, Policy, with_amendments
from owa_bench.company.language.text import MONEY, read_all
from owa_bench.interfaces import Brief

_POLICY = "credit-policy"
_ROUNDS = 4  # times that it looks again after something has arrived
_SURE, _CLAIM = 0.9, 0.97
_AMOUNT = re.compile(rf"(more than|at most) ({MONEY.pattern})")
_REQUEST = re.compile(r"request (R-\d+)")


@dataclass(kw_only=True)
class _Request:
    """A request with what was found of it."""

    row: CaseRow
    letter: RequestLetter
    received: dt.date
    order: str = ""
    follow_ups: list[FollowUp] = field(default_factory=list)


class CreditsParser:
    """Plays one case.

    Args:
        brief: Of the episode.
        miss: Sources that it leaves out.
    """

    def __init__(self, brief: Brief, miss: Iterable[str] = ()) -> None:
        self._brief = brief
        self._miss = frozenset(miss)
        self._client = CaseClient(brief)
        self._today = dt.date.fromisoformat(str(brief.goal["begins"])[:10])
        self._tables: dict[str, dict[str, CaseRow]] = {}
        self._requests: list[_Request] = []
        self._answers: dict[str, CaseRow] = {}

    def plan(self) -> ToolPlan[PlanCall]:
        """Return the plan of the case; its last call finishes."""
        client = self._client
        slugs = {page["slug"] for page in (yield from client.pages())}
        policy = FORM.read((yield from client.page(_POLICY)))
        if policy is None:
            return PlanCall("declare_infeasible", {"p": 0.1})
        amendments: tuple[Amendment, ...] = ()
        if f"{_POLICY}-changes" in slugs and "amendments" not in self._miss:
            text = yield from client.page(f"{_POLICY}-changes")
            amendments = FORM.read_amendments(text, policy.title)
        text = yield from client.page(calendar_page.SLUG)
        self._calendars = calendar_page.read_calendar(text, self._today)
        for _ in range(_ROUNDS):
            mails = yield from client.mails()
            queue = yield from client.rows("requests")
            if not self._requests:
                self._read_letters(queue, mails)
                yield from self._find_orders()
                yield from self._fetch()
            in_force = self._amended(policy, amendments, mails)
            taken = yield from self._settle(in_force, queue, mails)
            if taken and not client.unread:
                break
        yield from client.submit("table", self._by_customer())
        yield from client.submit("exceptions", self._exceptions())
        beliefs = {name: self._belief(text) for name, text in self._brief.propositions.items()}
        return PlanCall("finish", {"p": _SURE, "beliefs": beliefs})

    # --- letters and orders -----------------------------------------------------------------

    def _read_letters(self, queue: list[CaseRow], mails: Mapping[str, CaseMail]) -> None:
        for row in queue:
            letter = read_request(mails[row["mail"]].text)
            if letter is not None:
                received = dt.date.fromisoformat(row["received"][:10])
                self._requests.append(_Request(row=row, letter=letter, received=received))
        self._requests.sort(key=lambda request: str(request.row["received"]))

    def _find_orders(self) -> ToolPlan[None]:
        """Find the order of each request by what its letter names."""
        client, letters = self._client, [request.letter for request in self._requests]
        bills = yield from self._by_key("invoices", {letter.invoice for letter in letters})
        ships = yield from self._by_key("shipments", {letter.shipment for letter in letters})
        senders = [request.row["sender"] for request in self._requests]
        self._contacts = yield from client.rows("contacts", email=senders)
        yield from self._load("products")
        for request in self._requests:
            letter = request.letter
            if letter.reference == "vague":
                request.order = yield from self._vague(request)
            elif letter.invoice:
                request.order = bills[letter.invoice]["order"]
            else:
                request.order = letter.order or ships[letter.shipment]["order"]

    def _by_key(self, table: str, keys: Iterable[str]) -> ToolPlan[dict[str, CaseRow]]:
        wanted = sorted(key for key in keys if key)
        rows = (yield from self._client.rows(table, id=wanted)) if wanted else []
        return {row["id"]: row for row in rows}

    def _vague(self, request: _Request) -> ToolPlan[str]:
        """Return the order that a day and an article name."""
        client, letter = self._client, request.letter
        customers = [
            row["customer"] for row in self._contacts if row["email"] == request.row["sender"]
        ]
        day = letter.ordered.isoformat() if letter.ordered else ""
        orders = yield from client.rows("orders", customer=customers, day=day)
        lines = yield from client.rows("order_lines", order=[order["id"] for order in orders])
        names = self._tables["products"]
        fitting = [
            line["order"] for line in lines if names[line["product"]]["name"] == letter.article
        ]
        return str(fitting[0]) if fitting else ""

    def _load(self, table: str, **filters: Any) -> ToolPlan[None]:
        rows = yield from self._client.rows(table, **filters)
        self._tables.setdefault(table, {}).update({row["id"]: row for row in rows})

    def _fetch(self) -> ToolPlan[None]:
        """Fetch the records of all orders."""
        keys = [request.order for request in self._requests]
        yield from self._load("orders", id=keys)
        orders = self._tables["orders"]
        ships = [order["shipment"] for order in orders.values()]
        customers = [order["customer"] for order in orders.values()]
        yield from self._load("order_lines", order=keys)
        yield from self._load("shipments", id=ships)
        for table in ("proofs", "delays"):
            yield from self._load(table, shipment=ships)
        yield from self._load("customers", id=customers)
        yield from self._load("contracts", customer=customers)
        yield from self._load("invoices", order=keys)
        yield from self._load("invoices", customer=customers, status="open")
        yield from self._load("credit_notes", customer=customers)
        products = [line["product"] for line in self._tables["order_lines"].values()]
        yield from self._load("prices", product=products)
        yield from self._load("people")
        for person in self._tables["people"].values():
            person["away_from"] = person["away_from"] or ""
            person["away_to"] = person["away_to"] or ""

    # --- decisions --------------------------------------------------------------------------

    def _amended(
        self, policy: Policy, amendments: Iterable[Amendment], mails: Mapping[str, CaseMail]
    ) -> Policy:
        """Return the policy with the amendments of the page and of mails."""
        told = list(amendments)
        owners = {
            person["email"]
            for person in self._tables["people"].values()
            if person["role"] == "Policy Owner, Credits"
        }
        if "news" not in self._miss:
            for mail in mails.values():
                if mail.sender in owners:
                    told += FORM.read_amendments(mail.text, policy.title)
        return with_amendments(policy, told)

    def _settle(
        self, policy: Policy, queue: list[CaseRow], mails: Mapping[str, CaseMail]
    ) -> ToolPlan[bool]:
        """Decide all requests and post the new decisions; return whether all were taken."""
        taken = {row["id"] for row in queue if str(row["status"]).startswith("decided by")}
        for request in self._requests:
            request.follow_ups = [
                said
                for mail in mails.values()
                if mail.id != request.row["mail"] and mail.sender == request.row["sender"]
                for said in read_follow_up(mail.text)
                if said.order == request.order
            ]
        self._policy = policy
        answers = self._decide(taken)
        new = [row for key, row in answers.items() if self._answers.get(key) != row]
        self._answers = answers
        if not new:
            return True
        reply = yield from self._client.post("decide", new)
        states = {row["state"] for row in reply["decisions"]} if reply else set()
        return states <= {"taken"}

    def _decide(self, taken: set[str]) -> dict[str, CaseRow]:
        desk = CreditDesk(list(self._tables["people"].values()), self._today, self._miss)
        earlier: list[_Request] = []
        for request in self._requests:
            key = request.row["id"]
            terms = desk.terms(self._policy.at(request.received))
            closed = key in taken and "other_desk" not in self._miss
            facts = self._facts(request, terms, earlier, closed=closed)
            earlier.append(request)
            row = self._customer(request)
            notes = tuple(
                PastCredit(note["kind"], note["cents"], dt.date.fromisoformat(note["issued"]))
                for note in self._of("credit_notes", "customer", row["id"])
            )
            customer = AskingCustomer(row["id"], row["plan"], row["region"], notes)
            desk.settle(key, terms, facts, customer)
        return desk.answers

    # --- facts ------------------------------------------------------------------------------

    def _customer(self, request: _Request) -> CaseRow:
        return self._tables["customers"][self._tables["orders"][request.order]["customer"]]

    def _of(self, table: str, column: str, key: str) -> list[CaseRow]:
        return [row for row in self._tables[table].values() if row[column] == key]

    def _calendar(self, country: str) -> ServedCalendar:
        return self._calendars[country]

    def _days(self, country: str) -> BusinessCalendar:
        if "holidays" in self._miss:
            return BusinessCalendar("", self._today.year)
        return self._calendar(country).days

    def _stamp_day(self, request: _Request, *, signed: bool) -> dt.date:
        """Return the local day of the signature, or of the carrier's scan."""
        order = self._tables["orders"][request.order]
        (proof,) = self._of("proofs", "shipment", order["shipment"])
        shipment = self._tables["shipments"][order["shipment"]]
        text = proof["signed_at"] if signed else shipment["delivered_at"]
        stamp = dt.datetime.fromisoformat(text.removesuffix("Z"))
        if "zones" in self._miss:
            return stamp.date()
        return self._calendar(self._customer(request)["country"]).local_day(stamp)

    def _delivered(self, request: _Request, terms: Mapping[str, Any]) -> dt.date:
        signed = (terms["delivery"]["stamp"] == SIGNATURE) != ("proofs" in self._miss)
        return self._stamp_day(request, signed=signed)

    def _line(self, request: _Request) -> CaseRow | None:
        """Return the line of the article that the letter names, None without one."""
        if request.letter.ground not in ("damage", "price"):
            return None
        names = self._tables["products"]
        lines = self._of("order_lines", "order", request.order)
        return next(
            (row for row in lines if names[row["product"]]["name"] == request.letter.article), None
        )

    def _facts(
        self,
        request: _Request,
        terms: Mapping[str, Any],
        earlier: Iterable[_Request],
        *,
        closed: bool,
    ) -> CreditFacts:
        miss, letter = self._miss, request.letter
        order, customer = self._tables["orders"][request.order], self._customer(request)
        shipment = self._tables["shipments"][order["shipment"]]
        (proof,) = self._of("proofs", "shipment", order["shipment"])
        delivered, days = self._delivered(request, terms), self._days(customer["country"])
        said = {follow_up.what: follow_up for follow_up in request.follow_ups}
        if "withdrawals" in miss:
            said.pop("withdrawn", None)
        if "follow_ups" in miss:
            said = {what: one for what, one in said.items() if what == "withdrawn"}
        line = self._line(request)
        lines = self._of("order_lines", "order", request.order)
        net = sum(row["quantity"] * row["unit_cents"] for row in lines)
        ordered = dt.date.fromisoformat(order["day"])
        pieces = line["quantity"] if line else 0
        if letter.ground == "damage":
            pieces = said["corrected"].pieces if "corrected" in said else letter.pieces
        bills = sorted(
            self._of("invoices", "order", request.order), key=lambda b: (b["issued"], b["id"])
        )
        promised = dt.date.fromisoformat(shipment["promised"])
        counted = ordered if letter.ground == "price" else delivered
        return CreditFacts(
            ground=letter.ground,
            received=request.received,
            withdrawn="withdrawn" in said,
            other_desk=closed,
            known_sender=self._is_known(request, customer["id"]),
            repeated="duplicates" not in miss
            and any((r.order, r.letter.ground) == (request.order, letter.ground) for r in earlier),
            delivered=delivered,
            late_days=days.between(promised, delivered),
            days_since=days.between(delivered, request.received),
            cause=self._cause(order["shipment"]),
            net_cents=order["net_cents"] if "lines" in miss else net,
            overdue_days=self._overdue(customer["id"]),
            clauses=self._clauses(customer["id"], counted),
            pieces=pieces,
            unit_cents=line["unit_cents"] if line else 0,
            list_cents=self._list_price(line["product"], order["day"]) if line else 0,
            discount=customer["discount"],
            remark="damage" in proof["remark"],
            picture=letter.picture or "later_picture" in said,
            second_cents=bills[-1]["net_cents"] if len(bills) > 1 else 0,
            credited=self._credited(customer["id"], {bill["id"] for bill in bills}),
            last_goodwill=self._last_goodwill(customer["id"], request.received),
            plan=customer["plan"],
        )

    def _is_known(self, request: _Request, customer: str) -> bool:
        if "senders" in self._miss:
            return True
        return any(
            row["email"] == request.row["sender"]
            and row["customer"] == customer
            and (row["status"] == "active" or "left_contacts" in self._miss)
            for row in self._contacts
        )

    def _cause(self, shipment: str) -> str:
        rows = self._of("delays", "shipment", shipment)
        if not rows:
            return ""
        if "hours" in self._miss:
            return str(rows[0]["cause"])
        return str(max(rows, key=lambda row: int(row["hours"]))["cause"])

    def _overdue(self, customer: str) -> int:
        if "arrears" in self._miss:
            return -1
        bills = self._of("invoices", "customer", customer)
        late = [
            (self._today - dt.date.fromisoformat(bill["due"])).days
            for bill in bills
            if bill["status"] == "open"
        ]
        return max(late, default=-1)

    def _clauses(self, customer: str, day: dt.date) -> tuple[ContractClause, ...]:
        found: list[ContractClause] = []
        if "contracts" in self._miss:
            return ()
        for row in self._of("contracts", "customer", customer):
            lives = row["signed"] and row["valid_from"] <= day.isoformat() <= row["valid_to"]
            if lives or "contract_dates" in self._miss:
                found += [
                    ContractClause(reading.name, next(iter(reading.values.values())))
                    for reading in read_all(CLAUSES, row["text"])
                ]
        return tuple(found)

    def _list_price(self, product: str, day: str) -> int:
        rows = sorted(self._of("prices", "product", product), key=lambda r: str(r["valid_from"]))
        if "price_lists" not in self._miss:
            rows = [row for row in rows if row["valid_from"] <= day]
        return int(rows[-1]["cents"])

    def _credited(self, customer: str, numbers: set[str]) -> bool:
        return "credited" not in self._miss and any(
            note["kind"] == "double" and note["invoice"] in numbers
            for note in self._of("credit_notes", "customer", customer)
        )

    def _last_goodwill(self, customer: str, received: dt.date) -> int | None:
        if "goodwill_history" in self._miss:
            return None
        days = [
            (received - dt.date.fromisoformat(note["issued"])).days
            for note in self._of("credit_notes", "customer", customer)
            if note["kind"] == "goodwill" and note["issued"] <= received.isoformat()
        ]
        return min(days, default=None)

    # --- deliverables -----------------------------------------------------------------------

    def _by_customer(self) -> list[CaseRow]:
        rows: dict[str, CaseRow] = {}
        for request in self._requests:
            answer = self._answers[request.row["id"]]
            if not answer["amount_cents"]:
                continue
            key = self._customer(request)["id"]
            row = rows.setdefault(key, {"customer": key, "approved_cents": 0, "proposed_cents": 0})
            column = "proposed_cents" if answer["decision"] == "escalate" else "approved_cents"
            row[column] += answer["amount_cents"]
        return list(rows.values())

    def _exceptions(self) -> list[CaseRow]:
        rows = []
        asked = [
            what
            for what in ("false_statement", "record_conflict", "instruction")
            if f'"{what}"' in self._brief.text
        ]
        for request in self._requests:
            holds = {
                "false_statement": self._wrong(request),
                "record_conflict": self._conflict(request),
                "instruction": request.letter.instruction,
            }
            rows += [{"request": request.row["id"], "what": what} for what in asked if holds[what]]
        return rows

    def _wrong(self, request: _Request) -> bool:
        """Return whether the letter states what the records contradict."""
        letter, order = request.letter, self._tables["orders"][request.order]
        shipment = self._tables["shipments"][order["shipment"]]
        delivered = self._delivered(request, self._policy.at(request.received))
        stated = (
            (letter.delivered, delivered),
            (letter.promised, dt.date.fromisoformat(shipment["promised"])),
            (letter.ordered, dt.date.fromisoformat(order["day"])),
        )
        if any(said is not None and said != true for said, true in stated):
            return True
        line = self._line(request)
        if not letter.unit or line is None:
            return False
        return letter.unit != f"{line['unit_cents'] // 100}.{line['unit_cents'] % 100:02d}"

    def _conflict(self, request: _Request) -> bool:
        lines = self._of("order_lines", "order", request.order)
        total = sum(row["quantity"] * row["unit_cents"] for row in lines)
        days = [self._stamp_day(request, signed=signed) for signed in (True, False)]
        stale = total != self._tables["orders"][request.order]["net_cents"]
        return stale or days[0] != days[1]

    def _belief(self, text: str) -> float:
        """Return the probability of a statement, by the answers that were found."""
        request, amount = _REQUEST.search(text), _AMOUNT.search(text)
        if request:
            cents = int(self._answers[request[1]]["amount_cents"])
        else:
            cents = sum(int(row["amount_cents"]) for row in self._answers.values())
        if amount:
            holds = (cents > MONEY.read(amount[2])) == (amount[1] == "more than")
        else:
            holds = (cents > 0) == ("gets no money" not in text)
        return _CLAIM if holds else round(1.0 - _CLAIM, 2)
