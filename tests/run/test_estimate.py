"""A dry run: what a plan would take, by hand."""

import dataclasses

import pytest

from owa_bench.discovery import get
from owa_bench.errors import UnknownNameError
from owa_bench.records import price_card
from owa_bench.records.plan import Budget
from owa_bench.run.draws import Draw
from owa_bench.run.estimate import WORKER_START_S, estimate
from owa_bench.run.request import Request, planned


def test_by_hand(small, means):
    budget = Budget(steps=10, act_s=2.0)
    asked = small("noop", "fixed", interventions=(0, 3), budget=budget)
    found = estimate(asked, means)
    assert found.episodes == 4
    assert found.by_arm == {"noop": 2, "fixed": 2}
    assert found.longest_s == 4 * 10 * 2.0
    assert found.unknown == ("tokens_in", "tokens_out")
    prices = price_card.load(planned(asked).price_card)
    calls = prices.cost("api_calls", 4 * 10)
    hints = prices.cost("supervisor_min", 2 * 3 * 2.0)
    assert found.cost_micro_usd == calls + hints
    assert hints > 0


def test_a_ceiling_bounds_a_meter(small, means):
    ceiling = Budget(steps=10, episode_meters=(("tokens_in", 5.0),))
    assert estimate(small("noop", budget=ceiling), means).unknown == ("tokens_out",)
    loose = estimate(small("noop", budget=Budget(steps=10)), means)
    tight = Budget(steps=10, run_meters=(("supervisor_min", 1.0),))
    bound = estimate(small("noop", budget=tight), means)
    assert bound.cost_micro_usd < loose.cost_micro_usd


def test_the_time_is_what_the_suites_cards_say(means):
    draws = tuple(
        Draw(name=name, tiers=(1,), deltas=(0.0,))
        for name in ("toolquest", "changesurf")
    )
    asked = Request(agents=("noop",), draws=draws)
    entries = planned(asked).plan.entries
    seconds = {
        name: get("suites", name).card.episode_s for name in ("toolquest", "changesurf")
    }
    assert seconds["changesurf"] > 5 * seconds["toolquest"]
    whole = sum(seconds[entry.suite] for entry in entries)
    found = estimate(asked, dataclasses.replace(means, workers=2))
    assert found.scripted_s == pytest.approx(whole / 2 + WORKER_START_S)


def test_the_web_battery_takes_hours(means):
    found = estimate(Request(agents=("agentic",), battery="web"), means)
    assert found.scripted_s > 3600.0


def test_nothing_is_written(small, means):
    estimate(small("noop"), means)
    assert not means.home.exists()


def test_a_wrong_request_raises_as_in_play(small, means):
    with pytest.raises(UnknownNameError):
        estimate(small("nop"), means)
