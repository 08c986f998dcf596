"""Paired differences by hand, and who could move one without doing the work."""

import pytest
from msgspec.structs import replace as with_changes

from owa_bench.records.price_card import usd_of
from owa_bench.scoring.estimate.comparison import COST, QUALITY, SUCCESS, paired_figures
from owa_bench.scoring.estimate.comparison import outcomes_of as outcomes
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import sample_of
from tests.builders.episodes import PRICES, PROTOCOL, episode, plan_of


def compared(first, second):
    """Return the figures of two lists of episodes, pair by pair, by what they are of.

    A tuple of keyword arguments an episode; the n-th of each are a pair.
    """
    tables = []
    for place, side in enumerate((first, second)):
        made = [
            episode(**{"index": i, "arm": str(place), "pair": f"p{i}", **changes})
            for i, changes in enumerate(side)
        ]
        tables.append((made, observe(made, PRICES)))
    (made, table), (_, other) = tables
    sample = sample_of(plan_of(made, battery=None), table, PROTOCOL, PRICES)
    found = paired_figures(sample, outcomes(other, range(len(other))))
    return {(row.measure, row.group, row.name): row for row in found}


def calls(amount):
    return {"costs": (("api_calls", amount, "agent"),)}


def test_differences_are_second_minus_first_and_ratios_second_over_first():
    good, bad = {"q_state": 1.0, "stated": None}, {"q_state": 0.0, "stated": None}
    found = compared(
        [{**good, **calls(10.0)}, {**bad, **calls(30.0)}],
        [{**good, **calls(20.0)}, {**good, **calls(60.0)}],
    )
    success = found[SUCCESS, "all", ""]
    assert (success.first, success.second, success.difference) == (0.5, 1.0, 0.5)
    assert (success.pairs, success.tasks) == (2, 2)
    assert success.interval.low < 0.5 < success.interval.high
    cost = found[COST, "all", ""]
    price = usd_of(PRICES.cost("api_calls", 1.0))
    assert (cost.first, cost.second) == pytest.approx((20.0 * price, 40.0 * price))
    assert cost.difference == pytest.approx(2.0)


def test_equal_agents_differ_by_nothing_and_the_interval_holds_it():
    side = [{"q_state": q} for q in (0.0, 1.0, 0.5, 1.0)]
    for measure, nothing in ((QUALITY, 0.0), (SUCCESS, 0.0), (COST, 1.0)):
        row = compared(side, side)[measure, "all", ""]
        assert row.difference == nothing
        assert row.interval.low < nothing < row.interval.high


def test_groups_are_families_tiers_and_the_highest_class_that_struck_either():
    first = [
        {"family": "a", "tier": 1, "classes": ()},
        {"family": "a", "tier": 2, "classes": ("D0",), "q_state": 0.0},
        {"family": "b", "tier": 1, "classes": ("D1", "D3")},
        {"family": "b", "tier": 2, "classes": ()},
    ]
    second = [dict(each) for each in first]
    second[1]["classes"] = ("D0", "D2")
    found = compared(first, second)
    groups = {(group, name): row.pairs for (m, group, name), row in found.items()}
    assert groups == {
        ("all", ""): 4,
        ("family", "toolquest/a"): 2,
        ("family", "toolquest/b"): 2,
        ("tier", "T1"): 2,
        ("tier", "T2"): 2,
        ("class", "no drift"): 2,
        ("class", "D2"): 1,
        ("class", "D3"): 1,
    }
    assert found[SUCCESS, "class", "D2"].interval.low is None
    assert "one task" in found[SUCCESS, "class", "D2"].interval.reason


def test_a_group_that_is_all_pairs_is_not_repeated():
    found = compared([{}, {}], [{}, {}])
    assert {key[1] for key in found} == {"all"}


def test_a_disqualified_episode_is_worth_nothing_in_a_comparison():
    breach = {"violations": (("peeked", "disqualify"),)}
    found = compared([{}, {}], [breach, breach])
    assert found[SUCCESS, "all", ""].difference == -1.0
    assert found[QUALITY, "all", ""].second == 0.0


def test_a_cost_that_is_hidden_on_some_pairs_leaves_no_ratio():
    unpriced = {"costs": (("toolquest/unpriced", 5.0, "agent"),)}
    found = compared([calls(10.0)] * 3, [calls(1.0), calls(1.0), unpriced])
    row = found[COST, "all", ""]
    assert (row.difference, row.interval.low) == (None, None)
    assert row.interval.reason == "the cost of 1 of 3 pairs is unknown"


def test_an_agent_that_costs_nothing_makes_no_ratio_infinite():
    found = compared([calls(0.0)] * 2, [calls(5.0)] * 2)
    assert found[COST, "all", ""].difference is None
    both = compared([calls(0.0)] * 2, [calls(0.0)] * 2)[COST, "all", ""]
    assert both.difference is None
    assert both.interval.reason


def test_records_are_frozen():
    row = compared([{}, {}], [{}, {}])[SUCCESS, "all", ""]
    assert with_changes(row, pairs=3).pairs == 3
    with pytest.raises(AttributeError):
        row.pairs = 3
