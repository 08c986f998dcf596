"""The rules of a cash application policy, applied to the lines of a month.

`Receivables` indexes the records, `apply_month` applies the policy to them. Both modules use the
standard library alone, so that an agent may run their text in a sandbox.

`blind` names what a reader overlooks. Each name is a class of trap; the answer that changes is the
item that the class decides.
"""

import itertools
import re
from typing import NamedTuple

from owa_bench.company.language.close_records import Receivables, RecordRow, percent_of, sums

BLINDNESS = {
    "month": "takes the other day of a line for its month",
    "repeats": "does not compare bank references",
    "returns": "skips negative lines",
    "storno": "reports every negative line as returned",
    "names": "does not resolve names that are cut off",
    "parent": "does not know parents",
    "registered": "does not look at registered payers",
    "registered_dates": "does not look at the days of registered payers",
    "factor": "does not know what factors keep",
    "notices": "does not read announcements of payers",
    "notice_senders": "believes every announcement",
    "no_number": "does not search by amount where no invoice is named",
    "wrong_number": "does not search by amount where numbers name nothing",
    "foreign_number": "does not ask whose invoice is named",
    "paid_number": "does not search by amount where the named invoices are paid",
    "several": "takes the first number alone",
    "fill_order": "pays several invoices in the order of the text",
    "replaced": "does not follow replacements",
    "advice": "does not read advices",
    "advice_latest": "reads the first mail of an advice",
    "tie": "takes the lowest number of several invoices that fit",
    "sums": "does not search for sums",
    "double": "does not see what earlier lines paid",
    "late": "does not check when a discount ends",
    "discount_day": "takes the other day of a line for discounts",
    "bank_days": "does not move the last day of a term",
    "discount_base": "takes discounts of the gross amount",
    "contracts": "does not look at contracts",
    "contract_dates": "does not look at days and signatures of contracts",
    "check_order": "checks discount, charges and credit notes in this order",
    "abroad": "takes the lower limit of charges for all",
    "home": "takes the higher limit of charges for all",
    "amendments": "does not know amendments",
    "credit_notes": "does not look at credit notes",
    "credit_used": "does not look whether a credit note can be used",
    "surplus": "books a surplus without reporting it",
    "surplus_limit": "reports every surplus",
    "instalments": "reports instalments",
}
PAID_ROWS = ("line", "invoice", "paid_cents", "discount_cents", "charge_cents", "credit_cents")
_TERMS = re.compile(r"(\d+)% (\d+) days")
_OTHER = {"booking day": "value", "value day": "booked"}
_DAY = {"booking day": "booked", "value day": "value"}
_DEFAULT_CHECKS = ("cash discount", "bank charges", "credit notes")


class MonthResult(NamedTuple):
    """What becomes of a month.

    Attributes:
        rows: Allocations by line, in order; each has the columns of `PAID_ROWS`.
        exceptions: Amounts (cents) by code, by line.
        open_cents: By invoice, of all that were open before the month.
        notes: Credit notes that were used.
    """

    rows: dict[str, list[RecordRow]]
    exceptions: dict[str, dict[str, int]]
    open_cents: dict[str, int]
    notes: frozenset[str]


class _UnnamedLine(NamedTuple):
    """A line that names no usable invoice.

    Attributes:
        line: Of the bank.
        who: Customers for whom its payer pays.
        named: Invoices of theirs that its text names; all are paid.
        text: What is the matter with its text, as in `BLINDNESS`.
    """

    line: RecordRow
    who: list[str]
    named: list[str]
    text: str


class _Month:
    """One pass over the lines of a month."""

    def __init__(
        self,
        records: Receivables,
        terms: dict[str, RecordRow],
        amendments: list[tuple[str, str, RecordRow]],
        blind: frozenset[str],
    ) -> None:
        self.records, self.base, self.blind = records, terms, blind
        self.amendments = [] if "amendments" in blind else amendments
        self.open = dict(records.open_cents)
        self.rows: dict[str, list[RecordRow]] = {}
        self.exceptions: dict[str, dict[str, int]] = {}
        self.notes: set[str] = set()
        self.shorts: dict[str, list[tuple[str, str, int]]] = {}
        self._terms: dict[str, dict[str, RecordRow]] = {}

    def terms_at(self, day: str) -> dict[str, RecordRow]:
        """Return the terms for lines that are booked on a day."""
        if day not in self._terms:
            terms = dict(self.base)
            for first, sentence, values in self.amendments:
                if first <= day:
                    terms[sentence] = values
            self._terms[day] = terms
        return self._terms[day]

    def report(self, line: RecordRow, code: str, cents: int) -> None:
        """Note an exception; amounts of one code and line add up."""
        codes = self.exceptions.setdefault(line["id"], {})
        codes[code] = codes.get(code, 0) + cents

    def allocate(self, line: RecordRow, key: str, cents: int, **rest: int) -> None:
        """Allocate a part of a line to an invoice."""
        row = {"line": line["id"], "invoice": key, "paid_cents": cents}
        row |= {name: rest.get(name, 0) for name in PAID_ROWS[3:]}
        self.rows.setdefault(line["id"], []).append(row)
        self.open[key] -= cents + sum(rest.values())

    def run(self, month: str) -> MonthResult:
        """Return what becomes of the lines of a month."""
        column = (_OTHER if "month" in self.blind else _DAY)[self.base["month"]["basis"]]
        lines = [x for x in self.records.lines if x[column][:7] == month]
        later = [left for line in self._positive(lines) for left in self._first_round(line)]
        later = [left for left in later if not self._second_round(left)]
        for left in later:
            self._third_round(left)
        for key, reports in self.shorts.items():
            if "instalments" in self.base and "instalments" not in self.blind:
                reports = [] if self.open[key] == 0 else reports[-1:]
            for name, code, cents in reports:
                codes = self.exceptions.setdefault(name, {})
                codes[code] = codes.get(code, 0) + cents
        return MonthResult(self.rows, self.exceptions, self.open, frozenset(self.notes))

    def _positive(self, lines: list[RecordRow]) -> list[RecordRow]:
        """Return the lines that pay something, and report the others."""
        seen: set[str] = set()
        once = []
        for line in lines:
            if line["reference"] in seen and "repeats" in self.base and "repeats" not in self.blind:
                self.report(line, "repeated_line", abs(line["cents"]))
            else:
                once.append(line)
            seen.add(line["reference"])
        standing: dict[tuple[str, str, int], list[str]] = {}
        back: set[str] = set()
        for line in once:
            if line["cents"] > 0:
                name = (line["payer"], line["account"], line["cents"])
                standing.setdefault(name, []).append(line["id"])
            elif "returns" not in self.blind:
                storno = line["text"].startswith("STORNO") and "storno" in self.base
                storno = storno and "storno" not in self.blind
                self.report(line, "bank_reversal" if storno else "returned", -line["cents"])
                earlier = standing.get((line["payer"], line["account"], -line["cents"]))
                if earlier:
                    back.add(earlier.pop())
        return [x for x in once if x["cents"] > 0 and x["id"] not in back]

    def _pays_for(self, line: RecordRow) -> list[str]:
        """Return the customers for whom the payer of a line pays."""
        blind, day, name = self.blind, line["booked"], line["payer"].upper()
        own = self.records.payer(line, whole="names" in blind)
        who = [own] if own else []
        if "parent" in self.base and "parent" not in blind:
            who += self.records.children.get(own, [])
        who += [entry["customer"] for entry in self._entries(line)]
        if "notice" in self.base and "notices" not in blind:
            who += [
                notice["customer"]
                for notice in self.records.notices.get(name, ())
                if (notice["active"] or "notice_senders" in blind) and notice["first"] <= day
            ]
        return list(dict.fromkeys(who))

    def _entries(self, line: RecordRow) -> list[RecordRow]:
        """Return the entries of a line's payer in the list of registered payers."""
        if "registered" not in self.base or "registered" in self.blind:
            return []
        return [
            entry
            for entry in self.records.payers.get(line["payer"].upper(), ())
            if "registered_dates" in self.blind
            or entry["valid_from"] <= line["booked"] <= entry["valid_to"]
        ]

    def _named(self, line: RecordRow) -> list[str]:
        """Return the invoices that a text names."""
        numbers = self.records.numbers[line["id"]]
        found = []
        for number in numbers[:1] if "several" in self.blind else numbers:
            invoice = self.records.invoices.get(number)
            if invoice and invoice["status"] == "cancelled":
                follow = "replaced" in self.base and "replaced" not in self.blind
                invoice = self.records.invoices.get(invoice["replaced_by"]) if follow else None
            if invoice:
                found.append(invoice["id"])
        return list(dict.fromkeys(found))

    def _open_amount(self, key: str) -> int:
        """Return what is open on a named invoice (cents)."""
        left = self.open.get(key, 0)
        again = left == 0 and "double" in self.blind and key in self.open
        return self.records.gross[key] if again else left

    def _first_round(self, line: RecordRow) -> list[_UnnamedLine]:
        """Allocate a line that names usable invoices; return it where it names none."""
        who = self._pays_for(line)
        if not who:
            self.report(line, "unknown_payer", line["cents"])
            return []
        parts = self._advice(line)
        if parts:
            for number, cents in parts:
                if self.records.invoices.get(number, {}).get(
                    "customer"
                ) in who and self._open_amount(number):
                    self._single(line, number, cents)
                else:
                    self.report(line, "unmatched", cents)
            return []
        existing = named = self._named(line)
        if "foreign_number" not in self.blind:
            named = [key for key in named if self.records.invoices[key]["customer"] in who]
        usable = [key for key in named if self._open_amount(key)]
        if len(usable) == 1:
            self._single(line, usable[0], line["cents"])
        elif usable:
            self._several(line, usable)
        else:
            text = "no_number" if not self.records.numbers[line["id"]] else "wrong_number"
            if existing:
                text = "paid_number" if named else "foreign_number"
            return [_UnnamedLine(line, who, named, text)]
        return []

    def _advice(self, line: RecordRow) -> list[tuple[str, int]]:
        """Return the parts of the advice that a line names; none if it does not count."""
        name = self.records.advice_of[line["id"]]
        if not name or "advice" not in self.base or "advice" in self.blind:
            return []
        mails = sorted(self.records.advices.get(name, ()), key=lambda row: row["at"])
        if not mails:
            return []
        parts = mails[0 if "advice_latest" in self.blind else -1]["parts"]
        fits = sum(cents for _, cents in parts) == line["cents"]
        return [(number, cents) for number, cents in parts] if fits else []

    def _cut(self, line: RecordRow, key: str, terms: dict[str, RecordRow]) -> tuple[int, bool]:
        """Return the cash discount of an invoice (cents), and whether it is due."""
        invoice = self.records.invoices[key]
        percent, days = 0, 0
        match = _TERMS.match(self.records.customers[invoice["customer"]]["cash_discount"])
        if match:
            percent, days = int(match[1]), int(match[2])
        if "contract" in terms and "contracts" not in self.blind:
            for clause in self.records.terms.get(invoice["customer"], ()):
                in_force = clause["valid_from"] <= invoice["issued"] <= clause["valid_to"]
                if "contract_dates" in self.blind or (clause["signed"] and in_force):
                    percent, days = clause["percent"], clause["days"]
        gross = terms["discount"]["base"] == "gross amount" or "discount_base" in self.blind
        cut = percent_of(self.records.gross[key] if gross else invoice["net_cents"], percent)
        column = (_OTHER if "discount_day" in self.blind else _DAY)[terms["discount"]["day"]]
        shift = "bank_days" in terms and "bank_days" not in self.blind
        last = self.records.last_day(invoice["issued"], days, shift=shift)
        return cut, "late" in self.blind or line[column] <= last

    def _single(self, line: RecordRow, key: str, cents: int) -> None:
        """Allocate an amount to one invoice."""
        terms, left = self.terms_at(line["booked"]), self._open_amount(key)
        if cents >= left:
            self._surplus(line, key, cents - left, left, terms)
            return
        gap = left - cents
        customer = self.records.invoices[key]["customer"]
        factor = any(
            e["kind"] == "factor" and e["customer"] == customer for e in self._entries(line)
        )
        if factor and "factor" in terms and "factor" not in self.blind:
            factor = gap == percent_of(self.records.gross[key], terms["factor"]["percent"])
        else:
            factor = False
        if factor:
            self.allocate(line, key, cents, charge_cents=gap)
            return
        cut, due = self._cut(line, key, terms)
        checks = terms["order"]["checks"]
        if "check_order" in self.blind:
            checks = [check for check in _DEFAULT_CHECKS if check in checks]
        for check in checks:
            if check == "cash discount" and cut == gap and due:
                self.allocate(line, key, cents, discount_cents=gap)
                return
            if check == "bank charges" and gap <= self._limit(customer, terms):
                self.allocate(line, key, cents, charge_cents=gap)
                return
            if check == "credit notes" and self._note(line, customer, gap):
                self.allocate(line, key, cents, credit_cents=gap)
                return
        self.allocate(line, key, cents)
        late = cut == gap and not due and "not_due" in terms
        code = "discount_not_due" if late else "short_payment"
        self.shorts.setdefault(key, []).append((line["id"], code, gap))

    def _surplus(
        self, line: RecordRow, key: str, surplus: int, left: int, terms: dict[str, RecordRow]
    ) -> None:
        """Allocate what is open, and report what comes in addition."""
        reported = surplus > (0 if "surplus_limit" in self.blind else terms["surplus"]["limit"])
        if reported and "surplus" in self.blind:
            self.allocate(line, key, left + surplus)
            return
        self.allocate(line, key, left)
        if reported:
            self.report(line, "overpayment", surplus)

    def _limit(self, customer: str, terms: dict[str, RecordRow]) -> int:
        """Return the limit of bank charges (cents) for a customer's invoice."""
        charges = terms["charges"]
        near = self.records.customers[customer]["country"] in charges["area"]
        if "abroad" in self.blind:
            near = True
        elif "home" in self.blind:
            near = False
        limit: int = charges["home" if near else "abroad"]
        return limit

    def _note(self, line: RecordRow, customer: str, cents: int) -> bool:
        """Use a credit note of exactly this amount, if there is one."""
        if "credit_notes" in self.blind:
            return False
        for note in self.records.notes.get(customer, ()):
            usable = not note["applied"] and note["issued"] <= line["booked"]
            fits = note["cents"] == cents and note["id"] not in self.notes
            if fits and (usable or "credit_used" in self.blind):
                self.notes.add(note["id"])
                return True
        return False

    def _several(self, line: RecordRow, keys: list[str]) -> None:
        """Allocate a line to several invoices that it names."""
        terms, left = self.terms_at(line["booked"]), line["cents"]
        whole = {key: self._open_amount(key) for key in keys}
        cuts = dict.fromkeys(keys, 0)
        for key in keys:
            cut, due = self._cut(line, key, terms)
            if due and whole[key] == self.records.gross[key]:
                cuts[key] = cut
        total = sum(whole.values())
        if left == total - sum(cuts.values()) and left != total:
            for key in keys:
                self.allocate(line, key, whole[key] - cuts[key], discount_cents=cuts[key])
            return
        keys = self._filled(keys, terms["several"]["order"], whole)
        for number, key in enumerate(keys, 1):
            cents = min(left, whole[key])
            left -= cents
            if number == len(keys) and left:
                self._surplus(line, key, left, cents, terms)
            elif cents:
                self.allocate(line, key, cents)
        if line["cents"] < total:
            self.report(line, "short_payment", total - line["cents"])

    def _filled(self, keys: list[str], order: str, whole: dict[str, int]) -> list[str]:
        """Return invoices in the order in which money goes to them."""
        if order == "in the order of their due days" and "fill_order" not in self.blind:
            return sorted(keys, key=lambda key: (self.records.invoices[key]["due"], key))
        if order == "from the smallest open amount up" and "fill_order" not in self.blind:
            return sorted(keys, key=lambda key: (whole[key], key))
        return keys

    def _second_round(self, left: _UnnamedLine) -> bool:
        """Allocate a line to the open invoice of its amount; return whether there is one."""
        line, who = left.line, left.who
        if left.text in self.blind:
            return False
        fits = [key for key in self._pool(line, who) if self.open[key] == line["cents"]]
        if not fits:
            return False
        invoices, tie = self.records.invoices, self.terms_at(line["booked"])["amount"]["tie"]
        fits.sort()
        if "tie" in self.blind:
            pass
        elif tie == "due first":
            fits.sort(key=lambda key: invoices[key]["due"])
        elif tie in ("due last", "issued last"):
            column = tie.split()[0]
            latest = max(invoices[key][column] for key in fits)
            fits = [key for key in fits if invoices[key][column] == latest]
        elif tie == "with the highest number":
            fits.reverse()
        self.allocate(line, fits[0], line["cents"])
        return True

    def _pool(self, line: RecordRow, who: list[str]) -> list[str]:
        """Return the open invoices that a line without a usable number may pay."""
        return [
            key
            for customer in who
            for key in self.records.open_of.get(customer, ())
            if self.open[key] and self.records.invoices[key]["issued"] <= line["booked"]
        ]

    def _third_round(self, left: _UnnamedLine) -> None:
        """Find what is paid twice, and sums; report the rest."""
        line, who = left.line, left.who
        if left.named:
            self.report(line, "double_payment", line["cents"])
            return
        terms = self.terms_at(line["booked"])
        if "sums" in terms and "sums" not in self.blind:
            pool = [key for key in self._pool(line, who) if self.open[key] < line["cents"]]
            values = [(key, self.open[key]) for key in pool]
            sets = list(itertools.islice(sums(values, line["cents"], terms["sums"]["count"]), 2))
            if len(sets) == 1:
                for key in sets[0]:
                    self.allocate(line, key, self.open[key])
                return
        self.report(line, "unmatched", line["cents"])


def line_answer(result: MonthResult, line: str) -> tuple[list[RecordRow], dict[str, int]]:
    """Return the allocations of a line by invoice, and the amounts of its exceptions by code.

    Args:
        result: Of `apply_month`.
        line: Its number.
    """
    rows = sorted(result.rows.get(line, ()), key=lambda row: str(row["invoice"]))
    return rows, result.exceptions.get(line, {})


def apply_month(
    records: Receivables,
    month: str,
    terms: dict[str, RecordRow],
    amendments: list[tuple[str, str, RecordRow]],
    blind: frozenset[str] = frozenset(),
) -> MonthResult:
    """Return what becomes of the lines of a month.

    Args:
        records: Indexed.
        month: "YYYY-MM".
        terms: Values of the policy by sentence.
        amendments: First day of receipt, sentence and its new values, in order.
        blind: What the reader overlooks, of `BLINDNESS`.
    """
    return _Month(records, terms, amendments, blind).run(month)


def open_items(
    records: Receivables,
    month: str,
    terms: dict[str, RecordRow],
    result: MonthResult,
    customer: str,
) -> int:
    """Return what a customer owes after the month (cents).

    Args:
        records: Indexed.
        month: "YYYY-MM".
        terms: Values of the policy by sentence.
        result: Of `apply_month`.
        customer: The one that is asked about.
    """
    owed = sum(
        result.open_cents[key]
        for key in records.open_of.get(customer, ())
        if records.invoices[key]["issued"][:7] <= month
    )
    if terms["open_items"]["credits"] == "deducted":
        owed -= sum(
            note["cents"]
            for note in records.notes.get(customer, ())
            if not note["applied"] and note["id"] not in result.notes
        )
    return owed
