"""Lists of a site: finding a row, reading all of them, a row's own page."""

import re
from collections.abc import Iterable

from owa_bench.skills.clerk.habits import Habits
from owa_bench.skills.pages import Item
from owa_bench.skills.planning import Plan
from owa_bench.skills.surfing import sight as reading
from owa_bench.skills.surfing.browser import Browser
from owa_bench.skills.surfing.fields import fields
from owa_bench.skills.surfing.sight import Row

MOST_PAGES = 12
_COUNT = re.compile(r"(\d+) in all")


class Lists:
    """Reads the lists that the window stands at."""

    def __init__(self, browser: Browser, habits: Habits) -> None:
        self._browser = browser
        self._habits = habits
        self._places: dict[str, str] = {}
        self.short = False

    def here(self) -> tuple[Row, ...]:
        """Return the rows that the page shows."""
        return reading.rows(self._browser.sight, self._browser.furniture)

    def all(self, title: str = "") -> Plan[dict[str, Row]]:
        """Return every row of the list by title; the way ends at row `title`."""
        found = {row.title: row for row in self.here()}
        self._note(found)
        turn = self._turner()
        while turn is not None and title not in found:
            if not self._habits.pages:
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

    def find(self, title: str) -> Plan[Row | None]:
        """Return the row of this title, on the page where it stands; None if none."""
        rows = {row.title: row for row in self.here()}
        if title not in rows and self._habits.searches:
            yield from self._search(title)
            rows = {row.title: row for row in self.here()}
        if title not in rows:
            rows = yield from self.all(title)
        return rows.get(title)

    def again(self, title: str) -> Plan[Row | None]:
        """Return to the page where a row stood when all were read; None if unknown."""
        if title not in self._places:
            return None
        yield from self._browser.go(self._places[title])
        return next((row for row in self.here() if row.title == title), None)

    def _note(self, rows: Iterable[str]) -> None:
        """Keep the address of the page on which rows stand."""
        for title in rows:
            self._places.setdefault(title, self._browser.sight.url)

    def is_like(self, title: str) -> bool:
        """Return whether the list's rows are named in the way that a title is."""
        return any(_form(row.title) == _form(title) for row in self.here())

    def read(self, row: Row) -> Plan[dict[str, str]]:
        """Open a row's own page and return what it says."""
        link = next((i for i in row.items if i.name == row.title), None)
        if link is None:
            return {}
        yield from self._browser.press(link)
        return reading.facts(self._browser.sight)

    def narrow(self, words: str) -> Plan[None]:
        """Follow a link that shows only the rows of a value the words name."""
        groups = [i for i in self._browser.body if i.role == "link" and i.group]
        titles = {row.title for row in self.here()}
        for item in groups:
            if item.name not in titles and _says(words, item.name):
                yield from self._browser.press(item)
                return

    def _search(self, title: str) -> Plan[None]:
        boxes = [f for f in fields(self._browser.body) if f.kind == "text"]
        buttons = [i for i in self._browser.body if i.role == "button"]
        if not boxes or not buttons:
            return
        yield from self._browser.fill(boxes[0], title, "")
        buttons = [i for i in self._browser.body if i.role == "button"]
        yield from self._browser.press(buttons[0])

    def _turner(self) -> Item | None:
        """Return the link to more rows: on the first page there is only one."""
        links = self._links()
        return links[-1] if links else None

    def _links(self) -> list[Item]:
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


def _says(words: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) is not None
