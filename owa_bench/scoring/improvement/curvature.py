"""Curvature: does self-improvement speed up or slow down per resource spent?"""

from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Improvement
from owa_bench.records.score import Interval
from owa_bench.scoring.bootstrap import block_bootstrap, figure
from owa_bench.scoring.improvement.links import on_link

METHOD = "stationary block bootstrap over days"
_FEWEST = 3  # points that a parabola needs
_LOST = 0.05  # share of resamples that may hold fewer than three days


class Bend(NamedTuple):
    """kappa_g and c_g at the centre of a window."""

    slope: float
    curvature: float


def local_quadratic(x: Floats, y: Floats) -> Bend:
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
    Bend(slope=12.0, curvature=6.0)
    """
    if x.shape != y.shape or x.ndim != 1:
        raise ScoringError(
            f"Curvature needs two arrays of one length, got {x.shape}, {y.shape}."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ScoringError("Curvature cannot read NaN or infinity.")
    if len(np.unique(x)) < _FEWEST:
        return Bend(np.nan, np.nan)
    slope, bend = _fit(x[None, :], y[None, :])
    return Bend(round(float(slope[0]), 12), round(float(bend[0]), 12))


def _fit(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return b1 and 2 b2 of each row about the row's own centre, NaN if singular."""
    low, high = x.min(axis=1), x.max(axis=1)
    width = np.where(high > low, (high - low) / 2, 1.0)
    z = (x - ((low + high) / 2)[:, None]) / width[:, None]
    table = np.stack([np.ones_like(z), z, z * z], axis=2)
    gram = np.einsum("bni,bnj->bij", table, table)
    right = np.einsum("bni,bn->bi", table, y)
    sound = np.linalg.det(gram) > 1e-9
    gram[~sound] = np.eye(_FEWEST)
    found = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
    found[~sound] = np.nan
    return found[:, 1] / width, 2 * found[:, 2] / width**2


class Curvature(NamedTuple):
    """kappa_g and c_g on a link with their block-bootstrap intervals."""

    link: str
    slope: float | None
    slope_interval: Interval
    curvature: float | None
    interval: Interval
    reason: str | None = None


def _none(link: str, reason: str) -> Curvature:
    empty = Interval(low=None, high=None, method=METHOD, reason=reason)
    return Curvature(link, None, empty, None, empty, reason)


def curvature(
    spent: Floats,
    values: Floats,
    link: str,
    rules: Improvement,
    *,
    level: float,
    resamples: int,
    root: str,
) -> Curvature:
    """Return slope and curvature on a link over one window of days.

    Shapes: two arrays (days,). Units: log units per kappa unit, per its square.
    Missing: below `curvature_days_min` days, where nothing was spent and where a
        capability is 0 there is no curvature, and it says so.
    Errors: ScoringError if shapes differ. Source: [S] eqs 13-14, section 3.7.
    """
    if spent.shape != values.shape:
        raise ScoringError(
            f"Curvature needs equal lengths, got {spent.shape}, {values.shape}."
        )
    if len(spent) < rules.curvature_days_min:
        return _none(link, f"too few days: {len(spent)} of {rules.curvature_days_min}")
    g = on_link(values, link, rules.link_clip)
    if not (np.isfinite(g).all() and np.isfinite(spent).all()):
        return _none(link, "not computable: a capability is 0 or unknown")
    point = local_quadratic(spent, g)
    if np.isnan(point.curvature):
        return _none(link, "not computable: fewer than three levels of spending")
    rows = block_bootstrap(len(spent), resamples, root, "curvature", link)
    slopes, bends = _fit(spent[rows], g[rows])
    return Curvature(
        link,
        figure(point.slope),
        _band(slopes, level),
        figure(point.curvature),
        _band(bends, level),
    )


def _band(draws: Floats, level: float) -> Interval:
    known = draws[~np.isnan(draws)]
    if len(known) < (1 - _LOST) * len(draws):
        reason = "more than 5 percent of the resamples are undefined"
        return Interval(low=None, high=None, method=METHOD, reason=reason)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(low=figure(float(low)), high=figure(float(high)), method=METHOD)


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
    return (
        WindowTests(None, None) if low is None else WindowTests(low > 0, low >= -most)
    )


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
    kept = (spent > 0) & (slopes > 0)
    if len(np.unique(spent[kept])) < 2:
        return float("nan")
    x, y = np.log(spent[kept]), np.log(slopes[kept])
    x = x - x.mean()
    return float((x * y).sum() / (x * x).sum())
