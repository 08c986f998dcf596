"""Page views: heading, notices, list rows, row facts and form fields of a page text."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from owa_bench.agents.solvers.pages import PageControl, control, items
from owa_bench.agents.solvers.planning import PlanCall

_SHOWS = "The browser shows:\n"
_MORE = re.compile(r"\[\d+ more lines below: read from line (\d+)\]")
_HEAD = 2  # lines before the page's own: url and title
_FACTS = 2  # lines that a card has at least: a label and its value


class ViewRow(NamedTuple):
    """A row of a list: what names it, its cells by header, what can be pressed."""

    title: str
    cells: Mapping[str, str]
    items: tuple[PageControl, ...]


class PageView(NamedTuple):
    """A page: address, heading, notices, controls and lines in reading order."""

    url: str
    heading: str
    notices: tuple[str, ...]
    items: tuple[PageControl, ...]
    lines: tuple[str, ...]

    @property
    def host(self) -> str:
        """Whose page it is."""
        return self.url.removeprefix("https://").partition("/")[0]


def parse_page(text: str) -> PageView:
    """Return a page text as a `PageView`; the text of a refusal is a notice too."""
    body_text = text.rpartition(_SHOWS)[2]
    lines = tuple(body_text.splitlines())
    marks = ("error: ", "note: ", "! ")
    notices = [x.partition(" ")[2] for x in lines if x.startswith(marks)]
    return PageView(
        url=_after("url: ", lines),
        heading=_after("# ", lines),
        notices=tuple(dict.fromkeys(notices)),
        items=items(body_text),
        lines=lines,
    )


def continuation_line(text: str) -> int | None:
    """Return the line to read on from where a page text was cut, None if it was not."""
    match = _MORE.search(text)
    return int(match[1]) if match else None


def join_continuation(text: str, more: str) -> str:
    """Join a truncated page text and its continuation.

    Args:
        text: the truncated text, with its closing remark.
        more: the continuation, with url and title lines.
    Returns: The text without remark and repeated head.
    """
    head = _MORE.sub("", text).rstrip("\n")
    return "\n".join([head, *more.splitlines()[_HEAD:]])


def body(page: PageView, menu: Collection[str]) -> tuple[PageControl, ...]:
    """Return the controls of a page without its menu.

    Args:
        page: the page.
        menu: the names of the menu's links.
    Returns: The other controls, in reading order.
    """
    return tuple(i for i in page.items if not (i.role == "link" and i.name in menu))


def rows(page: PageView, boilerplate: Collection[str]) -> tuple[ViewRow, ...]:
    """Return the rows of a page's list, shown as a table or as cards.

    Args:
        page: the page.
        boilerplate: names and lines that all pages of the site have.
    Returns: The rows, in reading order.
    """
    return _table(page.lines) or _cards(page.lines, boilerplate)


def facts(page: PageView) -> dict[str, str]:
    """Return what a row's own page says, by label: lines by turns, before its links."""
    return _paired(_lines_before_control(page.lines[_place("# ", page.lines) + 1 :]))


def _table(lines: Sequence[str]) -> tuple[ViewRow, ...]:
    found: list[ViewRow] = []
    headers: list[str] = []
    for line in lines:
        item = control(line)
        if line.startswith("| "):
            cells = [cell.strip() for cell in line[1:-1].split("|")]
            if headers:
                found.append(ViewRow("", dict(zip(headers, cells, strict=False)), ()))
            headers = headers or cells
        elif item is None:
            if found:
                break
        elif found:
            found[-1] = found[-1]._replace(items=(*found[-1].items, item))
    return tuple(_named(row) for row in found if row.items)


def _named(row: ViewRow) -> ViewRow:
    """Return a table's row with its link's name in the cell that it stands in."""
    title = row.items[0].name
    empty = [header for header, cell in row.cells.items() if not cell]
    cells = {**row.cells, **({empty[0]: title} if empty else {})}
    return ViewRow(title, cells, row.items)


def _cards(lines: Sequence[str], boilerplate: Collection[str]) -> tuple[ViewRow, ...]:
    found: list[ViewRow] = []
    lines = [line for line in lines if line not in boilerplate]
    for place, line in enumerate(lines):
        item = control(line)
        if item is None:
            continue
        told = _lines_before_control(lines[place + 1 :])
        if item.role == "link" and item.name not in boilerplate and len(told) >= _FACTS:
            found.append(ViewRow(item.name, _paired(told), (item,)))
        elif found and item.name.endswith(f": {found[-1].title}"):
            last = found[-1]
            more = {**last.cells, **_paired(told)} if item.role == "button" else {}
            found[-1] = ViewRow(last.title, more or last.cells, (*last.items, item))
    return tuple(found)


def _lines_before_control(lines: Sequence[str]) -> list[str]:
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


MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_AMOUNT = re.compile(r"EUR (-?[\d,]+\.\d\d)")
_LISTS = ("combobox", "listbox")
_MONEY_NOTE = re.compile(r"\bEUR\b|\bamount\b")
_YES_NO = frozenset({"yes", "no"})
_LONG_MONTH = 28  # a list of at least so many numbers is one of days
_YEAR = re.compile(r"\d{4}")
InputKind = Literal["text", "choice", "check", "date"]
_KINDS: Mapping[str, InputKind] = {
    **dict.fromkeys(_LISTS, "choice"),
    **dict.fromkeys(("checkbox", "switch"), "check"),
    **dict.fromkeys(("textbox", "searchbox", "spinbutton"), "text"),
}


class ViewField(NamedTuple):
    """One thing a form asks for; a date may have several controls."""

    label: str
    kind: InputKind
    items: tuple[PageControl, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The values it lets one choose from; none where one types."""
        first = self.items[0]
        return first.options or tuple(i.name for i in self.items if i.role == "radio")

    @property
    def required(self) -> bool:
        """Whether it says that it must be filled."""
        return any("required" in item.states for item in self.items)


def fields(items: Sequence[PageControl]) -> tuple[ViewField, ...]:
    """Return the fields of a page's controls, in reading order."""
    found: list[ViewField] = []
    dates = _dates(items)
    for item in items:
        base = item.group.split(": ")[0]
        if base in dates and item in dates[base]:
            if not any(f.kind == "date" and f.label == base for f in found):
                found.append(ViewField(base, "date", dates[base]))
        elif item.role in _KINDS:
            found.append(ViewField(item.name, _KINDS[item.role], (item,)))
        elif item.role == "radio":
            last = found[-1] if found else None
            if last and (last.items[0].role, last.label) == ("radio", item.group):
                found[-1] = last._replace(items=(*last.items, item))
            else:
                found.append(ViewField(item.group, "choice", (item,)))
    return tuple(found)


def _dates(items: Sequence[PageControl]) -> Mapping[str, tuple[PageControl, ...]]:
    """Return the controls of each date that is asked for in parts, by its group."""
    parts: dict[str, list[PageControl]] = {}
    for item in items:
        chooses = item.role in _LISTS or item.role == "radio"
        if item.group and chooses and _part_of(item, items) is not None:
            parts.setdefault(item.group.split(": ")[0], []).append(item)
    return {
        base: tuple(found)
        for base, found in parts.items()
        if {_part_of(i, items) for i in found} >= {"day", "month", "year"}
    }


def _part_of(item: PageControl, items: Sequence[PageControl]) -> str | None:
    """Return which part of a date a control asks for, None if for none."""
    names = item.options or tuple(
        i.name for i in items if i.role == "radio" and i.group == item.group
    )
    values = [name for name in names if name[:1].isalnum() and name not in _CHOOSE]
    if values and all(value in MONTHS for value in values):
        return "month"
    values = [value for value in values if value.isdigit()]
    if values and all(_YEAR.fullmatch(value) for value in values):
        return "year"
    is_long = len(values) >= _LONG_MONTH or (item.options and len(values) > len(MONTHS))
    return "day" if is_long else None


_CHOOSE = frozenset({"Choose ..."})


def accepts(field: ViewField, value: str) -> bool:
    """Return whether a field's kind fits a value.

    Args:
        field: the field.
        value: a goal argument.
    Returns: False if it can never take the value.
    """
    if field.kind == "date":
        return _ISO.fullmatch(value) is not None
    if field.kind == "check":
        return value.lower() in _YES_NO
    if field.kind == "choice":
        return value in field.options
    return value.lower() not in _YES_NO


def requested_format(field: ViewField) -> re.Pattern[str] | None:
    """Return the pattern of goal values that a field's note asks for, None if none.

    Goal values are ISO dates and amounts with their currency.
    """
    note = field.items[0].note if field.kind == "text" else ""
    if "YYYY" in note:
        return _ISO
    return _AMOUNT if _MONEY_NOTE.search(note) else None


def value_shape(value: str) -> str:
    """Return in words what a value looks like, "" where it could be anything.

    >>> value_shape("12 Mill Lane, Oakham"), value_shape("SPRING10")
    ('address', 'voucher code')
    """
    shapes = {
        "date": _ISO.pattern,
        "amount": _AMOUNT.pattern,
        "voucher code": r"[A-Z]+\d+",
        "former number": r"[A-Z]+-\d+",
        "address": r"\d+ [A-Z]\w+ .+|[A-Z]\w+ [A-Z]\w+ \d+",
        "who name": r"[A-Z]\w+ [A-Z]\w+",
        "how many": r"\d{1,2}",
    }
    found = (name for name, form in shapes.items() if re.fullmatch(form, value))
    return next(found, "")


def typed_text(value: str, pattern: str) -> str:
    """Return a value as it is typed: dates by the page's pattern, bare amounts.

    Args:
        value: a goal argument.
        pattern: the date pattern, such as DD/MM/YYYY; "" keeps ISO.
    Returns: The text to type.

    >>> typed_text("2041-03-19", "DD/MM/YYYY"), typed_text("EUR 2,479.99", "")
    ('19/03/2041', '2479.99')
    """
    amount = _AMOUNT.fullmatch(value)
    if amount is not None:
        return amount[1].replace(",", "")
    date = _ISO.fullmatch(value)
    if date is None or not pattern:
        return value
    parts = {"YYYY": date[1], "MM": date[2], "DD": date[3]}
    for name, digits in parts.items():
        pattern = pattern.replace(name, digits)
    return pattern


def fill_calls(field: ViewField, value: str, pattern: str) -> Iterator[PlanCall]:
    """Yield the calls that set a field to a value; none if it has it already.

    Args:
        field: the field as the page shows it.
        value: a goal argument.
        pattern: the date pattern, "" if unknown.
    Yields: Tool calls in order.
    """
    if field.kind == "date":
        date = _ISO.fullmatch(value)
        year, month, day = date.groups() if date else ("", "1", "")
        said = {"day": day.lstrip("0"), "month": MONTHS[int(month) - 1], "year": year}
        for part, text in said.items():
            own = [i for i in field.items if _part_of(i, field.items) == part]
            yield from _choices(own, text)
    elif field.kind == "choice":
        yield from _choices(field.items, value)
    elif field.kind == "check":
        if ("checked" in field.items[0].states) != (value.lower() == "yes"):
            yield press(field.items[0])
    else:
        text = typed_text(value, pattern)
        if field.items[0].value not in (text, "*" * len(text)):  # stars: a secret
            yield PlanCall("type", {**_target(field.items[0]), "text": text})


def press(item: PageControl) -> PlanCall:
    """Return the click of a control."""
    return PlanCall("click", _target(item))


def _choices(items: Sequence[PageControl], text: str) -> Iterator[PlanCall]:
    for item in items:
        if item.role in _LISTS and item.value != text:
            yield PlanCall("select", {**_target(item), "option": text})
        is_unticked = item.role == "radio" and "checked" not in item.states
        if is_unticked and item.name == text:
            yield press(item)


def _target(item: PageControl) -> dict[str, object]:
    words = f'{item.role} "{item.name}"'
    if item.group:
        words += f' in "{item.group}"'
    return {"ref": item.ref, "element": words}
