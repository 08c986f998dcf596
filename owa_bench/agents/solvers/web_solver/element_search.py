"""List search: finds a row or an amount in the lists of a site."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from owa_bench.agents.solvers import pages
from owa_bench.agents.solvers.api_solver.http_session import SkillConfig
from owa_bench.agents.solvers.pages import PageControl
from owa_bench.agents.solvers.planning import ToolPlan
from owa_bench.agents.solvers.web_solver import matching, page_view
from owa_bench.agents.solvers.web_solver.browser import Browser
from owa_bench.agents.solvers.web_solver.matching import AmountQuestion
from owa_bench.agents.solvers.web_solver.page_view import ViewRow, fields

_FEW = 6  # rows whose own pages are worth a visit each
_MOST = 16  # rows whose own pages can be visited at all
_LEAST = 0.12  # likeness of a label to a question from which one is sure


class ListReader:
    """Reads the lists that the window stands at."""

    def __init__(self, browser: Browser, config: SkillConfig) -> None:
        self._browser = browser
        self._config = config
        self._places: dict[str, str] = {}
        self.short = False

    def here(self) -> tuple[ViewRow, ...]:
        """Return the rows that the page shows."""
        return page_view.rows(self._browser.page, self._browser.boilerplate)

    def all(self, title: str = "") -> ToolPlan[dict[str, ViewRow]]:
        """Return every row of the list by title; the way ends at row `title`."""
        found = {row.title: row for row in self.here()}
        self._note(found)
        # On the first page there is only one link to more rows.
        turn = next(reversed(self._links()), None)
        while turn is not None and title not in found:
            if not self._config.pages:
                self.short = True
                break
            yield from self._browser.press(turn)
            fresh = {row.title: row for row in self.here()}
            if not set(fresh) - set(found):
                break
            found |= fresh
            self._note(fresh)
            turn = next((i for i in self._links() if i.name == turn.name), None)
        return found

    def find(self, title: str) -> ToolPlan[ViewRow | None]:
        """Return the row of this title, on the page where it stands; None if none."""
        rows = {row.title: row for row in self.here()}
        if title not in rows and self._config.searches:
            yield from self._search(title)
            rows = {row.title: row for row in self.here()}
        if title not in rows:
            rows = yield from self.all(title)
        return rows.get(title)

    def again(self, title: str) -> ToolPlan[ViewRow | None]:
        """Return to the page where a row stood when all were read; None if unknown."""
        if title not in self._places:
            return None
        yield from self._browser.go(self._places[title])
        return next((row for row in self.here() if row.title == title), None)

    def _note(self, rows: Iterable[str]) -> None:
        """Keep the address of the page on which rows stand."""
        for title in rows:
            self._places.setdefault(title, self._browser.page.url)

    def is_like(self, title: str) -> bool:
        """Return whether the list's rows are named in the way that a title is."""
        return any(_form(row.title) == _form(title) for row in self.here())

    def read(self, row: ViewRow) -> ToolPlan[dict[str, str]]:
        """Open a row's own page and return what it says."""
        link = next((i for i in row.items if i.name == row.title), None)
        if link is None:
            return {}
        yield from self._browser.press(link)
        return page_view.facts(self._browser.page)

    def narrow(self, words: str) -> ToolPlan[None]:
        """Follow a link that shows only the rows of a value the words name."""
        groups = [i for i in self._browser.body if i.role == "link" and i.group]
        titles = {row.title for row in self.here()}
        for item in groups:
            named = re.search(rf"(?<!\w){re.escape(item.name)}(?!\w)", words)
            if item.name not in titles and named is not None:
                yield from self._browser.press(item)
                return

    def _search(self, title: str) -> ToolPlan[None]:
        boxes = [f for f in fields(self._browser.body) if f.kind == "text"]
        buttons = [i for i in self._browser.body if i.role == "button"]
        if not boxes or not buttons:
            return
        yield from self._browser.fill(boxes[0], title, "")
        buttons = [i for i in self._browser.body if i.role == "button"]
        yield from self._browser.press(buttons[0])

    def _links(self) -> list[PageControl]:
        """Return the links below the list that are no rows."""
        own = {item.ref for row in self.here() for item in row.items}
        after = False
        found = []
        for item in self._browser.body:
            after = after or item.ref in own
            if after and item.ref not in own and item.role == "link" and item.group:
                found.append(item)
        return found


def _form(title: str) -> str:
    """Return the shape of a title: letters and digits as such.

    >>> _form("B-1041"), _form("Trail shoe, red, L")
    ('A-9', 'a')
    """
    if re.fullmatch(r"[A-Z]+-?\d+", title):
        return "A-9"
    return "9" if title.isdigit() else "a"


class SiteAmount(NamedTuple):
    """An amount in cents; `sure` if its label matches the question."""

    cents: int
    sure: bool


class ListSearch:
    """Searches the lists of the menu, most likely entries first.

    `units` maps a list to whether its amounts are in cents.
    """

    def __init__(self, browser: Browser, lists: ListReader, config: SkillConfig) -> None:
        self._browser = browser
        self._lists = lists
        self._config = config
        self._plain: set[str] = set()
        self.units: dict[str, bool] = {}
        self.signs: set[str] = set()

    def entries(self, words: str) -> list[str]:
        """Return the menu's entries, those first that sound like the words."""
        order = pages.nearest(words, self._browser.menu)
        return [*(x for x in order if x not in self._plain), *self._plain]

    def row(self, title: str, words: str) -> ToolPlan[ViewRow | None]:
        """Find a row in any list.

        Args:
            title: the row's title.
            words: the goal's words, which order the lists.
        Returns: The row, None if no list has it.
        """
        for entry in self.entries(words):
            yield from self._open(entry)
            if not self._lists.here() or not self._lists.is_like(title):
                continue
            found = yield from self._lists.find(title)
            if found is not None:
                return found
            if not self._config.searches:
                break
        return None

    def amount(self, question: AmountQuestion) -> ToolPlan[SiteAmount | None]:
        """Return the amount that a question asks for."""
        if len(question.subjects) == 1:
            row = yield from self.row(question.subjects[0], question.text)
            if row is not None:
                one = yield from self._of_one(question, row)
                return one and SiteAmount(one.cents * question.times, one.sure)
            if not self._config.searches:
                return None
            question = matching.without_subjects(question)
        return (yield from self._of_many(question))

    def _of_one(self, question: AmountQuestion, row: ViewRow) -> ToolPlan[SiteAmount | None]:
        """Return a row's amount, from its own page where that is looked at."""
        cells = dict(row.cells)
        labels = matching.money_labels([cells])
        near = max((_near(question, label) for label in labels), default=0.0)
        if self._config.adds_up or (self._config.searches and near < _LEAST):
            cells = yield from self._lists.read(row)
        return self._asked_amount(question, cells)

    def _asked_amount(
        self, question: AmountQuestion, cells: Mapping[str, str]
    ) -> SiteAmount | None:
        """Return the amount among a row's cells that a question is about."""
        labels = matching.money_labels([cells])
        label = matching.amount_label(cells, question.text, labels)
        if not label:
            return None
        told = matching.CENTS in label.lower()
        sure = _near(question, label) >= _LEAST or len(labels) == 1
        return SiteAmount(matching.cents(cells[label], in_cents=told), sure)

    def _of_many(self, question: AmountQuestion) -> ToolPlan[SiteAmount | None]:
        """Return the sum over all rows that the question's conditions pick out."""
        seen: list[tuple[matching.RowSelection, list[ViewRow], str]] = []
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
            if picked.met >= wanted or not self._config.searches:
                break
        most = max((picked.met for picked, *_ in seen), default=0)
        best = [found for found in seen if found[0].rows and found[0].met == most]
        if self._config.searches and not question.subjects and most < question.marks:
            for picked, _, entry in best:  # what the lists fold away is on rows' pages
                own = yield from self._from_own_pages(question, picked.rows, entry)
                if own is not None:
                    return own
        return (yield from self._summed(question, *best[0])) if best else None

    def _rows(self, question: AmountQuestion) -> ToolPlan[list[ViewRow]]:
        if self._config.searches and not question.subjects:
            yield from self._lists.narrow(question.text)
        found = yield from self._lists.all()
        return list(found.values())

    def _picked(self, question: AmountQuestion, rows: list[ViewRow]) -> matching.RowSelection:
        if question.subjects:
            own = tuple(row for row in rows if row.title in question.subjects)
            return matching.RowSelection(own, len(own))
        first = matching.day_first(rows) if self._config.weighs else None
        return matching.select_rows(question, rows, day_first=first)

    def _summed(
        self,
        question: AmountQuestion,
        picked: matching.RowSelection,
        rows: list[ViewRow],
        entry: str,
    ) -> ToolPlan[SiteAmount | None]:
        tables = [row.cells for row in rows]
        labels = matching.money_labels(tables) or matching.numeric_labels(tables)
        label = matching.amount_label(picked.rows[0].cells, question.text, labels)
        if not label or (_near(question, label) < _LEAST and len(picked.rows) <= _FEW):
            return (yield from self._from_own_pages(question, picked.rows, entry))
        in_cents = matching.CENTS in label.lower()
        if self._config.adds_up:
            in_cents = yield from self._unit(picked.rows[0], label, entry)
        total = sum(matching.cents(r.cells[label], in_cents=in_cents) for r in picked.rows)
        return SiteAmount(total, sure=picked.met >= question.marks)

    def _from_own_pages(
        self, question: AmountQuestion, picked: tuple[ViewRow, ...], entry: str
    ) -> ToolPlan[SiteAmount | None]:
        """Return the sum of what the rows' own pages say, where the list does not."""
        total, sure, count = 0, True, 0
        looked_at = self._config.searches and len(picked) <= _MOST
        for row in picked if looked_at else ():
            again = yield from self._return_to(row.title, entry)
            cells = yield from self._lists.read(again or row)
            if not question.subjects and not matching.meets_conditions(question, cells):
                continue
            one = self._asked_amount(question, cells)
            if one is None:
                return None
            total, sure, count = total + one.cents, sure and one.sure, count + 1
        return SiteAmount(total, sure) if count else None

    def _return_to(self, title: str, entry: str) -> ToolPlan[ViewRow | None]:
        """Return to a row of a list: to the page where it was seen, else from start."""
        found = yield from self._lists.again(title)
        if found is not None:
            return found
        yield from self._open(entry)
        return (yield from self._lists.find(title))

    def _unit(self, row: ViewRow, label: str, entry: str) -> ToolPlan[bool]:
        """Return whether a list's amounts are in cents, by a row's own page."""
        shown = row.cells[label]
        if "." not in shown:
            self.signs.add("off total")
        yield from self._open(entry)
        again = yield from self._lists.find(row.title)
        own = (yield from self._lists.read(again)) if again else {}
        labels = matching.money_labels([own])
        whole = {matching.cents(own[x], in_cents=False) for x in labels}
        in_cents = bool(whole) and matching.cents(shown, in_cents=True) in whole
        self.units[entry] = in_cents
        return in_cents

    def _open(self, entry: str) -> ToolPlan[None]:
        yield from self._browser.open(entry)
        if not self._lists.here():
            self._plain.add(entry)


def _near(question: AmountQuestion, label: str) -> float:
    return pages.alike(question.text, label)
