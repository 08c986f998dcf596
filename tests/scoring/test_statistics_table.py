"""Sufficient statistics: exact sums, weights that fit, tasks that weigh the same."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Observables
from owa_bench.scoring.observables import observe
from owa_bench.scoring.statistics_table import (
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
    return weighted_totals(
        ones, statistics.columns(), units.unit_family, np.array([0.5, 0.5])
    )


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
    b = weighted_totals(
        weights[:, order], Columns(names, columns[order], {}), family, share
    )
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
        weighted_totals(
            np.ones((2, 4)), columns, np.zeros(3, dtype=np.int64), np.ones(1)
        )


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
