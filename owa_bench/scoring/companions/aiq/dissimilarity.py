"""Dissimilarity of two domains: what mixing them costs an agent that learns both."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import integrate

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.companions import checks

_NOISE = 0.95  # quantile of DS(x, x) that is the noise floor [D]


class Distances(NamedTuple):
    """Dissimilarities of n domains, symmetric.

    told: pairs above the noise floor, the others are not distinguishable. filled: pairs
    that were not measured and come from the triangle inequality.
    """

    matrix: Floats
    told: Flags
    filled: Flags
    floor: float


def dissimilarity(
    mixed: npt.ArrayLike, proportions: npt.ArrayLike | None = None
) -> float:
    """Return the dissimilarity of two domains.

    Formula: DS = integral over p of |V_mix(p) - (p V_1 + (1 - p) V_2)|, trapezoid;
        V_mix(p): mean over retrainings at proportion p of domain 1; V_1, V_2 its ends
    Shapes: mixed (proportions, retrainings) or (proportions,); proportions 0 .. 1,
        evenly spaced if not given; a scalar.
    Units: performance.
    Missing: NaN retrainings are left out of their mean.
    Errors: ScoringError if proportions do not rise from 0 to 1, a proportion has no
        retraining, or performances leave [0, 1].
    Source: AIQ seed, equations 7-9 [S].

    >>> round(dissimilarity([[1.0], [0.5], [1.0]]), 3)
    0.25
    """
    values = np.asarray(mixed, dtype=np.float64)
    table = checks.matrix(
        values[:, None] if values.ndim == 1 else values,
        "mixed",
        axes="proportions, retrainings",
    )
    checks.within(table, "mixed", 0.0, 1.0)
    p = (
        np.linspace(0.0, 1.0, len(table))
        if proportions is None
        else checks.vector(proportions, "proportions")
    )
    checks.same_length(p, table, "`proportions` and `mixed`")
    if p.size < 2 or p[0] != 0.0 or p[-1] != 1.0 or np.any(np.diff(p) <= 0):
        raise ScoringError(f"`proportions` must rise from 0 to 1, got {p.tolist()}.")
    if np.isnan(table).all(axis=1).any():
        raise ScoringError(
            "`mixed` holds a proportion without a retraining that worked."
        )
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
    Source: `other-measures.md` section 1 [R].

    >>> round(noise_floor([0.01, 0.02, 0.03]), 3)
    0.029
    """
    values = checks.vector(selves, "selves")
    checks.within(values, "selves", 0.0, np.inf)
    return float(np.quantile(values, _NOISE))


def distances(measured: npt.ArrayLike, *, floor: float = 0.0) -> Distances:
    """Return the whole dissimilarity matrix from all or some measured pairs.

    Formula: symmetric mean of what was measured; a pair that was not: the middle of
        max_k |d_ik - d_jk| and min_k (d_ik + d_jk) over domains k measured with both
    Shapes: (domains, domains), NaN where not measured; (domains, domains).
    Units: performance.
    Missing: as the formula says (the seed's partial mapping).
    Errors: ScoringError if the matrix is not square, negative, or differs across the
        diagonal by more than the floor plus a tenth of its largest value, or if a pair
        shares no measured domain.
    Source: AIQ seed, section 2.5.3 [S: partial mapping; its filling R].

    >>> part = [[0, 0.2, 0.4], [0.2, 0, np.nan], [0.4, np.nan, 0]]
    >>> round(float(distances(part).matrix[1, 2]), 3)
    0.4
    """
    table = checks.matrix(measured, "measured", axes="domains, domains")
    if table.shape[0] != table.shape[1]:
        raise ScoringError(
            f"`measured` must be square (domains, domains), got {table.shape}."
        )
    checks.within(table, "measured", 0.0, np.inf)
    known = ~np.isnan(table)
    _check_symmetry(table, known, floor)
    both = np.where(known, table, 0.0)
    count = known + known.T.astype(np.int64)
    sums = both + both.T
    whole = np.where(count > 0, sums / np.maximum(count, 1), np.nan)
    np.fill_diagonal(whole, 0.0)
    filled = np.isnan(whole)
    for i, j in np.argwhere(np.triu(filled)).tolist():
        whole[i, j] = whole[j, i] = _between(filled, whole, i, j)
    told = (whole > floor) & ~np.eye(len(whole), dtype=np.bool_)
    return Distances(whole, told, filled, floor)


def among(found: Distances, chosen: Sequence[int]) -> Distances:
    """Return the dissimilarities among some of the domains.

    Formula: rows and columns `chosen`, in that order
    Shapes: n domains; m chosen ones.
    Units: performance.
    Missing: what was filled in stays so.
    Errors: ScoringError for fewer than 2 domains, one chosen twice, or one that is not
        there.
    Source: AIQ seed, figure 29 (a suite of three of its levels).

    >>> among(distances([[0, 0.2, 0.4], [0.2, 0, 0.3], [0.4, 0.3, 0]]), [0, 2]).matrix
    array([[0. , 0.4],
           [0.4, 0. ]])
    """
    count = len(found.matrix)
    kept = list(chosen)
    if (
        len(kept) < 2
        or len(set(kept)) < len(kept)
        or not set(kept) <= set(range(count))
    ):
        raise ScoringError(
            f"`chosen` must be at least 2 different domains of {count}, got {kept}."
        )
    cells = np.ix_(kept, kept)
    return Distances(
        found.matrix[cells], found.told[cells], found.filled[cells], found.floor
    )


def _between(filled: Flags, whole: Floats, i: int, j: int) -> float:
    """Return the middle of what the triangle inequality leaves to a pair."""
    shared = np.flatnonzero(~filled[i] & ~filled[j])
    shared = shared[(shared != i) & (shared != j)]
    if not shared.size:
        raise ScoringError(
            f"`measured` must link every pair through a domain measured with both; "
            f"{i} and {j} of {len(whole)} share none."
        )
    first, second = whole[i, shared], whole[j, shared]
    lowest = float(np.abs(first - second).max())
    highest = float((first + second).min())
    return (lowest + max(lowest, highest)) / 2.0


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
