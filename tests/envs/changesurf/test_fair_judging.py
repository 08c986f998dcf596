"""What a person would take as right is taken, or refused with a word at the time."""

import asyncio

import pytest

from owa_bench.envs.changesurf.browser.driver import ActionResult
from owa_bench.envs.changesurf.browser.observation import BLANK_PAGE
from owa_bench.envs.changesurf.oracle.goal import goal_score, is_same, q_state
from owa_bench.envs.changesurf.oracle.hints import next_step
from owa_bench.envs.changesurf.oracle.walk import HttpWalker
from owa_bench.envs.changesurf.server.forms import read_money
from owa_bench.envs.changesurf.server.state import commits
from owa_bench.envs.changesurf.session import ChangeSurfSession
from owa_bench.shells.episode_events import ListSink
from tests.builders import changesurf_worlds as worlds


def played(family, tier, change, seed=3):
    """Follow the oracle, with every typed text changed; return state and page text."""
    timeline = worlds.timeline(worlds.instance(family, tier, seed))
    auth = timeline.worlds[0].plan.auth
    kept = {auth.user, auth.password, *auth.codes, *auth.mailed}

    async def run():
        async with HttpWalker(timeline) as walker:
            await walker.load("GET", walker.server.start_url)
            for _ in range(120):
                state = walker.server.state
                step = next_step(timeline, state, walker.control_values())
                if step.op == "done" or any(e.kind == "refused" for e in state.log):
                    break
                if step.op == "fill" and step.value not in kept:
                    await _rest(walker, timeline, {}, change)
                    continue
                await walker.perform(step)
            return walker.server.state, walker.root.text()

    return asyncio.run(run())


async def _rest(walker, timeline, texts, change):
    """Fill in a form as if the changed texts were the oracle's, and send it."""
    page = walker.server.state.page
    for _ in range(40):
        controls = tuple(
            held._replace(value=texts.get(held.ident, held.value))
            for held in walker.control_values()
        )
        step = next_step(timeline, walker.server.state, controls)
        if step.op == "fill":
            control = walker.find(step)
            texts[control.attributes["id"]] = step.value
            walker._values[id(control)] = change(step.value)
            continue
        await walker.perform(step)
        if step.op == "press" and walker.server.state.page != page:
            return
        if any(event.kind == "refused" for event in walker.server.state.log):
            return


@pytest.mark.parametrize("change", [str.lower, str.upper, lambda t: f"  {t} "])
@pytest.mark.parametrize("family", ["depot/buy", "permit/apply", "ledger/transfer"])
def test_letter_case_and_spaces_are_no_mistake_or_are_refused(family, change):
    state, text = played(family, 3, change)
    refused = [event for event in state.log if event.kind == "refused"]
    assert q_state(state) == 1.0 or refused
    if refused:
        assert refused[-1].detail[0] or "Please look at the fields below." in text


@pytest.mark.parametrize("change", ["EUR {}", "{} EUR", "eur {}", " {}"])
def test_an_amount_may_name_its_currency(change):
    state, _ = played("depot/quote", 1, change.format)
    assert goal_score(state) == 1.0


@pytest.mark.parametrize("text", ["about 12", "12,50 or so", "1.234,50", "twelve"])
def test_what_is_no_amount_is_refused_with_a_word(text):
    assert read_money(text) is None
    state, page = played("depot/quote", 1, lambda _: text)
    assert "Write an amount such as 1234.50." in page
    assert not state.rows("answers")


def test_a_wrong_answer_is_corrected_by_sending_another():
    """What is sent last counts, as the goal says; it was a second row that cost."""
    timeline = worlds.timeline(worlds.instance("depot/quote", 1, 3))

    async def run():
        async with HttpWalker(timeline) as walker:
            for text in ("1.00", None):
                await walker.load("GET", walker.server.start_url)
                await _send(walker, timeline, text)
            return walker.server.state

    state = asyncio.run(run())
    assert "what is sent last counts" in timeline.worlds[0].spec.goal.text
    assert commits(state) == 2
    assert len(state.rows("answers")) == 1
    assert q_state(state) == 1.0


async def _send(walker, timeline, text):
    """Follow the oracle to one commit; `text` is typed in place of its answer."""
    count = commits(walker.server.state)
    for _ in range(60):
        state = walker.server.state
        if commits(state) > count:
            return
        step = next_step(timeline, state, walker.control_values())
        if step.op == "fill" and text is not None:
            await _rest(walker, timeline, {}, lambda _: text)
            continue
        await walker.perform(step)


def test_an_answer_in_finish_alone_is_refused_once_with_the_way():
    timeline = worlds.timeline(worlds.instance("depot/quote", 1, 3))
    session = ChangeSurfSession(timeline, sink=ListSink(), driver=_Blank())
    assert session.task.text
    assert session.finish_refusal({"answer": "done"}) == ""
    assert "is not judged" in session.finish_refusal({"answer": "It is 12.50"})
    assert session.finish_refusal({"answer": "It is 12.50"}) == ""


class _Blank:
    """A driver whose page shows nothing."""

    def open(self, place):
        return ActionResult(BLANK_PAGE)

    def exchanges(self):
        return ()

    def snapshot(self):
        return b"{}"


def test_other_values_are_other_values():
    assert is_same("Mill Lane", "mill  lane")
    assert not is_same("Mill Lane", "Mill Lanes")
    assert is_same("12", 12)
    assert not is_same("1 2", 12)
