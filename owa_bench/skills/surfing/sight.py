"""A page as a reader takes it in: heading, notices, rows of a list, facts of a row."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from owa_bench.skills.pages import Item, control, items

_SHOWS = "The browser shows:\n"
_MORE = re.compile(r"\[\d+ more lines below: read from line (\d+)\]")
_HEAD = 2  # lines before the page's own: url and title
_FACTS = 2  # lines that a card has at least: a label and its value


class Row(NamedTuple):
    """A row of a list: what names it, its cells by header, what can be pressed."""

    title: str
    cells: Mapping[str, str]
    items: tuple[Item, ...]


class Sight(NamedTuple):
    """One page."""

    url: str
    heading: str
    notices: tuple[str, ...]
    items: tuple[Item, ...]
    lines: tuple[str, ...]

    @property
    def host(self) -> str:
        """Whose page it is."""
        return self.url.removeprefix("https://").partition("/")[0]


def look(text: str) -> Sight:
    """Return a page text as a sight; what a refusal says is a notice too."""
    page = text.rpartition(_SHOWS)[2]
    lines = tuple(page.splitlines())
    marks = ("error: ", "note: ", "! ")
    notices = [x.partition(" ")[2] for x in lines if x.startswith(marks)]
    return Sight(
        url=_after("url: ", lines),
        heading=_after("# ", lines),
        notices=tuple(dict.fromkeys(notices)),
        items=items(page),
        lines=lines,
    )


def rest_from(text: str) -> int | None:
    """Return the line to read on from where a page text was cut, None if it was not."""
    match = _MORE.search(text)
    return int(match[1]) if match else None


def joined(text: str, more: str) -> str:
    """Return a page text that was cut with its continuation."""
    head = _MORE.sub("", text).rstrip("\n")
    return "\n".join([head, *more.splitlines()[_HEAD:]])


def body(sight: Sight, menu: Collection[str]) -> tuple[Item, ...]:
    """Return the controls of a page that are not its menu."""
    return tuple(i for i in sight.items if not (i.role == "link" and i.name in menu))


def rows(sight: Sight, furniture: Collection[str]) -> tuple[Row, ...]:
    """Return the rows of a page's list, whether it is a table or cards.

    `furniture` are names and lines that all pages of the site have.
    """
    return _table(sight.lines) or _cards(sight.lines, furniture)


def facts(sight: Sight) -> dict[str, str]:
    """Return what a row's own page says, by label: lines by turns, before its links."""
    return _paired(_told(sight.lines[_place("# ", sight.lines) + 1 :]))


def _table(lines: Sequence[str]) -> tuple[Row, ...]:
    found: list[Row] = []
    headers: list[str] = []
    for line in lines:
        item = control(line)
        if line.startswith("| "):
            cells = [cell.strip() for cell in line[1:-1].split("|")]
            if headers:
                found.append(Row("", dict(zip(headers, cells, strict=False)), ()))
            headers = headers or cells
        elif item is None:
            if found:
                break
        elif found:
            found[-1] = found[-1]._replace(items=(*found[-1].items, item))
    return tuple(_named(row) for row in found if row.items)


def _named(row: Row) -> Row:
    """Return a table's row with its link's name in the cell that it stands in."""
    title = row.items[0].name
    empty = [header for header, cell in row.cells.items() if not cell]
    cells = {**row.cells, **({empty[0]: title} if empty else {})}
    return Row(title, cells, row.items)


def _cards(lines: Sequence[str], furniture: Collection[str]) -> tuple[Row, ...]:
    found: list[Row] = []
    lines = [line for line in lines if line not in furniture]
    for place, line in enumerate(lines):
        item = control(line)
        if item is None:
            continue
        told = _told(lines[place + 1 :])
        if item.role == "link" and item.name not in furniture and len(told) >= _FACTS:
            found.append(Row(item.name, _paired(told), (item,)))
        elif found and item.name.endswith(f": {found[-1].title}"):
            last = found[-1]
            more = {**last.cells, **_paired(told)} if item.role == "button" else {}
            found[-1] = Row(last.title, more or last.cells, (*last.items, item))
    return tuple(found)


def _told(lines: Sequence[str]) -> list[str]:
    """Return the lines up to the next control, heading or table."""
    found = []
    for line in lines:
        if control(line) is not None or line.startswith(("-- ", "| ", "! ", "# ")):
            break
        found.append(line)
    return found


def _paired(lines: Sequence[str]) -> dict[str, str]:
    return dict(zip(lines[::2], lines[1::2], strict=False))


def _after(mark: str, lines: Sequence[str]) -> str:
    return next((x.removeprefix(mark) for x in lines if x.startswith(mark)), "")


def _place(mark: str, lines: Sequence[str]) -> int:
    return next((i for i, x in enumerate(lines) if x.startswith(mark)), 0)
