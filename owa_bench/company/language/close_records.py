"""Records of a month for the cash application, indexed once.

This module uses the standard library alone and takes plain rows (days as "YYYY-MM-DD"), so that an
agent may run its text in a sandbox.
"""

import datetime as dt
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

RecordRow = dict[str, Any]
_NUMBER = re.compile(r"(?<!\d)(\d{3})-?(\d{3})(?!\d)")
_ADVICE = re.compile(r"AV-?(\d{5})(?!\d)")


def percent_of(cents: int, percent: int) -> int:
    """Return a share of an amount, rounded half up to the cent.

    Args:
        cents: At least 0.
        percent: Whole.
    """
    return (cents * percent + 50) // 100


def named_numbers(text: str) -> tuple[str, ...]:
    """Return the invoices that a bank text may name, each once, in order."""
    return tuple(dict.fromkeys(f"RE-{a}{b}" for a, b in _NUMBER.findall(text)))


def named_advice(text: str) -> str:
    """Return the payment advice that a bank text names, "" for none."""
    match = _ADVICE.search(text)
    return f"AV-{match[1]}" if match else ""


class Receivables:
    """Records of a month with their indexes.

    Args:
        records: Rows by name: `bank_lines`, `invoices`, `customers`, `credit_notes`, `payers` (with
            the columns of the tables), `terms` (customer, percent, days, valid_from, valid_to,
            signed), `notices` (payer, customer, first, active), `advices` (advice, at, parts:
            invoice and cents), `closed` (days that are no bank days, weekends apart).
    """

    def __init__(self, records: dict[str, list[Any]]) -> None:
        self.lines = sorted(records["bank_lines"], key=lambda row: row["id"])
        self.invoices: dict[str, RecordRow] = {row["id"]: row for row in records["invoices"]}
        self.gross: dict[str, int] = {
            k: i["net_cents"] + i["vat_cents"] for k, i in self.invoices.items()
        }
        self.open_cents: dict[str, int] = {
            k: g for k, g in self.gross.items() if self.invoices[k]["status"] == "open"
        }
        self.customers: dict[str, RecordRow] = {row["id"]: row for row in records["customers"]}
        self.open_of: dict[str, list[str]] = {}
        for key in sorted(self.invoices):
            if self.invoices[key]["status"] == "open":
                self.open_of.setdefault(self.invoices[key]["customer"], []).append(key)
        self.children: dict[str, list[str]] = {}
        for key, row in self.customers.items():
            if row["parent"]:
                self.children.setdefault(row["parent"], []).append(key)
        self.payers = _grouped(records["payers"], "payer")
        self.notices = _grouped(records["notices"], "payer")
        self.terms = _grouped(records["terms"], "customer")
        self.notes = _grouped(records["credit_notes"], "customer")
        self.advices = _grouped(records["advices"], "advice")
        self.closed = frozenset(records["closed"])
        self.numbers = {row["id"]: named_numbers(row["text"]) for row in self.lines}
        self.advice_of = {row["id"]: named_advice(row["text"]) for row in self.lines}
        self._accounts = {row["account"]: key for key, row in self.customers.items()}
        self._names = sorted((row["name"].upper(), key) for key, row in self.customers.items())
        self._last_days: dict[tuple[str, int, bool], str] = {}

    def payer(self, line: RecordRow, *, whole: bool) -> str:
        """Return the customer who is the payer of a line, "" for none.

        Args:
            line: Of the bank.
            whole: Whether names must be complete.
        """
        if line["account"] in self._accounts and line["account"]:
            return self._accounts[line["account"]]
        name = line["payer"]
        place = bisect_left(self._names, (name, ""))
        fits = [
            key
            for full, key in self._names[place : place + 2]
            if full.startswith(name) and (full == name or not whole)
        ]
        return fits[0] if len(fits) == 1 else ""

    def last_day(self, issued: str, days: int, *, shift: bool) -> str:
        """Return the last day of a term.

        Args:
            issued: Day of issue.
            days: Of the term.
            shift: Whether it ends on a bank day.
        """
        name = (issued, days, shift)
        if name not in self._last_days:
            day = dt.date.fromisoformat(issued) + dt.timedelta(days)
            while shift and (day.weekday() > 4 or day.isoformat() in self.closed):
                day += dt.timedelta(1)
            self._last_days[name] = day.isoformat()
        return self._last_days[name]


def _grouped(rows: list[RecordRow], column: str) -> dict[str, list[RecordRow]]:
    groups: dict[str, list[RecordRow]] = {}
    for row in rows:
        key = row[column].upper() if column == "payer" else row[column]
        groups.setdefault(key, []).append(row)
    return groups


def sums(values: list[tuple[str, int]], total: int, count: int) -> Iterator[tuple[str, ...]]:
    """Yield the sets of two to `count` keys whose values add up to a total.

    Args:
        values: Keys with their positive values.
        total: The sum.
        count: Keys of a set at most.
    """
    places: dict[int, list[int]] = {}
    for place, (_, value) in enumerate(values):
        places.setdefault(value, []).append(place)
    for size in range(1, count):  # the last key of a set is looked up by its value
        for chosen in itertools.combinations(range(len(values)), size):
            rest = total - sum(values[place][1] for place in chosen)
            for place in places.get(rest, ()):
                if place > chosen[-1]:
                    yield (*(values[p][0] for p in chosen), values[place][0])
