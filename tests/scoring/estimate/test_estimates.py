"""Estimates on columns written by hand: which clusters a statistic reads."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.scoring.estimate import estimates
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.statistics.jackknife import Clusters
from owa_bench.scoring.statistics.statistics_table import Columns, ResamplingUnits
from tests.builders.episodes import PROTOCOL

CORE = tuple(PROTOCOL.index.core)


def source(filled, made_of):
    """Return a source of axes at one half; `filled` are the tasks that each reads."""
    names = {symbol: place for place, symbol in enumerate(filled)}
    table = np.zeros((5, len(filled)))
    for symbol, tasks in filled.items():
        table[list(tasks), names[symbol]] = 1.0
    task = np.arange(5)
    units = ResamplingUnits(
        families=("s/f",), row=task, task=task, repeat=0 * task, day=0 * task, family=0 * task
    )

    def part(symbol):
        def read(totals):
            totals.pooled(symbol)
            return {StatisticKey(symbol): np.full(len(totals.table), 0.5)}

        return read

    sample = SimpleNamespace(weights=np.ones(1), protocol=PROTOCOL)
    columns = Columns(names, table, {})
    parts = [part(symbol) for symbol in filled]
    return estimates._Source(parts, made_of, columns, units, sample)


def test_a_composite_has_the_clusters_of_the_axis_with_the_fewest():
    filled = dict(zip(CORE, ((0, 1, 2), (1, 2), (), (3, 2, 1, 0)), strict=True))
    how = Clusters("here", "tasks", np.arange(5), np.zeros(5, int), "one alone")
    found = source(filled, {"core": CORE}).without_each(how)
    core = StatisticKey("core")
    assert found.units == {**{StatisticKey(s): len(x) for s, x in filled.items()}, core: 2}
    assert found.read[core].tolist() == [True, True, True, True, False]
    assert found.read[StatisticKey(CORE[1])].tolist() == [False, True, True, False, False]
    assert found.composites == {core}
    assert found.values[core].tolist() == [0.5] * 5
    nothing = source(dict.fromkeys(CORE, ()), {"core": CORE}).without_each(how)
    assert nothing.units[core] == 0


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("core", 0.0, "an axis stands at 0"),
        ("core", 0.5, None),
        ("A", 0.0, None),
        ("unknown", math.nan, None),
    ],
)
def test_a_composite_with_an_axis_at_0_has_no_interval(name, value, reason):
    how = Clusters("here", "tasks", np.arange(2), np.zeros(2, int), "one alone")
    core, axis = StatisticKey("core"), StatisticKey("A")
    values = {key: np.full(2, value) for key in (core, axis)}
    found = estimates.LeftOut(
        how, values, {axis: np.array([True, True])}, {axis: 7}, frozenset({core})
    )
    point = {core: value, axis: value}
    one = estimates._estimate_of(StatisticKey(name), point, found, share=False)
    assert one.reason == reason
    assert one.point == pytest.approx(value, nan_ok=True)
    assert one.units == (7 if name == "A" else 2)
    assert not one.share


def test_a_share_of_two_means_is_known_where_their_sum_is_above_0():
    first, second = StatisticKey("cost", "first"), StatisticKey("cost", "second")
    means = {first.column: np.array([0.5, 0.0, 0.2]), second.column: np.array([1.5, 0.0, 0.2])}
    totals = SimpleNamespace(overall_mean=means.__getitem__)
    gap = StatisticKey("cost", "gap")
    (found,) = estimates._share_of(gap, first, second, totals).values()
    assert found[[0, 2]].tolist() == [0.25, 0.5]
    assert np.isnan(found[1])
