"""Intelligence Test: tail exponent of failure counts, level, and projection over sizes.

Source: the Intelligence Test paper, sections 3.3, 5.1-5.3;
`docs/companions.md#intelligence-test`.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.measures.intelligence_test import power_law
from owa_bench.measures.intelligence_test.failures import Failures, TailCounts, tail
from owa_bench.records.observables import Floats
from owa_bench.scoring.statistics import arrays
from owa_bench.scoring.statistics.distributions import t_quantile

LEAST_DISTINCT = 5  # distinct counts at or above the start [R]
LEAST_SIZE = 50  # observations at or above the start [R]
WINDOW = (10.0, 100.0)  # the paper's window [S section 5.1]
LIMITED, CAPABLE, AUTONOMOUS = "Limited", "Capable", "Autonomous"
BOUNDARIES = (2.0, 3.0)  # exponents where mean and variance become finite [S 3.3]
_LARGEST_TODAY = 1e12  # parameters [S section 5.3]
_DOUBLING_YEARS = 1.5  # Moore's law [S section 5.3]
_STARTS = 40  # starts tried, spread over the logarithm where there are more [D]


class LeastSquaresFit(NamedTuple):
    """The paper's estimator (a): a straight line through log frequencies.

    Biased low unless every count of the window is frequent: read the level from (b).
    """

    alpha: float
    r_squared: float
    window: tuple[float, float]
    distinct: int
    observations: int
    reason: str | None = None


class LikelihoodFit(NamedTuple):
    """The estimator (b): maximum likelihood above `start`, with its interval."""

    alpha: float
    span: arrays.IntervalEstimate
    start: float
    top: float
    distinct: int
    observations: float
    censored: float
    distance: float
    log_likelihood: float
    reason: str | None = None


def least_squares(failures: Failures) -> LeastSquaresFit:
    """Return the exponent by the paper's estimator (a).

    Formula: least squares of ln frequency on ln X over whole X in the window that were
        seen; alpha = -slope; the window is 10 .. 100, or 1 .. K - 1 for K <= 100
    Shapes: counts (items,); scalars.
    Units: none.
    Missing: counts nobody had are left out (the bias); censored items are left out.
        "undetermined" (NaN and a reason) below 5 distinct counts or 50 observations.
    Errors: none beyond those of `failures`.
    Source: Intelligence Test paper, section 5.1 [S]; window for few candidates [R].

    >>> from owa_bench.measures.intelligence_test import failures
    >>> x = np.arange(10.0, 101.0)
    >>> many = np.repeat(x, np.round(1e6 * x**-2.0).astype(int))
    >>> round(least_squares(failures.from_counts(many)).alpha, 2)
    2.0
    """
    low, high = (1.0, failures.top) if failures.top <= 99.0 else WINDOW
    counts = tail(failures, low)
    inside = counts.values <= high
    x, frequency = np.log(counts.values[inside]), counts.weights[inside]
    distinct, size = int(inside.sum()), float(frequency.sum())
    reason = _too_little(distinct, size, f"in {low:g} .. {high:g}")
    if reason:
        window, nan = (low, high), math.nan
        return LeastSquaresFit(nan, nan, window, distinct, round(size), reason)
    y = np.log(frequency)
    slope, start = np.polyfit(x, y, 1)
    left = float(np.sum((y - slope * x - start) ** 2))
    spread = float(np.sum((y - y.mean()) ** 2))
    r_squared = 1.0 - left / spread if spread > 0 else math.nan
    return LeastSquaresFit(float(-slope), r_squared, (low, high), distinct, round(size))


def maximum_likelihood(
    failures: Failures,
    *,
    start: float | None = None,
    resamples: int = 200,
    level: float = 0.95,
    rng: np.random.Generator,
) -> LikelihoodFit:
    """Return the exponent by discrete maximum likelihood (b).

    Formula: `fit_exponent` above the start with the least Kolmogorov-Smirnov distance
        (at most 40 starts, spread over the logarithm); truncated at the top; interval:
        percentiles over items drawn with replacement, start chosen anew each time
    Shapes: counts (items,); scalars.
    Units: none.
    Missing: censored items count through their survival; starts above the lowest
        censoring limit are not tried. "undetermined" (NaN and a reason) below 5
        distinct counts or 50 observations at or above the start.
    Errors: ScoringError if a given `start` is below 1.
    Source: Clauset, Shalizi and Newman (2009) [R];
        `docs/companions.md#intelligence-test`.

    >>> from owa_bench.measures.intelligence_test import failures
    >>> rng = np.random.default_rng(1)
    >>> counts = failures.from_counts(rng.zipf(2.5, 4000))
    >>> bool(abs(maximum_likelihood(counts, resamples=0, rng=rng).alpha - 2.5) < 0.15)
    True
    """
    if start is not None and start < 1:
        raise ScoringError(f"`start` must be at least 1 (a power law has no 0), got {start:g}.")
    chosen, fit = _best_start(failures, start)
    distinct, censored = chosen.values.size, float(chosen.censored.sum())
    result = LikelihoodFit(
        alpha=math.nan,
        span=arrays.no_interval("undetermined"),
        start=chosen.start,
        top=failures.top,
        distinct=distinct,
        observations=chosen.size,
        censored=censored,
        distance=math.nan,
        log_likelihood=math.nan,
    )
    if fit is None:
        where = f"at or above {chosen.start:g}"
        solved = float(chosen.weights.sum())
        return result._replace(reason=_too_little(distinct, solved, where))
    draws = np.full(resamples, np.nan)
    for i in range(resamples):
        items = rng.integers(0, failures.counts.size, failures.counts.size)
        counts, limits = failures.counts[items], failures.censored[items]
        again = _best_start(Failures(counts, limits, failures.top), start)[1]
        draws[i] = math.nan if again is None else again.alpha
    span = arrays.percentile_interval(draws, level=level)
    return result._replace(span=span, **fit._asdict())


def _best_start(
    failures: Failures, start: float | None
) -> tuple[TailCounts, power_law.FittedExponent | None]:
    """Return the tail whose fit lies closest to the data, or no fit at all."""
    counts = tail(failures, 1.0 if start is None else start)
    starts = _starts(counts) if start is None else np.array([start])
    best: tuple[TailCounts, power_law.FittedExponent | None] = (counts, None)
    for low in starts:
        part = counts.above(float(low))
        if _too_little(part.values.size, float(part.weights.sum()), ""):
            continue
        fit = power_law.fit_exponent(part)
        if best[1] is None or fit.distance < best[1].distance:
            best = part, fit
    return best


def _starts(counts: TailCounts) -> Floats:
    """Return the starts to try, the lowest first."""
    lowest_limit = counts.limits[0] if counts.limits.size else math.inf
    known = counts.values[counts.values <= lowest_limit]
    above = np.cumsum(counts.weights[::-1])[::-1][: known.size]
    known = known[above >= LEAST_SIZE]
    if known.size <= _STARTS:
        return known
    grid = np.geomspace(known[0], known[-1], _STARTS)
    return np.unique(known[np.searchsorted(known, grid).clip(0, known.size - 1)])


def _too_little(distinct: int, size: float, where: str) -> str | None:
    """Return why a tail is too small to fit, or None."""
    if distinct >= LEAST_DISTINCT and size >= LEAST_SIZE:
        return None
    return (
        f"undetermined: {distinct} distinct counts and {size:g} solved items {where}; "
        f"{LEAST_DISTINCT} and {LEAST_SIZE} are needed"
    )


class Level(NamedTuple):
    """The level's name; None with a reason where the interval spans two regions."""

    name: str | None
    reason: str | None = None


class IntelligenceTestResult(NamedTuple):
    """A subject's level with both estimates and the comparison of other laws."""

    level: Level
    likelihood: LikelihoodFit
    least_squares: LeastSquaresFit
    comparisons: tuple[power_law.Comparison, ...]


def measure(
    failures: Failures, *, resamples: int = 200, rng: np.random.Generator
) -> IntelligenceTestResult:
    """Return the level of a subject by the tail of its failure counts.

    Formula: `level` of the interval of `maximum_likelihood`; `least_squares` and
        `power_law.compare` beside it
    Shapes: counts (items,); scalars.
    Units: none.
    Missing: as the parts say.
    Errors: none beyond those of `failures`.
    Source: Intelligence Test paper, sections 3.3 and 5.1 [S]; the interval [R].

    >>> from owa_bench.measures.intelligence_test.failures import from_counts
    >>> rng = np.random.default_rng(1)
    >>> measure(from_counts(rng.zipf(2.5, 4000)), resamples=20, rng=rng).level.name
    'Capable'
    """
    exponent = maximum_likelihood(failures, resamples=resamples, rng=rng)
    return IntelligenceTestResult(
        level(exponent.alpha, exponent.span),
        exponent,
        least_squares(failures),
        power_law.compare(failures, alpha=exponent.alpha, start=exponent.start),
    )


class Projection(NamedTuple):
    """Model size at which a log-log line of exponent on size reaches a target.

    slope, intercept: of log10 alpha on log10 size. size: parameters at the target with its
    interval. years: until such a size by Moore's law, 0 if it exists today.
    """

    slope: float
    intercept: float
    r_squared: float
    size: float
    span: arrays.IntervalEstimate
    years: float
    years_span: arrays.IntervalEstimate
    reason: str | None = None


def region(alpha: float) -> str:
    """Return the region of an exponent: Limited to 2, Capable to 3, Autonomous above.

    Formula: alpha <= 2: E X infinite; <= 3: Var X infinite; else both finite
    Shapes: a scalar.
    Units: none.
    Missing: NaN is an error here; `level` says undetermined.
    Errors: ScoringError for NaN.
    Source: Intelligence Test paper, section 3.3 [S].

    >>> region(2.0), region(3.0), region(3.1)
    ('Limited', 'Capable', 'Autonomous')
    """
    if math.isnan(alpha):
        raise ScoringError("`alpha` must be a number, got NaN.")
    if alpha <= BOUNDARIES[0]:
        return LIMITED
    return CAPABLE if alpha <= BOUNDARIES[1] else AUTONOMOUS


def level(alpha: float, span: arrays.IntervalEstimate) -> Level:
    """Return the level, named only where the whole interval lies in one region.

    Formula: region(low) = region(high)
    Shapes: scalars.
    Units: none.
    Missing: None and a reason for NaN or an interval over two regions.
    Errors: none.
    Source: `docs/companions.md#intelligence-test` [R].

    >>> level(2.5, arrays.IntervalEstimate(2.2, 2.8)).name
    'Capable'
    >>> level(2.1, arrays.IntervalEstimate(1.9, 2.3)).reason
    'undetermined: the interval [1.90, 2.30] reaches from Limited to Capable'
    """
    if math.isnan(alpha) or math.isnan(span.low):
        return Level(None, f"undetermined: {span.reason or 'no exponent'}")
    first, last = region(span.low), region(span.high)
    if first == last:
        return Level(first)
    reach = f"[{span.low:.2f}, {span.high:.2f}]"
    return Level(None, f"undetermined: the interval {reach} reaches from {first} to {last}")


def projection(
    sizes: npt.ArrayLike,
    alphas: npt.ArrayLike,
    *,
    target: float = BOUNDARIES[1],
    confidence: float = 0.95,
) -> Projection:
    """Return the model size at which the exponent reaches a target, and the years.

    Formula:
        log10 alpha = a + b log10 size, least squares
        size* = 10^((log10 target - a) / b)
        interval: Fieller's, from the t distribution with n - 2 degrees of freedom
        years = 1.5 log2(size* / 10^12), at least 0
    Shapes: (models,) each; scalars.
    Units: parameters; years from the day on which 10^12 is the largest.
    Missing: NaN and a reason with fewer than three sizes or a slope not above 0; the
        interval is NaN with a reason where the slope may be 0.
    Errors: ScoringError for NaN, values not above 0, or lengths that differ.
    Source: Intelligence Test paper, sections 5.2 and 5.3 [S]; Fieller's interval [D].

    >>> line = projection([1e9, 1e10, 1e11], [1.0, 1.2, 1.44])
    >>> round(math.log10(line.size), 2), round(line.years, 1)
    (15.03, 15.1)
    """
    x = arrays.vector(sizes, "sizes")
    y = arrays.vector(alphas, "alphas")
    arrays.check_lengths(x, y, "`sizes` and `alphas`")
    arrays.check_range(x, "sizes", math.ulp(0.0), math.inf)
    arrays.check_range(y, "alphas", math.ulp(0.0), math.inf)
    if np.unique(x).size < 3:
        return _undetermined(f"{np.unique(x).size} model sizes; three are needed")
    u, v = np.log10(x), np.log10(y)
    line = stats.linregress(u, v)
    slope, start = float(line.slope), float(line.intercept)
    r_squared = float(line.rvalue) ** 2
    if slope <= 0.0:
        without = _undetermined("the exponent does not rise with size")
        return without._replace(slope=slope, intercept=start, r_squared=r_squared)
    goal = math.log10(target)
    place = (goal - start) / slope
    low, high, reason = _fieller(u, v, slope, goal, confidence)
    span = arrays.IntervalEstimate(_power(low), _power(high), reason)
    dates = arrays.IntervalEstimate(_years(low), _years(high), reason)
    return Projection(slope, start, r_squared, _power(place), span, _years(place), dates)


def _fieller(
    u: Floats, v: Floats, slope: float, goal: float, confidence: float
) -> tuple[float, float, str | None]:
    """Return the interval of the u at which a fitted line reaches `goal`."""
    n = u.size
    centre, height = float(u.mean()), float(v.mean())
    wide = float(np.sum((u - centre) ** 2))
    left = float(np.sum((v - height - slope * (u - centre)) ** 2)) / (n - 2)
    t = t_quantile((1.0 + confidence) / 2.0, n - 2)
    g = t**2 * left / (slope**2 * wide)
    if g >= 1.0:
        return math.nan, math.nan, "the slope may be 0: no size is excluded"
    step = (goal - height) / slope
    middle = centre + step / (1.0 - g)
    inner = left * ((1.0 - g) / n + step**2 / wide)
    reach = t / (slope * (1.0 - g)) * math.sqrt(inner)
    return middle - reach, middle + reach, None


def _years(exponent: float) -> float:
    """Return the years until 10^exponent parameters, doubling every 18 months."""
    more = exponent - math.log10(_LARGEST_TODAY)
    return max(0.0, _DOUBLING_YEARS * more / math.log10(2.0))


def _power(exponent: float) -> float:
    """Return 10^exponent, inf beyond the range of a float."""
    return 10.0**exponent if math.isnan(exponent) or exponent < 308 else math.inf


def _undetermined(reason: str) -> Projection:
    nan, span = math.nan, arrays.no_interval(reason)
    return Projection(nan, nan, nan, nan, span, nan, span, reason)
