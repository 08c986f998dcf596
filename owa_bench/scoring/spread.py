"""From resamples to intervals: percentile, or t where a stratum is small.

A percentile interval reads the resamples at the normal probabilities of t quantiles
(Hesterberg 2015, expanded percentiles): a lone family of 20 tasks would else cover
less than it says. Resamples have an unbiased spread already (Rao and Wu 1988).
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from owa_bench.records.observables import Floats, Integers
from owa_bench.records.score import Interval

_DIGITS = 7  # significant digits of a judgement's figures; sums are exact beyond them
_LOST = 0.05  # share of resamples that may be undefined
_SAME = 1e-9  # relative spread below which resamples are one and the same
_FLAT = "no resample differs from another: rule of three over the units"


def rounded(value: float) -> float:
    """Return a number with the significant digits that a judgement holds."""
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
    """How one family of resamples was drawn.

    `freedom` are the degrees of freedom behind the resamples, None for plenty. `law`
    says how they are read: percentiles, or a t interval around the point. `units`
    counts what is drawn. `reason` says why there are no resamples at all.
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
    label: str, strata: Integers, weights: Floats, *, small: int, lonely: str
) -> Sampling:
    """Return how to read resamples of strata; `weights` is each stratum's weight.

    Degrees of freedom are Satterthwaite's under equal variances: the variance of a
    weighted mean over strata of n_k units is the sum of w_k^2 / n_k parts with n_k - 1
    degrees each. Source: [R]; `traces-and-audit.md` section 5.
    """
    sizes = np.unique(strata, return_counts=True)[1].astype(np.float64)
    if sizes.min() < 2:
        return Sampling(label, None, len(strata), lonely)
    parts = weights**2 / sizes
    freedom = float(parts.sum() ** 2 / (parts**2 / (sizes - 1)).sum())
    large = sizes.min() >= small
    name = "percentile bootstrap at t levels" if large else "t interval"
    method = f"{label}: {name}, {freedom:.1f} degrees of freedom"
    return Sampling(method, freedom, len(strata), law="percentile" if large else "t")


@dataclass(frozen=True, slots=True)
class Spread:
    """One statistic: its point and its resamples under one sampling.

    `bounded` says that the statistic is a share: t intervals are cut to [0, 1], and
    where no resample differs from another the interval is that of the rule of three:
    a unit that differs has a probability of at most 1 - alpha^(1 / units).
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
        if np.isnan(self.draws).mean() > _LOST:
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
            return Interval(
                low=None, high=None, method=self.sampling.method, reason=reason
            )
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
