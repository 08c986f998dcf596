"""Silent drift is decidable: a reader of served pages alone finds the truth.

The reader gets HTML and nothing of the world: a list, the page of one of its rows, or
the goal's form as it comes. Table of operators and evidence: docs/changesurf.md.
"""

import asyncio
import re

import pytest

from owa_bench.discovery import find, get
from owa_bench.envs.changesurf.browser.observation import group_name, html_controls, parse_html
from owa_bench.envs.changesurf.generate import TIERS, sites
from owa_bench.envs.changesurf.oracle.walk import HttpWalker, initial_value, walk
from owa_bench.seeding import stream
from tests.builders import changesurf_worlds as worlds

_EUR = re.compile(r"EUR ([\d,]+\.\d\d)")
_SLASHED = re.compile(r"\b(\d{1,2})/(\d{1,2})/\d{4}\b")
_MONTHS = 12
CASES = [
    (f"{key}/{goal}", tier)
    for key, site in sites().items()
    for goal in site.goals
    for tier in TIERS
]


def in_cents(listed, row):
    """Return whether a list shows cents, by its text and that of a row's own page."""
    for amount in _EUR.findall(row):
        whole = re.sub(r"[.,]", "", amount)
        if re.search(rf"(?<![\d.,]){re.escape(amount)}(?!\d)", listed):
            return False
        if re.search(rf"(?<![\d.,]){whole}(?![\d.,])", listed):
            return True
    return None


def order_of_dates(listed):
    """Return `dmy` or `mdy`: a number above 12 is no month. None without such dates."""
    for first, second in _SLASHED.findall(listed):
        if int(first) > _MONTHS >= int(second):
            return "dmy"
        if int(second) > _MONTHS >= int(first):
            return "mdy"
    return None


def comes_filled(form, name):
    """Return whether a field holds a value before anybody has touched it."""
    controls = html_controls(parse_html(form))
    named = [n for n in controls if name in (n.name, group_name(n))]
    return any(initial_value(node) not in ("", False) for node in named)


def struck(operator, family, tier, seed=5):
    """Yield target and timelines before and after the operator at each target."""
    of = worlds.instance(family, tier, seed)
    made = worlds.world(family, tier, seed).with_auth(early=False)
    found = get("operators", f"web/{operator}")
    for target in found.targets(made):
        after = found.apply(made, target, 1.0, rng=stream(seed, target))
        yield target, worlds.timeline(of, made), worlds.timeline(of, after)


def pages_of(timeline, collection):
    """Return the text of a list's first page, and that of its first row's own page."""

    async def read():
        async with HttpWalker(timeline) as walker:
            await walker.load("GET", walker.server.start_url)
            route = walker.server._factory.route
            await walker.load("GET", route(f"list:{collection}"))
            listed = walker.root.text()
            row = timeline.worlds[0].spec.table(collection).rows[0][0]
            await walker.load("GET", route(f"item:{collection}/{row}"))
            return listed, walker.root.text()

    return asyncio.run(read())


@pytest.mark.part(3)
@pytest.mark.parametrize(("family", "tier"), CASES)
def test_cents_without_a_word_are_told_by_a_rows_own_page(family, tier):
    for target, before, after in struck("silent_units", family, tier):
        world = after.worlds[0]
        listed = set(world.plan.listing(target).columns)
        columns = world.spec.collection(target).columns
        if any(c.kind == "money" and c.key in listed for c in columns):
            assert in_cents(*pages_of(before, target)) is False
            assert in_cents(*pages_of(after, target)) is True


@pytest.mark.part(3)
@pytest.mark.parametrize(("family", "tier"), CASES)
def test_the_order_of_day_and_month_is_told_by_the_dates_themselves(family, tier):
    for target, before, after in struck("silent_dates", family, tier):
        shown = order_of_dates(pages_of(after, target)[0])
        assert shown == after.worlds[0].plan.listing(target).dates
        assert order_of_dates(pages_of(before, target)[0]) is None


@pytest.mark.part(3)
@pytest.mark.parametrize(("family", "tier"), CASES)
def test_a_value_that_nobody_chose_is_told_by_the_form(family, tier):
    for target, before, after in struck("default_value", family, tier):
        label = after.worlds[0].plan.label(f"slot:{target.partition('.')[2]}")
        for timeline in (before, after):
            default = timeline.worlds[0].plan.slot(target).default
            forms = [p.html for p in walk(timeline).pages if p.page.startswith("flow:")]
            filled = any(comes_filled(form, label) for form in forms)
            assert filled == (default not in ("", "no")), target


def test_the_tests_above_are_of_every_silent_operator():
    silent = {
        name
        for name, entry in find("operators").items()
        if name.startswith("web/") and entry.plugin.announcement == "D3"
    }
    assert silent == {"web/default_value", "web/silent_dates", "web/silent_units"}
