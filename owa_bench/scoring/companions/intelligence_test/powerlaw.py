"""A discrete power law, bounded or not: its sums, likelihood and fitted exponent."""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from owa_bench.records.observables import Floats
from owa_bench.scoring.companions.intelligence_test.failures import Tail

_DIRECT = 64  # terms summed one by one before the integral takes over
_BOUNDED = (-2.0, 15.0)  # exponents that are searched, with a top
_UNBOUNDED = (1.0 + 1e-6, 15.0)  # and without one


class Exponent(NamedTuple):
    """A fitted exponent with its log likelihood and distance to the data."""

    alpha: float
    log_likelihood: float
    distance: float


def mass(alpha: float, low: Floats, top: float) -> Floats:
    """Return the sum of x^-alpha over whole x from each `low` to `top`.

    Formula: sum_{x = low}^{top} x^-alpha; 64 terms, then Euler-Maclaurin to order 4;
        the Hurwitz zeta function without a top
    Shapes: (n,) of whole numbers >= 1; (n,).
    Units: none.
    Missing: 0 where low > top.
    Errors: none; without a top alpha must be above 1.
    Source: Clauset, Shalizi and Newman (2009), appendix B, with a bound [R].

    >>> mass(1.0, np.array([1.0, 3.0]), 4.0).round(4).tolist()
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


def fit(tail: Tail) -> Exponent:
    """Return the maximum-likelihood exponent of a tail.

    Formula: maximise sum_seen -alpha ln x + sum_censored ln S(limit) - n ln S(start),
        S(a) = `mass` from a to the top; distance: largest gap between the fitted and
        the Kaplan-Meier distribution at the values seen
    Shapes: a histogram; scalars.
    Units: none.
    Missing: censored items count through their survival.
    Errors: none; the caller sees to it that the tail is large enough.
    Source: Clauset, Shalizi and Newman (2009), equation 3.5; truncation and censoring
        `other-measures.md` section 2 [R].

    >>> seen = np.arange(1.0, 60.0)
    >>> none = np.zeros(0)
    >>> round(fit(Tail(seen, 1e4 * seen**-2.5, none, none, 1.0, 59.0)).alpha, 3)
    2.5
    """
    logs = float(tail.weights @ np.log(tail.values))
    points = np.concatenate(([tail.start], tail.limits))

    def loss(alpha: float) -> float:
        sums = np.log(mass(alpha, points, tail.top))
        return float(alpha * logs - tail.held @ sums[1:] + tail.size * sums[0])

    bounds = _UNBOUNDED if math.isinf(tail.top) else _BOUNDED
    found = optimize.minimize_scalar(
        loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}
    )
    alpha = float(found.x)
    return Exponent(alpha, -float(found.fun), _distance(tail, alpha))


def survival(tail: Tail) -> Floats:
    """Return the Kaplan-Meier share of items above each value of a tail.

    Formula: product over values up to v of (1 - seen(v) / at risk(v)); an item whose
        limit is L is at risk at values below L
    Shapes: a histogram; (values,).
    Units: shares.
    Missing: censored items leave the risk set at their limit.
    Errors: none.
    Source: Kaplan and Meier (1958) [R].

    >>> none = np.zeros(0)
    >>> survival(Tail(np.array([1.0, 2.0]), np.array([3.0, 1.0]), none, none, 1.0, 9.0))
    array([0.25, 0.  ])
    """
    seen_from = np.cumsum(tail.weights[::-1])[::-1]
    gone = np.searchsorted(tail.limits, tail.values, side="right")
    held = np.concatenate(([0.0], np.cumsum(tail.held)))
    at_risk = seen_from + held[-1] - held[gone]
    left = 1.0 - tail.weights / np.maximum(at_risk, tail.weights)
    return np.asarray(np.cumprod(left), dtype=np.float64)


def _distance(tail: Tail, alpha: float) -> float:
    """Return the Kolmogorov-Smirnov distance between fit and data."""
    points = np.concatenate(([tail.start], tail.values + 1.0))
    sums = mass(alpha, points, tail.top)
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
