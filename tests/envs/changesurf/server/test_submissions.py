"""Random walks that submit every form of a site: every page stays servable.

Over HTTP without a browser. A walk sends valid and garbled values, begins at rows of
its own, signs in again where that lapsed, and then opens every list and every row.
"""

import asyncio

import numpy as np
import pytest

from owa_bench.envs.changesurf.generate import HELD_OUT_FAMILIES, TIERS, sites
from owa_bench.envs.changesurf.oracle.walk import HttpWalker
from owa_bench.envs.changesurf.server.listing import categories, list_address
from owa_bench.envs.changesurf.server.sign_in import sign_in_code
from owa_bench.envs.changesurf.server.state import Query, commits
from tests.builders import changesurf_worlds as worlds

pytestmark = pytest.mark.part(3)

MAGNITUDES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
GRID = [
    (f"{site}/{goal}", tier, delta)
    for site, found in sites().items()
    for i, goal in enumerate(found.goals)
    for tier in TIERS
    for delta in MAGNITUDES[i % 2 :: 2]
]
SENDS = 30  # forms of one draft, refusals and sign-ins included
GARBLED = 0.15  # share of fields that get a value which may be refused
NONSENSE = ("", "x", "-1", "99999", "31/31/31", "1e9", "<b>", "0.001", "½", " ")


class Visitor:
    """Fills in and sends what is open, by what the page model says it means."""

    def __init__(self, walker, rng):
        self.walker, self.rng = walker, rng

    @property
    def state(self):
        return self.walker.server.state

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    async def open(self, page, query=None):
        factory = self.walker.server._factory
        url = factory.route(page)
        if query is not None:
            collection = self.state.world.spec.collection(page.partition(":")[2])
            url = list_address(factory, collection, query)
        await self.walker.load("GET", url)
        while self.state.page in ("limited", "login", "login2", "passport", "mail"):
            await self.send()

    async def send(self):
        """Send the open form, or follow the link that leads on."""
        page, state = self.walker.server.page(), self.state
        if state.page == "limited":
            self.walker.now_ms += 60_000
            buttons = {b.ref: b for b in page.buttons}
            return await self.walker.load("GET", buttons["retry"].href)
        if state.page == "mail" or not page.forms:
            refs = ("back:login2", "passport", "menu:home")
            buttons = {b.ref: b for b in page.buttons}
            [ref] = [r for r in refs if r in buttons][:1]
            return await self.walker.load("GET", buttons[ref].href)
        mailed = state.page == "login2" and state.world.plan.auth.kind == "mailbox"
        if mailed and state.codes_read < state.codes_sent:
            return await self.open_mail(page)
        form = page.forms[0]
        pairs = list(form.hidden)
        for field in form.fields:
            pairs += self.values(field)
        button = self.pick([b for b in form.buttons if not b.href])
        if button.name:
            pairs.append((button.name, button.value))
        self.walker.now_ms += 10_000
        return await self.walker.load("POST", form.action, pairs)

    async def open_mail(self, page):
        buttons = {b.ref: b for b in page.buttons}
        await self.walker.load("GET", buttons["menu:mail"].href)

    def values(self, field):
        auth = self.state.world.plan.auth
        known = {"sys:user": auth.user, "sys:password": auth.password}
        if field.ref in known:
            return [(field.name, known[field.ref])]
        if field.ref == "sys:code":
            return [(field.name, sign_in_code(self.state))]
        if field.parts:
            return [pair for part in field.parts for pair in self.values(part)]
        if field.choices:
            if field.control in ("box", "switch"):
                ticked = self.rng.random() < 0.5
                return [(field.name, field.choices[0].value)] if ticked else []
            return [(field.name, self.pick(field.choices).value)]
        return [(field.name, self.text(field))]

    def text(self, field):
        if self.rng.random() < GARBLED:
            return self.pick(NONSENSE)
        workflow, _, key = field.ref.partition(".")
        kind = self.state.world.spec.workflow(workflow).slot(key).kind
        day, year = int(self.rng.integers(13, 28)), self.state.world.spec.today[:4]
        dates = {
            "iso": f"{year}-05-{day}",
            "dmy": f"{day}/05/{year}",
            "mdy": f"05/{day}/{year}",
            "dots": f"{day}.05.{year}",
        }
        texts = {
            "date": dates[self.state.world.plan.dates],
            "money": f"{int(self.rng.integers(1, 900))}.50",
            "number": str(int(self.rng.integers(1, 4))),
        }
        return texts.get(kind) or self.pick(("Ada Berg", "SPRING10", "12 Mill Lane"))


async def submit_everything(case, seed=3):
    """Return the visitor after every form was sent and every page opened."""
    family, tier, delta = case
    timeline = worlds.drifted(worlds.instance(family, tier, seed), delta)
    rng = np.random.default_rng([seed, tier, int(100 * delta)])
    async with HttpWalker(timeline) as walker:
        visitor = Visitor(walker, rng)
        await walker.load("GET", walker.server.start_url)
        for workflow in timeline.worlds[0].spec.workflows:
            for _ in range(3):
                await one_draft(visitor, workflow)
        await open_everything(visitor)
        return visitor.state


async def one_draft(visitor, workflow):
    """Begin a workflow, at an own row now and then, and send its forms to the end."""
    page = f"start:{workflow.key}"
    if workflow.record:
        rows = visitor.state.rows(workflow.record)
        page += f"/{visitor.pick((rows[0], visitor.pick(rows), rows[-1]))[0]}"
    await visitor.open(page)
    for _ in range(SENDS):
        if visitor.state.page.partition(":")[0] in ("done", "home", "missing"):
            return
        await visitor.send()


async def open_everything(visitor):
    world = visitor.state.world
    for collection in world.spec.collections:
        rows = visitor.state.rows(collection.key)
        queries = [Query(page=n) for n in range(1, 2 + len(rows) // 3)]
        names = categories(visitor.state, collection)
        queries += [Query(category=name) for name in names]
        queries += [Query(words=str(rows[-1][0])), Query(words="%&+ ü")]
        for query in queries:
            await visitor.open(f"list:{collection.key}", query)
            servable(visitor, f"list:{collection.key}")
            assert visitor.state.query == query
        for row in rows:
            await visitor.open(f"item:{collection.key}/{row[0]}")
            servable(visitor, f"item:{collection.key}/{row[0]}")


def servable(visitor, page):
    """Check that the open page is the one asked for, and can be read."""
    assert visitor.walker.status == 200, page
    assert visitor.state.page == page
    worlds.readable(visitor.walker.pages[-1].html)


@pytest.mark.part(2)
@pytest.mark.parametrize("case", GRID[7::23], ids=str)
def test_every_page_stays_servable_after_any_valid_submissions(case):
    state = asyncio.run(submit_everything(case))
    assert commits(state) >= 2


@pytest.mark.part(5)
@pytest.mark.slow
@pytest.mark.parametrize("case", GRID, ids=str)
def test_every_page_of_the_grid_stays_servable(case):
    state = asyncio.run(submit_everything(case, seed=9305))
    assert commits(state) >= 2


@pytest.mark.parametrize("seed", [9305, 9405])
def test_an_order_can_be_looked_at_after_it_was_placed(seed):
    """The walks in which a list failed with `int('')` after a submitted form."""
    state = asyncio.run(submit_everything(("depot/buy", 3, 1.0), seed))
    assert any(row[5] == "placed" for row in state.rows("orders"))


@pytest.mark.parametrize("family", ["depot/buy", "permit/apply", "stay/change"])
def test_every_page_stays_servable_when_drift_strikes_between_two_forms(family):
    async def visit():
        of = worlds.instance(family, 3, 11)
        later = worlds.drifted(of, 1.0).worlds[0]
        async with HttpWalker(worlds.timeline(of)) as walker:
            visitor = Visitor(walker, np.random.default_rng(5))
            workflow = later.spec.workflow(family.partition("/")[2])
            rows = visitor.state.rows(workflow.record)
            await visitor.open(f"start:{workflow.key}/{rows[0][0]}")
            await visitor.send()
            old = walker.url
            walker.server.enter(later)
            await walker.load("GET", old)
            await walker.load("POST", old, [])
            await one_draft(visitor, workflow)
            await open_everything(visitor)

    asyncio.run(visit())


def test_the_held_out_site_is_in_the_grid():
    assert {case[0] for case in GRID} >= set(HELD_OUT_FAMILIES)
