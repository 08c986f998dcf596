"""From what a form sent to canonical values: aliases inverted, formats read."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.changesurf.formats import PATTERNS, join_date, read_date, read_money
from owa_bench.envs.changesurf.steps import is_asked
from owa_bench.worlds.site import RenderPlan, SiteValue, Slot, Workflow

_PARTS = ("year", "month", "day")


class Read(NamedTuple):
    """Values by slot, and the slots that could not be read with the reason why."""

    values: dict[str, SiteValue]
    errors: dict[str, str]


def read_slots(
    plan: RenderPlan,
    workflow: Workflow,
    slots: tuple[Slot, ...],
    sent: Mapping[str, str],
    known: Mapping[str, SiteValue],
) -> Read:
    """Return what a form page sent; `sent` is by canonical field reference."""
    values, errors = dict(known), {}
    for slot in slots:
        value = _value(plan, workflow.key, slot, sent)
        if isinstance(value, _Wrong):
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
    return Read(values, errors)


class _Wrong(NamedTuple):
    """Why a text is no value."""

    text: str


def _value(
    plan: RenderPlan, workflow: str, slot: Slot, sent: Mapping[str, str]
) -> SiteValue | _Wrong | None:
    """Return the canonical value, None for an empty field, or what is wrong."""
    ref = f"{workflow}.{slot.key}"
    if slot.kind == "check":
        return "yes" if ref in sent else "no"
    if slot.kind == "date" and plan.slot(ref).control != "text":
        return _date_of_parts(ref, sent)
    text = sent.get(ref, "").strip()
    if not text:
        return None
    if slot.kind == "date":
        pattern = PATTERNS[plan.dates]
        return read_date(text, plan.dates) or _Wrong(f"Write the date as {pattern}.")
    return _typed(slot, text)


def _typed(slot: Slot, text: str) -> SiteValue | _Wrong:
    if slot.kind == "money":
        amount = read_money(text)
        return _Wrong("Write an amount such as 1234.50.") if amount is None else amount
    if slot.kind == "number":
        if not (text.isascii() and text.isdigit()):
            return _Wrong("Write a whole number.")
        number = int(text)
        if not slot.least <= number <= slot.most:
            return _Wrong(f"Choose a number from {slot.least} to {slot.most}.")
        return number
    if slot.kind == "choice" and text not in {o.value for o in slot.options}:
        return _Wrong("Choose one of the options.")
    return text


def _date_of_parts(ref: str, sent: Mapping[str, str]) -> SiteValue | _Wrong | None:
    texts = [sent.get(f"{ref}/{part}", "") for part in _PARTS]
    if not any(texts):
        return None
    if not all(text.isdigit() for text in texts):
        return _Wrong("Choose day, month and year.")
    return join_date(*map(int, texts)) or _Wrong("There is no such day.")
