"""Sufficient statistics: exact sums, weights that fit, tasks that weigh the same."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Observables
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.statistics.statistics_table import (
    Columns,
    StatisticsTable,
    Totals,
    resampling_units,
    weighted_totals,
)
from tests.builders.episodes import PRICES, episode

FAMILIES = ("toolquest/a", "toolquest/b")


def table_of(*rows: tuple[str, str, int, float]) -> Observables:
    """Return episodes of (family, pair, repeat, q_state) without a forecast term."""
    return observe(
        [
            episode(index=i, family=f, pair=p, repeat=r, q_state=q)
            for i, (f, p, r, q) in enumerate(rows)
        ],
        PRICES,
    )


def sums_of(table: Observables, values: np.ndarray) -> Totals:
    units = resampling_units(table, FAMILIES)
    statistics = StatisticsTable(units)
    statistics.add_mean("x", values, np.ones(len(table), dtype=bool))
    ones = np.ones((1, len(units.task)))
    return weighted_totals(ones, statistics.columns(), units.unit_family, np.array([0.5, 0.5]))


def test_units_are_sorted_by_family_task_and_repeat() -> None:
    table = table_of(("b", "p3", 0, 1), ("a", "p2", 1, 1), ("a", "p2", 0, 1))
    units = resampling_units(table, FAMILIES)
    assert units.row.tolist() == [2, 1, 0]
    assert units.task.tolist() == [0, 0, 1]
    assert units.unit_family.tolist() == [0, 0, 1]


def test_each_task_weighs_the_same_however_often_it_was_played() -> None:
    table = table_of(("a", "p", 0, 1), ("a", "p", 1, 1), ("a", "q", 0, 1))
    sums = sums_of(table, np.array([1.0, 1.0, 0.0]))
    assert sums.mean("x")[0, 0] == pytest.approx(0.5, abs=1e-9)


def test_a_family_without_episodes_is_nan_and_left_out() -> None:
    table = table_of(("a", "p", 0, 1))
    sums = sums_of(table, np.array([0.25]))
    assert np.isnan(sums.mean("x")[0, 1])
    assert sums.overall(sums.mean("x")).tolist() == [0.25]


def test_ones_mean_exactly_one() -> None:
    rows = [("a", f"p{i % 7}", i // 7, 1.0) for i in range(20)]
    sums = sums_of(table_of(*rows), np.ones(20))
    assert sums.mean("x")[0, 0] == 1.0


def test_sums_do_not_depend_on_the_order_of_the_units() -> None:
    rng = np.random.default_rng(0)
    columns = np.round(rng.random((300, 5)) * 1e9)
    weights = rng.integers(0, 4, (40, 300)).astype(float)
    order = rng.permutation(300)
    family = np.zeros(300, dtype=np.int64)
    share = np.ones(1)
    names = {str(i): i for i in range(5)}
    a = weighted_totals(weights, Columns(names, columns, {}), family, share)
    b = weighted_totals(weights[:, order], Columns(names, columns[order], {}), family, share)
    assert (a.table == b.table).all()


def test_equal_columns_are_held_once() -> None:
    table = table_of(("a", "p", 0, 1), ("a", "q", 0, 1))
    statistics = StatisticsTable(resampling_units(table, FAMILIES))
    every = np.ones(2, dtype=bool)
    statistics.add_mean("x", np.array([0.0, 1.0]), every)
    statistics.add_mean("y", np.array([0.0, 0.5]), every)
    assert statistics.columns().table.shape == (2, 3)


def test_weights_that_do_not_fit_are_refused() -> None:
    columns = Columns({"x": 0}, np.ones((3, 1)), {})
    with pytest.raises(ScoringError, match=r"Weights must be \(resamples, 3\)"):
        weighted_totals(np.ones((2, 4)), columns, np.zeros(3, dtype=np.int64), np.ones(1))


def test_nan_in_a_counted_episode_is_refused() -> None:
    with pytest.raises(ScoringError, match="got NaN"):
        sums_of(table_of(("a", "p", 0, 1)), np.array([np.nan]))


def test_no_episode_is_refused() -> None:
    with pytest.raises(ScoringError, match="nothing to resample"):
        resampling_units(observe([], PRICES), FAMILIES)


def test_a_pair_in_two_families_is_refused() -> None:
    table = table_of(("a", "p", 0, 1), ("b", "p", 0, 1))
    with pytest.raises(ScoringError, match="one family"):
        resampling_units(table, FAMILIES)


def test_a_family_outside_the_plan_is_refused() -> None:
    with pytest.raises(ScoringError, match="toolquest/c"):
        resampling_units(table_of(("c", "p", 0, 1)), FAMILIES)


def test_sums_that_would_not_be_exact_are_refused() -> None:
    table = table_of(("a", "p", 0, 1))
    statistics = StatisticsTable(resampling_units(table, FAMILIES))
    with pytest.raises(ScoringError, match="below 2\\^53"):
        statistics.add_sum("x", np.array([0]), np.array([1e12]))


@pytest.mark.parametrize(
    ("resamples", "units", "width"),
    [(1, 1, 1), (7, 128, 3), (50, 129, 5), (600, 300, 9), (2005, 257, 1)],
)
def test_blocks_give_the_product_family_by_family(resamples: int, units: int, width: int) -> None:
    rng = np.random.default_rng(units)
    columns = np.round(rng.random((units, width)) * 1e9)
    weights = rng.integers(0, 4, (resamples, units)).astype(float)
    family = np.sort(rng.integers(0, 3, units))
    names = {str(i): i for i in range(width)}
    found = weighted_totals(weights, Columns(names, columns, {}), family, np.ones(4))
    assert found.table.shape == (resamples, 4, width)
    for k in range(4):
        own = family == k
        assert (found.table[:, k] == weights[:, own] @ columns[own]).all()


def test_families_that_do_not_fit_are_refused() -> None:
    columns = Columns({"x": 0}, np.ones((3, 1)), {})
    for weights, families in ((np.ones((2, 3)), 2), (np.ones(3), 3)):
        with pytest.raises(ScoringError, match="Weights must be"):
            weighted_totals(weights, columns, np.zeros(families, dtype=np.int64), np.ones(1))


def test_sums_means_and_presence_by_hand() -> None:
    """Two repeats of p and one of q in a, one of r in b; weights 2, 1, 0 and 3."""
    table = table_of(("a", "p", 0, 1), ("a", "p", 1, 1), ("a", "q", 0, 1), ("b", "r", 0, 1))
    units = resampling_units(table, FAMILIES)
    statistics = StatisticsTable(units)
    mask = np.array([True, True, True, False])
    statistics.add_mean("x", np.array([0.25, 0.75, 1.0, np.nan]), mask)
    statistics.add_mean("tenths", np.array([0.26, 0.0, 0.0, 0.0]), mask, scale=10)
    rows = np.array([0, 0, 3, 3, 3])
    statistics.add_entries("e", rows, np.array([1, 0, 1, 1, 0]))
    statistics.add_sum("s", rows, np.array([0.5, 0.25, 1.0, 2.0, 3.0]))
    statistics.add_presence("seen", np.array([True, False, True, True]))
    statistics.add_constant("c", 7.0)
    assert statistics.count_tasks(mask) == 2
    assert statistics.count_tasks(np.array([False, False, False, True])) == 1
    weights = np.array([[2.0, 1.0, 0.0, 3.0], [1.0, 1.0, 1.0, 1.0]])
    share = np.array([0.25, 0.75])
    found = weighted_totals(weights, statistics.columns(), units.unit_family, share)
    # The first row plays p alone: two of its first repeat, one of its second.
    assert found.mean("x")[0, 0] == pytest.approx((2 * 0.25 + 0.75) / 3)
    assert found.mean("x")[1, 0] == pytest.approx((0.5 + 1.0) / 2)
    assert found.mean("tenths")[0, 0] == pytest.approx(0.3 * 2 / 3)
    assert found.sum("s").tolist() == [[1.5e6, 18e6], [0.75e6, 6e6]]
    assert found.pooled("s").tolist() == [19.5e6, 6.75e6]
    assert found.pooled_mean("e") == pytest.approx([8 / 13, 3 / 5])
    assert found.mean("e")[0] == pytest.approx([0.5, 2 / 3])
    assert found.overall_mean("e")[0] == pytest.approx(0.25 * 0.5 + 0.75 * 2 / 3)
    assert found.sum("seen").tolist() == [[2.0, 3.0], [2.0, 1.0]]
    assert found.constants == {"c": 7.0}
    assert np.isnan(found.overall(np.full((2, 2), np.nan))).all()


def test_a_column_is_added_once() -> None:
    statistics = StatisticsTable(resampling_units(table_of(("a", "p", 0, 1)), FAMILIES))
    statistics.add_sum("x", np.array([0]), np.array([1.0]))
    with pytest.raises(ScoringError, match="got `x` twice"):
        statistics.add_sum("x", np.array([0]), np.array([2.0]))


def test_the_largest_column_may_add_up_to_just_below_2_to_the_53() -> None:
    statistics = StatisticsTable(
        resampling_units(table_of(("a", "p", 0, 1), ("a", "q", 0, 1)), FAMILIES)
    )
    # Two units: 4,503 million is below half of 2^53 / 10^6, 4,504 million above.
    statistics.add_sum("x", np.array([0]), np.array([-4.503e9]))
    with pytest.raises(ScoringError, match="below 2\\^53"):
        statistics.add_sum("y", np.array([0]), np.array([-4.504e9]))


def test_parts_that_nobody_masks_have_no_mean() -> None:
    table = table_of(("a", "p", 0, 1), ("b", "q", 0, 1))
    units = resampling_units(table, FAMILIES)
    statistics = StatisticsTable(units)
    statistics.add_mean("x", np.array([0.5, 0.25]), np.array([False, True]))
    found = weighted_totals(
        np.ones((1, 2)), statistics.columns(), units.unit_family, np.array([0.9, 0.1])
    )
    assert np.isnan(found.mean("x")[0, 0])
    assert found.overall_mean("x")[0] == pytest.approx(0.25)
