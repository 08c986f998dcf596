"""The fields of a form: what each asks for and how a value is put into it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from owa_bench.skills.pages import Item
from owa_bench.skills.planning import Call

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_AMOUNT = re.compile(r"EUR (-?[\d,]+\.\d\d)")
_LISTS = frozenset({"combobox", "listbox"})
_TEXTS = frozenset({"textbox", "searchbox", "spinbutton"})
_BOXES = frozenset({"checkbox", "switch"})
_MONEY_NOTE = re.compile(r"\bEUR\b|\bamount\b")
_YES_NO = frozenset({"yes", "no"})
_LONG_MONTH = 28  # a list of at least so many numbers is one of days
_YEAR = re.compile(r"\d{4}")
Kind = Literal["text", "choice", "check", "date"]


class Field(NamedTuple):
    """One thing a form asks for; a date may have several controls."""

    label: str
    kind: Kind
    items: tuple[Item, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The values it lets one choose from; none where one types."""
        first = self.items[0]
        return first.options or tuple(i.name for i in self.items if i.role == "radio")

    @property
    def required(self) -> bool:
        """Whether it says that it must be filled."""
        return any("required" in item.states for item in self.items)


def fields(items: Sequence[Item]) -> tuple[Field, ...]:
    """Return the fields of a page's controls, in reading order."""
    found: list[Field] = []
    dates = _dates(items)
    for item in items:
        base = item.group.split(": ")[0]
        if base in dates and item in dates[base]:
            if not any(f.kind == "date" and f.label == base for f in found):
                found.append(Field(base, "date", dates[base]))
        elif item.role == "radio":
            if found and found[-1].items[0].role == "radio" == item.role:
                last = found[-1]
                if last.label == item.group:
                    found[-1] = last._replace(items=(*last.items, item))
                    continue
            found.append(Field(item.group, "choice", (item,)))
        elif item.role in _LISTS:
            found.append(Field(item.name, "choice", (item,)))
        elif item.role in _BOXES:
            found.append(Field(item.name, "check", (item,)))
        elif item.role in _TEXTS:
            found.append(Field(item.name, "text", (item,)))
    return tuple(found)


def _dates(items: Sequence[Item]) -> Mapping[str, tuple[Item, ...]]:
    """Return the controls of each date that is asked for in parts, by its group."""
    parts: dict[str, list[Item]] = {}
    for item in items:
        chooses = item.role in _LISTS or item.role == "radio"
        if item.group and chooses and _part_of(item, items) is not None:
            parts.setdefault(item.group.split(": ")[0], []).append(item)
    return {
        base: tuple(found)
        for base, found in parts.items()
        if {_part_of(i, items) for i in found} >= {"day", "month", "year"}
    }


def _part_of(item: Item, items: Sequence[Item]) -> str | None:
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


def takes(field: Field, value: str) -> bool:
    """Return whether a field could take a value at all."""
    if field.kind == "date":
        return _ISO.fullmatch(value) is not None
    if field.kind == "check":
        return value.lower() in _YES_NO
    if field.kind == "choice":
        return value in field.options
    return value.lower() not in _YES_NO


def told_form(field: Field) -> re.Pattern[str] | None:
    """Return the form of value that a typed field's note asks for, None if it does not.

    Values are as the goal has them: ISO dates, amounts with their currency.
    """
    note = field.items[0].note if field.kind == "text" else ""
    if "YYYY" in note:
        return _ISO
    return _AMOUNT if _MONEY_NOTE.search(note) else None


def shape(value: str) -> str:
    """Return in words what a value looks like, "" where it could be anything.

    >>> shape("12 Mill Lane, Oakham"), shape("Ada Berg"), shape("SPRING10")
    ('address', 'who name', 'voucher code')
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


def written(value: str, pattern: str) -> str:
    """Return a value as one types it: dates by the page's pattern, bare amounts.

    >>> written("2041-03-19", "DD/MM/YYYY"), written("EUR 2,479.99", "")
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


def puts(field: Field, value: str, pattern: str) -> Iterator[Call]:
    """Yield the calls that bring a field to a value; none where it holds it."""
    if field.kind == "date":
        date = _ISO.fullmatch(value)
        year, month, day = date.groups() if date else ("", "1", "")
        said = {"day": day.lstrip("0"), "month": MONTHS[int(month) - 1], "year": year}
        for part, text in said.items():
            own = [i for i in field.items if _part_of(i, field.items) == part]
            yield from _chosen(own, text)
    elif field.kind == "choice":
        yield from _chosen(field.items, value)
    elif field.kind == "check":
        if ("checked" in field.items[0].states) != (value.lower() == "yes"):
            yield press(field.items[0])
    else:
        text = written(value, pattern)
        if field.items[0].value not in (text, "*" * len(text)):  # stars: a secret
            yield Call("type", {**_named(field.items[0]), "text": text})


def press(item: Item) -> Call:
    """Return the click of a control."""
    return Call("click", _named(item))


def _chosen(items: Sequence[Item], text: str) -> Iterator[Call]:
    for item in items:
        if item.role in _LISTS and item.value != text:
            yield Call("select", {**_named(item), "option": text})
        elif (item.role, item.name) == ("radio", text) and (
            "checked" not in item.states
        ):
            yield press(item)


def _named(item: Item) -> dict[str, object]:
    words = f'{item.role} "{item.name}"'
    if item.group:
        words += f' in "{item.group}"'
    return {"ref": item.ref, "element": words}
