"""Looks a site's lists through for a row, or for the amount a question asks for."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.skills import lexicon
from owa_bench.skills.clerk.habits import Habits
from owa_bench.skills.planning import Plan
from owa_bench.skills.surfing import questions
from owa_bench.skills.surfing.browser import Browser
from owa_bench.skills.surfing.lists import Lists
from owa_bench.skills.surfing.questions import Question
from owa_bench.skills.surfing.sight import Row

_FEW = 6  # rows whose own pages are worth a visit each
_MOST = 16  # rows whose own pages can be visited at all
_LEAST = 0.12  # likeness of a label to a question from which one is sure


class Amount(NamedTuple):
    """An amount, and whether its label is the question's."""

    cents: int
    sure: bool


class Finder:
    """Goes through the menu, likely entries first.

    `units` says of each list whether its amounts were found to be in cents.
    """

    def __init__(self, browser: Browser, lists: Lists, habits: Habits) -> None:
        self._browser = browser
        self._lists = lists
        self._habits = habits
        self._plain: set[str] = set()
        self.units: dict[str, bool] = {}
        self.signs: set[str] = set()

    def entries(self, words: str) -> list[str]:
        """Return the menu's entries, those first that sound like the words."""
        order = lexicon.nearest(words, self._browser.menu)
        return [*(x for x in order if x not in self._plain), *self._plain]

    def row(self, title: str, words: str) -> Plan[Row | None]:
        """Return the row of this title, wherever it stands."""
        for entry in self.entries(words):
            yield from self._open(entry)
            if not self._lists.here() or not self._lists.is_like(title):
                continue
            found = yield from self._lists.find(title)
            if found is not None:
                return found
            if not self._habits.searches:
                break
        return None

    def amount(self, question: Question) -> Plan[Amount | None]:
        """Return the amount that a question asks for."""
        if len(question.subjects) == 1:
            row = yield from self.row(question.subjects[0], question.text)
            if row is not None:
                one = yield from self._of_one(question, row)
                return one and Amount(one.cents * question.times, one.sure)
            if not self._habits.searches:
                return None
            question = questions.by_value(question)
        return (yield from self._of_many(question))

    def _of_one(self, question: Question, row: Row) -> Plan[Amount | None]:
        """Return a row's amount, from its own page where that is looked at."""
        cells = dict(row.cells)
        labels = questions.money_labels([cells])
        near = max((_near(question, label) for label in labels), default=0.0)
        if self._habits.adds_up or (self._habits.searches and near < _LEAST):
            cells = yield from self._lists.read(row)
        return self._told(question, cells)

    def _told(self, question: Question, cells: Mapping[str, str]) -> Amount | None:
        """Return the amount among a row's cells that a question is about."""
        labels = questions.money_labels([cells])
        label = questions.money_of(cells, question.text, labels)
        if not label:
            return None
        told = questions.CENTS in label.lower()
        sure = _near(question, label) >= _LEAST or len(labels) == 1
        return Amount(questions.cents(cells[label], in_cents=told), sure)

    def _of_many(self, question: Question) -> Plan[Amount | None]:
        """Return the sum over all rows that the question's conditions pick out."""
        seen: list[tuple[questions.Chosen, list[Row], str]] = []
        wanted = len(question.subjects) or question.marks
        for entry in self.entries(question.text):
            yield from self._open(entry)
            if not self._lists.here():
                continue
            if question.subjects and not self._lists.is_like(question.subjects[0]):
                continue
            rows = yield from self._rows(question)
            picked = self._picked(question, rows)
            seen.append((picked, rows, entry))
            if picked.met >= wanted or not self._habits.searches:
                break
        most = max((picked.met for picked, *_ in seen), default=0)
        best = [found for found in seen if found[0].rows and found[0].met == most]
        if self._habits.searches and not question.subjects and most < question.marks:
            for picked, _, entry in best:  # what the lists fold away is on rows' pages
                own = yield from self._from_own_pages(question, picked.rows, entry)
                if own is not None:
                    return own
        return (yield from self._summed(question, *best[0])) if best else None

    def _rows(self, question: Question) -> Plan[list[Row]]:
        if self._habits.searches and not question.subjects:
            yield from self._lists.narrow(question.text)
        found = yield from self._lists.all()
        return list(found.values())

    def _picked(self, question: Question, rows: list[Row]) -> questions.Chosen:
        if question.subjects:
            own = tuple(row for row in rows if row.title in question.subjects)
            return questions.Chosen(own, len(own))
        first = questions.day_first(rows) if self._habits.weighs else None
        return questions.chosen(question, rows, day_first=first)

    def _summed(
        self, question: Question, picked: questions.Chosen, rows: list[Row], entry: str
    ) -> Plan[Amount | None]:
        tables = [row.cells for row in rows]
        labels = questions.money_labels(tables) or questions.numeric_labels(tables)
        label = questions.money_of(picked.rows[0].cells, question.text, labels)
        if not label or (_near(question, label) < _LEAST and len(picked.rows) <= _FEW):
            return (yield from self._from_own_pages(question, picked.rows, entry))
        in_cents = questions.CENTS in label.lower()
        if self._habits.adds_up:
            in_cents = yield from self._unit(picked.rows[0], label, entry)
        total = sum(
            questions.cents(r.cells[label], in_cents=in_cents) for r in picked.rows
        )
        return Amount(total, sure=picked.met >= question.marks)

    def _from_own_pages(
        self, question: Question, picked: tuple[Row, ...], entry: str
    ) -> Plan[Amount | None]:
        """Return the sum of what the rows' own pages say, where the list does not."""
        total, sure, count = 0, True, 0
        looked_at = self._habits.searches and len(picked) <= _MOST
        for row in picked if looked_at else ():
            again = yield from self._again(row.title, entry)
            cells = yield from self._lists.read(again or row)
            if not question.subjects and not questions.meets(question, cells):
                continue
            one = self._told(question, cells)
            if one is None:
                return None
            total, sure, count = total + one.cents, sure and one.sure, count + 1
        return Amount(total, sure) if count else None

    def _again(self, title: str, entry: str) -> Plan[Row | None]:
        """Return to a row of a list: to the page where it was seen, else from start."""
        found = yield from self._lists.again(title)
        if found is not None:
            return found
        yield from self._open(entry)
        return (yield from self._lists.find(title))

    def _unit(self, row: Row, label: str, entry: str) -> Plan[bool]:
        """Return whether a list's amounts are in cents, by a row's own page."""
        shown = row.cells[label]
        if "." not in shown:
            self.signs.add("off total")
        yield from self._open(entry)
        again = yield from self._lists.find(row.title)
        own = (yield from self._lists.read(again)) if again else {}
        whole = {questions.cents(own[x], in_cents=False) for x in _money(own)}
        in_cents = bool(whole) and questions.cents(shown, in_cents=True) in whole
        self.units[entry] = in_cents
        return in_cents

    def _open(self, entry: str) -> Plan[None]:
        yield from self._browser.open(entry)
        if not self._lists.here():
            self._plain.add(entry)


def _near(question: Question, label: str) -> float:
    return lexicon.alike(question.text, label)


def _money(cells: dict[str, str]) -> list[str]:
    return questions.money_labels([cells])
