"""Matching of goal arguments to form fields, and of questions to list rows."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from owa_bench.agents.solvers import documents, pages
from owa_bench.agents.solvers.api_solver.http_session import SkillConfig
from owa_bench.agents.solvers.web_solver.page_view import (
    MONTHS,
    ViewField,
    ViewRow,
    accepts,
    requested_format,
    value_shape,
)

_OFFERED = 2.0  # a value that stands among a field's options
_ASKED = 1.0  # a value of the form that a field's note asks for
_BY_KIND = {"date": 1.5, "check": 1.0, "choice": _OFFERED, "text": 0.0}
_REMARK = re.compile(r" \(.*?\)")  # what a label says besides what it asks for
_LEAST = 0.15  # likeness from which a name alone decides
TriedLabels = Mapping[str, Collection[str]]  # labels of optional fields, by argument
_NOTHING: TriedLabels = MappingProxyType({})


def is_optional(field: ViewField) -> bool:
    """Return whether a form lets one leave a field empty that takes any text."""
    return field.kind == "text" and not field.required


def assign_arguments(
    form: Sequence[ViewField],
    given: Mapping[str, str],
    config: SkillConfig,
    tried: TriedLabels = _NOTHING,
) -> dict[int, str]:
    """Assign goal arguments to form fields; required fields come first.

    Args:
        form: the fields of the page.
        given: the goal's arguments, name to value.
        config: the skills in use.
        tried: optional fields, by label, that took an argument on an earlier page.
    Returns: The argument's name by the field's position; unassigned fields are left out.
    """
    if not config.guesses:
        return _assigned(form, range(len(form)), given, config)
    needed = [i for i, field in enumerate(form) if not is_optional(field)]
    found = _assigned(form, needed, given, config)
    for place, field in enumerate(form):
        if place not in needed:
            used = found.values()
            left = {
                name: value
                for name, value in given.items()
                if name not in used and field.label not in tried.get(name, ())
            }
            found |= _assigned(form, [place], left, config)
    return _left_over(form, given, found, config)


def _assigned(
    form: Sequence[ViewField], places: Iterable[int], given: Mapping[str, str], config: SkillConfig
) -> dict[int, str]:
    """Return the best argument of some of a form's fields."""
    scores = {
        (name, str(place)): score
        for name, value in given.items()
        for place in places
        if _suits(form[place], value, config)
        and (score := _score(form[place], name, value, config)) > 0.0
    }
    chosen = documents.assign(scores, given)
    return {int(place): name for name, place in chosen.items()}


def _suits(field: ViewField, value: str, config: SkillConfig) -> bool:
    """Return whether a field could take a value, by its kind and by its note."""
    form = requested_format(field) if config.weighs else None
    return accepts(field, value) and (form is None or form.fullmatch(value) is not None)


def _score(field: ViewField, name: str, value: str, config: SkillConfig) -> float:
    if not config.guesses:
        near = documents.overlap(name, field.label)
        return near + _BY_KIND[field.kind] if near else 0.0
    label = _REMARK.sub("", field.label)
    near = pages.alike(name, label)
    kind = _BY_KIND[field.kind]
    if config.weighs and field.kind == "text":
        near = max(near, pages.alike(f"{name} {value_shape(value)}", label))
        near = max(near, pages.alike(value_shape(value), label))
        kind = _ASKED if requested_format(field) is not None else kind
    return near + kind if near >= _LEAST or kind else 0.0


def _left_over(
    form: Sequence[ViewField], given: Mapping[str, str], found: dict[int, str], config: SkillConfig
) -> dict[int, str]:
    """Return the matches with what is left over on both sides, in order of page_view.

    What stands in an optional field is left over too: a needed one goes before.
    """
    loose = {name: place for place, name in found.items() if is_optional(form[place])}
    firm = {name for name in found.values() if name not in loose}
    left = [name for name in given if name not in firm]
    for place, field in enumerate(form):
        if place in found or not field.required:
            continue
        fitting = [name for name in left if _suits(field, given[name], config)]
        if fitting:
            found[place] = fitting[0]
            left.remove(fitting[0])
            found.pop(loose.get(fitting[0], -1), None)
    return found


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


class AmountQuestion(NamedTuple):
    """What is asked: of which rows by name, under which month, times how many.

    `text` is without those names, `full_text` with them.
    """

    text: str
    full_text: str
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


class RowSelection(NamedTuple):
    """The rows that a question is about and how many conditions they meet."""

    rows: tuple[ViewRow, ...]
    met: int


def parse_question(text: str) -> AmountQuestion:
    """Return a question as its parts.

    >>> parse_question("What do 2 pieces of `Bag, red` cost? Say so.").subjects
    ('Bag, red',)
    """
    asked = text.partition("?")[0]
    quoted = _QUOTED.findall(asked)
    month = _MONTH.search(asked)
    pieces = _PIECES.search(asked)
    return AmountQuestion(
        text=_QUOTED.sub("", asked),
        full_text=asked.replace("`", ""),
        subjects=tuple(quoted or _CODES.findall(asked)),
        month=(int(month[2]), MONTHS.index(month[1]) + 1) if month else None,
        times=int(pieces[1]) if pieces else 1,
    )


def without_subjects(question: AmountQuestion) -> AmountQuestion:
    """Return a question whose quoted words are no row's name but what rows say."""
    return question._replace(text=question.full_text, subjects=())


def select_rows(
    question: AmountQuestion, rows: Sequence[ViewRow], *, day_first: bool | None
) -> RowSelection:
    """Select the rows that hold every value named in a question.

    Args:
        question: the question.
        rows: the rows of one list.
        day_first: the order of its dates, None if unknown.
    Returns: The rows and the number of conditions they meet.
    """
    kept = list(rows)
    met = 0
    for header in _labels(row.cells for row in rows):
        named = {
            value
            for row in rows
            if (value := row.cells.get(header, "")) and _is_named(value, question.text)
        }
        if named:
            met += 1
            kept = [row for row in kept if row.cells.get(header) in named]
    if question.month is not None and has_dates(rows):
        dated = [r for r in kept if is_in_month(r.cells, question.month, day_first)]
        met += bool(dated)
        kept = dated
    return RowSelection(tuple(kept) if met else (), met)


def meets_conditions(question: AmountQuestion, cells: Mapping[str, str]) -> bool:
    """Return whether a row's own page meets every condition of a question.

    Args:
        question: the question.
        cells: the page's facts, label to value.
    Returns: Whether every name, number and month of the question is there.
    """
    said = " ".join(cells.values())
    if not all(re.search(rf"(?<!\w){re.escape(x)}", said) for x in question.named):
        return False
    return question.month is None or is_in_month(cells, question.month, None)


def amount_label(cells: Mapping[str, str], about: str, candidates: Iterable[str]) -> str:
    """Return the label of the amount that a question is about.

    Args:
        cells: a row's cells, label to value.
        about: the question's words.
        candidates: the labels under which the rows have amounts.
    Returns: The most similar label, "" if the row has none of them.
    """
    labels = [label for label in candidates if label in cells]
    return pages.nearest(about, labels)[0] if labels else ""


def money_labels(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the labels under which all rows have an amount, likely ones first."""
    tables = list(rows)
    decimal = _labels_like(_MONEY, tables)
    whole = [x for x in _labels(tables) if CENTS in x.lower()]
    return [*decimal, *(x for x in whole if x not in decimal)]


def numeric_labels(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the labels under which all rows have a number."""
    return _labels_like(_NUMBER, list(rows))


def cents(text: str, *, in_cents: bool) -> int:
    """Return the cents of an amount.

    Args:
        text: the amount as shown, with or without currency.
        in_cents: whether whole numbers are cents.
    Returns: Cents; negative for a leading minus.

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


def day_first(rows: Sequence[ViewRow]) -> bool | None:
    """Return whether dates begin with the day; None where no date tells."""
    found = [d.groups() for r in rows for v in r.cells.values() if (d := _whole_date(v))]
    parts = [(int(a), int(b)) for a, b, _ in found if len(a) < len("2031")]
    if any(first > len(MONTHS) for first, _ in parts):
        return True
    return False if any(second > len(MONTHS) for _, second in parts) else None


def has_dates(rows: Sequence[ViewRow]) -> bool:
    """Return whether any cell of any row is a date."""
    return any(_whole_date(value) for row in rows for value in row.cells.values())


def is_in_month(cells: Mapping[str, str], month: tuple[int, int], first: bool | None) -> bool:
    """Return whether a date among the cells lies in a month.

    Args:
        cells: a row's cells, label to value.
        month: (year, month).
        first: whether dates start with the day, None if unknown.
    Returns: Whether any cell is such a date.

    >>> is_in_month({"On": "21 May 2037"}, (2037, 5), None)
    True
    """
    for value in cells.values():
        said = _SAID.fullmatch(value)
        if said is not None and (int(said[2]), MONTHS.index(said[1]) + 1) == month:
            return True
        date = _whole_date(value)
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


def _whole_date(value: str) -> re.Match[str] | None:
    return _DATE.fullmatch(value)


def _labels(tables: Iterable[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(label for cells in tables for label in cells))


def _is_named(value: str, words: str) -> bool:
    """Return whether a value stands in the words, and is no chance number."""
    if _MONEY.fullmatch(value) or (value.isdigit() and len(value) < _SHORT):
        return False
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", words) is not None


def _labels_like(form: re.Pattern[str], tables: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the labels under which every table has a value of a form."""
    labels = _labels(tables)
    return [x for x in labels if all(form.fullmatch(t.get(x, "")) for t in tables)]
