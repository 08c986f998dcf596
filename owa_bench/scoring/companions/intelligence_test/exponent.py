"""The tail exponent of failure counts: the seed's estimator and the likelihood's.

Source: the Intelligence Test seed, sections 3.3 and 5.1; `other-measures.md` section 2.
"""

import math
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Integers
from owa_bench.scoring.companions import checks
from owa_bench.scoring.companions.intelligence_test import powerlaw
from owa_bench.scoring.companions.intelligence_test.failures import Failures, Tail, tail

LEAST_DISTINCT = 5  # distinct counts at or above the start [R]
LEAST_SIZE = 50  # observations at or above the start [R]
WINDOW = (10.0, 100.0)  # the seed's window [S section 5.1]
_STARTS = 40  # starts tried, spread over the logarithm where there are more [D]


class Line(NamedTuple):
    """The seed's estimator (a): a straight line through log frequencies.

    Biased low unless every count of the window is frequent: read the level from (b).
    """

    alpha: float
    r_squared: float
    window: tuple[float, float]
    distinct: int
    observations: int
    reason: str | None = None


class Likelihood(NamedTuple):
    """The estimator (b): maximum likelihood above `start`, with its interval."""

    alpha: float
    span: checks.Span
    start: float
    top: float
    distinct: int
    observations: float
    censored: float
    distance: float
    log_likelihood: float
    reason: str | None = None


def least_squares(failures: Failures) -> Line:
    """Return the exponent by the seed's estimator (a).

    Formula: least squares of ln frequency on ln X over whole X in the window that were
        seen; alpha = -slope; the window is 10 .. 100, or 1 .. K - 1 for K <= 100
    Shapes: counts (items,); scalars.
    Units: none.
    Missing: counts nobody had are left out (the bias); censored items are left out.
        "undetermined" (NaN and a reason) below 5 distinct counts or 50 observations.
    Errors: none beyond those of `failures`.
    Source: Intelligence Test seed, section 5.1 [S]; window for few candidates [R].

    >>> from owa_bench.scoring.companions.intelligence_test import failures
    >>> x = np.arange(10.0, 101.0)
    >>> many = np.repeat(x, np.round(1e6 * x**-2.0).astype(int))
    >>> round(least_squares(failures.from_counts(many)).alpha, 2)
    2.0
    """
    low, high = (1.0, failures.top) if failures.top <= 99.0 else WINDOW
    whole = tail(failures, low)
    kept = whole.values <= high
    x, frequency = np.log(whole.values[kept]), whole.weights[kept]
    distinct, size = int(kept.sum()), float(frequency.sum())
    reason = _too_little(distinct, size, f"in {low:g} .. {high:g}")
    if reason:
        return Line(math.nan, math.nan, (low, high), distinct, round(size), reason)
    y = np.log(frequency)
    slope, start = np.polyfit(x, y, 1)
    left = float(np.sum((y - slope * x - start) ** 2))
    spread = float(np.sum((y - y.mean()) ** 2))
    r_squared = 1.0 - left / spread if spread > 0 else math.nan
    return Line(float(-slope), r_squared, (low, high), distinct, round(size))


def maximum_likelihood(
    failures: Failures,
    *,
    start: float | None = None,
    resamples: int = 200,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Likelihood:
    """Return the exponent by discrete maximum likelihood (b).

    Formula: `powerlaw.fit` above the start with the least Kolmogorov-Smirnov distance
        (at most 40 starts, spread over the logarithm); truncated at the top; interval:
        percentiles over items drawn with replacement, start chosen anew each time
    Shapes: counts (items,); scalars.
    Units: none.
    Missing: censored items count through their survival; starts above the lowest
        censoring limit are not tried. "undetermined" (NaN and a reason) below 5
        distinct counts or 50 observations at or above the start.
    Errors: ScoringError if a given `start` is below 1.
    Source: Clauset, Shalizi and Newman (2009) [R]; `other-measures.md` section 2.

    >>> from owa_bench.scoring.companions.intelligence_test import failures
    >>> rng = np.random.default_rng(1)
    >>> found = failures.from_counts(rng.zipf(2.5, 4000))
    >>> bool(abs(maximum_likelihood(found, resamples=0, rng=rng).alpha - 2.5) < 0.15)
    True
    """
    if start is not None and start < 1:
        raise ScoringError(
            f"`start` must be at least 1 (a power law has no 0), got {start:g}."
        )
    chosen, found = _best(failures, start)
    distinct, size = chosen.values.size, chosen.size
    where = f"at or above {chosen.start:g}"
    if found is None:
        return Likelihood(
            math.nan,
            checks.Span(math.nan, math.nan, "undetermined"),
            chosen.start,
            failures.top,
            distinct,
            size,
            float(chosen.held.sum()),
            math.nan,
            math.nan,
            _too_little(distinct, float(chosen.weights.sum()), where),
        )
    draws = np.full(resamples, np.nan)
    for i in range(resamples):
        items = rng.integers(0, failures.counts.size, failures.counts.size)
        again = _best(_taken(failures, items), start)[1]
        draws[i] = math.nan if again is None else again.alpha
    return Likelihood(
        found.alpha,
        checks.percentiles(draws, level=level),
        chosen.start,
        failures.top,
        distinct,
        size,
        float(chosen.held.sum()),
        found.distance,
        found.log_likelihood,
    )


def _best(
    failures: Failures, start: float | None
) -> tuple[Tail, powerlaw.Exponent | None]:
    """Return the tail whose fit lies closest to the data, or no fit at all."""
    whole = tail(failures, 1.0 if start is None else start)
    starts = _starts(whole) if start is None else np.array([start])
    best: tuple[Tail, powerlaw.Exponent | None] = (whole, None)
    for low in starts:
        part = _above(whole, float(low))
        if _too_little(part.values.size, float(part.weights.sum()), ""):
            continue
        found = powerlaw.fit(part)
        if best[1] is None or found.distance < best[1].distance:
            best = part, found
    return best


def _starts(whole: Tail) -> Floats:
    """Return the starts to try, the lowest first."""
    lowest_limit = whole.limits[0] if whole.limits.size else math.inf
    known = whole.values[whole.values <= lowest_limit]
    behind = np.cumsum(whole.weights[::-1])[::-1][: known.size]
    known = known[behind >= LEAST_SIZE]
    if known.size <= _STARTS:
        return known
    grid = np.geomspace(known[0], known[-1], _STARTS)
    return np.unique(known[np.searchsorted(known, grid).clip(0, known.size - 1)])


def _above(whole: Tail, start: float) -> Tail:
    """Return the part of a tail at or above a start."""
    seen, held = whole.values >= start, whole.limits >= start
    return Tail(
        whole.values[seen],
        whole.weights[seen],
        whole.limits[held],
        whole.held[held],
        start,
        whole.top,
    )


def _taken(failures: Failures, items: Integers) -> Failures:
    return Failures(failures.counts[items], failures.censored[items], failures.top)


def _too_little(distinct: int, size: float, where: str) -> str | None:
    """Return why a tail is too small to fit, or None."""
    if distinct >= LEAST_DISTINCT and size >= LEAST_SIZE:
        return None
    return (
        f"undetermined: {distinct} distinct counts and {size:g} solved items {where}; "
        f"{LEAST_DISTINCT} and {LEAST_SIZE} are needed"
    )
