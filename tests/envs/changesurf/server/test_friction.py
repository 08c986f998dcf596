"""Friction costs acts and no thought: what a site says of it holds."""

import asyncio
from itertools import pairwise

import msgspec
import pytest

from owa_bench.envs.changesurf.browser.observation import html_controls
from owa_bench.envs.changesurf.oracle.hints import OracleStep, next_step
from owa_bench.envs.changesurf.oracle.walk import HttpWalker, walk
from owa_bench.envs.changesurf.server.page_model import Listing
from owa_bench.envs.changesurf.server.sign_in import act_ms, is_waiting
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.envs.changesurf.world import CODES, Friction
from owa_bench.records.events import Action
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import ListSink
from tests.builders import changesurf_worlds as worlds


def site(family, tier, seed=3, *, auth=None, **plan):
    made = worlds.world(family, tier, seed).with_plan(**plan).with_auth(**(auth or {}))
    return worlds.timeline(worlds.instance(family, tier, seed), made)


def visit(timeline, script, **terms):
    async def run():
        async with HttpWalker(timeline, **terms) as walker:
            await walker.load("GET", walker.server.start_url)
            return await script(walker)

    return asyncio.run(run())


async def until(walker, timeline, condition):
    """Follow the oracle to the first step that meets a condition."""
    for _ in range(120):
        step = next_step(timeline, walker.server.state, walker.control_values())
        if condition(step, walker.server.state) or step.op == "done":
            return step
        await walker.perform(step)
    raise AssertionError(walker.server.state.page)


@pytest.mark.parametrize("window_s", [7, 20])
@pytest.mark.parametrize("requests", [1, 3, 6])
def test_a_visitor_who_waits_as_told_is_served(window_s, requests):
    friction = Friction(requests=requests, window_ms=1000 * window_s, slow_ms=370)
    timeline = site("depot/buy", 2, friction=friction)

    async def script(walker):
        for _ in range(40):
            await walker.load("GET", walker.server.start_url)
            if walker.status == 429:
                seconds = int(walker.reply.headers["retry-after"])
                assert f"wait {seconds} seconds" in walker.root.text()
                walker.now_ms += 1000 * seconds
                await walker.perform(OracleStep("press", "", "Try again"))
                assert walker.status == 200
                return True
        return False

    assert visit(timeline, script)


def test_a_page_that_a_form_leads_to_is_no_request_of_its_own():
    """A form that is taken is never followed by a limit that hides what came of it."""
    friction = Friction(requests=4, window_ms=60_000)
    found = walk(site("depot/buy", 3, friction=friction))
    worlds.solved(found)
    log = found.state.log
    limited = [b for a, b in pairwise(log) if b.kind == "limited"]
    assert limited
    assert not [
        b
        for a, b in pairwise(log)
        if b.kind == "limited"
        and a.kind in ("step", "commit", "signed_in")
        and b.at_ms - a.at_ms < 250
    ]


@pytest.mark.parametrize("kind", ["mailbox", "one_time"])
def test_a_code_works_once(kind):
    timeline = site("depot/return", 2, auth={"kind": kind, "expires": 5})
    auth = timeline.worlds[0].plan.auth
    assert len(set(auth.codes)) == CODES
    codes = []

    async def script(walker):
        def typed(step, _):
            known = auth.mailed if kind == "mailbox" else auth.codes
            return step.op == "fill" and step.value in known

        for _ in range(2):
            step = await until(walker, timeline, typed)
            if codes:  # the first code again
                await walker.perform(step._replace(value=codes[0]))
                await submit(walker)
                assert "used before" in walker.root.text()
                assert not walker.server.state.signed_in
            await walker.perform(step)
            codes.append(step.value)
            await submit(walker)
            assert walker.server.state.signed_in
            for _ in range(6):
                await walker.load("GET", walker.server.start_url)
        return walker.server.state

    visit(timeline, script)
    assert codes[0] != codes[1]


async def submit(walker):
    form = next(n for n in walker.root.elements() if n.tag == "form")
    await walker.press(next(n for n in html_controls(form) if n.role == "button"))


def test_a_sign_in_that_lapsed_says_so_and_gives_back_what_was_typed():
    timeline = site("depot/buy", 2, auth={"kind": "password", "expires": 1})

    async def script(walker):
        def filled(step, state):
            return state.page.startswith("flow:") and step.name and step.op == "press"

        await until(walker, timeline, filled)
        before = [c.value for c in walker.control_values() if c.value]
        await walker.load("GET", walker.url)  # one page more than the sign-in lasts
        await until(walker, timeline, filled)
        held = [c.value for c in walker.control_values() if c.value]
        walker.server._state = msgspec.structs.replace(walker.server.state, signed_requests=1)
        await submit(walker)
        assert "it lasts for 1 pages" in walker.root.text()
        before = walker.server.state
        step = await until(walker, timeline, lambda _, s: s.page.startswith("flow:"))
        assert is_waiting(before, walker.server.state, waits=False)
        assert [c.value for c in walker.control_values() if c.value] == held
        return step

    visit(timeline, script)


def test_two_clicks_are_never_too_fast():
    """A page of boxes and a confirmation are taken as fast as anybody clicks."""
    friction = Friction(least_ms=60_000)
    timeline = site("depot/return", 1, friction=friction)
    flow = timeline.worlds[0].plan.flow("return")
    world = timeline.worlds[0].with_part("flows", flow, review=True)
    found = walk(worlds.timeline(timeline.instance, world))
    worlds.solved(found)
    assert not [e for e in found.state.log if e.kind == "refused"]
    assert not [step for step in found.steps if step.op == "wait"]


def test_what_a_person_types_takes_a_persons_time():
    assert act_ms() == 1_300
    assert act_ms("0123456789") == 3_300


@pytest.mark.parametrize("tier", [1, 2, 3])
@pytest.mark.parametrize("family", ["depot/buy", "ledger/reverse", "stay/change"])
def test_a_search_finds_every_row_by_any_word_that_the_list_shows(family, tier):
    timeline = site(family, tier, auth={"early": False})

    async def script(walker):
        words = 0
        for plan in timeline.worlds[0].plan.lists:
            url = walker.server._factory.route(f"list:{plan.key}")
            name = walker.server._factory.aliases.of("field", "sys:q")
            await walker.load("GET", url)
            for row in listed(walker)[:3]:
                for cell in row.cells:
                    word = cell.text.split()[0]
                    await walker.load("GET", f"{url}?{name}={word}")
                    words += 1
                    found = listed(walker)
                    pages = len(found) == plan.size
                    assert pages or row.key in {other.key for other in found}
        return words

    assert visit(timeline, script) > 9


def listed(walker):
    [block] = [b for b in walker.server.page().blocks if isinstance(b, Listing)]
    return block.rows


def test_acts_that_friction_takes_are_marked_and_spend_no_step(browser):
    friction = Friction(requests=1, window_ms=20_000)
    timeline = site("depot/buy", 1, auth={"kind": "none"}, friction=friction)
    terms = EpisodeTerms(step_limit=2)
    sink = ListSink()
    episode = Episode(SUITE, timeline, sink=sink, terms=terms)
    try:
        menu = timeline.worlds[0].plan.label("menu:orders")
        marks = []
        for tool, name in (("click", menu), ("wait", ""), ("click", "Try again")):
            found = [c for c in episode.session.state.controls if c.name == name]
            given = {"seconds": 20} if tool == "wait" else {"ref": found[0].ref}
            episode.step(call_text(tool, given))
            acts = [e for e in sink.events if isinstance(e, Action)]
            marks.append(acts[-1].waiting)
        assert marks == [True, True, False]
        assert (episode.steps, episode.spent) == (3, 1)
        assert episode.ending is None
        for _ in range(2):  # waiting for nothing is no wait
            if episode.ending is None:
                episode.step(call_text("wait", {"seconds": 1}))
        assert episode.ending.reason == "budget:steps"
    finally:
        episode.close()
