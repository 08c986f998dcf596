"""Bets: evidence by hand, what no bettor can win, bounds, and several claims at once."""

import itertools
import math

import numpy as np
import pytest

from owa_bench.scoring.statistics import betting
from owa_bench.scoring.statistics.betting import BETS, Bets


def bets(values, share=None, slope=None):
    column = np.array(values, dtype=float)
    return Bets(
        column,
        column,
        np.zeros_like(column) if slope is None else np.array(slope, dtype=float),
        np.ones_like(column) if share is None else np.array(share, dtype=float),
    )


def expected(law, share, mean, evidence):
    """Return E[e] over every outcome of independent worlds with these probabilities."""
    total = 0.0
    for outcome in itertools.product((0.0, 1.0), repeat=len(law)):
        chance = math.prod(p if x else 1 - p for x, p in zip(outcome, law, strict=True))
        total += chance * math.exp(evidence(bets(outcome, share), mean))
    return total


def test_evidence_of_two_worlds_by_hand():
    by_hand = np.mean((1 + BETS * (1 / 0.4 - 1)) * (1 + BETS * (0.5 / 0.4 - 1)))
    assert betting.log_above(bets([1.0, 0.5]), 0.4) == pytest.approx(math.log(by_hand))


def test_a_mean_at_the_boundary_wins_nothing():
    assert expected([0.6] * 6, None, 0.6, betting.log_above) == pytest.approx(1.0)
    assert expected([0.6] * 6, None, 0.6, betting.log_below) == pytest.approx(1.0)


def test_strata_whose_weighted_mean_is_the_boundary_win_nothing():
    law, share = [0.95, 0.25] * 3, [1.0, 1.0] * 3  # mean .6
    assert expected(law, share, 0.6, betting.log_above) <= 1.0
    # weights 1 and 1/2: mean (0.8 + 0.2 / 2) / 1.5 = .6
    law, share = [0.8, 0.2] * 3, [1.0, 0.5] * 3
    assert expected(law, share, 0.6, betting.log_above) <= 1.0


def test_strata_with_a_full_stake_each_would_win_for_nothing():
    """The control: the dear stratum is bet on as much as the light one."""
    law = [0.9, 0.0] * 3  # weights 2 and 1: mean .6
    assert expected(law, [1.0, 0.5] * 3, 0.6, betting.log_above) <= 1.0
    assert expected([0.9] * 6, [1.0] * 6, 0.6, betting.log_above) > 1.0


def test_bounds_are_where_the_evidence_reaches_the_bar():
    seen = bets([1.0] * 30 + [0.0] * 10)
    low = betting.lower_bound(seen, math.log(20))
    high = betting.upper_bound(seen, math.log(20))
    assert betting.log_above(seen, low) == pytest.approx(math.log(20), abs=1e-4)
    assert betting.log_below(seen, high) == pytest.approx(math.log(20), abs=1e-4)
    assert 0.5 < low < 0.75 < high < 0.95


def test_no_world_says_nothing():
    assert betting.log_above(betting.NO_BETS, 0.6) == 0.0
    assert betting.lower_bound(betting.NO_BETS, math.log(20)) == 0.0
    assert betting.upper_bound(betting.NO_BETS, math.log(20)) == 1.0
    assert betting.weighted_mean(betting.NO_BETS) is None


def test_a_mean_of_ratios_is_read_by_its_slope():
    """Of depths 1 of 2 and 3 of 4, at most 4: 4 / 6 in all."""
    seen = bets([0.25, 0.75], slope=[0.5, 0.0])
    assert betting.weighted_mean(seen) == pytest.approx(4 / 6)
    at = 0.5  # x + s m is .5 and .75
    by_hand = np.mean((1 + BETS * (0.5 / at - 1)) * (1 + BETS * (0.75 / at - 1)))
    assert betting.log_above(seen, at) == pytest.approx(math.log(by_hand))


def test_a_lost_world_counts_against_both():
    lost = Bets(np.zeros(1), np.ones(1), np.zeros(1), np.ones(1))
    assert betting.log_above(lost, 0.6) < 0.0
    assert betting.log_below(lost, 0.6) < 0.0


@pytest.mark.parametrize("size", [10, 400])
def test_a_long_look_at_an_agent_at_the_boundary_rarely_passes(size):
    """Looking after every world, at most .05 of agents of mean .55 ever reach 20."""
    rng, reached = np.random.default_rng(7), 0
    for _ in range(200):
        values = (rng.random(size) < 0.55).astype(float)
        logs = np.log1p(np.outer(BETS, values / 0.55 - 1)).cumsum(axis=1)
        best = np.log(np.exp(logs).mean(axis=0)).max()
        reached += best >= math.log(20)
    assert reached / 200 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)


def test_several_claims_need_all_but_the_strongest():
    logs = np.array([5.0, 0.0, 1.0, 2.0])
    assert betting.partial_conjunction(logs, 1) == 8.0
    assert betting.partial_conjunction(logs, 2) == 3.0
    assert betting.partial_conjunction(logs, 4) == 0.0
