"""From an exponent to a level, and from levels of several sizes to a projection."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.scoring.companions import checks

LIMITED, CAPABLE, AUTONOMOUS = "Limited", "Capable", "Autonomous"
TURNS = (2.0, 3.0)  # exponents where mean and variance become finite [S 3.3]
_LARGEST_TODAY = 1e12  # parameters [S section 5.3]
_DOUBLING_YEARS = 1.5  # Moore's law [S section 5.3]


class Level(NamedTuple):
    """The level's name, None with a reason where the interval does not settle it."""

    name: str | None
    reason: str | None = None


class Projection(NamedTuple):
    """Where a log-log line of exponent on size reaches a target.

    slope, intercept: of log10 alpha on log10 size. size: parameters at the target with
    its interval. years: until such a size by Moore's law, 0 if it exists today.
    """

    slope: float
    intercept: float
    r_squared: float
    size: float
    span: checks.Span
    years: float
    years_span: checks.Span
    reason: str | None = None


def region(alpha: float) -> str:
    """Return the region of an exponent: Limited to 2, Capable to 3, Autonomous above.

    Formula: alpha <= 2: E X infinite; <= 3: Var X infinite; else both finite
    Shapes: a scalar.
    Units: none.
    Missing: NaN is an error here; `level` says undetermined.
    Errors: ScoringError for NaN.
    Source: Intelligence Test seed, section 3.3 [S].

    >>> region(2.0), region(3.0), region(3.1)
    ('Limited', 'Capable', 'Autonomous')
    """
    if math.isnan(alpha):
        raise ScoringError("`alpha` must be a number, got NaN.")
    if alpha <= TURNS[0]:
        return LIMITED
    return CAPABLE if alpha <= TURNS[1] else AUTONOMOUS


def level(alpha: float, span: checks.Span) -> Level:
    """Return the level, named only where the whole interval lies in one region.

    Formula: region(low) = region(high)
    Shapes: scalars.
    Units: none.
    Missing: None and a reason for NaN or an interval over two regions.
    Errors: none.
    Source: `other-measures.md` section 2 [R].

    >>> level(2.5, checks.Span(2.2, 2.8)).name
    'Capable'
    >>> level(2.1, checks.Span(1.9, 2.3)).reason
    'undetermined: the interval [1.90, 2.30] reaches from Limited to Capable'
    """
    if math.isnan(alpha) or math.isnan(span.low):
        return Level(None, f"undetermined: {span.reason or 'no exponent'}")
    first, last = region(span.low), region(span.high)
    if first == last:
        return Level(first)
    reach = f"[{span.low:.2f}, {span.high:.2f}]"
    return Level(
        None, f"undetermined: the interval {reach} reaches from {first} to {last}"
    )


def projection(
    sizes: npt.ArrayLike,
    alphas: npt.ArrayLike,
    *,
    target: float = TURNS[1],
    confidence: float = 0.95,
) -> Projection:
    """Return the size at which the exponent reaches a target, and when.

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
    Source: Intelligence Test seed, sections 5.2 and 5.3 [S]; Fieller's interval [D].

    >>> found = projection([1e9, 1e10, 1e11], [1.0, 1.2, 1.44])
    >>> round(math.log10(found.size), 2), round(found.years, 1)
    (15.03, 15.1)
    """
    x = checks.vector(sizes, "sizes")
    y = checks.vector(alphas, "alphas")
    checks.same_length(x, y, "`sizes` and `alphas`")
    checks.within(x, "sizes", math.ulp(0.0), math.inf)
    checks.within(y, "alphas", math.ulp(0.0), math.inf)
    if np.unique(x).size < 3:
        return _nothing(f"{np.unique(x).size} model sizes; three are needed")
    u, v = np.log10(x), np.log10(y)
    found = stats.linregress(u, v)
    slope, start = float(found.slope), float(found.intercept)
    r_squared = float(found.rvalue) ** 2
    if slope <= 0.0:
        nothing = _nothing("the exponent does not rise with size")
        return nothing._replace(slope=slope, intercept=start, r_squared=r_squared)
    goal = math.log10(target)
    place = (goal - start) / slope
    low, high, reason = _fieller(u, v, slope, goal, confidence)
    span = checks.Span(_power(low), _power(high), reason)
    dates = checks.Span(_years(low), _years(high), reason)
    return Projection(
        slope, start, r_squared, _power(place), span, _years(place), dates
    )


def _fieller(
    u: npt.NDArray[np.float64],
    v: npt.NDArray[np.float64],
    slope: float,
    goal: float,
    confidence: float,
) -> tuple[float, float, str | None]:
    """Return the interval of the u at which a fitted line reaches `goal`."""
    n = u.size
    centre, height = float(u.mean()), float(v.mean())
    wide = float(np.sum((u - centre) ** 2))
    left = float(np.sum((v - height - slope * (u - centre)) ** 2)) / (n - 2)
    t = float(stats.t.ppf((1.0 + confidence) / 2.0, n - 2))
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


def _nothing(reason: str) -> Projection:
    nan = math.nan
    nowhere = checks.Span(nan, nan, reason)
    return Projection(nan, nan, nan, nan, nowhere, nan, nowhere, reason)
