"""The intelligence space: domains as points, an agent as the hull it spans.

Source: the AIQ seed, equations 10-14; `other-measures.md` section 1.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import spatial

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions import checks

LARGEST_DIMENSION = 8  # of the headline hull [R]
_SHARE = 0.95  # of squared singular values that the dimensions must hold [R]
_THIN = 1e-9  # singular values below this share of the largest span no direction


class Space(NamedTuple):
    """A test suite in the intelligence space.

    units: directions (domains, domains). points: directions times complexity.
    cut: share of negative eigenvalues that was cut (0: the dissimilarities are exactly
    Euclidean). dimension: the effective r; basis: its axes (domains, r); held: share of
    squared singular values each axis holds.
    """

    units: Floats
    points: Floats
    cut: float
    dimension: int
    basis: Floats
    held: Floats


class Quotient(NamedTuple):
    """An agent's AIQ: hull volume in the effective dimension.

    volume: headline, parameters^r. length: volume^(1/r), to compare suites. corners:
    domains on the hull. full: |det| / n!, which ranks agents by the product of their
    performances whatever the dissimilarities. reason: why a volume is 0.
    """

    volume: float
    length: float
    dimension: int
    corners: tuple[int, ...]
    full: float
    reason: str | None = None


def space(dissimilarities: npt.ArrayLike, complexities: npt.ArrayLike) -> Space:
    """Return a suite's intelligence space.

    Formula:
        DS_n = DS / max DS;  G = 1 - DS_n^2, 1 on the diagonal
        units: rows of V sqrt(max(l, 0)) of G = V l V^T, scaled to length 1
        points = units * complexity; r = least number of axes that hold 95 percent of
        the squared singular values of the points, at most 8
    Shapes: dissimilarities (domains, domains), complexities (domains,).
    Units: complexity in parameters.
    Missing: nothing may be missing (`dissimilarity.distances` fills pairs).
    Errors: ScoringError if shapes do not fit, DS is not symmetric and >= 0 with a zero
        diagonal, or a complexity is not above 0.
    Source: AIQ seed, equations 10-13 [S]; the Gram matrix [R].

    >>> found = space([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0])
    >>> found.dimension, abs(found.points @ found.points.T).round(6).tolist()
    (2, [[9.0, 0.0], [0.0, 16.0]])
    """
    gaps, heights = _suite(dissimilarities, complexities)
    largest = float(gaps.max())
    gram = 1.0 - (gaps / largest if largest > 0.0 else gaps) ** 2
    values, vectors = np.linalg.eigh(gram)
    cut = float(-values[values < 0].sum() / np.abs(values).sum())
    rows = vectors * np.sqrt(np.maximum(values, 0.0))
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    points = units * heights[:, None]
    _, singular, axes = np.linalg.svd(points)
    held = singular**2 / np.sum(singular**2)
    needed = int(np.searchsorted(np.cumsum(held), _SHARE - 1e-12)) + 1
    dimension = min(needed, LARGEST_DIMENSION, len(points))
    return Space(units, points, cut, dimension, axes[:dimension].T, held)


def quotient(suite: Space, performances: npt.ArrayLike) -> Quotient:
    """Return an agent's AIQ on a suite.

    Formula: volume of the convex hull of {points * performance} and the origin, in the
        suite's effective dimension; full: |det(points * performance)| / n!
    Shapes: a space of n domains, performances (n,).
    Units: parameters^r.
    Missing: nothing may be missing: a domain not played is no domain of the suite.
    Errors: ScoringError for NaN, performances outside [0, 1] or another length.
    Source: AIQ seed, equation 14 [S]; effective dimension [R].

    >>> suite = space([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0])
    >>> round(quotient(suite, [1.0, 0.5]).volume, 6)
    3.0
    """
    good = checks.vector(performances, "performances")
    checks.same_length(suite.points, good, "domains and `performances`")
    checks.within(good, "performances", 0.0, 1.0)
    scaled = suite.points * good[:, None]
    sign, log_size = np.linalg.slogdet(scaled)
    n = good.size
    full = float(np.exp(log_size - math.lgamma(n + 1))) if sign else 0.0
    volume, corners, reason = _hull(scaled @ suite.basis)
    r = suite.dimension
    return Quotient(volume, volume ** (1.0 / r), r, corners, full, reason)


def coordinates(suite: Space, *, axes: int = 3) -> Floats:
    """Return the suite's points on its first axes, to draw them.

    Formula: points times the leading right singular vectors
    Shapes: a space of n domains; (n, axes), zeros beyond the effective dimension.
    Units: parameters.
    Missing: nothing.
    Errors: none.
    Source: AIQ seed, figures 26 and 27 [S].

    >>> coordinates(space([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0])).shape
    (2, 3)
    """
    found = suite.points @ suite.basis
    drawn = np.zeros((len(found), axes))
    kept = min(axes, found.shape[1])
    drawn[:, :kept] = found[:, :kept]
    return drawn


def _hull(points: Floats) -> tuple[float, tuple[int, ...], str | None]:
    """Return volume and corners of points and the origin; 0 where they lie flat."""
    r = points.shape[1]
    if r == 1:
        line = np.append(points[:, 0], 0.0)
        ends = {int(np.argmin(line)), int(np.argmax(line))} - {len(points)}
        return float(np.ptp(line)), tuple(sorted(ends)), None
    singular = np.linalg.svd(points, compute_uv=False)
    thick = int(np.sum(singular > _THIN * max(float(singular[0]), 1e-300)))
    if singular[0] == 0.0 or thick < r:
        return 0.0, (), f"the agent's points span {thick} of {r} dimensions"
    scale = float(singular[0])
    hull = spatial.ConvexHull(np.vstack((points / scale, np.zeros(r))))
    corners = tuple(int(i) for i in sorted(hull.vertices) if i < len(points))
    return float(hull.volume) * scale**r, corners, None


def _suite(
    dissimilarities: npt.ArrayLike, complexities: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Return the checked inputs of a space."""
    gaps = checks.matrix(dissimilarities, "dissimilarities", axes="domains, domains")
    heights = checks.vector(complexities, "complexities")
    checks.finite(gaps, "dissimilarities")
    if gaps.shape != (heights.size, heights.size):
        shapes = (gaps.shape, heights.shape)
        raise ScoringError(
            f"`dissimilarities` must be n x n for n `complexities`, got {shapes}."
        )
    checks.within(gaps, "dissimilarities", 0.0, math.inf)
    if not np.allclose(gaps, gaps.T) or np.any(np.diag(gaps) != 0.0):
        raise ScoringError(
            "`dissimilarities` must be symmetric with zeros on the diagonal; "
            "`dissimilarity.distances` makes it so."
        )
    if heights.min() <= 0.0:
        raise ScoringError(f"`complexities` must be above 0, got {heights.min():g}.")
    return gaps, heights
