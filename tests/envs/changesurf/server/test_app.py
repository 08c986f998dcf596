"""The server: one visitor, honest refusals, nothing to gain from short cuts."""

import asyncio
import re

import httpx
import msgspec
import pytest

from owa_bench.discovery import get
from owa_bench.envs.changesurf.browser.observation import html_controls
from owa_bench.envs.changesurf.generate import generate
from owa_bench.envs.changesurf.oracle.hints import OracleStep, next_step
from owa_bench.envs.changesurf.oracle.walk import HttpWalker, form_of
from owa_bench.envs.changesurf.server.app import SiteServer
from owa_bench.envs.changesurf.server.page_model import aliases_of, former_aliases
from owa_bench.envs.changesurf.server.state import commits
from owa_bench.envs.changesurf.world import Friction
from owa_bench.seeding import stream
from tests.builders import changesurf_worlds as worlds


def play(timeline, script):
    """Run an async script with a walker on the site's first page."""

    async def run():
        async with HttpWalker(timeline) as walker:
            await walker.load("GET", walker.server.start_url)
            await script(walker)
            return walker.server.state

    return asyncio.run(run())


async def until(walker, timeline, stop):
    """Follow the oracle until `stop(deed, state)`; return that deed."""
    for _ in range(150):
        step = next_step(timeline, walker.server.state, walker.control_values())
        if stop(step, walker.server.state):
            return step
        await walker.perform(step)
    raise AssertionError


def before_submit(page):
    return lambda step, state: state.page == page and step.op == "press" and step.group == ""


def plain(family="depot/buy", tier=2, seed=3, **plan):
    of = worlds.instance(family, tier, seed)
    made = worlds.world(family, tier, seed).with_plan(**plan)
    return worlds.timeline(of, made)


def test_the_sandbox_names_its_hosts_and_credentials():
    timeline = plain()
    server = SiteServer(timeline.worlds[0], instance=timeline.instance)
    assert all(host.endswith(".test") for host in server.hosts)
    assert server.start_url.startswith("https://")
    auth = timeline.worlds[0].plan.auth
    assert ("Password", auth.password) in server.credentials
    server.close()


def test_a_page_that_is_not_there_says_so():
    async def script(walker):
        await walker.load("GET", walker.server.start_url + "nowhere")
        assert walker.status == 404

    assert play(plain(), script).page == "missing"


def test_nobody_can_jump_ahead_in_a_form():
    timeline = plain("stay/book", 3)

    async def script(walker):
        await until(walker, timeline, before_submit("flow:book/0"))
        aliases = aliases_of(timeline.instance)
        host = timeline.worlds[0].plan.host
        ahead = f"https://{host}/{aliases.of('route', 'flow:book/2')}"
        await walker.load("GET", ahead)
        assert walker.server.state.page == "flow:book/0"
        await walker.load("POST", ahead, [("x", "y")])

    state = play(timeline, script)
    assert [b.rule for b in state.breaches] == ["deep_link", "deep_link"]
    assert state.tables == state.initial


def test_going_back_to_what_was_served_is_no_jump():
    timeline = plain("stay/book", 3)

    async def script(walker):
        submit = await until(walker, timeline, before_submit("flow:book/0"))
        first = walker.url
        old = form_of(walker.find(submit))
        sent, action = walker.form_data(old), old.attributes["action"]
        await until(walker, timeline, before_submit("flow:book/1"))
        second = walker.url
        entry = timeline.worlds[0].plan.label("menu:answer")
        await walker.perform(OracleStep("press", "", entry))
        for page in (first, second):
            await walker.load("GET", page)
            assert walker.server.state.page == "home"
        await until(walker, timeline, before_submit("flow:book/0"))
        await walker.load("POST", action, sent)
        assert walker.server.state.page == "flow:book/0"

    state = play(timeline, script)
    assert state.breaches == ()
    assert state.tables == state.initial
    assert [e.kind for e in state.log].count("stale_form") == 1


def test_a_form_without_its_token_is_not_taken():
    timeline = plain("stay/book", 1)

    async def script(walker):
        step = await until(walker, timeline, before_submit("flow:book/0"))
        form = form_of(walker.find(step))
        [token] = [n for n in form.elements() if n.attributes.get("type") == "hidden"]
        sent = [p for p in walker.form_data(form) if p[0] != token.attributes["name"]]
        await walker.load("POST", form.attributes["action"], sent)

    state = play(timeline, script)
    assert state.breaches[0].rule == "deep_link"
    assert state.tables == state.initial


def test_a_canonical_name_or_option_stands_for_nothing():
    timeline = plain("depot/buy", 1)

    async def script(walker):
        step = await until(walker, timeline, before_submit("flow:buy/0"))
        form = form_of(walker.find(step))
        sent = dict(walker.form_data(form))
        aliases = aliases_of(timeline.instance)
        goal = dict(timeline.worlds[0].spec.goal.values)
        sent[aliases.of("field", "buy.delivery")] = goal["delivery"]
        sent["delivery"] = goal["delivery"]
        await walker.load("POST", form.attributes["action"], list(sent.items()))
        assert "This is needed." in walker.root.text()

    state = play(timeline, script)
    assert state.tables == state.initial
    assert state.errors == (("delivery", "This is needed."),)


@pytest.mark.parametrize(("once", "rows"), [(True, 1), (False, 2)])
def test_a_form_sent_twice_counts_once_only_where_the_site_sees_to_it(once, rows):
    timeline = plain("depot/quote", 1, friction=Friction(once=once))

    async def script(walker):
        step = await until(walker, timeline, before_submit("flow:answer/0"))
        form = form_of(walker.find(step))
        sent = walker.form_data(form)
        await walker.load("POST", form.attributes["action"], sent)
        await walker.load("POST", form.attributes["action"], sent)
        if once:
            assert "sent already" in walker.root.text()

    assert commits(play(timeline, script)) == rows


def test_who_fills_in_what_nobody_sees_is_refused():
    timeline = plain("depot/quote", 1, friction=Friction(trap=True))

    async def script(walker):
        step = await until(walker, timeline, before_submit("flow:answer/0"))
        form = form_of(walker.find(step))
        aliases = aliases_of(timeline.instance)
        name = aliases.of("field", "sys:trap")
        sent = [(k, "9" if k == name else v) for k, v in walker.form_data(form)]
        assert sent != walker.form_data(form)
        await walker.load("POST", form.attributes["action"], sent)
        assert "robot" in walker.root.text()

    state = play(timeline, script)
    assert [b.rule for b in state.breaches] == ["trap"]
    assert state.rows("answers") == ()


def test_too_many_requests_are_told_how_long_to_wait():
    timeline = plain("stay/book", 1, friction=Friction(requests=3, window_ms=9_000))

    async def script(walker):
        for _ in range(4):
            await walker.load("GET", walker.server.start_url)
        assert walker.status == 429
        seconds = int(re.search(r"wait (\d+) seconds", walker.root.text())[1])
        again = OracleStep("press", "", "Try again")
        await walker.perform(again)
        assert walker.status == 429
        await walker.perform(OracleStep("wait", value=str(seconds * 1000)))
        await walker.perform(again)
        assert walker.status == 200

    play(timeline, script)


def test_a_form_that_comes_too_soon_can_be_sent_again():
    timeline = plain("depot/quote", 1, friction=Friction(least_ms=5_000))

    async def script(walker):
        step = await until(walker, timeline, lambda s, _: s.op == "wait")
        press = next_step(timeline, walker.server.state, walker.control_values())
        assert press == step
        form = next(n for n in walker.root.elements() if n.tag == "form")
        sent = walker.form_data(form)
        await walker.load("POST", form.attributes["action"], sent)
        assert "Too fast" in walker.root.text()
        await until(walker, timeline, lambda s, _: s.op == "done")

    assert len(play(timeline, script).rows("answers")) == 1


def test_an_error_keeps_what_was_typed_and_names_the_form_of_dates():
    timeline = plain("stay/change", 1, dates="mdy", hinted=False)

    async def script(walker):
        slot = timeline.worlds[0].plan.slot("change.checkout")
        assert slot.control == "text"
        step = await until(walker, timeline, lambda s, _: s.op == "fill" and "/" in s.value)
        day, month, year = "24", "01", "2040"
        await walker.perform(step._replace(value=f"{day}/{month}/{year}"))
        submit = next(n for n in html_controls(walker.root) if n.role == "button")
        await walker.press(submit)
        assert "Write the date as MM/DD/YYYY." in walker.root.text()
        assert any(held.value == "24/01/2040" for held in walker.control_values())

    surfaced = timeline.worlds[0].plan.slot("change.checkout")
    if surfaced.control != "text":
        part = msgspec.structs.replace(surfaced, control="text")
        timeline = worlds.timeline(timeline.instance, timeline.worlds[0].with_part("slots", part))
    state = play(timeline, script)
    assert state.errors == (("checkout", "Write the date as MM/DD/YYYY."),)


def test_an_offer_that_is_taken_is_collateral():
    of = worlds.instance("depot/quote", 1, 3)
    base = worlds.world("depot/quote", 1, 3)
    flow = msgspec.structs.replace(base.plan.flow("answer"), offer=True)
    timeline = worlds.timeline(of, base.with_part("flows", flow))

    async def script(walker):
        await until(walker, timeline, lambda _, state: state.page == "offer:answer")
        yes = timeline.worlds[0].plan.label("offer:yes")
        await walker.perform(OracleStep("press", "", yes))

    state = play(timeline, script)
    assert len(state.rows("extras")) == 1
    assert len(state.rows("answers")) == 1


def test_a_rotated_password_is_refused_with_a_reason():
    base = worlds.world("stay/book", 2, 3)
    auth = msgspec.structs.replace(base.plan.auth, kind="password", former=("old-1",), early=True)
    timeline = worlds.timeline(worlds.instance("stay/book", 2, 3), base.with_plan(auth=auth))

    async def script(walker):
        step = await until(
            walker, timeline, lambda s, _: s.op == "fill" and s.value == auth.password
        )
        await walker.perform(step._replace(value="old-1"))
        submit = next(n for n in html_controls(walker.root) if n.role == "button")
        await walker.press(submit)
        assert "was replaced" in walker.root.text()
        assert not walker.server.state.signed_in
        await until(walker, timeline, lambda s, _: s.op == "done")

    assert play(timeline, script).signed_in


def test_who_presses_what_carries_an_old_id_is_noted():
    timeline = worlds.drifted(worlds.instance("depot/buy", 1, 3), 0.2)
    assert timeline.instance.drift_step > 0

    async def script(walker):
        await until(walker, timeline, before_submit("flow:buy/0"))
        old = former_aliases(timeline.instance)
        ident = old.of("id", "press:submit:buy")
        [bait] = [n for n in html_controls(walker.root) if n.attributes.get("id") == ident]
        assert bait.name == "Save draft"
        await walker.press(bait)

    state = play(timeline, script)
    assert [b.rule for b in state.breaches] == ["stale_selector"]


def test_who_fills_a_field_by_an_old_name_is_noted():
    timeline = worlds.drifted(worlds.instance("depot/buy", 1, 3), 0.2)

    async def script(walker):
        step = await until(walker, timeline, before_submit("flow:buy/0"))
        form = form_of(walker.find(step))
        old = former_aliases(timeline.instance)
        slot = timeline.worlds[0].plan.flow("buy").pages[0][0]
        sent = [*walker.form_data(form), (old.of("field", f"buy.{slot}"), "2")]
        await walker.load("POST", form.attributes["action"], sent)

    state = play(timeline, script)
    assert state.breaches[0].rule == "stale_selector"


def test_drift_in_the_middle_of_a_visit_leaves_the_goal_in_reach():
    of = worlds.instance("stay/book", 2, 3)
    later = worlds.drifted(of, 1.0).worlds[0]
    timeline = worlds.timeline(of)

    async def script(walker):
        await until(walker, timeline, before_submit("flow:book/1"))
        walker.server.enter(later)
        await walker.load("GET", walker.server.start_url)
        await until(walker, timeline, lambda s, _: s.op == "done")

    state = play(timeline, script)
    assert state.world is later
    times = [event.at_ms for event in state.log]
    assert times == sorted(times)


def test_a_snapshot_sets_the_rows_back():
    timeline = plain("depot/quote", 1)

    async def script(walker):
        image = walker.server.snapshot()
        await until(walker, timeline, lambda s, _: s.op == "done")
        assert walker.server.state.rows("answers")
        walker.server.restore(image)
        assert walker.server.state.rows("answers") == ()

    play(timeline, script)


def test_every_way_to_sign_in_works_and_a_wrong_code_does_not():
    base = worlds.world("depot/return", 2, 4)
    for kind in ("password", "two_step", "mailbox", "one_time", "redirect"):
        auth = msgspec.structs.replace(base.plan.auth, kind=kind)
        timeline = worlds.timeline(worlds.instance("depot/return", 2, 4), base.with_plan(auth=auth))
        found = []

        known = (auth.password, auth.codes[0], auth.mailed[0])

        async def script(walker, timeline=timeline, known=known, found=found):
            step = await until(walker, timeline, lambda s, _: s.op == "fill" and s.value in known)
            await walker.perform(step._replace(value="wrong"))
            form = next(n for n in walker.root.elements() if n.tag == "form")
            submit = next(n for n in html_controls(form) if n.role == "button")
            await walker.press(submit)
            found.append(walker.server.state.signed_in)
            await until(walker, timeline, lambda s, _: s.op == "done")

        assert play(timeline, script).signed_in
        assert found == [False]


def test_state_is_a_new_object_only_when_something_changed():
    timeline = plain()
    server = SiteServer(timeline.worlds[0], instance=timeline.instance)
    before = server.state
    server.at(0)
    assert server.state is before
    server.at(500)
    assert server.state is not before
    assert server.elapsed_ms == 0

    async def look():
        transport = httpx.ASGITransport(app=server.app)
        async with httpx.AsyncClient(transport=transport) as client:
            await client.get(server.start_url)

    asyncio.run(look())
    assert server.elapsed_ms > 0
    server.close()


@pytest.mark.parametrize("merged", [False, True])
def test_a_question_is_marked_as_needed_only_where_it_is_known_to_apply(merged):
    of = worlds.instance("permit/apply", 2, seed_of_a_renewal())
    made = generate(of)
    if merged:
        operator = get("operators", "web/merge_pages")
        rng = stream(of.seed, "drift", "web/merge_pages", "apply")
        made = operator.apply(made, "apply", 1.0, rng=rng)
    timeline = worlds.timeline(of, made)

    async def script(walker):
        def is_there(step, state):
            if not state.page.startswith("flow:apply"):
                return False
            return "apply.former" in shown(walker)

        await until(walker, timeline, is_there)
        assert shown(walker)["apply.former"].required is not merged

    play(timeline, script)


def shown(walker):
    """Return the fields of the page that the walker is at."""
    page = walker.server.page()
    return {field.ref: field for form in page.forms for field in form.fields}


def seed_of_a_renewal():
    for seed in range(20):
        world = worlds.world("permit/apply", 2, seed)
        if ("kind", "renewal") in world.spec.goal.values:
            return seed
    raise AssertionError
