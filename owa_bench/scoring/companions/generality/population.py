"""What a population shows in the plane of capability and spread."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.records.observables import Floats
from owa_bench.scoring.companions import checks
from owa_bench.scoring.companions.generality.curve import Generality


class Isometrics(NamedTuple):
    """Spread at equal gamma along capability: 1 (least), 0 (constant), -1 (most)."""

    capability: Floats
    general: Floats
    constant: Floats
    abstruse: Floats


class Slodr(NamedTuple):
    """Whether gamma falls as capability rises (Spearman's law of diminishing returns).

    correlation: of gamma and capability over `used` of `agents`; mean: mean gamma.
    """

    correlation: float
    mean: float
    span: checks.Span
    used: int
    agents: int
    reason: str | None = None


def isometrics(largest: float, *, points: int = 201) -> Isometrics:
    """Return the three curves that bound and halve the plane.

    Formula: S = 0; S = sqrt(Psi (q - Psi)); S = sqrt(2 Psi (q - Psi))
    Shapes: a scalar q; four (points,).
    Units: difficulty units.
    Missing: nothing.
    Errors: ScoringError if q is not above 0.
    Source: generality seed, figure 3 and properties 3-5 [S].

    >>> isometrics(2.0, points=3).abstruse.round(3).tolist()
    [0.0, 1.414, 0.0]
    """
    checks.within(np.array([largest]), "largest", math.ulp(0.0), math.inf)
    capability = np.linspace(0.0, largest, points)
    room = capability * (largest - capability)
    flat = np.zeros_like(capability)
    return Isometrics(capability, flat, np.sqrt(room), np.sqrt(2.0 * room))


def slodr(
    agents: Sequence[Generality],
    *,
    resamples: int = 2000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Slodr:
    """Return the correlation of gamma with capability, and the mean gamma.

    Formula: Pearson's r over agents with a gamma; percentile interval over agents
    Shapes: one analysis an agent; scalars.
    Units: none; `level` is the share of resamples inside the interval.
    Missing: agents without a gamma are left out; r is NaN with fewer than three agents
        or if all have one gamma or one capability.
    Errors: ScoringError if there is no agent.
    Source: generality seed, table 2 [S]; interval [D].

    >>> from owa_bench.scoring.companions.generality.curve import generality
    >>> found = generality([[1, 0, 0], [1, 1, 0], [1, 0, 1]], [1, 2, 3])
    >>> slodr(found, resamples=20, rng=np.random.default_rng(0)).used
    3
    """
    plane = np.array([(one.capability, one.normalised) for one in agents])
    checks.matrix(plane, "agents", axes="agents, 2")
    known = plane[~np.isnan(plane).any(axis=1)]
    value, reason = _correlation(known)
    draws = np.full(resamples, np.nan)
    for i in range(resamples if reason is None else 0):
        draws[i] = _correlation(known[rng.integers(0, len(known), len(known))])[0]
    mean = float(known[:, 1].mean()) if len(known) else math.nan
    span = checks.percentiles(draws, level=level)
    return Slodr(value, mean, span, len(known), len(plane), reason)


def _correlation(plane: npt.NDArray[np.float64]) -> tuple[float, str | None]:
    if len(plane) < 3:
        return math.nan, f"{len(plane)} agents have a gamma; three are needed"
    if np.ptp(plane[:, 0]) < 1e-12 or np.ptp(plane[:, 1]) < 1e-12:
        return math.nan, "all agents have one capability or one gamma"
    return float(np.atleast_2d(np.corrcoef(plane.T))[0, 1]), None
