"""A dry run: what a plan would take, by hand."""

import pytest

from owa_bench.errors import UnknownNameError
from owa_bench.records import price_card
from owa_bench.records.plan import Budget
from owa_bench.run.estimate import estimate
from owa_bench.run.request import planned


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


def test_nothing_is_written(small, means):
    estimate(small("noop"), means)
    assert not means.home.exists()


def test_a_wrong_request_raises_as_in_play(small, means):
    with pytest.raises(UnknownNameError):
        estimate(small("nop"), means)
