"""A robust slope over checkpoints, with an interval that autocorrelation widens."""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats

METHOD = "Sen's exact interval, widened for lag-1 autocorrelation"
_SMALL = 1e-12
_LEAST = 4.0  # degrees of freedom: with fewer r1 is noise, and power goes for nothing


class Slope(NamedTuple):
    """A Theil-Sen slope with Sen's interval; infinite bounds say nothing."""

    value: float
    low: float
    high: float


def inversions(size: int) -> Floats:
    """Return the law of the number of inversions of a random order of `size` values.

    >>> inversions(3)
    array([0.16666667, 0.33333333, 0.33333333, 0.16666667])
    """
    law = np.ones(1)
    for k in range(2, size + 1):
        law = np.convolve(law, np.full(k, 1 / k))
    return law


def theil_sen(x: Floats, y: Floats, level: float) -> Slope:
    """Return the median slope with Sen's exact (Kendall) interval.

    Formula:
        slope = median of (y_j - y_i) / (x_j - x_i) over i < j
        interval = the M-th smallest and M-th largest slope, P(inversions <= M - 1)
        = (1 - level) / 2 under random order, interpolated between whole M; then both
        arms times `widening` of the residuals
    Shapes: two arrays (points,), x rising. Units: y per x.
    Missing: bounds are infinite where no whole M exists (fewer than 4 points).
    Errors: ScoringError unless x rises, both are finite and there are 2 points.
    Source: [R] section 3 of `aai-scale.md`; Sen (1968).

    >>> theil_sen(np.arange(5.0), 2.0 * np.arange(5.0), 0.95).value
    2.0
    """
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2 or (np.diff(x) <= 0).any():
        raise ScoringError(
            f"A slope needs two rising points at least, got {x} and {y}."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ScoringError("A slope cannot read NaN or infinity.")
    first, second = np.triu_indices(len(x), k=1)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    value, tail = float(np.median(slopes)), (1 - level) / 2
    law = np.cumsum(inversions(len(x)))
    rank = int((law <= tail + _SMALL).sum())
    if not rank:
        return Slope(value, -math.inf, math.inf)
    part = (tail - law[rank - 1]) / (law[rank] - law[rank - 1])
    place = rank - 1 + max(0.0, float(part))
    order, wider = np.arange(len(slopes)), widening(y - value * x, level)
    low = float(np.interp(place, order, slopes))
    high = float(np.interp(len(slopes) - 1 - place, order, slopes))
    return Slope(value, value - wider * (value - low), value + wider * (high - value))


def widening(residuals: Floats, level: float) -> float:
    """Return by what an interval widens when neighbouring residuals are alike.

    Formula:
        sqrt((1 + r1) / (1 - r1)) t(m - 2) / t(n - 2), m = n (1 - r1) / (1 + r1),
        m - 2 at least 4, r1 = max(0, (n lag + 2) / (n - 4)), lag the residuals' own
        autocorrelation
    Shapes: `residuals` (points,) about a line. Units: a factor >= 1.
    Missing: 1 for residuals of 0 or not autocorrelated.
    Errors: none. Source: [R] section 3 of `aai-scale.md`; the bias about a fitted
        line is -(2 + 4 r1) / n to first order (about a mean: Marriott and Pope
        1954); m is how many independent points n such are worth.

    >>> widening(np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), 0.95)
    1.0
    """
    centred = residuals - residuals.mean()
    power = float((centred**2).sum())
    if power <= _SMALL * max(float((residuals**2).sum()), 1.0):
        return 1.0
    size = len(residuals)
    lag = float((centred[1:] * centred[:-1]).sum()) / power
    corrected = (size * lag + 2) / (size - 4) if size > 4 else lag
    r1 = min(max(corrected, 0.0), 1 - 1 / size)
    alike = (1 + r1) / (1 - r1)
    full = max(size - 2.0, 1.0)
    left = max(size / alike - 2, min(_LEAST, full))
    side = (1 + level) / 2
    wider = float(stats.t.ppf(side, left)) / float(stats.t.ppf(side, full))
    return math.sqrt(alike) * wider
