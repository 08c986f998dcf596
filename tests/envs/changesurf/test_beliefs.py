"""A belief can be settled on the oracle's path and at most three looks aside."""

import asyncio

import msgspec
import pytest

from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES, TIERS, generate
from owa_bench.envs.changesurf.oracle.hints import next_step
from owa_bench.envs.changesurf.oracle.walk import HttpWalker
from tests.builders import changesurf_worlds as worlds

MOST_LOOKS = 3
EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)


class Path:
    """What the oracle's path has shown: cells by page, links, fields of forms."""

    def __init__(self, walker):
        self.walker, self.pages, self.looks = walker, [], 0

    def note(self):
        self.pages.append(self.walker.server.page())

    async def look(self, ref):
        """Follow a link that some page of the path has: one look aside."""
        buttons = [b for page in self.pages for b in page.buttons if b.ref == ref]
        assert buttons, ref
        calm = {"signed_in": True, "signed_requests": 0, "window_used": 0}
        state = self.walker.server.state  # limits and sign-ins are no looks
        self.walker.server._state = msgspec.structs.replace(state, **calm)
        await self.walker.load("GET", buttons[0].href)
        self.looks += 1
        self.note()

    def shows(self, cell, kind):
        return [p.key for p in self.pages if cell in p.shown and p.key.startswith(kind)]

    def has(self, ref):
        return any(b.ref == ref for page in self.pages for b in page.buttons)


async def looks(timeline, proposition):
    """Return how many looks aside the oracle's path needs to settle a proposition."""
    async with HttpWalker(timeline) as walker:
        path = Path(walker)
        await walker.load("GET", walker.server.start_url)
        path.note()
        while True:
            step = next_step(timeline, walker.server.state, walker.control_values())
            if step.op == "done":
                break
            await walker.perform(step)
            path.note()
        if proposition.kind == "default":
            ref = ".".join(proposition.subject)
            asked = [f for p in path.pages for form in p.forms for f in form.fields]
            assert any(field.ref == ref for field in asked)
            return 0
        if proposition.kind == "fact":
            table, key, column, _ = proposition.subject
            cell = (table, key, column)
            await row_page(path, cell, seen=("list", "item"))
            return path.looks
        table, column = proposition.subject
        if f"list:{table}" not in {page.key for page in path.pages}:
            await path.look(f"menu:{table}")
        listed = next(p for p in path.pages if p.key == f"list:{table}" and p.shown)
        plan = timeline.worlds[0].plan.listing(table)
        path.looks += column in plan.drawer  # a row has to be folded out
        first = next(cell for cell in listed.shown if cell[2] == column)
        await row_page(path, first, seen=("item",))
        return path.looks


async def row_page(path, cell, seen):
    table, key, _ = cell
    if any(path.shows(cell, kind) for kind in seen):
        return
    if not path.has(f"item:{table}/{key}"):
        await path.look(f"menu:{table}")
    if not any(path.shows(cell, kind) for kind in seen):
        await path.look(f"item:{table}/{key}")
    assert any(path.shows(cell, kind) for kind in seen)


def cases(seeds, deltas):
    return [
        (family, tier, seed, delta)
        for i, family in enumerate(EVERY)
        for tier in TIERS
        for seed in seeds
        for delta in deltas[(i + tier) % 2 :: 2]
    ]


def settled(case):
    family, tier, seed, delta = case
    timeline = worlds.drifted(worlds.instance(family, tier, seed), delta)
    for proposition in timeline.worlds[0].spec.propositions:
        found = asyncio.run(looks(timeline, proposition))
        assert found <= MOST_LOOKS, (proposition.text, found)


@pytest.mark.part(5)
@pytest.mark.parametrize("case", cases((21,), (0.0, 1.0)), ids=str)
def test_the_path_and_three_looks_settle_every_belief(case):
    settled(case)


@pytest.mark.part(6)
@pytest.mark.slow
@pytest.mark.parametrize("case", cases(range(22, 28), (0.0, 0.5, 0.75, 1.0)), ids=str)
def test_the_path_and_three_looks_settle_every_belief_wherever_one_looks(case):
    settled(case)


def test_a_belief_is_about_the_goals_own_form_and_no_cell_that_the_goal_changes():
    kinds = set()
    for family in EVERY:
        for seed in range(6):
            spec = generate(worlds.instance(family, 3, seed)).spec
            changed = {(w.table, w.key, column) for w in spec.goal.wanted for column, _ in w.values}
            for asked in spec.propositions:
                kinds.add(asked.kind)
                if asked.kind == "default":
                    workflow, slot = asked.subject
                    assert workflow == spec.goal.workflow
                    assert slot in dict(spec.goal.values)
                if asked.kind == "fact":
                    assert asked.subject[:3] not in changed
    assert kinds == {"fact", "unit", "default"}
