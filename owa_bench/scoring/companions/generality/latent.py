"""Latent-variable cases of the seed's table 1: item response theory, factor analysis.

The first gives difficulties, the second none: it is reported for comparison. Both ask
for far more agents than the other cases.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions import checks
from owa_bench.scoring.companions.generality.difficulty import warn_if_small

_NODES = 41
_DISCRIMINATION = (0.05, 8.0)  # outside of it the data do not tell slope from step


class ItemResponse(NamedTuple):
    """A two-parameter logistic fit.

    difficulties: where half of the agents of that ability succeed, in standard
    deviations of ability, NaN for items that all or none solve; discriminations:
    slopes; shifted: difficulties with the easiest at 0, for `curve.generality`.
    """

    difficulties: Floats
    discriminations: Floats
    shifted: Floats
    log_likelihood: float
    converged: bool


class Factor(NamedTuple):
    """The first factor: loadings per item (NaN without variance), share of variance."""

    loadings: Floats
    share: float


def item_response(responses: npt.ArrayLike) -> ItemResponse:
    """Return two-parameter logistic difficulties (IRT).

    Formula: P(r = 1 | t) = 1 / (1 + exp(-a (t - b))), t ~ N(0, 1); a, b by marginal
        maximum likelihood over 41 Gauss-Hermite nodes
    Shapes: (agents, items) of 0 and 1; (items,) each.
    Units: standard deviations of ability.
    Missing: NaN responses are left out; an item that all or none solve has no
        difficulty (NaN).
    Errors: ScoringError for values other than 0 and 1, or if no item varies.
    Source: generality seed, table 1, IRT [S]; 2PL with scipy [D].

    >>> import warnings
    >>> easy, hard = [1, 1, 1, 0] * 15, [1, 0, 0, 0] * 15
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     b = item_response(np.array([easy, hard]).T).difficulties
    >>> bool(b[0] < b[1])
    True
    """
    table = checks.matrix(responses, "responses", axes="agents, items")
    known = ~np.isnan(table)
    if not np.isin(table[known], (0.0, 1.0)).all():
        raise ScoringError(
            "`responses` must be 0 or 1 for IRT; use ARef, Rnk or DRef for others."
        )
    warn_if_small("IRT", *table.shape)
    varied = _varies(table)
    fit = _fit(np.where(known, table, 0.0)[:, varied], known[:, varied])
    slopes, starts = np.split(fit.x, 2)
    difficulties = np.full(table.shape[1], np.nan)
    discriminations = np.full(table.shape[1], np.nan)
    difficulties[varied] = -starts / slopes
    discriminations[varied] = slopes
    lowest = np.nanmin(difficulties)
    return ItemResponse(
        difficulties,
        discriminations,
        difficulties - lowest,
        -float(fit.fun),
        bool(fit.success),
    )


def factor(responses: npt.ArrayLike, *, rounds: int = 200) -> Factor:
    """Return the loadings of the items on their first common factor (FA).

    Formula: principal-axis factoring: communalities are iterated on the diagonal of
        the correlation matrix; loadings = sqrt(l1) v1, signed to a positive sum
    Shapes: (agents, items); (items,) and the share of total variance.
    Units: correlations.
    Missing: agents with a NaN are left out whole; an item without variance is NaN.
    Errors: ScoringError if fewer than three agents or two items that vary are left.
    Source: generality seed, table 1, FA [S], for comparison only.

    >>> import warnings
    >>> t = np.arange(40.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     factor(np.array([t, 2 * t, 3 * t]).T).loadings.round(2).tolist()
    [1.0, 1.0, 1.0]
    """
    table = checks.matrix(responses, "responses", axes="agents, items")
    warn_if_small("FA", *table.shape)
    whole = table[~np.isnan(table).any(axis=1)]
    varied = np.ptp(whole, axis=0) > 0 if len(whole) else np.zeros(table.shape[1], bool)
    if len(whole) < 3 or varied.sum() < 2:
        found = (len(whole), int(varied.sum()))
        raise ScoringError(
            f"FA needs 3 whole agents and 2 items that vary, got {found}."
        )
    correlation = np.atleast_2d(np.corrcoef(whole[:, varied].T))
    loadings = np.full(table.shape[1], np.nan)
    loadings[varied] = _axis(correlation, rounds)
    share = float(np.nansum(loadings**2) / varied.sum())
    return Factor(loadings, share)


def _varies(table: Floats) -> npt.NDArray[np.bool_]:
    """Return the items that some solve and some do not."""
    ones = np.nansum(table, axis=0)
    answered = (~np.isnan(table)).sum(axis=0)
    varied = np.asarray((ones > 0) & (ones < answered))
    if not varied.any():
        raise ScoringError(
            "IRT needs an item that some agents solve and some do not, got none."
        )
    return varied


def _fit(table: Floats, known: npt.NDArray[np.bool_]) -> "optimize.OptimizeResult":
    """Maximise the marginal likelihood over slopes and starts (a, -a b)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    log_weights = np.log(weights / weights.sum())
    right = table
    wrong = known - table
    count = table.shape[1]

    def loss(point: Floats) -> tuple[float, Floats]:
        line = point[:count, None] * nodes + point[count:, None]  # (items, nodes)
        log_yes, log_no = special.log_expit(line), special.log_expit(-line)
        joint = right @ log_yes + wrong @ log_no + log_weights
        total = special.logsumexp(joint, axis=1, keepdims=True)
        share = np.exp(joint - total)  # what each agent's ability may be
        gap = right.T @ share - (known.T @ share) * special.expit(line)
        gradient = np.concatenate((gap @ nodes, gap.sum(axis=1)))
        return -float(total.sum()), -gradient

    rate = (right.sum(axis=0) + 0.5) / (known.sum(axis=0) + 1.0)
    start = np.concatenate((np.ones(count), special.logit(rate)))
    bounds = [_DISCRIMINATION] * count + [(-30.0, 30.0)] * count
    return optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)


def _axis(correlation: Floats, rounds: int) -> Floats:
    """Return first-factor loadings of a correlation matrix."""
    reduced = correlation.copy()
    loadings = np.zeros(len(correlation))
    for _ in range(rounds):
        values, vectors = np.linalg.eigh(reduced)
        found = math.sqrt(max(float(values[-1]), 0.0)) * vectors[:, -1]
        found = np.clip(found * (np.sign(found.sum()) or 1.0), -1.0, 1.0)
        if np.abs(found - loadings).max() < 1e-9:
            break
        loadings = found
        np.fill_diagonal(reduced, found**2)
    return loadings
