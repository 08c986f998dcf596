"""What a person would take as right is taken, or refused with a word at the time."""

import asyncio

import pytest

from owa_bench.envs.changesurf.oracle.goal import goal_score, is_same, q_state
from owa_bench.envs.changesurf.oracle.hints import next_step
from owa_bench.envs.changesurf.oracle.walk import HttpWalker
from owa_bench.envs.changesurf.server.forms import read_money
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


def test_other_values_are_other_values():
    assert is_same("Mill Lane", "mill  lane")
    assert not is_same("Mill Lane", "Mill Lanes")
    assert is_same("12", 12)
    assert not is_same("1 2", 12)
