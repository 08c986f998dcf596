"""The draft of a month: records and bank lines that traps and plain payments are put into."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from owa_bench.company.calendars import SATURDAY
from owa_bench.company.draw import Company
from owa_bench.company.kinds.contract import NoWorldError
from owa_bench.company.language.close_policy import DISCOUNT_CLAUSE
from owa_bench.company.language.close_records import percent_of
from owa_bench.company.language.close_texts import (
    PAYER_FIRST,
    PAYER_SECOND,
    PAYS,
    PAYS_NOTHING,
    PAYS_SEVERAL,
    capitals,
)
from owa_bench.company.messages import Mail
from owa_bench.company.tables import Customer, CustomerContract, Invoice, RegisteredPayer
from owa_bench.seeding import pick

InvoiceTest = Callable[[Invoice, Customer], bool]
_JOINTS = ("/", ", ", " + ", " u. ", " ")
_DAY = dt.timedelta(1)


@dataclasses.dataclass
class DraftLine:
    """A bank line without its number."""

    booked: dt.date
    value: dt.date
    cents: int
    payer: str
    account: str
    text: str
    reference: str
    key: int
    rank: int  # among the lines of a day
    plain: bool = False


@dataclasses.dataclass
class DraftNote:
    """A credit note without its number."""

    customer: str
    invoice: str
    cents: int
    issued: dt.date
    applied: bool


class CloseDraft:
    """Everything of a case that is still open to change.

    Args:
        company: Its books are the start.
        month: First day of the month.
        begins: Day on which the case begins.
        closed: Days that are no bank days, weekends apart.
        terms: Of the policy.
        rng: Draws all that is arranged.
        practice: Whether only words of practice are drawn.
    """

    def __init__(
        self,
        company: Company,
        month: dt.date,
        begins: dt.date,
        closed: frozenset[dt.date],
        terms: dict[str, dict[str, Any]],
        rng: np.random.Generator,
        *,
        practice: bool,
    ) -> None:
        self.company, self.rng, self.practice = company, rng, practice
        self.terms, self.amended_from = terms, begins
        self.amendment: dict[str, Any] = {}
        self.first, self.begins = month, begins
        self.last = (month + dt.timedelta(32)).replace(day=1) - _DAY
        self.closed = closed
        days = [month + dt.timedelta(n) for n in range((begins - month).days)]
        self.bank_days = [day for day in days if self.is_bank_day(day)]
        self.month_days = [day for day in self.bank_days if day <= self.last]
        self.after_days = [day for day in self.bank_days if day > self.last]
        self.customers = dict(company.books.customers)
        self.invoices: dict[str, Invoice] = {}
        self.lines: list[DraftLine] = []
        self.notes: list[DraftNote] = []
        self.mails: list[Mail] = []
        self.contracts: list[CustomerContract] = []
        self.payers: list[RegisteredPayer] = []
        self.touched: set[str] = set()  # customers with terms, payers or notes of their own
        self._names: set[str] = set()
        self._parents()
        self._statuses()
        self.children: dict[str, list[str]] = {}
        for key, row in self.customers.items():
            if row.parent:
                self.children.setdefault(row.parent, []).append(key)
        self.of_customer: dict[str, list[str]] = {}
        for key, invoice in self.invoices.items():
            self.of_customer.setdefault(invoice.customer, []).append(key)
        low = month - dt.timedelta(55)
        order: list[str] = rng.permutation(list(self.invoices)).tolist()
        self.free = [
            key
            for key in order
            if self.invoices[key].status == "open"
            and low <= self.invoices[key].issued <= self.last - dt.timedelta(4)
        ]
        self._used_numbers = set(self.invoices)

    # Records.

    def _parents(self) -> None:
        """Make some customers the subsidiaries of others."""
        order = self.rng.permutation(list(self.customers)).tolist()
        count = max(4, len(order) // 8)
        for key in order[:count]:
            parent = order[count + int(self.rng.integers(len(order) - count))]
            self.customers[key] = replace(self.customers[key], parent=parent)

    def _statuses(self) -> None:
        """Set which invoices were paid before the month."""
        books = self.company.books.invoices
        chances = self.rng.random(len(books)).tolist()
        for chance, (key, invoice) in zip(chances, books.items(), strict=True):
            if invoice.issued >= self.begins:
                continue
            age = (self.first - invoice.issued).days
            share = 0.97 if age > 75 else 0.7 if age > 30 else 0.15 if age > 5 else 0.0
            status = "paid" if chance < share else "open"
            self.invoices[key] = replace(invoice, status=status)

    def gross(self, key: str) -> int:
        """Return the gross amount of an invoice (cents)."""
        return self.invoices[key].net_cents + self.invoices[key].vat_cents

    def is_bank_day(self, day: dt.date) -> bool:
        """Return whether the bank is open on a day."""
        return day.weekday() < SATURDAY and day not in self.closed

    def next_bank_day(self, day: dt.date) -> dt.date:
        """Return a day itself or the first bank day after it."""
        while not self.is_bank_day(day):
            day += _DAY
        return day

    def terms_at(self, day: dt.date) -> dict[str, dict[str, Any]]:
        """Return the terms for lines that are booked on a day."""
        if self.amendment and day >= self.amended_from:
            return {**self.terms, **self.amendment}
        return self.terms

    def family(self, customer: str) -> list[str]:
        """Return a customer and those whose parent it is."""
        return [customer, *self.children.get(customer, ())]

    def cash_terms(self, customer: Customer) -> tuple[int, int]:
        """Return percentage and days of a customer record, (0, 0) without terms."""
        percent, _, rest = customer.cash_discount.partition("% ")
        return (int(percent), int(rest.split()[0])) if rest else (0, 0)

    def cut(self, key: str, percent: int) -> int:
        """Return a discount of an invoice (cents), by the base of the policy.

        Args:
            key: Of the invoice.
            percent: Of the terms.
        """
        net = self.terms["discount"]["base"] == "net amount"
        return percent_of(self.invoices[key].net_cents if net else self.gross(key), percent)

    def higher_limit(self) -> int:
        """Return the highest limit of charges before and after amendments (cents)."""
        later = self.amendment.get("charges", self.terms["charges"])
        return max(int(t[w]) for t in (self.terms["charges"], later) for w in ("home", "abroad"))

    def is_near(self, customer: Customer) -> bool:
        """Return whether the lower limit of charges is a customer's."""
        return customer.country in self.terms["charges"]["area"]

    # Taking invoices.

    def take(self, test: InvoiceTest = lambda i, c: True, *, unique: bool = True) -> str:
        """Return an open invoice that nothing else uses.

        Args:
            test: What it must be like.
            unique: Whether no open invoice of the customer's family has its amount.
        Raises: NoWorldError: There is none.
        """
        for place, key in enumerate(self.free):
            invoice = self.invoices[key]
            if not test(invoice, self.customers[invoice.customer]):
                continue
            if unique and not self.is_unique(invoice.customer, self.gross(key)):
                continue
            del self.free[place]
            return key
        raise NoWorldError("no open invoice fits")

    def is_unique(self, customer: str, cents: int) -> bool:
        """Return whether at most one open invoice of a family has an amount.

        Args:
            customer: Whose family it is.
            cents: The amount.
        """
        root = self.customers[customer].parent or customer
        rows = [
            key for one in {*self.family(customer), *self.family(root)} for key in self.open_of(one)
        ]
        return sum(self.gross(key) == cents for key in rows) <= 1

    def open_of(self, customer: str) -> list[str]:
        """Return the open invoices of a customer."""
        keys = self.of_customer.get(customer, [])
        return [key for key in keys if self.invoices[key].status == "open"]

    def take_several(self, count: int) -> list[str]:
        """Return open invoices of one customer, at least four days before the month's end.

        Args:
            count: How many.
        Raises: NoWorldError: No customer has so many.
        """
        groups: dict[str, list[str]] = {}
        for key in self.free:
            if self.invoices[key].issued <= self.last - dt.timedelta(9):
                group = groups.setdefault(self.invoices[key].customer, [])
                group.append(key)
                if len(group) == count:
                    taken = set(group)
                    self.free = [one for one in self.free if one not in taken]
                    return group
        raise NoWorldError(f"no customer has {count} open invoices")

    def put(self, invoice: Invoice) -> None:
        """Add an invoice, or change one."""
        if invoice.id not in self.invoices:
            self.of_customer.setdefault(invoice.customer, []).append(invoice.id)
        self.invoices[invoice.id] = invoice

    def free_number(self, near: str, steps: int) -> str:
        """Return an unused invoice number that lies some way after another.

        Args:
            near: The other one.
            steps: How far at least.
        """
        number = int(near[3:]) + steps
        while f"RE-{number}" in self._used_numbers:
            number += 1
        self._used_numbers.add(f"RE-{number}")
        return f"RE-{number}"

    def contract(
        self, customer: str, percent: int, days: int, first: dt.date, last: dt.date, *, signed: bool
    ) -> None:
        """Add a contract on cash discount.

        Args:
            customer: Who has it.
            percent: Of the discount.
            days: Of its term.
            first: First day in force.
            last: Last day in force.
            signed: Whether both sides have signed.
        """
        clause = DISCOUNT_CLAUSE.write(self.rng, practice=self.practice, percent=percent, days=days)
        self.contracts.append(
            CustomerContract(
                id="",
                customer=customer,
                title=self.pick_words(("Terms of payment", "Frame contract", "Supplement")),
                text=clause,
                valid_from=first,
                valid_to=last,
                signed=signed,
            )
        )

    def mail(self, sender: str, subject: str, day: dt.date, text: str) -> None:
        """Add a mail to the desk; its key and hour are drawn last.

        Args:
            sender: Address.
            subject: Of the mail.
            day: On which it comes.
            text: Of the mail.
        """
        minute = 7 * 60 + int(self.rng.integers(10 * 60))
        at = dt.datetime.combine(day, dt.time(minute // 60, minute % 60))
        name = self.pick_words(("Hello,", "Good morning,", "Dear colleagues,"))
        end = self.pick_words(("Kind regards", "Best regards", "Yours"))
        self.mails.append(
            Mail(
                id="",
                sender=sender,
                to=f"receivables@{self.company.domain}",
                subject=subject,
                at=at,
                text=f"{name}\n{text}\n{end}",
            )
        )

    def advice_name(self) -> str:
        """Return the name of a payment advice that no other has."""
        while True:
            name = f"AV-{20_000 + int(self.rng.integers(70_000))}"
            if name not in self._names:
                self._names.add(name)
                return name

    # Days and texts.

    def day(self, keys: Sequence[str], low: int = 4, high: int = 40) -> dt.date:
        """Return a bank day of the month after invoices were issued.

        Args:
            keys: Of the invoices.
            low: Days after the latest of them at least, if the month allows.
            high: Days after it at most, if the month allows.
        """
        issued = max(self.invoices[key].issued for key in keys)
        least, most = issued + dt.timedelta(low), issued + dt.timedelta(high)
        days = [day for day in self.month_days if least <= day <= most]
        days = days or [day for day in self.month_days if day >= least]
        days = days or [day for day in self.month_days if day > issued]
        if not days:
            raise NoWorldError(f"no bank day of the month lies after {issued}")
        return pick(days, self.rng)

    def pick_words(self, words: Sequence[str]) -> str:
        """Return one of some words; practice sees the first two thirds of them."""
        return pick(words[: 2 * len(words) // 3] if self.practice else words, self.rng)

    def digits(self, key: str) -> str:
        """Return the digits of an invoice as a text names it."""
        number = key[3:]
        return f"{number[:3]}-{number[3:]}" if self.rng.random() < 0.12 else number

    def names(self, key: str) -> str:
        """Return a text that names an invoice."""
        return PAYS.write(self.rng, practice=self.practice, number=self.digits(key))

    def names_several(self, keys: Sequence[str]) -> str:
        """Return a text that names several invoices."""
        numbers = self.pick_words(_JOINTS).join(key[3:] for key in keys)
        return PAYS_SEVERAL.write(self.rng, practice=self.practice, numbers=numbers)

    def names_nothing(self) -> str:
        """Return a text that names no invoice."""
        return self.pick_words(PAYS_NOTHING)

    def wrong_number(self, key: str) -> str:
        """Return a number near an invoice's that no invoice has."""
        digits = key[3:]
        for place in self.rng.permutation(4).tolist():
            swap = digits[: place + 1] + digits[place + 2] + digits[place + 1] + digits[place + 3 :]
            if f"RE-{swap}" not in self._used_numbers:
                self._used_numbers.add(f"RE-{swap}")
                return f"RE-{swap}"
        return self.free_number(key, 1)

    def other_payer(self) -> str:
        """Return the name of a firm that is no customer."""
        while True:
            words = (PAYER_FIRST, PAYER_SECOND, ("AG", "KG", "SE"))
            name = " ".join(map(self.pick_words, words))
            if name not in self._names:
                self._names.add(name)
                return name

    def other_account(self) -> str:
        """Return an account that no customer has."""
        digits = "".join(map(str, self.rng.integers(0, 10, 12).tolist()))
        code = pick(("DE", "DE", "FR", "NL", "IT"), self.rng)
        return f"{code}{digits[:2]} {digits[2:6]} {digits[6:10]} {digits[10:]}"

    # Lines.

    def line(
        self,
        customer: str,
        cents: int,
        text: str,
        booked: dt.date,
        *,
        value: dt.date | None = None,
        payer: tuple[str, str] | None = None,
        plain: bool = False,
    ) -> DraftLine:
        """Return a bank line that is added.

        Args:
            customer: The payer.
            cents: The amount.
            text: Of the payment.
            booked: Booking day.
            value: Value day; drawn without one.
            payer: Name and account as the bank has them; drawn without them.
            plain: Whether nothing else refers to the line.
        """
        name, account = payer or self._bank_name(customer)
        line = DraftLine(
            booked=booked,
            value=value or self._value(booked),
            cents=cents,
            payer=name,
            account=account,
            text=text,
            reference="".join(map(str, self.rng.integers(0, 10, 12).tolist())),
            key=len(self.lines),
            rank=int(self.rng.integers(1 << 40)),
            plain=plain,
        )
        self.lines.append(line)
        return line

    def _bank_name(self, customer: str) -> tuple[str, str]:
        """Return name and account of a payer as the bank has them."""
        row = self.customers[customer]
        name = capitals(row.name)
        if self.rng.random() < 0.15:
            return name, ""
        if self.rng.random() < 0.3:
            name = name[: 10 + int(self.rng.integers(10))].strip()
        return name, row.account

    def cut_name(self, customer: str) -> str:
        """Return the beginning of a customer's name that no other customer's name has."""
        name = capitals(self.customers[customer].name)
        others = [capitals(c.name) for key, c in self.customers.items() if key != customer]
        least = next(
            n for n in range(8, len(name)) if not any(one.startswith(name[:n]) for one in others)
        )
        most = max(least + 1, min(len(name), 20))
        text = name[: least + int(self.rng.integers(most - least))].strip()
        if any(one.startswith(text) for one in others) or text == name:
            raise NoWorldError(f"the name {name} cannot be cut off")
        return text

    def _value(self, booked: dt.date) -> dt.date:
        """Return a value day in the month of the booking day."""
        chance = self.rng.random()
        value = booked
        if chance < 0.2:
            value = booked - _DAY * (3 if booked.weekday() == 0 else 1)
        elif chance < 0.3:
            value = booked + _DAY * (3 if booked.weekday() == 4 else 1)
        return value if value.month == booked.month and self.is_bank_day(value) else booked
