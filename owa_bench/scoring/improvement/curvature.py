"""Curvature of self-improvement, on links where gains near the ceiling compare.

Source: the AAI paper, sections 3.7 and 3.8.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Improvement
from owa_bench.records.score import Interval
from owa_bench.scoring.statistics import slopes
from owa_bench.scoring.statistics.bootstrap import figure


class MonotoneLink(NamedTuple):
    """A monotone map g of [0, 1) to the line, and its inverse."""

    forward: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]


LINKS: Mapping[str, MonotoneLink] = {
    "logit": MonotoneLink(
        lambda x: np.log(x) - np.log1p(-x), lambda g: 0.5 * (1.0 + np.tanh(0.5 * g))
    ),
    "surprisal": MonotoneLink(lambda x: -np.log1p(-x), lambda g: -np.expm1(-g)),
}
_FEWEST = 3  # points that a parabola needs


def link_named(link: str) -> MonotoneLink:
    """Return a link by name; ScoringError lists the known ones."""
    if link not in LINKS:
        raise ScoringError(f"A link must be one of {', '.join(LINKS)}, got {link!r}.")
    return LINKS[link]


def on_link(values: Floats, link: str, clip: float) -> Floats:
    """Return g(x), x clipped to 1 - clip from above.

    Formula:
        logit g(x) = ln(x / (1 - x)); surprisal g(x) = -ln(1 - x)
    Shapes: any array; result the same. Units: capability in [0, 1]; log units out.
    Missing: NaN where x is 0 or NaN: a zero is not computable, not minus infinity.
    Errors: ScoringError if a value lies outside [0, 1] or the link is unknown.
    Source: [S] eq 14 of the AAI paper; the clip [D] in the protocol.

    >>> on_link(np.array([0.5, 1.0]), "surprisal", 1e-3).round(4)
    array([0.6931, 6.9078])
    """
    known = values[~np.isnan(values)]
    if ((known < 0) | (known > 1)).any():
        raise ScoringError("A link reads capability in [0, 1].")
    clipped = np.where(values > 0, np.minimum(values, 1.0 - clip), np.nan)
    return link_named(link).forward(clipped)


def step(value: float, distance: float, link: str) -> float:
    """Return where a step of `distance` on the link leads.

    Formula:
        A' = g^-1(g(A) + D)
        logit: the odds are multiplied by e^D; surprisal: the shortfall by e^-D
    Shapes: scalars. Units: capability in [0, 1); log units.
    Missing: none. Errors: ScoringError unless 0 < A < 1 and D is finite.
    Source: [S] eqs 17-18 of the AAI paper.

    >>> first = step(0.40, np.log(2), "surprisal")
    >>> round(first, 4), round(step(first, np.log(2), "surprisal"), 4)
    (0.7, 0.85)
    """
    if not 0 < value < 1 or not np.isfinite(distance):
        raise ScoringError(f"A link step starts between 0 and 1, got {value} and {distance}.")
    g = link_named(link)
    return float(g.inverse(g.forward(np.array(value)) + distance))


def power_step(value: float, power: float) -> float:
    """Return the multiplicative step: the shortfall raised to a power.

    Formula:
        1 - A' = (1 - A)^gamma
    Shapes: scalars. Units: capability in [0, 1].
    Missing: none. Errors: ScoringError unless 0 <= A <= 1 and gamma > 0.
    Source: [S] section 3.8 of the AAI paper, multiplicative-on-link alternative.

    >>> round(power_step(0.40, 2), 4)
    0.64
    """
    if not 0 <= value <= 1 or not power > 0:
        raise ScoringError(f"A power step needs A in [0, 1], gamma > 0, got {value} and {power}.")
    return float(1.0 - (1.0 - value) ** power)


def steps_made(before: float, after: float, distance: float, link: str) -> int:
    """Return the number of whole link steps between two capabilities.

    Args:
        before: capability in (0, 1).
        after: capability in (0, 1).
        distance: length of a step, log units.
        link: name of the link.
    Returns: 0 where the capability fell.
    Raises: ScoringError: a capability lies outside (0, 1) or the step is not above 0.

    >>> steps_made(0.40, 0.86, float(np.log(2)), "surprisal")
    2
    """
    if not distance > 0:
        raise ScoringError(f"A link step must be above 0, got {distance}.")
    if not (0 < before < 1 and 0 < after < 1):
        raise ScoringError(f"Steps are counted between 0 and 1, got {before} and {after}.")
    g = link_named(link).forward
    gap = float(g(np.array(after)) - g(np.array(before)))
    return max(0, int(np.floor(gap / distance + 1e-9)))


class QuadraticFit(NamedTuple):
    """kappa_g and c_g at the centre of a window."""

    slope: float
    curvature: float


def local_quadratic(x: Floats, y: Floats) -> QuadraticFit:
    """Return slope and curvature at the window's centre.

    Formula:
        y ~ b0 + b1 (x - xc) + b2 (x - xc)^2 by least squares, xc = (min + max) / 2
        kappa_g = b1, c_g = 2 b2
    Shapes: two arrays (points,). Units: y per x; y per x^2.
    Missing: NaN where fewer than three x differ.
    Errors: ScoringError if shapes differ or a value is not finite.
    Source: [S] eqs 13-14 of the AAI paper.

    >>> x = np.arange(5.0)
    >>> local_quadratic(x, 3 * x**2)
    QuadraticFit(slope=12.0, curvature=6.0)
    """
    if x.shape != y.shape or x.ndim != 1:
        raise ScoringError(f"Curvature needs two arrays of one length, got {x.shape}, {y.shape}.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ScoringError("Curvature cannot read NaN or infinity.")
    if len(np.unique(x)) < _FEWEST:
        return QuadraticFit(np.nan, np.nan)
    slope, bend = _fit(x[None, :], y[None, :])
    return QuadraticFit(round(float(slope[0]), 12), round(float(bend[0]), 12))


def _fit(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return b1 and 2 b2 of each row about the row's own centre, NaN if singular."""
    low, high = x.min(axis=1), x.max(axis=1)
    width = np.where(high > low, (high - low) / 2, 1.0)
    z = (x - ((low + high) / 2)[:, None]) / width[:, None]
    table = np.stack([np.ones_like(z), z, z * z], axis=2)
    gram = np.einsum("bni,bnj->bij", table, table)
    right = np.einsum("bni,bn->bi", table, y)
    regular = np.linalg.det(gram) > 1e-9
    gram[~regular] = np.eye(_FEWEST)
    fitted = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
    fitted[~regular] = np.nan
    return fitted[:, 1] / width, 2 * fitted[:, 2] / width**2


class Curvature(NamedTuple):
    """kappa_g and c_g on a link with their intervals."""

    link: str
    slope: float | None
    slope_interval: Interval
    curvature: float | None
    interval: Interval
    reason: str | None = None


def _no_curvature(link: str, reason: str) -> Curvature:
    empty = Interval(low=None, high=None, method=slopes.METHOD, reason=reason)
    return Curvature(link, None, empty, None, empty, reason)


def curvature(
    spent: Floats,
    values: Floats,
    link: str,
    rules: Improvement,
    *,
    level: float,
    days: Floats | None = None,
) -> Curvature:
    """Return slope and curvature on a link over one window of days.

    Formula: b1 and 2 b2 of `local_quadratic` of g(values) on R, by the AR(1) mixture
    Shapes: two arrays (days,). Units: log units per kappa unit, per its square.
    Missing: below `curvature_days_min` days, where nothing was spent and where a
        capability is 0 there is no curvature, and it says so.
    Errors: ScoringError if shapes differ.
    Source: AAI paper, equations 13-14 and section 3.7 [S]; docs/scoring.md#intervals.
    """
    if spent.shape != values.shape:
        raise ScoringError(f"Curvature needs equal lengths, got {spent.shape}, {values.shape}.")
    if len(spent) < rules.curvature_days_min:
        return _no_curvature(link, f"too few days: {len(spent)} of {rules.curvature_days_min}")
    g = on_link(values, link, rules.link_clip)
    if not (np.isfinite(g).all() and np.isfinite(spent).all()):
        return _no_curvature(link, "not computable: a capability is 0 or unknown")
    if len(np.unique(spent)) < _FEWEST:
        return _no_curvature(link, "not computable: fewer than three levels of spending")
    centred = spent - (spent.min() + spent.max()) / 2
    design = np.stack((np.ones_like(centred), centred, centred**2), axis=1)
    slope = slopes.fit(design, np.array([0.0, 1.0, 0.0]), g, days)
    bend = slopes.bend(spent, g, days)
    return Curvature(
        link,
        figure(float(slope.value)),
        _interval(slope, level),
        figure(float(bend.value)),
        _interval(bend, level),
    )


def _interval(mixture: slopes.LagMixture, level: float) -> Interval:
    low, high = (figure(float(end)) for end in mixture.interval(level))
    return Interval(low=low, high=high, method=slopes.METHOD)


class WindowTests(NamedTuple):
    """Whether a window accelerates, and whether its returns diminish within bounds.

    None: no evidence.
    """

    accelerates: bool | None
    bounded: bool | None


def window_tests(found: Curvature, most: float) -> WindowTests:
    """Return both tests of a window.

    Formula:
        acceleration: lower bound of mean c_g > 0
        diminishing returns bounded: lower bound of c_g >= -c_max
    Shapes: none. Units: c_max per kappa_unit^2. Missing: None without an interval.
    Errors: none. Source: [R] eqs 15-16 of the AAI paper; c_max [D].
    """
    low = found.interval.low
    if low is None:
        return WindowTests(None, None)
    return WindowTests(low > 0, low >= -most)


def meta_elasticity(spent: Floats, slopes: Floats) -> float:
    """Return how the link slope grows with resources, on a log-log scale.

    Formula:
        d ln kappa_g / d ln R, least-squares slope over windows
    Shapes: two arrays (windows,). Units: none.
    Missing: NaN where fewer than two windows have R > 0 and kappa_g > 0.
    Errors: ScoringError if shapes differ. Source: [S] eq 23 of the AAI paper.

    >>> round(meta_elasticity(np.array([1.0, 2.0, 4.0]), np.array([3.0, 6.0, 12.0])), 6)
    1.0
    """
    if spent.shape != slopes.shape:
        raise ScoringError(f"Windows differ: {spent.shape} and {slopes.shape}.")
    positive = (spent > 0) & (slopes > 0)
    if len(np.unique(spent[positive])) < 2:
        return float("nan")
    x, y = np.log(spent[positive]), np.log(slopes[positive])
    x = x - x.mean()
    return float((x * y).sum() / (x * x).sum())
