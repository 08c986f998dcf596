"""Bank texts, payment advices and announcements of payers: written and read from one place."""

import datetime as dt
import re
from collections.abc import Set
from typing import NamedTuple

from owa_bench.company.language.text import DAY, MONEY, NameSlot, Sentence

_NUMBER = NameSlot(r"\d{3}-?\d{3}")
_NUMBERS = NameSlot(r"\d{3}-?\d{3}(?:(?:/|, | \+ | u\. | )\d{3}-?\d{3})+")
_INVOICE = NameSlot(r"RE-\d{6}")
_ADVICE = NameSlot(r"AV-\d{5}")
_PAYER = NameSlot(r"[A-Z][a-z]+ [A-Z][a-z]+ [A-Z]{2}")
BANK_DAYS = "bank-days"  # slug of the page
_CLOSED = re.compile(r"\d{4}-\d\d-\d\d")
PAYS = Sentence(
    "pays",
    (
        "RE-{number}",
        "RE {number}",
        "Rechnung {number}",
        "INV {number}",
        "Re.Nr. {number}",
        "RE{number}",
        "Invoice RE-{number}",
        "VZ {number}",
        "Rg. {number} dankend",
    ),
    {"number": _NUMBER},
)
PAYS_SEVERAL = Sentence(
    "pays_several",
    (
        "RE {numbers}",
        "Rechnungen {numbers}",
        "INV {numbers}",
        "Invoices {numbers}",
        "Re.Nr. {numbers}",
        "offene Rg. {numbers}",
    ),
    {"numbers": _NUMBERS},
)
PAYS_NOTHING = (
    *("", "Zahlung", "payment", "your delivery", "Monatsrechnung", "settlement", "with thanks"),
    *("div. Lieferungen", "open items", "Ueberweisung", "transfer", "lt. Absprache"),
)
NAMES_ADVICE = Sentence(
    "names_advice",
    (
        "AVIS {advice}",
        "Zahlungsavis {advice}",
        "see remittance advice {advice}",
        "{advice}",
        "advice {advice}",
        "lt. Avis {advice}",
    ),
    {"advice": _ADVICE},
)
PAID_TAILS = (
    *(
        "",
        "",
        "",
        "",
        "",
        "",
        "",
        " v. {day:%d.%m.}",
        " KD {customer}",
        " vom {day:%d.%m.%Y}",
        " Kd.-Nr. {customer}",
    ),
    *(" paid in full", " Zahlung", " of {day:%d.%m.}"),
)
DISCOUNT_TAILS = ("", "", " abz. Skonto", " less {percent}%", " ./. Skonto", " net of discount")
DEBIT = ("LASTSCHRIFT", "SEPA-LASTSCHRIFT", "DIRECT DEBIT")
RETURNED = ("RUECKLASTSCHRIFT", "RETURNED DEBIT", "R-TRANSACTION")
ADVICE = Sentence(
    "advice",
    (
        "Payment advice {advice} over {total}:",
        "With advice {advice} we pay {total}:",
        "Our advice {advice}, {total} in sum:",
        "Advice {advice}. We transfer {total}, made up as follows:",
        "Zahlungsavis {advice}, {total}:",
    ),
    {"advice": _ADVICE, "total": MONEY},
)
ADVICE_PART = Sentence(
    "advice_part",
    ("{invoice}: {cents}", "{cents} for {invoice}", "invoice {invoice} with {cents}"),
    {"invoice": _INVOICE, "cents": MONEY},
)
NOTICE = Sentence(
    "notice",
    (
        "From {first} on, {payer} pays our invoices.",
        "{payer} will pay our invoices from {first} on.",
        "Please note that {payer} settles our bills as of {first}.",
        "Our bills go to {payer} for payment, as of {first}.",
        "As of {first}, expect payments for us from {payer}.",
    ),
    {"first": DAY, "payer": _PAYER},
)
_LINE, _CUSTOMER = NameSlot(r"BL-\d{6}"), NameSlot(r"C-\d{5}")
_THAN = NameSlot("more than|at most")
LINE_PAYS = Sentence(
    "line_pays",
    (
        "Line {line} {verb} invoice {invoice}, in whole or in part.",
        "By the policy, line {line} {verb} invoice {invoice}, in whole or in part.",
        "Bank line {line} {verb} invoice {invoice}, in whole or in part.",
    ),
    {"line": _LINE, "verb": NameSlot("pays|does not pay"), "invoice": _INVOICE},
)
LINE_EXCEPTIONS = Sentence(
    "line_exceptions",
    (
        "The amounts of all exceptions of line {line} are {than} {cents} in sum.",
        "In sum, the exceptions of line {line} have {than} {cents} (0 without any).",
        "Exceptions of line {line} add up to {than} {cents}; without any, the sum is 0.",
    ),
    {"line": _LINE, "than": _THAN, "cents": MONEY},
)
OWES = Sentence(
    "owes",
    (
        "After the month, customer {customer} owes {than} {cents}.",
        "The open items of customer {customer} are {than} {cents} after the month.",
        "Customer {customer} has open items of {than} {cents} after the month.",
    ),
    {"customer": _CUSTOMER, "than": _THAN, "cents": MONEY},
)
STILL_OPEN = Sentence(
    "still_open",
    (
        "After the month, {than} {cents} is open on invoice {invoice}.",
        "On invoice {invoice}, {than} {cents} is open after the month.",
        "Invoice {invoice} has {than} {cents} open after the month.",
    ),
    {"invoice": _INVOICE, "than": _THAN, "cents": MONEY},
)
STATEMENTS = (LINE_PAYS, LINE_EXCEPTIONS, OWES, STILL_OPEN)
PAYER_FIRST = (
    *("Kontor", "Crediva", "Paywell", "Finlane", "Solvida", "Treuwert", "Bilanzia", "Nordfakt"),
    *("Moneta", "Clearway", "Quitta", "Zahlwerk", "Tesora", "Fidelis", "Valuta"),
)
PAYER_SECOND = (
    *("Factoring", "Zahlungen", "Services", "Clearing", "Finance", "Payments", "Treasury"),
    *("Kapital", "Inkasso", "Cash", "Settlement", "Forderungen"),
)


class AdviceMail(NamedTuple):
    """A payment advice that a mail states: its name and parts (invoice, cents)."""

    advice: str
    parts: tuple[tuple[str, int], ...]


def write_bank_days(closed: Set[dt.date]) -> str:
    """Return the page of bank days.

    Args:
        closed: Days from Monday to Friday that are no bank days.
    """
    days = ", ".join(day.isoformat() for day in sorted(closed)) or "none"
    return f"The bank is closed on Saturdays, on Sundays and on these days: {days}."


def read_bank_days(text: str) -> list[str]:
    """Return the days of the page of bank days."""
    return _CLOSED.findall(text)


def read_advice(text: str) -> AdviceMail | None:
    """Return the payment advice that a mail states; None: it states none."""
    heads = list(ADVICE.read(text))
    if not heads:
        return None
    parts = tuple(
        (reading.values["invoice"], reading.values["cents"])
        for reading in ADVICE_PART.read(text[heads[0].end :])
    )
    return AdviceMail(heads[0].values["advice"], parts)


def capitals(name: str) -> str:
    """Return a name as the bank writes it.

    Args:
        name: In ASCII, as registered.
    """
    return re.sub(r"\s+", " ", name).upper()
