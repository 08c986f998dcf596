"""Checks of arrays, and percentile intervals of resamples."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.statistics import arrays

NAN = math.nan


def test_an_interval_needs_two_resamples_and_half_of_them() -> None:
    draws = np.arange(101.0)
    assert arrays.percentile_interval(draws)[:2] == pytest.approx((2.5, 97.5))
    assert arrays.percentile_interval(draws, level=0.8)[:2] == pytest.approx((10, 90))
    for known, every in ((2, 2), (2, 3), (2, 4), (2, 5), (3, 6)):
        values = np.array([1.0] * known + [NAN] * (every - known))
        assert arrays.percentile_interval(values) == (1.0, 1.0, None)
    for known, every in ((0, 0), (1, 1), (1, 2), (2, 6)):
        values = np.array([1.0] * known + [NAN] * (every - known))
        found = arrays.percentile_interval(values)
        assert math.isnan(found.low)
        assert found.reason == f"only {known} of {every} resamples give a number"


def test_shapes_lengths_and_ranges_are_checked() -> None:
    for bad in ([1.0, 2.0], np.zeros((0, 2)), np.zeros((1, 1, 1))):
        with pytest.raises(ScoringError, match="must be"):
            arrays.matrix(bad, "x", axes="a, b")
    for bad in ([[1.0]], []):
        with pytest.raises(ScoringError, match="`x`"):
            arrays.vector(bad, "x")
    with pytest.raises(ScoringError, match=r"got nan at \(1, 0\)"):
        arrays.check_finite(np.array([[1.0, 2.0], [NAN, math.inf]]), "x")
    with pytest.raises(ScoringError, match=r"in \[0, 1\], got 1\.5 at \(1,\)"):
        arrays.check_range(np.array([1.0, 1.5, -1.0]), "x", 0.0, 1.0)
    with pytest.raises(ScoringError, match=r"got -0\.5 at \(0,\)"):
        arrays.check_range(np.array([-0.5, 1.0]), "x", 0.0, 1.0)
    arrays.check_range(np.array([0.0, NAN, 1.0]), "x", 0.0, 1.0)
    with pytest.raises(ScoringError, match=r"of one length, got \(2, 3\)"):
        arrays.check_lengths(np.zeros((2, 9)), np.zeros((3, 9)), "x and y")
    arrays.check_lengths(np.zeros((2, 1)), np.zeros(2), "x and y")
