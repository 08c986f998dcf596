"""Is it a power law? The same tail under a lognormal and an exponential."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from owa_bench.records.observables import Floats
from owa_bench.scoring.companions.intelligence_test import powerlaw
from owa_bench.scoring.companions.intelligence_test.failures import Failures, tail

Survival = Callable[[Floats, Floats], Floats]
_FAR = -690.0  # log of the least probability that is kept apart from 0


class Comparison(NamedTuple):
    """Power law against another law on one tail.

    ratio: log likelihood of the power law less the other's; positive favours the power
    law. p: two-sided, that so large a ratio is chance (Vuong). favours: the better law
    where p < 0.1, else None.
    """

    other: str
    ratio: float
    p: float
    favours: str | None
    reason: str | None = None


def compare(
    failures: Failures, *, alpha: float, start: float
) -> tuple[Comparison, ...]:
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
    >>> found = compare(Failures(x, x < 0, np.inf), alpha=2.2, start=1.0)
    >>> [one.favours for one in found]
    ['power law', 'power law']
    """
    if not math.isfinite(alpha):
        reason = "the power law itself is undetermined"
        return tuple(
            Comparison(name, math.nan, math.nan, None, reason) for name in _LAWS
        )
    whole = tail(failures, start)
    points = np.concatenate((whole.values, whole.limits))
    weights = np.concatenate((whole.weights, whole.held))
    seen = whole.values.size
    sums = powerlaw.mass(alpha, np.concatenate(([start], whole.limits)), whole.top)
    power = np.concatenate(
        (-alpha * np.log(whole.values) - np.log(sums[0]), np.log(sums[1:] / sums[0]))
    )
    return tuple(
        _vuong(
            name,
            power,
            _best(law, begin, points, seen, weights, start, whole.top),
            weights,
        )
        for name, (law, begin) in _LAWS.items()
    )


def _best(
    law: Survival,
    begin: Callable[[Floats, Floats], Floats],
    points: Floats,
    seen: int,
    weights: Floats,
    start: float,
    top: float,
) -> Floats:
    """Return each point's log likelihood under a law's best parameters."""

    def logs(parameters: Floats) -> Floats:
        edges = np.array([start - 0.5, top + 0.5])
        whole = law(parameters, edges)
        total = max(float(whole[0] - whole[1]), math.exp(_FAR))
        above = law(parameters, points - 0.5)
        below = law(parameters, points + 0.5)
        below[seen:] = whole[1]
        shares = np.maximum((above - below) / total, math.exp(_FAR))
        return np.asarray(np.log(shares), dtype=np.float64)

    def loss(parameters: Floats) -> float:
        return -float(weights @ logs(parameters))

    found = optimize.minimize(loss, begin(points, weights), method="Nelder-Mead")
    return logs(np.asarray(found.x, dtype=np.float64))


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
    return np.asarray(stats.norm.sf(scaled), dtype=np.float64)


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


_LAWS: dict[str, tuple[Survival, Callable[[Floats, Floats], Floats]]] = {
    "lognormal": (_lognormal, _lognormal_start),
    "exponential": (_exponential, _exponential_start),
}
