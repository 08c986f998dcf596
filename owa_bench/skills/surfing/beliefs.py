"""What pages that were seen say of a task's propositions."""

import re
from collections.abc import Mapping

from owa_bench.skills import lexicon
from owa_bench.skills.surfing import sight as reading
from owa_bench.skills.surfing.browser import Browser
from owa_bench.skills.surfing.fields import fields

UNSEEN, LIKELY, UNLIKELY = 0.5, 0.95, 0.05
RARE = 0.3  # amounts in cents, boxes ticked beforehand: seldom, where nothing was seen
_FACT = re.compile(r"says of `(.+?)`: `(.+?)` is (.+?)\.$")
_FORM = re.compile(r"comes with `(.+?)` already ticked")


def held(
    propositions: Mapping[str, str], browser: Browser, units: Mapping[str, bool]
) -> dict[str, float]:
    """Return the probability of each proposition."""
    return {name: _one(text, browser, units) for name, text in propositions.items()}


def _one(text: str, browser: Browser, units: Mapping[str, bool]) -> float:
    fact, form = _FACT.search(text), _FORM.search(text)
    if fact is not None:
        return _fact(browser, fact[1], fact[3])
    if form is not None:
        return _ticked(browser, form[1])
    if "cents" in text and units:
        return LIKELY if any(units.values()) else UNLIKELY
    return RARE


def _fact(browser: Browser, title: str, value: str) -> float:
    """Return whether a row that was seen holds a value in any of its cells."""
    for page in browser.seen:
        cells = [
            r.cells for r in reading.rows(page, browser.furniture) if r.title == title
        ]
        if page.heading == title:
            cells.append(reading.facts(page))
        if cells:
            return LIKELY if value in cells[0].values() else UNLIKELY
    return UNSEEN


def _ticked(browser: Browser, label: str) -> float:
    """Return whether a box of that name was ticked when its page came."""
    for page in browser.seen:
        for field in fields(page.items):
            if field.kind == "check" and lexicon.alike(field.label, label) > UNSEEN:
                return LIKELY if "checked" in field.items[0].states else UNLIKELY
    return RARE
