"""Answers a question about amounts from the rows of a site's lists."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from owa_bench.skills import lexicon
from owa_bench.skills.surfing.fields import MONTHS
from owa_bench.skills.surfing.sight import Row

_QUOTED = re.compile(r"`([^`]+)`")
_CODES = re.compile(r"\b[A-Z]+-\d+\b")
_PIECES = re.compile(r"\b(\d+) pieces\b")
_MONTH = re.compile(rf"\b({'|'.join(MONTHS)}) (\d{{4}})\b")
_PROPER = re.compile(r"(?<![.?!] )(?<!^)\b[A-Z]\w+(?: (?:and )?[A-Z]\w+)*|\b\d{3,}\b")
_MONEY = re.compile(r"(?:EUR )?(-?[\d,]+\.\d\d)")
_NUMBER = re.compile(r"-?[\d,]+(?:\.\d\d)?")
_DATE = re.compile(r"(\d+)[-/.](\d+)[-/.](\d+)")
_SAID = re.compile(rf"\d+ ({'|'.join(MONTHS)}) (\d{{4}})")
_SHORT = 3  # digits under which a number is too common to be a condition
CENTS = "cents"
Rows = Sequence[Row]


class Question(NamedTuple):
    """What is asked: of which rows by name, under which month, times how many.

    `text` is without those names, `whole` with them.
    """

    text: str
    whole: str
    subjects: tuple[str, ...]
    month: tuple[int, int] | None
    times: int

    @property
    def marks(self) -> int:
        """How many conditions the words hold, names and numbers counted."""
        return len(self.named) + (self.month is not None)

    @property
    def named(self) -> frozenset[str]:
        """The names and numbers that the words hold, a month's left out."""
        words = _MONTH.sub("", self.text) if self.month is not None else self.text
        return frozenset(_PROPER.findall(words))


class Chosen(NamedTuple):
    """The rows that a question is about and how many conditions they meet."""

    rows: tuple[Row, ...]
    met: int


def understood(text: str) -> Question:
    """Return a question as its parts.

    >>> understood("What do 2 pieces of `Bag, red` cost? Say so.").subjects
    ('Bag, red',)
    """
    asked = text.partition("?")[0]
    quoted = _QUOTED.findall(asked)
    month = _MONTH.search(asked)
    pieces = _PIECES.search(asked)
    return Question(
        text=_QUOTED.sub("", asked),
        whole=asked.replace("`", ""),
        subjects=tuple(quoted or _CODES.findall(asked)),
        month=(int(month[2]), MONTHS.index(month[1]) + 1) if month else None,
        times=int(pieces[1]) if pieces else 1,
    )


def by_value(question: Question) -> Question:
    """Return a question whose quoted words are no row's name but what rows say."""
    return question._replace(text=question.whole, subjects=())


def chosen(question: Question, rows: Rows, *, day_first: bool | None) -> Chosen:
    """Return the rows that hold every value which the question names."""
    kept = list(rows)
    met = 0
    for header in _headers(rows):
        named = {
            value
            for row in rows
            if (value := row.cells.get(header, "")) and _is_named(value, question.text)
        }
        if named:
            met += 1
            kept = [row for row in kept if row.cells.get(header) in named]
    if question.month is not None and has_dates(rows):
        dated = [r for r in kept if falls(r.cells, question.month, day_first)]
        met += bool(dated)
        kept = dated
    return Chosen(tuple(kept) if met else (), met)


def meets(question: Question, cells: Mapping[str, str]) -> bool:
    """Return whether a row's own page meets every condition of a question."""
    said = " ".join(cells.values())
    if not all(re.search(rf"(?<!\w){re.escape(x)}", said) for x in question.named):
        return False
    return question.month is None or falls(cells, question.month, None)


def money_of(cells: Mapping[str, str], about: str, told: Iterable[str]) -> str:
    """Return the label of the amount that a question is about, "" if there is none.

    `told` are the labels under which any row has an amount.
    """
    labels = [label for label in told if label in cells]
    return lexicon.nearest(about, labels)[0] if labels else ""


def money_labels(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the labels under which all rows have an amount, likely ones first."""
    tables = list(rows)
    found = {label: None for cells in tables for label in cells}
    decimal = [x for x in found if _all(_MONEY, (t.get(x, "") for t in tables))]
    whole = [x for x in found if CENTS in x.lower()]
    return [*decimal, *(x for x in whole if x not in decimal)]


def numeric_labels(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the labels under which all rows have a number."""
    tables = list(rows)
    found = {label: None for cells in tables for label in cells}
    return [x for x in found if _all(_NUMBER, (t.get(x, "") for t in tables))]


def cents(text: str, *, in_cents: bool) -> int:
    """Return an amount as the cents it says.

    >>> cents("EUR 1,234.50", in_cents=False), cents("12", in_cents=True)
    (123450, 12)
    """
    bare = text.removeprefix("EUR ").replace(",", "")
    units, _, rest = bare.lstrip("-").partition(".")
    amount = int(units or 0) if in_cents else int(units or 0) * 100 + int(rest or 0)
    return -amount if bare.startswith("-") else amount


def amount(total: int) -> str:
    """Return cents as the amount that a form takes."""
    return f"{'-' * (total < 0)}{abs(total) // 100}.{abs(total) % 100:02d}"


def day_first(rows: Rows) -> bool | None:
    """Return whether dates begin with the day; None where no date tells."""
    found = [d.groups() for r in rows for v in r.cells.values() if (d := _whole(v))]
    parts = [(int(a), int(b)) for a, b, _ in found if len(a) < len("2031")]
    if any(first > len(MONTHS) for first, _ in parts):
        return True
    return False if any(second > len(MONTHS) for _, second in parts) else None


def has_dates(rows: Rows) -> bool:
    """Return whether any cell of any row is a date."""
    return any(_whole(value) for row in rows for value in row.cells.values())


def falls(cells: Mapping[str, str], month: tuple[int, int], first: bool | None) -> bool:
    """Return whether a date among the cells lies in a month.

    >>> falls({"On": "21 May 2037"}, (2037, 5), None)
    True
    """
    for value in cells.values():
        said = _SAID.fullmatch(value)
        if said is not None and (int(said[2]), MONTHS.index(said[1]) + 1) == month:
            return True
        date = _whole(value)
        if date is None:
            continue
        one, two, three = map(int, date.groups())
        if len(date[1]) == len("2031"):
            found = (one, two)
        else:
            found = (three, one if first is False else two)
        if found == month:
            return True
    return False


def _whole(value: str) -> re.Match[str] | None:
    return _DATE.fullmatch(value)


def _headers(rows: Rows) -> list[str]:
    return list({header: None for row in rows for header in row.cells})


def _is_named(value: str, words: str) -> bool:
    """Return whether a value stands in the words, and is no chance number."""
    if _MONEY.fullmatch(value) or (value.isdigit() and len(value) < _SHORT):
        return False
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", words) is not None


def _all(form: re.Pattern[str], values: Iterable[str]) -> bool:
    known = list(values)
    return bool(known) and all(form.fullmatch(value) for value in known)
