"""Means over episodes with intervals over tasks, beside a jackknife by hand."""

import numpy as np
import pytest
from scipy import stats

from owa_bench.scoring.statistics.task_means import interval_columns, mean_over_tasks


def test_an_interval_is_that_of_the_means_without_one_task_each() -> None:
    """Tasks of one, two and three episodes; the value is an amount above 0."""
    values = np.array([1.0, 2.0, 4.0, 6.0, 7.0, 11.0])
    tasks = np.array(["b", "a", "c", "a", "c", "c"])
    point, low, high = mean_over_tasks(values, tasks, share=False)
    left = np.log([30 / 5, 23 / 4, 9 / 3])  # without b, a and c
    error = np.sqrt(2 / 3 * ((left - left.mean()) ** 2).sum())
    assert point == pytest.approx(31 / 6, abs=1e-6)
    assert low is not None
    assert high is not None
    reach = stats.t.ppf(0.975, 2) * error
    assert np.log([low / point, high / point]) == pytest.approx([-reach, reach], abs=1e-6)


def test_one_task_has_no_ends_and_a_share_ends_at_1() -> None:
    point, low, high = mean_over_tasks(np.array([0.25, 0.75]), np.array(["a", "a"]))
    assert (point, low, high) == (0.5, None, None)
    _, low, high = mean_over_tasks(np.array([0.2, 1.0, 1.0]), np.array([0, 1, 2]))
    assert low is not None
    assert high is not None
    assert 0 < low < high < 1
    unknown = mean_over_tasks(np.array([0.2, np.nan]), np.array([0, 1]))
    assert unknown[0] is None


def test_a_figure_has_three_columns() -> None:
    assert interval_columns("x", "y") == (*("x", "x low", "x high"), *("y", "y low", "y high"))
