"""AIQ: dissimilarity of domains, the intelligence space, and the volume an agent spans.

Source: the AIQ paper, equations 7-14; `docs/companions.md#aiq`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import integrate, spatial

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.statistics import arrays

_NOISE = 0.95  # quantile of DS(x, x) that is the noise floor [D]


class Dissimilarities(NamedTuple):
    """Dissimilarities of n domains, symmetric.

    told: pairs above the noise floor; the others are not distinguishable from noise. filled: pairs
    that were not measured and follow from the triangle inequality.
    """

    matrix: Floats
    told: Flags
    filled: Flags
    floor: float


def dissimilarity(mixed: npt.ArrayLike, proportions: npt.ArrayLike | None = None) -> float:
    """Return the dissimilarity of two domains.

    Formula: DS = integral over p of |V_mix(p) - (p V_1 + (1 - p) V_2)|, trapezoid;
        V_mix(p): mean over retrainings at proportion p of domain 1; V_1, V_2 its ends
    Shapes: mixed (proportions, retrainings) or (proportions,); proportions 0 .. 1,
        evenly spaced if not given; a scalar.
    Units: performance.
    Missing: NaN retrainings are left out of their mean.
    Errors: ScoringError if proportions do not rise from 0 to 1, a proportion has no
        retraining, or performances leave [0, 1].
    Source: AIQ paper, equations 7-9 [S].

    >>> round(dissimilarity([[1.0], [0.5], [1.0]]), 3)
    0.25
    """
    values = np.asarray(mixed, dtype=np.float64)
    table = arrays.matrix(
        values[:, None] if values.ndim == 1 else values, "mixed", axes="proportions, retrainings"
    )
    arrays.check_range(table, "mixed", 0.0, 1.0)
    p = (
        np.linspace(0.0, 1.0, len(table))
        if proportions is None
        else arrays.vector(proportions, "proportions")
    )
    arrays.check_lengths(p, table, "`proportions` and `mixed`")
    if p[0] != 0.0 or p[-1] != 1.0 or np.any(np.diff(p) <= 0):
        raise ScoringError(f"`proportions` must rise from 0 to 1, got {p.tolist()}.")
    if np.isnan(table).all(axis=1).any():
        raise ScoringError("`mixed` holds a proportion without a retraining that worked.")
    seen = np.nanmean(table, axis=1)
    expected = p * seen[-1] + (1.0 - p) * seen[0]
    return float(integrate.trapezoid(np.abs(seen - expected), p))


def noise_floor(selves: npt.ArrayLike) -> float:
    """Return the dissimilarity that chance alone gives.

    Formula: 95th percentile of DS(x, x) over domains
    Shapes: (domains,); a scalar.
    Units: performance.
    Missing: nothing may be missing.
    Errors: ScoringError for NaN or negative values.
    Source: `docs/companions.md#aiq` [R].

    >>> round(noise_floor([0.01, 0.02, 0.03]), 3)
    0.029
    """
    values = arrays.vector(selves, "selves")
    arrays.check_range(values, "selves", 0.0, np.inf)
    return float(np.quantile(values, _NOISE))


def dissimilarity_matrix(measured: npt.ArrayLike, *, floor: float = 0.0) -> Dissimilarities:
    """Return the complete dissimilarity matrix from all or some measured pairs.

    Formula: symmetric mean of what was measured; a pair that was not: the middle of
        max_k |d_ik - d_jk| and min_k (d_ik + d_jk) over domains k measured with both
    Shapes: (domains, domains), NaN where not measured; (domains, domains).
    Units: performance.
    Missing: as the formula says (the paper's partial mapping).
    Errors: ScoringError if the matrix is not square, negative, or differs across the
        diagonal by more than the floor plus a tenth of its largest value, or if a pair
        shares no measured domain.
    Source: AIQ paper, section 2.5.3 [S: partial mapping; its filling R].

    >>> part = [[0, 0.2, 0.4], [0.2, 0, np.nan], [0.4, np.nan, 0]]
    >>> round(float(dissimilarity_matrix(part).matrix[1, 2]), 3)
    0.4
    """
    table = arrays.matrix(measured, "measured", axes="domains, domains")
    if table.shape[0] != table.shape[1]:
        raise ScoringError(f"`measured` must be square (domains, domains), got {table.shape}.")
    arrays.check_range(table, "measured", 0.0, np.inf)
    known = ~np.isnan(table)
    _check_symmetry(table, known, floor)
    both = np.where(known, table, 0.0)
    count = known + known.T.astype(np.int64)
    matrix = np.where(count > 0, (both + both.T) / np.maximum(count, 1), np.nan)
    np.fill_diagonal(matrix, 0.0)
    filled = np.isnan(matrix)
    for i, j in np.argwhere(np.triu(filled)).tolist():
        matrix[i, j] = matrix[j, i] = _triangle_midpoint(filled, matrix, i, j)
    above = (matrix > floor) & ~np.eye(len(matrix), dtype=np.bool_)
    return Dissimilarities(matrix, above, filled, floor)


def subset(found: Dissimilarities, chosen: Sequence[int]) -> Dissimilarities:
    """Return the dissimilarities among some of the domains.

    Formula: rows and columns `chosen`, in that order
    Shapes: n domains; m chosen ones.
    Units: performance.
    Missing: what was filled in stays so.
    Errors: ScoringError for fewer than 2 domains, one chosen twice, or one that is not
        there.
    Source: AIQ paper, figure 29 (a suite of three of its levels).

    >>> whole = dissimilarity_matrix([[0, 0.2, 0.4], [0.2, 0, 0.3], [0.4, 0.3, 0]])
    >>> subset(whole, [0, 2]).matrix
    array([[0. , 0.4],
           [0.4, 0. ]])
    """
    count = len(found.matrix)
    places = list(chosen)
    distinct = set(places) & set(range(count))
    if len(places) < 2 or len(distinct) < len(places):
        raise ScoringError(
            f"`chosen` must be at least 2 different domains of {count}, got {places}."
        )
    cells = np.ix_(places, places)
    return Dissimilarities(found.matrix[cells], found.told[cells], found.filled[cells], found.floor)


def _triangle_midpoint(filled: Flags, matrix: Floats, i: int, j: int) -> float:
    """Return the middle of the range that the triangle inequality leaves to a pair."""
    shared = np.flatnonzero(~filled[i] & ~filled[j])
    shared = shared[(shared != i) & (shared != j)]
    if not shared.size:
        raise ScoringError(
            f"`measured` must link every pair through a domain measured with both; "
            f"{i} and {j} of {len(matrix)} share none."
        )
    first, second = matrix[i, shared], matrix[j, shared]
    lowest = float(np.abs(first - second).max())
    return (lowest + max(lowest, float((first + second).min()))) / 2.0


def _check_symmetry(table: Floats, known: Flags, floor: float) -> None:
    gap = np.abs(table - table.T)
    allowed = floor + 0.1 * float(np.max(table[known], initial=0.0))
    bad = np.argwhere(known & known.T & (gap > allowed))
    if bad.size:
        i, j = bad[0].tolist()
        raise ScoringError(
            f"`measured` must be symmetric, got {table[i, j]:.4g} at ({i}, {j}) and "
            f"{table[j, i]:.4g} at ({j}, {i}): average more retrainings."
        )


LARGEST_DIMENSION = 8  # of the headline hull [R]
_SHARE = 0.95  # of squared singular values that the dimensions must hold [R]
_THIN = 1e-9  # singular values below this share of the largest span no direction


class Space(NamedTuple):
    """A test suite in the intelligence space.

    units: directions (domains, domains). points: directions times complexity. cut: share of
    negative eigenvalues that was cut (0: the dissimilarities are exactly Euclidean). dimension: the
    effective r; basis: its axes (domains, r); held: share of squared singular values each axis
    holds.
    """

    units: Floats
    points: Floats
    cut: float
    dimension: int
    basis: Floats
    held: Floats


class AiqResult(NamedTuple):
    """An agent's AIQ: hull volume in the effective dimension.

    volume: headline, parameters^r. length: volume^(1/r), to compare suites. corners: domains on the
    hull. full: |det| / n!, which ranks agents by the product of their performances whatever the
    dissimilarities. reason: why a volume is 0.
    """

    volume: float
    length: float
    dimension: int
    corners: tuple[int, ...]
    full: float
    reason: str | None = None


def intelligence_space(dissimilarities: npt.ArrayLike, complexities: npt.ArrayLike) -> Space:
    """Return a suite's intelligence space.

    Formula:
        DS_n = DS / max DS;  G = 1 - DS_n^2, 1 on the diagonal
        units: rows of V sqrt(max(l, 0)) of G = V l V^T, scaled to length 1
        points = units * complexity; r = least number of axes that hold 95 percent of
        the squared singular values of the points, at most 8
    Shapes: dissimilarities (domains, domains), complexities (domains,).
    Units: complexity in parameters.
    Missing: nothing may be missing (`dissimilarity_matrix` fills pairs).
    Errors: ScoringError if shapes do not fit, DS is not symmetric and >= 0 with a zero
        diagonal, or a complexity is not above 0.
    Source: AIQ paper, equations 10-13 [S]; the Gram matrix [R].

    >>> space = intelligence_space([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0])
    >>> space.dimension, abs(space.points @ space.points.T).round(6).tolist()
    (2, [[9.0, 0.0], [0.0, 16.0]])
    """
    gaps, heights = _checked_suite(dissimilarities, complexities)
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


def measure(suite: Space, performances: npt.ArrayLike) -> AiqResult:
    """Return an agent's AIQ on a suite.

    Formula: volume of the convex hull of {points * performance} and the origin, in the
        suite's effective dimension; full: |det(points * performance)| / n!
    Shapes: a space of n domains, performances (n,).
    Units: parameters^r.
    Missing: nothing may be missing: a domain not played is no domain of the suite.
    Errors: ScoringError for NaN, performances outside [0, 1] or another length.
    Source: AIQ paper, equation 14 [S]; effective dimension [R].

    >>> suite = intelligence_space([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0])
    >>> round(measure(suite, [1.0, 0.5]).volume, 6)
    3.0
    """
    good = arrays.vector(performances, "performances")
    arrays.check_lengths(suite.points, good, "domains and `performances`")
    arrays.check_range(good, "performances", 0.0, 1.0)
    scaled = suite.points * good[:, None]
    sign, log_size = np.linalg.slogdet(scaled)
    full = float(np.exp(log_size - math.lgamma(good.size + 1))) if sign else 0.0
    volume, corners, reason = _hull(scaled @ suite.basis)
    r = suite.dimension
    return AiqResult(volume, volume ** (1.0 / r), r, corners, full, reason)


def coordinates(suite: Space, *, axes: int = 3) -> Floats:
    """Return the suite's points on its first axes, to draw them.

    Formula: points times the leading right singular vectors
    Shapes: a space of n domains; (n, axes), zeros beyond the effective dimension.
    Units: parameters.
    Missing: nothing.
    Errors: none.
    Source: AIQ paper, figures 26 and 27 [S].

    >>> coordinates(intelligence_space([[0.0, 1.0], [1.0, 0.0]], [3.0, 4.0])).shape
    (2, 3)
    """
    points = suite.points @ suite.basis
    return np.pad(points, ((0, 0), (0, axes)))[:, :axes]


def _hull(points: Floats) -> tuple[float, tuple[int, ...], str | None]:
    """Return volume and corners of points and the origin; 0 where they lie flat."""
    r = points.shape[1]
    if r == 1:
        line = np.append(points[:, 0], 0.0)
        ends = {int(np.argmin(line)), int(np.argmax(line))} - {len(points)}
        return float(np.ptp(line)), tuple(sorted(ends)), None
    singular = np.linalg.svd(points, compute_uv=False)
    thick = int(np.sum(singular > _THIN * max(float(singular[0]), 1e-300)))
    if thick < r:
        return 0.0, (), f"the agent's points span {thick} of {r} dimensions"
    scale = float(singular[0])
    hull = spatial.ConvexHull(np.vstack((points / scale, np.zeros(r))))
    corners = tuple(int(i) for i in sorted(hull.vertices) if i < len(points))
    return float(hull.volume) * scale**r, corners, None


def _checked_suite(
    dissimilarities: npt.ArrayLike, complexities: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Return the checked inputs of a space."""
    gaps = arrays.matrix(dissimilarities, "dissimilarities", axes="domains, domains")
    heights = arrays.vector(complexities, "complexities")
    arrays.check_finite(gaps, "dissimilarities")
    if gaps.shape != (heights.size, heights.size):
        shapes = (gaps.shape, heights.shape)
        raise ScoringError(f"`dissimilarities` must be n x n for n `complexities`, got {shapes}.")
    arrays.check_range(gaps, "dissimilarities", 0.0, math.inf)
    if not np.allclose(gaps, gaps.T) or np.any(np.diag(gaps) != 0.0):
        raise ScoringError(
            "`dissimilarities` must be symmetric with zeros on the diagonal; "
            "`dissimilarity_matrix` makes it so."
        )
    if heights.min() <= 0.0:
        raise ScoringError(f"`complexities` must be above 0, got {heights.min():g}.")
    return gaps, heights
