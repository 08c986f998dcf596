"""Scenes of a credit case: each arranges records and adds requests; what is right follows later.

A scene never says what the right answer is. It makes a situation likely, and the truth is computed
from the records. Most scenes have a look-alike in which the naive answer is right.
"""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from owa_bench.company.books import Books
from owa_bench.company.calendars import BusinessCalendar, calendar, local_day, offset_h, utc
from owa_bench.company.draw import CAUSES, DAMAGE_REMARKS, PLAIN_REMARKS
from owa_bench.company.kinds.contract import NoWorldError
from owa_bench.company.kinds.credits.truth import money_text
from owa_bench.company.language.credits_letters import RequestLetter
from owa_bench.company.language.credits_policy import CAUSE_WORDS
from owa_bench.company.language.policy import Policy
from owa_bench.company.language.text import Sentence
from owa_bench.company.tables import (
    Contact,
    CreditNote,
    Customer,
    CustomerContract,
    Delay,
    Order,
    OrderLine,
)
from owa_bench.seeding import pick

_QUEUE_DAYS = 14  # days before today on which requests came in
_OLDEST, _NEWEST = 26, 3  # days before today between which goods arrived
_TRIES = 4_000


@dataclass(kw_only=True)
class DraftRequest:
    """A request before it has a key and a text."""

    received: dt.datetime
    sender: str
    name: str
    order: str
    letter: RequestLetter
    line: str = ""
    corrected: int = 0
    picture_later: bool = False
    withdrawn: str = ""
    other_desk: str = ""
    repeated: bool = False
    follow_up: Sentence | None = None
    boss: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


class OrderPlace(NamedTuple):
    """An order with its customer and the local day of delivery."""

    order: Order
    customer: Customer
    delivered: dt.date


class CreditScenes:
    """Arranges facts in a company's books.

    Args:
        books: They are changed.
        policy: Of the case.
        today: The day of the case.
        rng: Draws everything.
        level: 1 to 3.
    """

    def __init__(
        self, books: Books, policy: Policy, today: dt.date, rng: np.random.Generator, level: int
    ) -> None:
        self.books, self.policy, self.today, self.rng = books, policy, today, rng
        self.level = level
        self.drafts: list[DraftRequest] = []
        self._taken: set[str] = set()  # customers
        self._pool = self._delivered()

    # --- orders ---------------------------------------------------------------------------

    def days(self, customer: Customer) -> BusinessCalendar:
        """Return the business days of a customer's country.

        Args:
            customer: Of the books.
        """
        return calendar(customer.country, self.today.year)

    def order(self, test: Callable[[OrderPlace], bool] = lambda place: True) -> OrderPlace:
        """Return an order of a customer who has no request yet.

        Args:
            test: It must hold of the order.
        Raises: NoWorldError: No order is left for which it holds.
        """
        for place in self._pool:
            if place.customer.id not in self._taken and test(place):
                self._taken.add(place.customer.id)
                return place
        raise NoWorldError("no order fits")

    def place_of(self, order: Order) -> OrderPlace:
        """Return an order with its customer; the day of delivery is today's if there is none."""
        customer = self.books.customers[order.customer]
        stamp = self.books.shipments[order.shipment].delivered_at
        day = local_day(customer.country, stamp) if stamp else self.today
        return OrderPlace(order, customer, day)

    def another_order(self, place: OrderPlace) -> OrderPlace:
        """Return another order of a customer that was delivered lately.

        Args:
            place: An order of the customer.
        Raises: NoWorldError: There is none.
        """
        for other in self._pool:
            if other.customer.id == place.customer.id and other.order.id != place.order.id:
                return other
        raise NoWorldError("no other order")

    def late_order(
        self, late: int, test: Callable[[OrderPlace], bool] = lambda place: True, hour: int = 0
    ) -> OrderPlace:
        """Return an order that was delivered so many business days late.

        Args:
            late: Business days, 0 for on time.
            test: It must hold of the order, with its new day of delivery.
            hour: Local hour of delivery; 0: a working hour.
        """

        def fits(place: OrderPlace) -> bool:
            day = self.late_day(place, late)
            oldest = self.today - dt.timedelta(_OLDEST)
            return oldest <= day <= self.today - dt.timedelta(_NEWEST) and test(
                place._replace(delivered=day)
            )

        place = self.order(fits)
        day = self.late_day(place, late)
        self.deliver(place, day, hour=hour)
        self.causes(place, self.plain_causes(), late)
        return place._replace(delivered=day)

    def deliver(
        self, place: OrderPlace, day: dt.date, *, hour: int = 0, signed: dt.date | None = None
    ) -> None:
        """Set the day on which an order was delivered.

        Args:
            place: The order.
            day: Local, of the carrier's scan.
            hour: Local; 0: a working hour.
            signed: Local day of the signature; None: the same.
        """
        shipment = self.books.shipments[place.order.shipment]
        minute = 60 * (hour or 8 + int(self.rng.integers(9))) + int(self.rng.integers(52))
        country = place.customer.country
        scan = utc(country, day, minute)
        sign = scan + dt.timedelta(minutes=int(self.rng.integers(8)))
        if signed is not None:
            sign = utc(country, signed, minute)
        shipped = min(shipment.shipped, min(day, signed or day))
        self.books.shipments.put(replace(shipment, delivered_at=scan, shipped=shipped))
        (proof,) = self.books.proofs.of("shipment", shipment.id)
        self.books.proofs.put(replace(proof, signed_at=sign))

    def causes(self, place: OrderPlace, names: list[str], late: int) -> None:
        """Set the causes of a delay; the first gets the most hours, the order is drawn.

        Args:
            place: The order.
            names: Causes, the main one first.
            late: Business days of delay.
        """
        shipment = self.books.shipments[place.order.shipment]
        for row in self.books.delays.of("shipment", shipment.id):
            self.books.delays.remove(row.id)
        if not late:
            return
        spread = (6 + self.rng.permutation(24 * max(2, late))[: len(names)]).tolist()
        hours = dict(zip(names, sorted(spread, reverse=True), strict=True))
        listed = self.rng.permutation(len(names)).tolist()
        for number, index in enumerate(listed, 1):
            self.books.delays.put(
                Delay(
                    id=f"{shipment.id}/{number}",
                    shipment=shipment.id,
                    cause=names[index],
                    hours=hours[names[index]],
                    day=shipment.promised + dt.timedelta(1),
                )
            )

    def proof_remark(self, place: OrderPlace, *, damage: bool) -> None:
        """Set the remark on a proof of delivery.

        Args:
            place: The order.
            damage: Whether it mentions damage.
        """
        (proof,) = self.books.proofs.of("shipment", place.order.shipment)
        plain = "" if self.rng.random() < 0.6 else pick(PLAIN_REMARKS, self.rng)
        remark = pick(DAMAGE_REMARKS, self.rng) if damage else plain
        self.books.proofs.put(replace(proof, remark=remark))

    def lines(self, place: OrderPlace) -> tuple[OrderLine, ...]:
        """Return the lines of an order."""
        return self.books.order_lines.of("order", place.order.id)

    def bill_again(self, place: OrderPlace, line: OrderLine, unit_cents: int) -> OrderLine:
        """Bill a line at another price a piece; totals follow.

        Args:
            place: The order.
            line: One of its lines.
            unit_cents: The price.
        Returns: The new line.
        """
        new = self.books.order_lines.put(replace(line, unit_cents=unit_cents))
        net = sum(row.quantity * row.unit_cents for row in self.lines(place))
        self.books.orders.put(replace(self.books.orders[place.order.id], net_cents=net))
        for bill in self.books.invoices.of("order", place.order.id):
            vat = (net * 19 + 50) // 100 if bill.vat_cents else 0
            self.books.invoices.put(replace(bill, net_cents=net, vat_cents=vat))
        return new

    # --- requests -------------------------------------------------------------------------

    def ask(
        self,
        place: OrderPlace,
        ground: str,
        *,
        received: dt.date | None = None,
        line: OrderLine | None = None,
        pieces: int = 0,
        picture: bool = False,
        invoices: tuple[str, str] = ("", ""),
        false: float = 0.0,
        vague: bool = True,
    ) -> DraftRequest:
        """Add a request.

        Args:
            place: The order.
            ground: Of the request.
            received: Day of receipt; None: drawn inside the shortest time limit.
            line: The line that it is about.
            pieces: As the letter states them.
            picture: Whether one is attached.
            invoices: Of a double bill.
            false: Odds that the letter states something wrongly.
            vague: Whether the letter may name the order by its day and an article.
        Returns: The request, which the caller may still change.
        """
        rng, order = self.rng, place.order
        contacts = self.books.contacts.of("customer", place.customer.id)
        contact = pick([row for row in contacts if row.status == "active"], rng)
        day = self.received_day(place) if received is None else received
        at = dt.datetime.combine(day, dt.time(7 + int(rng.integers(12))))
        at += dt.timedelta(minutes=int(rng.integers(60)))
        wrong = rng.random() < false
        shift = dt.timedelta(1 + int(rng.integers(3)))
        shipment = self.books.shipments[order.shipment]
        (bill, *_) = self.books.invoices.of("order", order.id)
        references = ["order", "invoice", "shipment"]
        if vague and self.level > 1 and self._only_order(place) and rng.random() < 0.35:
            references = ["vague"]
        reference = pick(references, rng)
        named = line or self.lines(place)[0]
        article = self.books.products[named.product].name
        needs_article = reference == "vague" or ground in ("damage", "price")
        unit = line.unit_cents + (100 * int(rng.integers(1, 4)) if wrong else 0) if line else 0
        stated = place.delivered + shift if wrong else place.delivered
        latest = at.date()
        letter = RequestLetter(
            ground=ground,
            reference=reference,
            order=order.id if reference == "order" else "",
            invoice=bill.id if reference == "invoice" else "",
            shipment=shipment.id if reference == "shipment" else "",
            ordered=order.day if reference == "vague" or ground == "goodwill" else None,
            promised=shipment.promised if ground == "late" else None,
            delivered=min(stated, latest) if ground in ("late", "damage") else None,
            article=article if needs_article else "",
            pieces=pieces,
            unit=money_text(unit) if ground == "price" else "",
            invoices=invoices,
            picture=picture,
        )
        draft = DraftRequest(
            received=at,
            sender=contact.email,
            name=contact.name,
            order=order.id,
            letter=letter,
            line=line.id if line else "",
        )
        self.drafts.append(draft)
        return draft

    def received_day(self, place: OrderPlace, most: int = 0) -> dt.date:
        """Return a day of receipt inside the time limits.

        Args:
            place: The order.
            most: Calendar days after delivery; 0: the shortest limit of the policy.
        """
        limits = [
            values["days"]
            for name, values in self.policy.terms.items()
            if name.startswith("limit_")
        ]
        limits += [a.values["days"] for a in self.policy.amendments if "days" in a.values]
        most = most or min(limits, default=14)
        first = max(place.delivered + dt.timedelta(1), self.today - dt.timedelta(_QUEUE_DAYS))
        last = min(self.today - dt.timedelta(1), place.delivered + dt.timedelta(most))
        if last < first:
            raise NoWorldError("no day of receipt")
        return first + dt.timedelta(int(self.rng.integers((last - first).days + 1)))

    # --- other records --------------------------------------------------------------------

    def contract(
        self, customer: str, sentence: Sentence, *, state: str = "live", **values: Any
    ) -> None:
        """Give a customer a contract.

        Args:
            customer: Its key.
            sentence: The clause.
            state: "live", "expired" some weeks ago, or "unsigned".
            **values: Of the clause.
        """
        rng = self.rng
        first = self.today - dt.timedelta(200 + int(rng.integers(500)))
        last = self.today + dt.timedelta(60 + int(rng.integers(700)))
        if state == "expired":
            last = self.today - dt.timedelta(45 + int(rng.integers(60)))
        self.books.contracts.put(
            CustomerContract(
                id=self.free_key("contracts", "CT", 1300),
                customer=customer,
                title=pick(("Frame agreement", "Supply agreement", "Side letter"), rng),
                text=sentence.write(rng, **values),
                valid_from=first,
                valid_to=last,
                signed=state != "unsigned",
            )
        )

    def note(self, place: OrderPlace, kind: str, cents: int, issued: dt.date) -> None:
        """Add a credit note of a customer: on the order's invoice if it is for a double one.

        Args:
            place: An order of the customer.
            kind: Ground.
            cents: Amount.
            issued: Day of issue.
        """
        bills = self.books.invoices.of("order", place.order.id)
        if kind != "double":
            every = self.books.invoices.of("customer", place.customer.id)
            bills = tuple(bill for bill in every if bill.issued < issued) or every
        bill = pick(bills, self.rng)
        self.books.credit_notes.put(
            CreditNote(
                id=self.free_key("credit_notes", "CN", 6100),
                customer=place.customer.id,
                invoice=bill.id,
                kind=kind,
                cents=cents,
                issued=issued,
            )
        )

    def free_key(self, table: str, prefix: str, first: int) -> str:
        """Return an unused key of a table whose keys are drawn in any order.

        Args:
            table: Of the books.
            prefix: Of the keys.
            first: The lowest number.
        """
        rows = getattr(self.books, table)
        for _ in range(_TRIES):
            key = f"{prefix}-{first + int(self.rng.integers(900))}"
            if key not in rows:
                return key
        raise NoWorldError("no free key")

    def second_bill(self, place: OrderPlace) -> tuple[str, str]:
        """Bill an order a second time, some days later; return both numbers.

        The number of the second bill lies in a gap between its neighbours in time.
        """
        (first,) = self.books.invoices.of("order", place.order.id)
        issued = first.issued + dt.timedelta(1 + int(self.rng.integers(7)))
        later = [bill for bill in self.books.invoices.values() if bill.issued >= issued]
        numbers = {int(bill.id[3:]) for bill in self.books.invoices.values()}
        for bill in later:
            number = int(bill.id[3:]) - 1
            if number not in numbers and number > int(first.id[3:]):
                due = issued + (first.due - first.issued)
                new = replace(first, id=f"RE-{number}", issued=issued, due=due, status="open")
                self.books.invoices.put(new)
                return first.id, new.id
        raise NoWorldError("no free number")

    def stranger(self, customer: Customer, *, left: bool) -> tuple[str, str]:
        """Return address and name of somebody who may not write for a customer.

        Args:
            customer: The customer.
            left: Whether it is a contact who has left; else one who never was a contact.
        """
        contacts = self.books.contacts.of("customer", customer.id)
        others = [row for row in self.books.contacts.values() if row.customer != customer.id]
        known = {row.name.split()[1] for row in contacts}
        name = next(
            row.name
            for row in (pick(others, self.rng) for _ in range(_TRIES))
            if row.name.split()[1] not in known
        )
        first, last = name.split()
        address = f"{first[0]}.{last}@{customer.domain}".lower()
        if left:
            number = int(contacts[-1].id[2:]) + 1
            while f"K-{number}" in self.books.contacts:
                number += 1
            self.books.contacts.put(
                Contact(
                    id=f"K-{number}", customer=customer.id, name=name, email=address, status="left"
                )
            )
        return address, name

    # --- inside ---------------------------------------------------------------------------

    def _delivered(self) -> list[OrderPlace]:
        """Return the orders that were delivered lately, in a drawn order."""
        places = []
        for order in self.books.orders.values():
            shipment = self.books.shipments[order.shipment]
            if shipment.delivered_at is None:
                continue
            customer = self.books.customers[order.customer]
            day = local_day(customer.country, shipment.delivered_at)
            if _NEWEST <= (self.today - day).days <= _OLDEST:
                places.append(OrderPlace(order, customer, day))
        return [places[n] for n in self.rng.permutation(len(places)).tolist()]

    def late_day(self, place: OrderPlace, late: int) -> dt.date:
        """Return the day on which an order is so many business days late.

        Args:
            place: The order.
            late: Business days, 0 for on time.
        """
        promised = self.books.shipments[place.order.shipment].promised
        return self.days(place.customer).add(promised, late) if late else promised

    def plain_causes(self) -> list[str]:
        """Return causes of which the main one does not excuse."""
        excused = self.policy.terms.get("causes", {}).get("causes", ())
        open_causes = [name for name in CAUSES if CAUSE_WORDS[name] not in excused]
        main = pick(open_causes, self.rng)
        rest = [name for name in open_causes if name != main]
        count = int(self.rng.integers(3))
        return [main, *(rest[n] for n in self.rng.permutation(len(rest))[:count].tolist())]

    def _only_order(self, place: OrderPlace) -> bool:
        same = self.books.orders.of("customer", place.customer.id)
        return sum(order.day == place.order.day for order in same) == 1


def overseas(place: OrderPlace) -> bool:
    """Return whether an evening there is the next day in UTC."""
    return offset_h(place.customer.country, place.delivered) < 0


def note_cents(rng: np.random.Generator) -> int:
    """Return an amount such as credit notes have."""
    return 500 + int(rng.integers(30_000))
