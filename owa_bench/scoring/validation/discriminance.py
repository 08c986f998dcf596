"""Discriminance: which axis a handicap moves, with paired intervals and tests.

Pure functions. A reading is a statistic with its values without one task each; the agents of a
comparison played the same tasks, so that differences are paired.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Integers
from owa_bench.scoring.statistics.distributions import normal_quantile, t_quantile, t_tail
from owa_bench.scoring.statistics.jackknife import standard_error

_SAME = 1e-9  # two values that differ by less are one
_LEAST_DOSES, _LEAST_BLOCKS = 3, 2  # of Page's test
_LEAST_AGENTS = 4  # of Fisher's interval


class Reading(NamedTuple):
    """A statistic, its values without one cluster each, and the clusters' strata."""

    value: float
    left_out: Floats
    stratum: Integers


class Span(NamedTuple):
    """Two bounds; NaN where there is no interval."""

    low: float
    high: float


def combination(parts: Sequence[tuple[float, Reading]]) -> Reading:
    """Return a linear combination of readings of the same clusters.

    Formula:
        x = sum_i c_i x_i, and without cluster j: x_(j) = sum_i c_i x_i(j)
    Shapes: a sequence of (coefficient, reading); one reading.
    Units: those of the readings. Missing: NaN in gives NaN out.
    Errors: ScoringError without a part, or where the clusters differ.
    Source: docs/validate.md#how-it-is-read.

    >>> one = Reading(1.0, np.array([1.0, 0.5]), np.zeros(2, dtype=int))
    >>> combination([(1.0, one), (-2.0, one)]).left_out
    array([-1. , -0.5])
    """
    if not parts:
        raise ScoringError("A combination needs at least one reading, got none.")
    stratum = parts[0][1].stratum
    if any(not np.array_equal(stratum, reading.stratum) for _, reading in parts):
        raise ScoringError("Readings are paired only over the same tasks.")
    value = math.fsum(c * reading.value for c, reading in parts)
    left_out = np.sum([c * reading.left_out for c, reading in parts], axis=0)
    return Reading(value, left_out, stratum)


def excess(own: Reading, other: Reading, ratio: float) -> Reading:
    """Return by how much one change exceeds a multiple of another, in size.

    Formula:
        x = |a| - ratio |b|; the signs are those of the point estimates throughout
    Shapes: two readings of the same clusters, a scalar; one reading.
    Units: those of the readings. Missing: NaN in gives NaN out.
    Errors: ScoringError where the clusters differ.
    Source: docs/validate.md#how-it-is-read.

    >>> a = Reading(-0.5, np.array([-0.4, -0.6]), np.zeros(2, dtype=int))
    >>> b = Reading(0.1, np.array([0.1, 0.1]), np.zeros(2, dtype=int))
    >>> excess(a, b, 2.0).left_out.round(6)
    array([0.2, 0.4])
    """
    signs = (-1.0 if own.value < 0 else 1.0, -1.0 if other.value < 0 else 1.0)
    return combination([(signs[0], own), (-ratio * signs[1], other)])


def interval(change: Reading, level: float) -> Span:
    """Return the two-sided interval of a difference.

    Formula:
        x +/- t se, se the jackknife's over tasks within families, t on sum (n_h - 1);
        where no task moves x: x +/- (1 - ((1 - level) / 2)^(1 / J)), J tasks
    Shapes: a reading, a scalar; two bounds. Units: those of the reading.
    Missing: NaN where a family holds one task, or x is not computable without one.
    Errors: none.
    Source: docs/scoring.md#intervals, on the plain scale: a difference is no share.

    >>> flat = Reading(0.0, np.zeros(36), np.repeat([0, 1], 18))
    >>> round(interval(flat, 0.95).high, 3)
    0.097
    """
    if not _has_error(change):
        return Span(math.nan, math.nan)
    alpha = (1 - level) / 2
    if _is_flat(change):
        half = 1 - alpha ** (1 / len(change.left_out))
    else:
        error = standard_error(change.left_out, change.stratum)
        half = t_quantile(1 - alpha, _freedom(change)) * error
    return Span(change.value - half, change.value + half)


def equivalence(change: Reading, margin: float) -> float:
    """Return the p-value of two one-sided tests that a change lies within a margin.

    Formula:
        p = max(P(T > (margin + x) / se), P(T > (margin - x) / se)), T on sum (n_h - 1)
        where no task moves x: (1 - (margin - |x|))^J, 1 where |x| >= margin
    Shapes: a reading, a scalar; a scalar. Units: those of the reading; a probability.
    Missing: NaN where there is no standard error.
    Errors: ScoringError unless the margin is above 0.
    Source: [R] Schuirmann (1987), two one-sided tests; the exact bound of
        docs/scoring.md#intervals.

    >>> round(equivalence(Reading(0.0, np.zeros(29), np.zeros(29, dtype=int)), 0.1), 3)
    0.047
    """
    if not margin > 0:
        raise ScoringError(f"A margin must be above 0, got {margin}.")
    if not _has_error(change):
        return math.nan
    room = margin - abs(change.value)
    if _is_flat(change):
        return float((1 - room) ** len(change.left_out)) if room > 0 else 1.0
    error = standard_error(change.left_out, change.stratum)
    return float(t_tail(room / error, _freedom(change)))


def falling_trend(blocks: Floats) -> float:
    """Return the p-value of Page's test that values fall from dose to dose.

    Formula:
        L = sum_j (k + 1 - j) R_j, R_j the sum over blocks of the rank of dose j among
        the k doses of its block (mean ranks where doses tie); p = P(L* >= L) where all
        orders are alike
    Shapes: (blocks, doses); a scalar. Units: any; a probability.
    Missing: a block with NaN is left out; NaN with fewer than 2 blocks or 3 doses.
    Errors: ScoringError unless the table is 2-D.
    Source: [R] Page (1963); scipy.stats.page_trend_test.

    >>> round(falling_trend(np.array([[3.0, 2.0, 1.0]] * 4)), 4)
    0.0008
    """
    if blocks.ndim != 2:
        raise ScoringError(f"Page's test needs (blocks, doses), got {blocks.shape}.")
    known = blocks[~np.isnan(blocks).any(axis=1)]
    if known.shape[0] < _LEAST_BLOCKS or known.shape[1] < _LEAST_DOSES:
        return math.nan
    from scipy import stats  # takes long to import, and reports need no trend

    doses = known.shape[1]
    test = stats.page_trend_test(known, predicted_ranks=range(doses, 0, -1))
    return float(test.pvalue)


class Correlation(NamedTuple):
    """Pearson's r over agents, its interval, and how many agents there are."""

    value: float
    low: float
    high: float
    agents: int


def correlation(x: Floats, y: Floats, level: float) -> Correlation:
    """Return Pearson's r of two axes over agents with Fisher's interval.

    Formula:
        r = cov(x, y) / (sd x sd y); tanh(atanh r +/- z / sqrt(n - 3))
    Shapes: two arrays (agents,), a scalar. Units: r in [-1, 1].
    Missing: agents with NaN in either axis are left out; r is NaN where an axis does
        not vary, the interval NaN with fewer than 4 agents.
    Errors: ScoringError if shapes differ.
    Source: [R] Fisher (1921).

    >>> r = correlation(np.arange(8.0), np.array([0, 1, 2, 3, 4, 5, 7, 6.0]), 0.95)
    >>> round(r.value, 3), round(r.low, 3), r.agents
    (0.976, 0.87, 8)
    """
    if x.shape != y.shape:
        raise ScoringError(f"Axes of agents differ: {x.shape} and {y.shape}.")
    known = ~(np.isnan(x) | np.isnan(y))
    one, other, agents = x[known], y[known], int(known.sum())
    if agents < 2 or np.ptp(one) <= _SAME or np.ptp(other) <= _SAME:
        return Correlation(math.nan, math.nan, math.nan, agents)
    r = float(np.clip(np.corrcoef(one, other)[0, 1], -1.0, 1.0))
    if agents < _LEAST_AGENTS:
        return Correlation(r, math.nan, math.nan, agents)
    with np.errstate(divide="ignore"):
        z = float(np.arctanh(r))
    half = normal_quantile((1 + level) / 2) / math.sqrt(agents - 3)
    return Correlation(r, math.tanh(z - half), math.tanh(z + half), agents)


def main_effect(grid: Sequence[Sequence[Reading]]) -> Reading:
    """Return the change along the rows of a crossed design, averaged over columns.

    Formula:
        x = mean over columns of (value in the last row - value in the first row)
    Shapes: rows of readings of the same clusters; one reading.
    Units: those of the readings. Missing: NaN in gives NaN out.
    Errors: ScoringError where the clusters differ.
    Source: docs/validate.md#how-it-is-read.

    >>> at = lambda v: Reading(v, np.full(2, v), np.zeros(2, dtype=int))
    >>> main_effect([[at(1.0), at(0.5)], [at(0.5), at(0.25)]]).value
    -0.375
    """
    share = 1.0 / len(grid[0])
    last = [(share, reading) for reading in grid[-1]]
    return combination([*last, *((-share, reading) for reading in grid[0])])


def spread(change: Reading) -> float:
    """Return the standard deviation of one task's part in a change, 0 where flat.

    Formula: sd = se sqrt(J), J tasks; what `owa-bench power` turns into a number.
    Shapes: a reading; a scalar. Units: those of the reading.
    Missing: NaN where there is no standard error. Errors: none.
    Source: docs/validate.md#how-it-is-read.
    """
    if not _has_error(change):
        return math.nan
    if _is_flat(change):
        return 0.0
    error = standard_error(change.left_out, change.stratum)
    return error * math.sqrt(len(change.left_out))


def _freedom(change: Reading) -> int:
    return len(change.stratum) - len(np.unique(change.stratum))


def _has_error(change: Reading) -> bool:
    """Return whether every stratum has two clusters and every value is known."""
    sizes = np.unique(change.stratum, return_counts=True)[1]
    known = math.isfinite(change.value) and bool(np.isfinite(change.left_out).all())
    return known and bool(len(sizes)) and bool(sizes.min() >= 2)


def _is_flat(change: Reading) -> bool:
    return bool(np.abs(change.left_out - change.value).max(initial=0.0) <= _SAME)
