"""Forms: steps of a workflow, values as text, and the parsing of what a form sent."""

import datetime
from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.changesurf.site_spec import DateForm, Kind, SiteValue, Slot, Workflow
from owa_bench.envs.changesurf.world import SiteWorld

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
PATTERNS: dict[DateForm, str] = {
    "iso": "YYYY-MM-DD",
    "dmy": "DD/MM/YYYY",
    "mdy": "MM/DD/YYYY",
    "dots": "DD.MM.YYYY",
}
DATE_PARTS = ("day", "month", "year")
_CENTS = 100
NO_VALUE = "-"  # shown for a cell that nobody has filled in


# --- steps ----------------------------------------------------------------------------


def is_asked(slot: Slot, values: Mapping[str, SiteValue]) -> bool:
    """Return whether a workflow asks for a slot.

    Args:
        slot: the slot.
        values: the values so far, by slot.
    Returns: True unless the slot depends on another value.
    """
    return slot.when is None or values.get(slot.when[0]) == slot.when[1]


def slots_on(
    world: SiteWorld, workflow: Workflow, page: int, values: Mapping[str, SiteValue]
) -> tuple[Slot, ...]:
    """Return the slots that a page shows: those asked, or decided on the same page.

    Args:
        world: the site.
        workflow: one of its workflows.
        page: the page's number, from 0.
        values: the values so far, by slot.
    Returns: The slots in order.
    """
    shown = (workflow.slot(key) for key in world.plan.flow(workflow.key).pages[page])
    return tuple(
        slot
        for slot in shown
        if is_asked(slot, values) or not is_decided(world, workflow, page, slot)
    )


def is_decided(world: SiteWorld, workflow: Workflow, page: int, slot: Slot) -> bool:
    """Return whether it is known, when a page is served, that a slot on it is asked.

    Args:
        world: the site.
        workflow: one of its workflows.
        page: the page's number, from 0.
        slot: a slot of the page.
    Returns: False if a value of the same page decides it.
    """
    keys = world.plan.flow(workflow.key).pages[page]
    return slot.when is None or slot.when[0] not in keys


def steps(world: SiteWorld, workflow: Workflow, values: Mapping[str, SiteValue]) -> tuple[str, ...]:
    """Return the pages of a draft.

    Args:
        world: the site.
        workflow: the draft's workflow.
        values: its values so far, by slot.
    Returns: Page keys in order; the last page commits.
    """
    flow = world.plan.flow(workflow.key)
    path = [
        f"flow:{workflow.key}/{i}"
        for i in range(len(flow.pages))
        if slots_on(world, workflow, i, values)
    ]
    path += [f"offer:{workflow.key}"] * flow.offer
    path += [f"review:{workflow.key}"] * flow.review
    return tuple(path)


# --- values as text -------------------------------------------------------------------


def read_date(text: str, form: DateForm) -> str | None:
    """Parse a date.

    Args:
        text: what was typed.
        form: the site's form of dates.
    Returns: The ISO day, None if the text is no such day.
    """
    order, sign = _order(form)
    pieces = text.strip().split(sign)
    if len(pieces) != len(order) or not all(map(_is_number, pieces)):
        return None
    parts = dict(zip(order, map(int, pieces), strict=True))
    return join_date(parts["y"], parts["m"], parts["d"])


def join_date(year: int, month: int, date: int) -> str | None:
    """Return the ISO day of three numbers.

    Args:
        year: the year.
        month: the month, from 1.
        date: the day of the month, from 1.
    Returns: The day, None if there is no such day.
    """
    try:
        return datetime.date(year, month, date).isoformat()
    except ValueError:
        return None


def shift(day: str, days: int) -> str:
    """Return the ISO day that lies some days after another.

    Args:
        day: an ISO day.
        days: how many days.
    """
    start = datetime.date.fromisoformat(day)
    return (start + datetime.timedelta(days=days)).isoformat()


def show_money(cents: int, *, in_cents: bool = False) -> str:
    """Return an amount as text.

    Args:
        cents: the amount.
        in_cents: whether to show the number of its cents.
    Returns: Two decimals and commas between thousands, or a whole number.
    """
    if in_cents:
        return str(cents)
    sign = "-" if cents < 0 else ""
    units, rest = divmod(abs(cents), _CENTS)
    return f"{sign}{units:,}.{rest:02d}"


def read_money(text: str) -> int | None:
    """Return the cents of `1,234.50`, `EUR 1234.5` or the like, None if it is none."""
    body = text.strip().upper().removeprefix("EUR").removesuffix("EUR")
    body = body.strip().replace(",", "")
    sign = -1 if body.startswith("-") else 1
    units, _, rest = body.removeprefix("-").partition(".")
    rest = rest.ljust(2, "0") if rest else "00"
    if len(rest) != len("00") or not (units + rest).isdigit() or not units.isascii():
        return None
    return sign * (int(units) * _CENTS + int(rest))


def show(value: SiteValue, kind: Kind, form: DateForm, *, in_cents: bool = False) -> str:
    """Return a canonical value as a list or a text field shows it.

    Args:
        value: the value.
        kind: its kind.
        form: the form of dates.
        in_cents: whether amounts are shown in cents.
    Returns: The text, "-" for a value that a row does not have yet.
    """
    if value == "":
        return NO_VALUE
    if kind == "date":
        parts = dict(zip("ymd", str(value).split("-"), strict=True))
        order, sign = _order(form)
        return sign.join(parts[letter] for letter in order)
    if kind == "money":
        return show_money(int(value), in_cents=in_cents)
    return str(value)


def show_fully(value: SiteValue, kind: Kind) -> str:
    """Return a canonical value as a row's own page shows it: never ambiguous.

    Args:
        value: the value.
        kind: its kind.
    Returns: The text: dates with the month's name, amounts with their currency, "-" for a value
        that a row does not have yet.
    """
    if value == "":
        return NO_VALUE
    if kind == "date":
        year, month, date = str(value).split("-")
        return f"{int(date)} {MONTHS[int(month) - 1]} {year}"
    if kind == "money":
        return f"EUR {show_money(int(value))}"
    return str(value)


def _order(form: DateForm) -> tuple[str, str]:
    """Return a date form's order, such as `dmy`, and its separator."""
    pattern = PATTERNS[form]
    sign = next(letter for letter in pattern if not letter.isalpha())
    return "".join(part[0].lower() for part in pattern.split(sign)), sign


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


# --- what a form sent -----------------------------------------------------------------


class FormValues(NamedTuple):
    """Values by slot, and the reason for each slot that could not be parsed."""

    values: dict[str, SiteValue]
    errors: dict[str, str]


class _Fault(NamedTuple):
    """The reason why a text is no value."""

    text: str


def read_slots(
    world: SiteWorld,
    workflow: Workflow,
    slots: tuple[Slot, ...],
    sent: Mapping[str, str],
    known: Mapping[str, SiteValue],
) -> FormValues:
    """Parse what a page of a form sent.

    Args:
        world: the site.
        workflow: the form's workflow.
        slots: the slots of the page.
        sent: texts by canonical field reference.
        known: the values of earlier pages, by slot.
    Returns: All values, with errors.
    """
    values, errors = dict(known), {}
    for slot in slots:
        value = _value(world, workflow.key, slot, sent)
        if isinstance(value, _Fault):
            errors[slot.key] = value.text
        elif value is not None:
            values[slot.key] = value
        elif slot.required and slot.kind != "check":
            errors[slot.key] = "This is needed."
        else:
            values[slot.key] = ""
    for slot in slots:
        if not is_asked(slot, values):
            values.pop(slot.key, None)
            errors.pop(slot.key, None)
    return FormValues(values, errors)


def _value(
    world: SiteWorld, workflow: str, slot: Slot, sent: Mapping[str, str]
) -> SiteValue | _Fault | None:
    """Return the canonical value, None for an empty field, or a fault."""
    ref = f"{workflow}.{slot.key}"
    if slot.kind == "check":
        return "yes" if ref in sent else "no"
    if slot.kind == "date" and world.plan.slot(ref).control != "text":
        return _date_of_parts(ref, sent)
    text = sent.get(ref, "").strip()
    if not text:
        return None
    if slot.kind == "date":
        form = world.plan.dates
        return read_date(text, form) or _Fault(f"Write the date as {PATTERNS[form]}.")
    return _typed_value(slot, text)


def _typed_value(slot: Slot, text: str) -> SiteValue | _Fault:
    if slot.kind == "money":
        amount = read_money(text)
        return _Fault("Write an amount such as 1234.50.") if amount is None else amount
    if slot.kind == "number":
        if not _is_number(text):
            return _Fault("Write a whole number.")
        if not slot.least <= int(text) <= slot.most:
            return _Fault(f"Choose a number from {slot.least} to {slot.most}.")
        return int(text)
    if slot.kind == "choice" and text not in {o.value for o in slot.options}:
        return _Fault("Choose one of the options.")
    return text


def _date_of_parts(ref: str, sent: Mapping[str, str]) -> SiteValue | _Fault | None:
    texts = [sent.get(f"{ref}/{part}", "") for part in reversed(DATE_PARTS)]
    if not any(texts):
        return None
    if not all(text.isdigit() for text in texts):
        return _Fault("Choose day, month and year.")
    return join_date(*map(int, texts)) or _Fault("There is no such day.")
