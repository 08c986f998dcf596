"""MCCP complexity: the least network that reaches each performance, summed.

Source: the AIQ seed, equation 5 and sections 2.4.2-2.4.3 and 3.1; `other-measures.md`
section 1.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions import checks

BINS = 30  # [S section 2.4.3]
OBSERVED, MEAN, LINE, NEAREST, EXTRAPOLATED = (
    "observed",
    "mean of neighbours",
    "line between neighbours",
    "nearest below",
    "extrapolated above",
)


class Complexity(NamedTuple):
    """A domain's complexity with the curve it is the area of.

    value: area (size times performance). centres, sizes: the curve. how: where each
    bin's size comes from. used: policies; span: interval over the pool.
    """

    value: float
    centres: Floats
    sizes: Floats
    how: tuple[str, ...]
    used: int
    span: checks.Span


def complexity(
    sizes: npt.ArrayLike,
    performances: npt.ArrayLike,
    *,
    bins: int = BINS,
    low: float = 0.0,
    high: float = 1.0,
    resamples: int = 1000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Complexity:
    """Return the MCCP complexity of a domain from a pool of trained policies.

    Formula:
        C = sum over bins of (least size in the bin) * (width of the bin)
        an empty bin: mean of its two neighbours; several: the line between them; below
        the lowest performance seen: the nearest size; above the highest: least squares
        through the observed bins, never below the smallest network of the pool
        interval: percentiles over policies drawn with replacement
    Shapes: (policies,) each; scalars and (bins,).
    Units: parameters; performance on [low, high].
    Missing: policies whose performance is NaN (training failed) are left out.
    Errors: ScoringError for lengths that differ, sizes not above 0, performances
        outside [low, high], or no policy left.
    Source: AIQ seed, equation 5, sections 2.4.2 and 2.4.3 [S]; interval [D]; the line
        between neighbours for several empty bins [R].

    >>> rng = np.random.default_rng(0)
    >>> found = complexity([5, 9], [0.25, 0.75], bins=2, resamples=0, rng=rng)
    >>> found.value, found.how
    (7.0, ('observed', 'observed'))
    """
    large, good = _pool(sizes, performances, low, high)
    if bins < 1 or not low < high:
        raise ScoringError(
            f"`bins` must be at least 1 and low < high, got {bins}, {low}, {high}."
        )
    edges = np.linspace(low, high, bins + 1)
    curve, how = _curve(large, good, edges)
    draws = np.full(resamples, np.nan)
    for i in range(resamples):
        chosen = rng.integers(0, large.size, large.size)
        draws[i] = _area(_curve(large[chosen], good[chosen], edges)[0], edges)
    span = checks.percentiles(draws, level=level)
    centres = (edges[:-1] + edges[1:]) / 2.0
    return Complexity(_area(curve, edges), centres, curve, how, large.size, span)


def normalised(values: npt.ArrayLike) -> Floats:
    """Return complexities as shares of the largest, to compare across domains.

    Formula: C / max C
    Shapes: (domains,); (domains,).
    Units: none.
    Missing: nothing may be missing.
    Errors: ScoringError for NaN or a largest value not above 0.
    Source: AIQ seed, section 3.1 [S: "normalized"; by the largest R].

    >>> normalised([2.0, 4.0]).tolist()
    [0.5, 1.0]
    """
    areas = checks.vector(values, "values")
    if not areas.max() > 0.0:
        raise ScoringError(
            f"`values` must hold a complexity above 0, got {areas.max():g} at most."
        )
    return np.asarray(areas / areas.max(), dtype=np.float64)


def _pool(
    sizes: npt.ArrayLike, performances: npt.ArrayLike, low: float, high: float
) -> tuple[Floats, Floats]:
    """Return the policies that have a performance, checked."""
    large = checks.vector(sizes, "sizes")
    good = np.asarray(performances, dtype=np.float64)
    checks.same_length(large, good, "`sizes` and `performances`")
    if large.min() <= 0:
        raise ScoringError(f"`sizes` must be above 0, got {large.min():g}.")
    checks.within(good, "performances", low, high)
    known = ~np.isnan(good)
    if not known.any():
        raise ScoringError("`performances` holds no number: every policy is missing.")
    return large[known], good[known]


def _area(curve: Floats, edges: Floats) -> float:
    return float(curve @ np.diff(edges))


def _curve(
    large: Floats, good: Floats, edges: Floats
) -> tuple[Floats, tuple[str, ...]]:
    """Return the least size per bin, empty ones filled, and how each came about."""
    count = edges.size - 1
    place = np.clip(np.searchsorted(edges, good, side="right") - 1, 0, count - 1)
    least = np.full(count, np.inf)
    np.minimum.at(least, place, large)
    seen = np.flatnonzero(np.isfinite(least))
    first, last = int(seen[0]), int(seen[-1])
    centres = (edges[:-1] + edges[1:]) / 2.0
    curve = np.interp(centres, centres[seen], least[seen])  # flat beyond both ends
    if last + 1 < count:
        curve[last + 1 :] = _above(centres, least, seen, float(large.min()))
    how = [OBSERVED] * count
    gaps = np.diff(seen) - 1
    for left, gap in zip(seen[:-1].tolist(), gaps.tolist(), strict=True):
        how[left + 1 : left + 1 + gap] = [MEAN if gap == 1 else LINE] * gap
    how[:first] = [NEAREST] * first
    how[last + 1 :] = [EXTRAPOLATED] * (count - last - 1)
    return curve, tuple(how)


def _above(
    centres: Floats, least: Floats, seen: npt.NDArray[np.intp], floor: float
) -> Floats:
    """Return the sizes above the highest performance seen."""
    slope = 0.0
    start = float(least[seen[0]])
    if seen.size > 1:
        slope, start = (float(x) for x in np.polyfit(centres[seen], least[seen], 1))
    return np.maximum(start + slope * centres[seen[-1] + 1 :], floor)
