"""Effects of handicaps by hand: paired intervals, TOST, Page, Fisher, crossed means."""

import math
from itertools import permutations, product

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.validation import discriminance as d
from owa_bench.scoring.validation.discriminance import Reading
from owa_bench.scoring.validation.power import equivalence_tasks


def mean_reading(values, stratum):
    """Return the mean over tasks with its values without each of them."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    left_out = (values.sum() - values) / (n - 1)
    return Reading(float(values.mean()), left_out, np.asarray(stratum))


def test_a_paired_interval_of_means_is_the_t_interval_of_the_differences():
    first, last = [0.9, 0.8, 0.7, 1.0], [0.5, 0.6, 0.1, 0.6]
    one = np.zeros(4, dtype=int)
    change = d.combination([(1.0, mean_reading(last, one)), (-1.0, mean_reading(first, one))])
    gaps = np.array(last) - first  # -.4 -.2 -.6 -.4: mean -.4, sd .163299, se .0816497
    assert change.value == pytest.approx(-0.4)
    half = 3.182446 * 0.0816497  # t(.975, 3)
    span = d.interval(change, 0.95)
    assert span == pytest.approx((-0.4 - half, -0.4 + half), abs=1e-5)
    assert gaps.std(ddof=1) / 2 == pytest.approx(0.0816497, abs=1e-6)
    assert d.spread(change) == pytest.approx(0.163299, abs=1e-5)


def test_no_difference_at_all_has_the_exact_bound():
    flat = Reading(0.0, np.zeros(58), np.repeat([0, 1], 29))
    rare = 1 - 0.025 ** (1 / 58)
    assert d.interval(flat, 0.95) == pytest.approx((-rare, rare))
    assert d.spread(flat) == 0.0
    # 58 tasks do not show a margin of .05, 59 do: .95^59 = .0485
    assert d.equivalence(flat, 0.05) == pytest.approx(0.95**58)
    assert d.equivalence(flat, 0.05) > 0.05 > 0.95**59


def test_tost_by_hand():
    # error .05 on 9 degrees of freedom, change .02, margin .1: t = (.1 - .02) / .05
    values = np.array([1.0, -1.0] * 5)
    left_out = 0.02 + values * 0.05 * math.sqrt(1 / 9)
    change = Reading(0.02, left_out, np.zeros(10, dtype=int))
    assert d.interval(change, 0.95).high == pytest.approx(0.02 + 2.262157 * 0.05)
    # P(T9 > 1.6) = .0720
    assert d.equivalence(change, 0.1) == pytest.approx(0.0720, abs=1e-4)
    assert d.equivalence(change._replace(value=-0.02, left_out=-left_out), 0.1) == (
        pytest.approx(0.0720, abs=1e-4)
    )
    assert d.equivalence(Reading(0.2, np.full(9, 0.2), np.zeros(9, int)), 0.1) == 1.0
    with pytest.raises(ScoringError, match="margin must be above 0, got 0"):
        d.equivalence(change, 0.0)


def test_a_family_of_one_task_has_no_error():
    lone = Reading(0.1, np.array([0.1, 0.2, 0.1]), np.array([0, 0, 1]))
    assert all(map(math.isnan, d.interval(lone, 0.95)))
    assert math.isnan(d.equivalence(lone, 0.1))
    broken = Reading(0.1, np.array([0.1, np.nan]), np.zeros(2, int))
    assert math.isnan(d.interval(broken, 0.95).low)


def test_pages_test_is_the_share_of_orders_that_fall_as_much():
    blocks = np.array([[0.9, 0.5, 0.1], [0.8, 0.3, 0.4]])
    ranks = [(3, 2, 1), (3, 1, 2)]
    weights = (3, 2, 1)  # predicted to fall

    def statistic(rows):
        return sum(w * r for row in rows for w, r in zip(weights, row, strict=True))

    seen = statistic(ranks)
    orders = list(permutations((1, 2, 3)))
    p = np.mean([statistic(pair) >= seen for pair in product(orders, repeat=2)])
    assert d.falling_trend(blocks) == pytest.approx(float(p))
    rising = d.falling_trend(blocks[:, ::-1])
    assert rising > 0.9
    with_gap = np.vstack([blocks, [np.nan, 0.1, 0.2]])
    assert d.falling_trend(with_gap) == pytest.approx(float(p))
    assert math.isnan(d.falling_trend(blocks[:, :2]))
    assert math.isnan(d.falling_trend(blocks[:1]))


def test_fishers_interval_by_hand():
    x = np.array([0.0, 1.0, 2.0, 3.0, np.nan])
    y = np.array([0.0, 2.0, 1.0, 3.0, 9.0])
    found = d.correlation(x, y, 0.95)
    # r = .8; atanh .8 = 1.098612; 1.959964 / sqrt(4 - 3)
    assert found.value == pytest.approx(0.8)
    assert found.low == pytest.approx(math.tanh(1.098612 - 1.959964), abs=1e-6)
    assert found.high == pytest.approx(math.tanh(1.098612 + 1.959964), abs=1e-6)
    assert found.agents == 4
    assert math.isnan(d.correlation(np.ones(4), y[:4], 0.95).value)
    few = d.correlation(x[:3], y[:3], 0.95)
    assert few.value == pytest.approx(0.5)
    assert math.isnan(few.low)


def test_a_main_effect_is_the_mean_change_over_the_other_knob():
    one = np.zeros(2, dtype=int)
    grid = [[mean_reading([a * b, a * b], one) for b in (1.0, 0.5, 0.0)] for a in (1.0, 0.7, 0.2)]
    # (.2 - 1) x mean(1, .5, 0)
    assert d.main_effect(grid).value == pytest.approx(-0.4)


def test_an_excess_holds_sizes_against_each_other():
    one = np.zeros(2, dtype=int)
    own, other = mean_reading([-0.5, -0.7], one), mean_reading([0.1, 0.3], one)
    found = d.excess(own, other, 2.0)
    assert found.value == pytest.approx(0.6 - 2 * 0.2)
    assert found.left_out == pytest.approx([0.7 - 0.6, 0.5 - 0.2])
    with pytest.raises(ScoringError, match="paired only over the same tasks"):
        d.excess(own, other._replace(stratum=np.array([0, 1])), 2.0)
    with pytest.raises(ScoringError, match="at least one reading"):
        d.combination([])


def test_tasks_that_a_declared_zero_needs():
    # all alike: .9^28 = .0523, .9^29 = .0471
    assert equivalence_tasks(0.0, 0.1, 0.05, 0.8) == 29
    # (1.644854 + 1.281552)^2 x .3^2 / .1^2 = 77.08
    assert equivalence_tasks(0.3, 0.1, 0.05, 0.8) == 78
    with pytest.raises(ScoringError, match=r"must lie in \(0, 1\)"):
        equivalence_tasks(0.3, 1.0, 0.05, 0.8)


def test_an_excess_of_nothing_keeps_its_sign():
    one = np.zeros(2, dtype=int)
    none = Reading(0.0, np.array([0.1, -0.1]), one)
    found = d.excess(none, Reading(0.0, np.array([0.2, -0.2]), one), 2.0)
    assert found.left_out == pytest.approx([0.1 - 0.4, -0.1 + 0.4])


def test_two_doses_or_one_block_are_too_few_and_three_and_two_are_not():
    blocks = np.array([[0.9, 0.5, 0.1], [0.8, 0.4, 0.3]])
    assert d.falling_trend(blocks) == pytest.approx(1 / 36)  # both orders of 6 each
    with pytest.raises(ScoringError, match="needs"):
        d.falling_trend(blocks[0])


def test_agents_correlate_from_two_on_and_within_their_bounds():
    x, y = np.array([0.0, 1.0]), np.array([0.2, 0.1])
    two = d.correlation(x, y, 0.95)
    assert (two.value, two.agents) == (pytest.approx(-1.0), 2)
    assert math.isnan(two.low)
    assert math.isnan(d.correlation(x[:1], y[:1], 0.95).value)
    line = np.arange(5.0)
    assert d.correlation(line, 2 * line, 0.95)[:3] == pytest.approx((1.0, 1.0, 1.0))
    for flat in (np.array([0.0, 1e-9, 0.0]), np.full(3, 0.5)):
        assert math.isnan(d.correlation(flat, line[:3], 0.95).value)
        assert math.isnan(d.correlation(line[:3], flat, 0.95).value)
    assert d.correlation(1e-8 * line, line, 0.95).value == pytest.approx(1.0)
    gaps = np.array([np.nan, 1.0, 2.0, 3.0, 0.5]), np.array([1.0, np.nan, 2, 5, 1])
    assert d.correlation(*gaps, 0.95).agents == 3
    with pytest.raises(ScoringError, match="Axes of agents differ"):
        d.correlation(line, line[1:], 0.95)


def test_an_error_needs_two_tasks_in_every_family_and_every_value():
    strata = np.array([0, 0, 1, 1])
    values = np.array([0.1, 0.3, 0.2, 0.2])
    change = Reading(0.2, values, strata)
    for broken in (
        change._replace(value=math.nan),
        change._replace(left_out=np.array([0.1, 0.3, 0.2, np.inf])),
        change._replace(stratum=np.array([0, 0, 0, 1])),
        Reading(0.2, np.zeros(0), np.zeros(0, int)),
    ):
        assert math.isnan(d.interval(broken, 0.95).high)
        assert math.isnan(d.equivalence(broken, 0.1))
        assert math.isnan(d.spread(broken))
    # (1 / 2)(.1^2 + .1^2) = .1^2 on 2 degrees of freedom: t(.975) = 4.302653
    assert d.interval(change, 0.95).high == pytest.approx(0.2 + 0.4302653)
    assert d.spread(change) == pytest.approx(0.2)


def test_a_flat_change_is_within_a_margin_by_the_exact_bound():
    strata = np.zeros(9, int)
    near = Reading(-0.05, np.full(9, -0.05 + 1e-9), strata)
    assert d.equivalence(near, 0.1) == pytest.approx(0.95**9)
    assert d.equivalence(Reading(0.1, np.full(9, 0.1), strata), 0.1) == 1.0
    assert d.spread(near) == 0.0
    moved = near._replace(left_out=np.append(near.left_out[1:], -0.05 + 2e-9))
    assert d.spread(moved) > 0.0
