"""Complexity of a domain (MCCP), and the entropy baselines that it is compared with.

Source: the AIQ paper, equations 4 and 5 and sections 2.4.2-2.4.3 and 3.1.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.statistics import arrays
from owa_bench.scoring.statistics.distributions import t_quantile

BINS = 30  # [S section 2.4.3]
OBSERVED, EXTRAPOLATED = "observed", "extrapolated above"
MEAN, LINE, NEAREST = "mean of neighbours", "line between neighbours", "nearest below"


class Complexity(NamedTuple):
    """A domain's complexity with the curve it is the area of.

    value: area (size times performance). centres, sizes: the curve. how: the origin of each bin's
    size, of all pools together. used: policies; span: interval over pools.
    """

    value: float
    centres: Floats
    sizes: Floats
    how: tuple[str, ...]
    used: int
    span: arrays.IntervalEstimate


def complexity(
    sizes: npt.ArrayLike,
    performances: npt.ArrayLike,
    *,
    pools: npt.ArrayLike | None = None,
    bins: int = BINS,
    low: float = 0.0,
    high: float = 1.0,
) -> Complexity:
    """Return the MCCP complexity of a domain from pools of trained policies.

    Formula:
        C of a pool = sum over bins of (least size in the bin) * (width of the bin)
        an empty bin: mean of its two neighbours; several: the line between them; below
        the lowest performance seen: the nearest size; above the highest: least squares
        through the observed bins, never below the smallest network of the pool
        C = mean over pools; interval: t over pools. A least size has no bootstrap: a
        resample never holds less than the pool does. The interval is that of the
        expected C of a pool so large and so trained; more networks can only lower it.
    Shapes: (policies,) each; scalars and (bins,). `pools` says which of several pools,
        drawn and trained apart, a policy is of; without it all are one pool.
    Units: parameters; performance on [low, high].
    Missing: policies whose performance is NaN (training failed) are left out; one pool
        has no interval.
    Errors: ScoringError for lengths that differ, sizes not above 0, performances
        outside [low, high], or no policy left.
    Source: AIQ paper, equation 5, sections 2.4.2 and 2.4.3 [S]; interval [D]; the line
        between neighbours for several empty bins [R].

    >>> whole = complexity([5, 9], [0.25, 0.75], bins=2)
    >>> whole.value, whole.how
    (7.0, ('observed', 'observed'))
    >>> two = complexity([5, 9, 6, 8], [0.25, 0.75] * 2, pools=[0, 0, 1, 1], bins=2)
    >>> two.value, two.sizes.tolist()
    (7.0, [5.5, 8.5])
    """
    large, good, labels = _pool(sizes, performances, pools, low, high)
    if bins < 1 or not low < high:
        raise ScoringError(f"`bins` must be at least 1 and low < high, got {bins}, {low}, {high}.")
    edges = np.linspace(low, high, bins + 1)
    own = [labels == label for label in np.unique(labels)]
    curves = np.array([_curve(large[one], good[one], edges)[0] for one in own])
    areas = curves @ np.diff(edges)
    how = _curve(large, good, edges)[1]
    return Complexity(
        float(areas.mean()),
        (edges[:-1] + edges[1:]) / 2.0,
        curves.mean(axis=0),
        how,
        large.size,
        _over_pools(areas),
    )


def _over_pools(areas: Floats) -> arrays.IntervalEstimate:
    """Return the 95 percent t interval of the mean, none of one pool."""
    if areas.size < 2:
        return arrays.no_interval("one pool alone: draw and train it again")
    reach = t_quantile(0.975, areas.size - 1) * areas.std(ddof=1) / np.sqrt(areas.size)
    middle = float(areas.mean())
    return arrays.IntervalEstimate(middle - float(reach), middle + float(reach))


def normalise(values: npt.ArrayLike) -> Floats:
    """Return complexities as shares of the largest, to compare across domains.

    Formula: C / max C
    Shapes: (domains,); (domains,).
    Units: none.
    Missing: nothing may be missing.
    Errors: ScoringError for NaN or a largest value not above 0.
    Source: AIQ paper, section 3.1 [S: "normalized"; by the largest R].

    >>> normalise([2.0, 4.0]).tolist()
    [0.5, 1.0]
    """
    areas = arrays.vector(values, "values")
    if not areas.max() > 0.0:
        raise ScoringError(f"`values` must hold a complexity above 0, got {areas.max():g} at most.")
    return np.asarray(areas / areas.max(), dtype=np.float64)


def _pool(
    sizes: npt.ArrayLike,
    performances: npt.ArrayLike,
    pools: npt.ArrayLike | None,
    low: float,
    high: float,
) -> tuple[Floats, Floats, Floats]:
    """Return the policies that have a performance and their pools, checked."""
    large = arrays.vector(sizes, "sizes")
    good = np.asarray(performances, dtype=np.float64)
    arrays.check_lengths(large, good, "`sizes` and `performances`")
    labels = np.zeros(large.size) if pools is None else arrays.vector(pools, "pools")
    arrays.check_lengths(large, labels, "`sizes` and `pools`")
    if large.min() <= 0:
        raise ScoringError(f"`sizes` must be above 0, got {large.min():g}.")
    arrays.check_range(good, "performances", low, high)
    known = ~np.isnan(good)
    if not known.any():
        raise ScoringError("`performances` holds no number: every policy is missing.")
    return large[known], good[known], labels[known]


def _curve(large: Floats, good: Floats, edges: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Return the least size per bin, empty ones filled, and the origin of each."""
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


def _above(centres: Floats, least: Floats, seen: npt.NDArray[np.intp], floor: float) -> Floats:
    """Return the sizes above the highest performance seen."""
    slope = 0.0
    start = float(least[seen[0]])
    if seen.size > 1:
        slope, start = (float(x) for x in np.polyfit(centres[seen], least[seen], 1))
    return np.maximum(start + slope * centres[seen[-1] + 1 :], floor)


_OFFSETS = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))  # radius 1: five pixels


class ImageEntropy(NamedTuple):
    """Entropy of an image set: of the whole set, and the mean of one image."""

    total: float
    mean: float
    images: int


def control_entropy(observations: npt.ArrayLike, *, bins: int = 30) -> float:
    """Return the entropy of the observations of a trained agent.

    Formula: sum over coordinates of -sum p log2 p, p the shares of `bins` equal bins
        over the coordinate's own range
    Shapes: (observations, coordinates) of 100 episodes; a scalar.
    Units: bits.
    Missing: nothing may be missing; a coordinate that never moves adds 0.
    Errors: ScoringError for NaN or an empty table.
    Source: AIQ paper, section 3.1.4, equation 4 per coordinate [S].

    >>> control_entropy([[0.0, 7.0], [1.0, 7.0]], bins=2)
    1.0
    """
    table = arrays.matrix(observations, "observations", axes="observations, coordinates")
    arrays.check_finite(table, "observations")
    constant = np.eye(1, bins)[0]
    columns = zip(table.T, np.ptp(table, axis=0) > 0, strict=True)
    return histogram_entropy(
        [np.histogram(x, bins)[0] if moves else constant for x, moves in columns]
    )


def histogram_entropy(counts: npt.ArrayLike) -> float:
    """Return the entropy of observations that are counted in bins already.

    Formula: sum over coordinates of -sum p log2 p, p the shares of the bins
    Shapes: (coordinates, bins) of counts; a scalar.
    Units: bits.
    Missing: nothing may be missing.
    Errors: ScoringError for NaN, a count below 0 or a coordinate without any.
    Source: AIQ paper, section 3.1.4, equation 4 per coordinate [S].

    >>> histogram_entropy([[5, 5, 0], [0, 7, 0]])
    1.0
    """
    table = arrays.matrix(counts, "counts", axes="coordinates, bins")
    arrays.check_finite(table, "counts")
    arrays.check_range(table, "counts", 0.0, math.inf)
    totals = table.sum(axis=1)
    if not np.all(totals > 0):
        raise ScoringError("each row of `counts` must hold an observation, got one with none.")
    entropy = 0.0
    for row, total in zip(table, totals, strict=True):
        shares = row[row > 0] / total
        entropy -= float(shares @ np.log2(shares))
    return entropy


def image_entropy(images: npt.ArrayLike, *, classes: int) -> ImageEntropy:
    """Return the local entropy of an image set, labels included.

    Formula: per image: mean over pixels of the entropy of the pixel and its four
        neighbours (fewer at the border), plus log2(classes); summed over the images
    Shapes: (images, height, width) of grey values; scalars.
    Units: bits. The paper prints 3.32 bits for the 100 classes of CIFAR-100; the
        formula gives 6.64, which is used.
    Missing: nothing may be missing.
    Errors: ScoringError for another shape, NaN, or `classes` below 1.
    Source: AIQ paper, section 3.1.2 [S].

    >>> image_entropy(np.zeros((2, 3, 3)), classes=4)
    ImageEntropy(total=4.0, mean=2.0, images=2)
    """
    stack = np.asarray(images, dtype=np.float64)
    if stack.ndim != 3 or not stack.size or classes < 1:
        raise ScoringError(
            "`images` must be (images, height, width) and `classes` at least 1, got "
            f"{stack.shape} and {classes}."
        )
    arrays.check_finite(stack, "images")
    means = [_local(image) + math.log2(classes) for image in stack]
    total = float(np.sum(means))
    return ImageEntropy(total, total / len(stack), len(stack))


def _local(image: Floats) -> float:
    """Return the mean entropy of the five-pixel neighbourhoods of an image."""
    framed = np.pad(image, 1, constant_values=np.nan)
    height, width = image.shape
    around = np.stack([framed[1 + i : 1 + i + height, 1 + j : 1 + j + width] for i, j in _OFFSETS])
    inside = ~np.isnan(around)
    alike = (around[:, None] == around[None, :]).sum(axis=1)  # NaN equals nothing
    size = inside.sum(axis=0)
    shares = np.where(inside, alike / size, 1.0)
    return float(np.mean(-np.log2(shares).sum(axis=0) / size))
