"""Discrete power law, bounded or not, and its comparison with two other laws."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from owa_bench.measures.intelligence_test.failures import Failures, TailCounts, tail
from owa_bench.records.observables import Floats

_DIRECT = 64  # terms summed one by one before the integral takes over
_BOUNDED = (-2.0, 15.0)  # exponents that are searched, with a top
_UNBOUNDED = (1.0 + 1e-6, 15.0)  # and without one
Survival = Callable[[Floats, Floats], Floats]  # of (parameters, values)
StartValues = Callable[[Floats, Floats], Floats]  # parameters from (values, weights)
_FAR = -690.0  # log of the least probability that is kept apart from 0


class FittedExponent(NamedTuple):
    """A fitted exponent with its log likelihood and distance to the data."""

    alpha: float
    log_likelihood: float
    distance: float


def power_sum(alpha: float, low: Floats, top: float) -> Floats:
    """Return the sum of x^-alpha over whole x from each `low` to `top`.

    Formula: sum_{x = low}^{top} x^-alpha; 64 terms, then Euler-Maclaurin to order 4;
        the Hurwitz zeta function without a top
    Shapes: (n,) of whole numbers >= 1; (n,).
    Units: none.
    Missing: 0 where low > top.
    Errors: none; without a top alpha must be above 1.
    Source: Clauset, Shalizi and Newman (2009), appendix B, with a bound [R].

    >>> power_sum(1.0, np.array([1.0, 3.0]), 4.0).round(4).tolist()
    [2.0833, 0.5833]
    """
    if math.isinf(top):
        return np.asarray(special.zeta(alpha, low), dtype=np.float64)
    steps = low[:, None] + np.arange(_DIRECT)
    with np.errstate(over="ignore"):
        terms = np.where(steps <= top, steps**-alpha, 0.0).sum(axis=1)
    start = low + _DIRECT
    rest = np.zeros_like(terms)
    beyond = start <= top
    rest[beyond] = _euler_maclaurin(alpha, start[beyond], top)
    return np.asarray(terms + rest, dtype=np.float64)


def fit_exponent(tail: TailCounts) -> FittedExponent:
    """Return the maximum-likelihood exponent of a tail.

    Formula: maximise sum_seen -alpha ln x + sum_censored ln S(limit) - n ln S(start),
        S(a) = `power_sum` from a to the top; distance: largest gap between the fitted
        and the Kaplan-Meier distribution at the values seen
    Shapes: a histogram; scalars.
    Units: none.
    Missing: censored items count through their survival.
    Errors: none; the caller checks that the tail is large enough.
    Source: Clauset, Shalizi and Newman (2009), equation 3.5; truncation and censoring
        `docs/companions.md#intelligence-test` [R].

    >>> seen = np.arange(1.0, 60.0)
    >>> none = np.zeros(0)
    >>> tail = TailCounts(seen, 1e4 * seen**-2.5, none, none, 1.0, 59.0)
    >>> round(fit_exponent(tail).alpha, 3)
    2.5
    """
    logs = float(tail.weights @ np.log(tail.values))
    points = np.concatenate(([tail.start], tail.limits))

    def loss(alpha: float) -> float:
        sums = np.log(power_sum(alpha, points, tail.top))
        return float(alpha * logs - tail.censored @ sums[1:] + tail.size * sums[0])

    bounds = _UNBOUNDED if math.isinf(tail.top) else _BOUNDED
    optimum = optimize.minimize_scalar(
        loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}
    )
    alpha = float(optimum.x)
    return FittedExponent(alpha, -float(optimum.fun), _distance(tail, alpha))


def survival(tail: TailCounts) -> Floats:
    """Return the Kaplan-Meier share of items above each value of a tail.

    Formula: product over values up to v of (1 - seen(v) / at risk(v)); an item whose
        limit is L is at risk at values below L
    Shapes: a histogram; (values,).
    Units: shares.
    Missing: censored items leave the risk set at their limit.
    Errors: none.
    Source: Kaplan and Meier (1958) [R].

    >>> none, values, weights = np.zeros(0), np.array([1.0, 2.0]), np.array([3.0, 1.0])
    >>> survival(TailCounts(values, weights, none, none, 1.0, 9.0))
    array([0.25, 0.  ])
    """
    seen_from = np.cumsum(tail.weights[::-1])[::-1]
    gone = np.searchsorted(tail.limits, tail.values, side="right")
    censored = np.concatenate(([0.0], np.cumsum(tail.censored)))
    at_risk = seen_from + censored[-1] - censored[gone]
    left = 1.0 - tail.weights / np.maximum(at_risk, tail.weights)
    return np.asarray(np.cumprod(left), dtype=np.float64)


def _distance(tail: TailCounts, alpha: float) -> float:
    """Return the Kolmogorov-Smirnov distance between fit and data."""
    points = np.concatenate(([tail.start], tail.values + 1.0))
    sums = power_sum(alpha, points, tail.top)
    return float(np.max(np.abs(sums[1:] / sums[0] - survival(tail))))


def _euler_maclaurin(alpha: float, start: Floats, top: float) -> Floats:
    """Return the sum of x^-alpha from `start` (large) to `top` by its integral."""
    if abs(alpha - 1.0) < 1e-9:
        integral = np.log(top / start)
    else:
        integral = (top ** (1.0 - alpha) - start ** (1.0 - alpha)) / (1.0 - alpha)
    first, last = start**-alpha, top**-alpha
    slope = alpha * (first / start - last / top) / 12.0
    third = alpha * (alpha + 1) * (alpha + 2) / 720.0
    bend = third * (first / start**3 - last / top**3)
    return np.asarray(integral + (first + last) / 2.0 + slope - bend, dtype=np.float64)


class Comparison(NamedTuple):
    """Power law against another law on one tail.

    ratio: log likelihood of the power law less the other's; positive favours the power law. p:
    two-sided, that so large a ratio is chance (Vuong). favours: the better law where p < 0.1, else
    None.
    """

    other: str
    ratio: float
    p: float
    favours: str | None
    reason: str | None = None


def compare(failures: Failures, *, alpha: float, start: float) -> tuple[Comparison, ...]:
    """Return the comparisons of a fitted power law with lognormal and exponential.

    Formula: R = sum of l_power - l_other per item; p = erfc(|R| / sqrt(2 n var));
        each law discrete on start .. top: P(x) = (S(x - 1/2) - S(x + 1/2)) over the
        same difference from start to top, censored items by survival
    Shapes: counts (items,); two comparisons.
    Units: nats.
    Missing: NaN and a reason where alpha is NaN or the ratio never varies.
    Errors: none beyond those of `failures`.
    Source: Clauset, Shalizi and Newman (2009), section 5 and appendix C [R].

    >>> rng = np.random.default_rng(0)
    >>> x = rng.zipf(2.2, 3000).astype(float)
    >>> laws = compare(Failures(x, x < 0, np.inf), alpha=2.2, start=1.0)
    >>> [one.favours for one in laws]
    ['power law', 'power law']
    """
    if not math.isfinite(alpha):
        reason = "the power law itself is undetermined"
        return tuple(Comparison(name, math.nan, math.nan, None, reason) for name in _LAWS)
    counts = tail(failures, start)
    points = np.concatenate((counts.values, counts.limits))
    weights = np.concatenate((counts.weights, counts.censored))
    sums = power_sum(alpha, np.concatenate(([start], counts.limits)), counts.top)
    power = np.concatenate(
        (-alpha * np.log(counts.values) - np.log(sums[0]), np.log(sums[1:] / sums[0]))
    )
    return tuple(
        _vuong(name, power, _best_fit(law, begin, counts, points, weights), weights)
        for name, (law, begin) in _LAWS.items()
    )


def _best_fit(
    law: Survival, begin: StartValues, tail: TailCounts, points: Floats, weights: Floats
) -> Floats:
    """Return each point's log likelihood under a law's best parameters."""

    def logs(parameters: Floats) -> Floats:
        ends = law(parameters, np.array([tail.start - 0.5, tail.top + 0.5]))
        total = max(float(ends[0] - ends[1]), math.exp(_FAR))
        above = law(parameters, points - 0.5)
        below = law(parameters, points + 0.5)
        below[tail.values.size :] = ends[1]
        shares = np.maximum((above - below) / total, math.exp(_FAR))
        return np.asarray(np.log(shares), dtype=np.float64)

    def loss(parameters: Floats) -> float:
        return -float(weights @ logs(parameters))

    optimum = optimize.minimize(loss, begin(points, weights), method="Nelder-Mead")
    return logs(np.asarray(optimum.x, dtype=np.float64))


def _vuong(name: str, power: Floats, other: Floats, weights: Floats) -> Comparison:
    """Return the likelihood-ratio test of two laws on the same points."""
    gap = power - other
    count = float(weights.sum())
    ratio = float(weights @ gap)
    variance = float(weights @ (gap - ratio / count) ** 2) / count
    if variance <= 0.0:
        return Comparison(name, ratio, math.nan, None, "the laws differ nowhere")
    p = float(special.erfc(abs(ratio) / math.sqrt(2.0 * count * variance)))
    better = "power law" if ratio > 0 else name
    return Comparison(name, ratio, p, better if p < 0.1 else None)


def _lognormal(parameters: Floats, edges: Floats) -> Floats:
    """Return S(x) of a lognormal with (mean, log of deviation) of ln x."""
    with np.errstate(over="ignore", divide="ignore"):
        scaled = (np.log(edges) - parameters[0]) / np.exp(np.clip(parameters[1], -9, 9))
    return np.asarray(special.ndtr(-scaled), dtype=np.float64)


def _exponential(parameters: Floats, edges: Floats) -> Floats:
    """Return S(x) of an exponential with the log of its rate."""
    rate = math.exp(float(np.clip(parameters[0], -40.0, 5.0)))
    return np.asarray(np.exp(-rate * edges), dtype=np.float64)


def _lognormal_start(points: Floats, weights: Floats) -> Floats:
    logs = np.log(points)
    mean = float(np.average(logs, weights=weights))
    spread = math.sqrt(float(np.average((logs - mean) ** 2, weights=weights)))
    return np.array([mean, math.log(max(spread, 0.1))])


def _exponential_start(points: Floats, weights: Floats) -> Floats:
    mean = float(np.average(points, weights=weights)) - float(points.min()) + 0.5
    return np.array([-math.log(mean)])


_LAWS: dict[str, tuple[Survival, StartValues]] = {
    "lognormal": (_lognormal, _lognormal_start),
    "exponential": (_exponential, _exponential_start),
}
