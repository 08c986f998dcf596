"""Bootstrap: resampling weights, resampled days, and the intervals read from them.

Weights are whole numbers made from raw Philox output, so they are equal on every
machine. Of n units in a stratum n - 1 are drawn with replacement (rescaled bootstrap,
Rao and Wu 1988), so the variance of the resamples is unbiased even for small n.
Intervals are percentile intervals, or t intervals where a stratum is small. Percentiles
are read at the normal probabilities of t quantiles (expanded percentiles, Hesterberg
2015), because a single family of 20 tasks would otherwise cover less than it states.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Integers
from owa_bench.records.score import Interval

_ROWS_AT_ONCE = 400  # resamples a chunk: fewer starve the matrix product (measured)
_CELLS_AT_ONCE = 20_000_000  # weights a chunk at most: 160 MB
_HALF = float(1 << 32)
_DIGITS = 7  # significant digits of a judgement's figures; sums are exact beyond them
_UNDEFINED_SHARE = 0.05  # share of resamples that may be undefined
_SAME = 1e-9  # relative range below which resamples are one and the same
_FLAT = "no resample differs from another: rule of three over the units"


def philox(root: str, *path: str | int) -> np.random.Philox:
    """Return the raw generator named `path` under a replay root.

    Args:
        root: Replay root of the run, hexadecimal.
        path: Names of the stream below it.

    Returns:
        A generator of raw 64-bit words.
    """
    text = "/".join(str(part) for part in (root, *path))
    key = hashlib.sha256(text.encode()).digest()[:16]
    return np.random.Philox(key=int.from_bytes(key, "little"))


def _below(bits: np.random.Philox, rows: int, columns: int, limit: int) -> Integers:
    """Return a (rows, columns) table of whole numbers in [0, limit).

    Multiply-shift on 32-bit halves, an even number of them a row, so that the table
    does not depend on how its rows are cut into chunks; the bias is below limit / 2^32.
    """
    halves = (columns + 1) // 2
    raw = bits.random_raw(rows * halves).astype("<u8", copy=False).view("<u4")
    kept = raw.reshape(rows, 2 * halves)[:, :columns].astype(np.uint64)
    kept *= np.uint64(limit)
    kept >>= np.uint64(32)
    return kept.view(np.int64)


def bootstrap_weights(
    strata: Integers, resamples: int, root: str, *path: str | int
) -> Iterator[Floats]:
    """Yield chunks of a weight matrix (resamples, units).

    Formula:
        w[b, u] = how often unit u is among the n - 1 drawn from its stratum of n
    Shapes: `strata` (units,), the stratum of each unit, sorted; chunks (b, units).
    Units: whole numbers in float64, so that products with whole numbers are exact.
    Missing: a stratum of one unit keeps weight 1.
    Errors: ScoringError if `strata` is empty or not sorted.
    Source: [R] Rao and Wu (1988); docs/scoring.md#intervals.

    >>> chunks = bootstrap_weights(np.array([0, 0, 0, 1]), 2, "root")
    >>> table = np.concatenate(list(chunks))
    >>> table.sum(axis=1), table[:, 3]
    (array([3., 3.]), array([1., 1.]))
    """
    units = len(strata)
    if not units or bool((np.diff(strata) < 0).any()):
        raise ScoringError(
            f"Strata must be sorted and hold a unit at least, got {strata!r}."
        )
    starts = np.concatenate(([0], np.flatnonzero(np.diff(strata)) + 1))
    sizes = np.diff(np.concatenate((starts, [units])))
    groups = [
        (int(size), starts[sizes == size], philox(root, *path, int(size)))
        for size in np.unique(sizes)
    ]
    chunk = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // units))
    for first in range(0, resamples, chunk):
        yield _chunk(groups, min(chunk, resamples - first), units)


def _chunk(
    groups: list[tuple[int, Integers, np.random.Philox]], rows: int, units: int
) -> Floats:
    """Return `rows` rows of the weight matrix."""
    weights = np.zeros((rows, units))
    lines = np.arange(rows, dtype=np.int64)[:, None] * units
    for size, starts, bits in groups:
        if size == 1:
            weights[:, starts] = 1.0
            continue
        places = _below(bits, rows, len(starts) * (size - 1), size)
        places += np.repeat(starts, size - 1)[None, :]
        places += lines
        counts = np.bincount(places.ravel(), minlength=rows * units)
        weights += counts.reshape(rows, units)
    return weights


def block_length(days: int) -> float:
    """Return the mean length of a block: the cube root of the series' length.

    Source: [D] Politis and Romano (1994), rate of the optimal length.

    >>> block_length(27)
    3.0
    """
    return max(1.0, round(math.exp(math.log(days) / 3), 9))


def block_bootstrap(days: int, resamples: int, root: str, *path: str | int) -> Integers:
    """Return which day each place of each resampled series holds.

    Formula:
        day[b, 0] is uniform; day[b, i] = day[b, i - 1] + 1 (circular) with
        probability 1 - 1 / L, else uniform again; L = cube root of the days
    Shapes: (resamples, days). Units: indices of days.
    Missing: none. Errors: ScoringError unless there is a day and a resample.
    Source: [S] block bootstrap over days; Politis and Romano (1994).

    >>> block_bootstrap(5, 2, "root").shape
    (2, 5)
    """
    if days < 1 or resamples < 1:
        raise ScoringError(
            f"Blocks need a day and a resample at least, got {days}, {resamples}."
        )
    bits = philox(root, *path, "blocks", days)
    raw = bits.random_raw(2 * resamples * days).astype("<u8", copy=False)
    draws = (raw >> np.uint64(32)).astype(np.float64).reshape(2, resamples, days)
    fresh = draws[0] < math.floor(_HALF / block_length(days))
    fresh[:, 0] = True
    start = np.floor(draws[1] / _HALF * days).astype(np.int64)
    place = np.arange(days)
    last = np.maximum.accumulate(np.where(fresh, place, 0), axis=1)
    chosen = np.take_along_axis(start, last, axis=1) + place - last
    resampled: Integers = chosen % days
    return resampled


def rounded(value: float) -> float:
    """Return a number rounded to the significant digits that a judgement holds."""
    return float(f"{value:.{_DIGITS}g}") + 0.0


def figure(value: float | None) -> float | None:
    """Return a number as a judgement holds it: seven digits, None for no number.

    >>> figure(float("nan")), figure(0.1 + 0.2)
    (None, 0.3)
    """
    if value is None or not np.isfinite(value):
        return None
    return rounded(value)


class Sampling(NamedTuple):
    """Resampling scheme of a set of resamples, and the interval to read from them.

    `freedom` are the degrees of freedom of the resamples, None for a large number.
    `law` is the interval: percentiles, or t around the point estimate. `units` counts
    the resampled units. `reason` says why there are no resamples at all.
    """

    method: str
    freedom: float | None
    units: int = 0
    reason: str | None = None
    law: Literal["percentile", "t"] = "percentile"

    def expanded(self, share: float) -> float:
        """Return the share of resamples below the bound that `share` asks for."""
        if self.freedom is None:
            return share
        return float(stats.norm.cdf(stats.t.ppf(share, self.freedom)))


def sampling(
    label: str, strata: Integers, weights: Floats, *, small: int, single: str
) -> Sampling:
    """Return the resampling scheme of strata.

    Formula:
        degrees of freedom by Satterthwaite under equal variances:
        (sum_k w_k^2 / n_k)^2 / sum_k (w_k^2 / n_k)^2 / (n_k - 1)
    Shapes: `strata` (units,) sorted; `weights` (strata,).
    Units: `small` in units a stratum: below it the interval is a t interval.
    Missing: a stratum of one unit gives no interval, for the reason `single`.
    Errors: none.
    Source: [R] Satterthwaite (1946); docs/scoring.md#intervals.
    """
    sizes = np.unique(strata, return_counts=True)[1].astype(np.float64)
    if sizes.min() < 2:
        return Sampling(label, None, len(strata), single)
    parts = weights**2 / sizes
    freedom = float(parts.sum() ** 2 / (parts**2 / (sizes - 1)).sum())
    large = sizes.min() >= small
    name = "percentile bootstrap at t levels" if large else "t interval"
    method = f"{label}: {name}, {freedom:.1f} degrees of freedom"
    return Sampling(method, freedom, len(strata), law="percentile" if large else "t")


@dataclass(frozen=True, slots=True)
class BootstrapEstimate:
    """Point estimate of a statistic with its resamples under one sampling scheme.

    `bounded`: the statistic is a share. Its t intervals are cut to [0, 1]. Where no
    resample differs from another the rule of three applies: a unit that differs has a
    probability of at most 1 - alpha^(1 / units).
    """

    point: float
    draws: Floats | None
    sampling: Sampling
    bounded: bool = True

    def _reason(self) -> str | None:
        if self.sampling.reason:
            return self.sampling.reason
        if self.draws is None or not np.isfinite(self.point):
            return "the statistic is not computable"
        if np.isnan(self.draws).mean() > _UNDEFINED_SHARE:
            return "more than 5 percent of the resamples are undefined"
        return None

    def _known(self) -> Floats:
        """Return the resamples that are defined."""
        draws = self.draws if self.draws is not None else np.zeros(0)
        known: Floats = draws[~np.isnan(draws)]
        return known

    def _flat(self) -> bool:
        """Return whether no resample differs from another."""
        known = self._known()
        return bool(np.ptp(known) <= _SAME * max(abs(float(known[0])), 1.0))

    def _quantile(self, share: float) -> float:
        """Return the bound below which `share` of the law lies."""
        known = self._known()
        if self.bounded and self._flat():
            alpha = min(share, 1 - share)
            rare = 1 - alpha ** (1 / self.sampling.units)
            end = 0.0 if share < 1 / 2 else 1.0
            return float(self.point + rare * (end - self.point))
        if self.sampling.law == "percentile" or self.sampling.freedom is None:
            return float(np.quantile(known, self.sampling.expanded(share)))
        step = float(stats.t.ppf(share, self.sampling.freedom)) * float(known.std())
        bound = self.point + step
        return min(max(bound, 0.0), 1.0) if self.bounded else bound

    def interval(self, level: float) -> Interval:
        """Return the two-sided interval, or why there is none."""
        reason = self._reason()
        if reason:
            return Interval(method=self.sampling.method, reason=reason)
        low, high = self._quantile((1 - level) / 2), self._quantile((1 + level) / 2)
        flat = _FLAT if self._flat() else None
        return Interval(
            low=figure(low), high=figure(high), method=self.sampling.method, reason=flat
        )

    def lower(self, level: float) -> float | None:
        """Return the one-sided lower bound that gates read, None without one."""
        return None if self._reason() else figure(self._quantile(1 - level))

    def upper(self, level: float) -> float | None:
        """Return the one-sided upper bound, None without one."""
        return None if self._reason() else figure(self._quantile(level))

    def summary(self) -> tuple[float, float, tuple[float, float]] | None:
        """Return mean, median and interquartile range of the resamples."""
        if self._reason() or self.draws is None:
            return None
        known = self._known()
        q1, q2, q3 = (float(np.quantile(known, s)) for s in (0.25, 0.5, 0.75))
        return (rounded(float(known.mean())), rounded(q2), (rounded(q1), rounded(q3)))
