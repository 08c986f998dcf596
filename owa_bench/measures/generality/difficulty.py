"""Difficulties from responses, for items without one: Generality paper, table 1.

Each transformation returns the responses and difficulties that `measure` reads. They depend on the
population: another one gives other difficulties. Tables below the paper's sizes warn
(`SmallSampleWarning`). FA gives loadings only, for comparison.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.statistics import arrays


class SmallSampleWarning(UserWarning):
    """Fewer agents or items than the paper's table 1 asks; the result is fragile."""


class ItemTable(NamedTuple):
    """Responses (agents, columns), a difficulty per column, and its source item."""

    responses: Floats
    difficulties: Floats
    item: npt.NDArray[np.int64]


_NODES = 41  # of the Gauss-Hermite quadrature
_DISCRIMINATION = (0.05, 8.0)  # outside of it the data do not tell slope from step
# Least (agents, items) of each case [S table 1]; FA: ten agents an item.
LEAST: dict[str, tuple[int, int]] = {
    "GA": (1, 5),
    "Opp": (5, 1),
    "ARef": (20, 20),
    "Rnk": (20, 5),
    "DRef": (1, 5),
    "IRT": (200, 20),
    "FA": (0, 5),
}


def warn_if_small(case: str, agents: int, items: int) -> None:
    """Warn where a table is smaller than table 1 of the paper asks.

    Args:
        case: the case, as in `LEAST`.
        agents: rows of the table.
        items: columns of the table.
    """
    least_agents, least_items = LEAST[case]
    if case == "FA":
        least_agents = 10 * items
    if agents < least_agents or items < least_items:
        message = (
            f"{case} asks for at least {least_agents} agents and {least_items} items "
            f"(Generality paper, table 1), got {agents} and {items}: its result is "
            "unreliable."
        )
        warnings.warn(message, SmallSampleWarning, stacklevel=3)


def opponents(matches: npt.ArrayLike) -> ItemTable:
    """Return matches with each opponent's mean score as its difficulty (Opp).

    Formula: h_i = mean over j of r[i, j], the score of opponent i in its own matches
    Shapes: (agents, agents), r[j, i] the score of j against i; the same and (agents,).
    Units: scores in [0, 1] (win 1, draw 0.5); difficulty in [0, 1].
    Missing: NaN is a match not played (the diagonal too) and is left out.
    Errors: ScoringError if the matrix is not square, out of range, or an agent never
        played.
    Source: Generality paper, table 1, Opp [S].

    >>> order = np.triu(np.ones((5, 5)))  # each beats all after it
    >>> np.fill_diagonal(order, np.nan)
    >>> opponents(order).difficulties.tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    scores = arrays.matrix(matches, "matches", axes="agents, agents")
    if scores.shape[0] != scores.shape[1]:
        raise ScoringError(f"`matches` must be square (agents, agents), got shape {scores.shape}.")
    arrays.check_range(scores, "matches", 0.0, 1.0)
    _check_columns(scores.T, "agent", "matches")
    warn_if_small("Opp", *scores.shape)
    return ItemTable(scores, np.nanmean(scores, axis=1), np.arange(len(scores)))


def reference_agent(responses: npt.ArrayLike, reference: npt.ArrayLike) -> ItemTable:
    """Return who reaches a reference agent, and how many fall short (ARef).

    Formula: r'[j, i] = r[j, i] >= reference_i;  h_i = share of agents below reference_i
    Shapes: responses (agents, items), reference (items,); (agents, items) and (items,).
    Units: any; difficulty in [0, 1].
    Missing: NaN responses stay NaN and are left out of the share.
    Errors: ScoringError for lengths that differ, or an item that nobody answered.
    Source: Generality paper, table 1, ARef [S].

    >>> scores = np.tile(np.arange(20.0)[:, None], 20)  # agent j scores j everywhere
    >>> float(reference_agent(scores, np.full(20, 15.0)).difficulties[0])
    0.75
    """
    table = _responses(responses, "ARef")
    line = arrays.vector(reference, "reference")
    arrays.check_lengths(table.T, line, "items of `responses` and `reference`")
    reached = _reach(table, line)
    return ItemTable(reached, 1.0 - np.nanmean(reached, axis=0), np.arange(line.size))


def ranks(responses: npt.ArrayLike, *, count: int = 5) -> ItemTable:
    """Return who reaches each of `count` ranks of each item's population (Rnk).

    Formula: threshold k of item i is the value at rank ceil(k M / c) from below of its
        M values; r' = r >= threshold; h = k / c, k = 1 .. c
    Shapes: (agents, items); (agents, count * items) and (count * items,), item by item.
    Units: any; difficulty in (0, 1], 1 = the best agent's own value.
    Missing: NaN responses stay NaN and have no rank.
    Errors: ScoringError if `count` is below 1, or for an item that nobody answered.
    Source: Generality paper, table 1, Rnk [S]; the place of the ranks [R].

    >>> scores = np.tile(np.arange(20.0)[:, None], 5)  # agent j scores j everywhere
    >>> ranks(scores, count=2).responses[[0, 10, 19], :2].tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """
    table = _responses(responses, "Rnk")
    steps = _steps(count) / count
    thresholds = []
    for column in table.T:
        known = np.sort(column[~np.isnan(column)])
        places = np.ceil(steps * known.size - 1e-9).astype(np.int64) - 1
        thresholds.append(known[places])
    return _thresholded(table, thresholds, steps)


def reference_distribution(
    responses: npt.ArrayLike, reference: npt.ArrayLike, *, count: int = 5
) -> ItemTable:
    """Return who reaches each of `count` quantiles of a reference distribution (DRef).

    Formula: r' = r >= quantile k / (c + 1) of the item's reference values;
        h = k / (c + 1), k = 1 .. c
    Shapes: responses (agents, items), reference (samples, items); as `ranks`.
    Units: any; difficulty in (0, 1).
    Missing: NaN responses stay NaN; NaN reference values are left out.
    Errors: ScoringError if the items differ, `count` is below 1, or an item has no
        response or reference.
    Source: Generality paper, table 1, DRef [S]; the place of the quantiles [R].

    >>> people = np.tile(np.array([[1.0], [2.0], [3.0]]), 5)
    >>> one = reference_distribution(np.full((1, 5), 2.0), people, count=3)
    >>> one.difficulties[:3].tolist(), one.responses[0, :3].tolist()
    ([0.25, 0.5, 0.75], [1.0, 1.0, 0.0])
    """
    table = _responses(responses, "DRef")
    samples = arrays.matrix(reference, "reference", axes="samples, items")
    arrays.check_lengths(table.T, samples.T, "items of `responses` and `reference`")
    _check_columns(samples, "item", "reference")
    steps = _steps(count) / (count + 1)
    thresholds = [np.nanquantile(sample, steps) for sample in samples.T]
    return _thresholded(table, thresholds, steps)


def disagreeing_neighbours(
    features: npt.ArrayLike, classes: npt.ArrayLike, *, neighbours: int = 10
) -> Floats:
    """Return per instance the share of its nearest neighbours of another class (KDN).

    Formula: h_i = |{k nearest of i, Euclidean, without i: class differs}| / k
    Shapes: features (instances, columns), classes (instances,); (instances,).
    Units: difficulty in [0, 1].
    Missing: nothing may be missing.
    Errors: ScoringError for NaN features, lengths that differ, or too few instances.
    Source: Generality paper, section on feature-based classification [S, k = 10].

    >>> disagreeing_neighbours([[0.0], [1.0], [5.0]], [0, 0, 1], neighbours=1).tolist()
    [0.0, 0.0, 1.0]
    """
    table = arrays.matrix(features, "features", axes="instances, columns")
    arrays.check_finite(table, "features")
    labels = np.asarray(classes)
    if labels.shape != table.shape[:1] or not 1 <= neighbours < len(table):
        raise ScoringError(
            "`classes` needs one label an instance and `neighbours` must be below the "
            f"instances, got {labels.shape}, {neighbours} and {len(table)} instances."
        )
    gaps = np.sum((table[:, None, :] - table[None, :, :]) ** 2, axis=2)
    np.fill_diagonal(gaps, math.inf)
    nearest = np.argsort(gaps, axis=1, kind="stable")[:, :neighbours]
    differs = labels[nearest] != labels[:, None]
    return np.asarray(differs.mean(axis=1), dtype=np.float64)


def _responses(responses: npt.ArrayLike, case: str) -> Floats:
    """Return a response matrix in which every item has an answer; warn if small."""
    table = arrays.matrix(responses, "responses", axes="agents, items")
    _check_columns(table, "item", "responses")
    warn_if_small(case, *table.shape)
    return table


def _check_columns(table: Floats, kind: str, name: str) -> None:
    """ScoringError with the first column (agent or item) that holds no number."""
    answered = np.sum(~np.isnan(table), axis=0) > 0
    if not answered.all():
        place = int(np.argmin(answered))
        raise ScoringError(f"`{name}` holds no number for {kind} {place}: leave it out.")


def _steps(count: int) -> Floats:
    if count < 1:
        raise ScoringError(f"`count` must be at least 1, got {count}.")
    return np.arange(1.0, count + 1.0)


def _reach(values: Floats, lines: Floats) -> Floats:
    """Return 1 where a value is at least its line, 0 where not, NaN where missing."""
    return np.where(np.isnan(values), np.nan, (values >= lines).astype(np.float64))


def _thresholded(table: Floats, thresholds: list[Floats], steps: Floats) -> ItemTable:
    """Return who reaches each threshold of each item, item by item."""
    rows = zip(table.T, thresholds, strict=True)
    columns = [_reach(column[:, None], own) for column, own in rows]
    items = np.repeat(np.arange(len(columns)), steps.size)
    return ItemTable(np.hstack(columns), np.tile(steps, len(columns)), items)


class ItemResponse(NamedTuple):
    """A two-parameter logistic fit.

    difficulties: where half of the agents of that ability succeed, in standard deviations of
    ability, NaN for items that all or none solve; discriminations: slopes; shifted: difficulties
    with the easiest at 0, for `measure`.
    """

    difficulties: Floats
    discriminations: Floats
    shifted: Floats
    log_likelihood: float
    converged: bool


class FactorLoadings(NamedTuple):
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
    Source: Generality paper, table 1, IRT [S]; 2PL with scipy [D].

    >>> import warnings
    >>> easy, hard = [1, 1, 1, 0] * 15, [1, 0, 0, 0] * 15
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     b = item_response(np.array([easy, hard]).T).difficulties
    >>> bool(b[0] < b[1])
    True
    """
    table = arrays.matrix(responses, "responses", axes="agents, items")
    known = ~np.isnan(table)
    if not np.isin(table[known], (0.0, 1.0)).all():
        raise ScoringError("`responses` must be 0 or 1 for IRT; use ARef, Rnk or DRef for others.")
    warn_if_small("IRT", *table.shape)
    varied = _varies(table)
    fit = _fit(np.where(known, table, 0.0)[:, varied], known[:, varied])
    slopes, starts = np.split(fit.x, 2)
    difficulties, discriminations = np.full((2, table.shape[1]), np.nan)
    difficulties[varied] = -starts / slopes
    discriminations[varied] = slopes
    shifted = difficulties - np.nanmin(difficulties)
    likelihood, converged = -float(fit.fun), bool(fit.success)
    return ItemResponse(difficulties, discriminations, shifted, likelihood, converged)


def factor_loadings(responses: npt.ArrayLike, *, rounds: int = 200) -> FactorLoadings:
    """Return the loadings of the items on their first common factor (FA).

    Formula: principal-axis factoring: communalities are iterated on the diagonal of
        the correlation matrix; loadings = sqrt(l1) v1, signed to a positive sum
    Shapes: (agents, items); (items,) and the share of total variance.
    Units: correlations.
    Missing: agents with a NaN are left out whole; an item without variance is NaN.
    Errors: ScoringError if fewer than three agents or two items that vary are left.
    Source: Generality paper, table 1, FA [S], for comparison only.

    >>> import warnings
    >>> t = np.arange(40.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     factor_loadings(np.array([t, 2 * t, 3 * t]).T).loadings.round(2).tolist()
    [1.0, 1.0, 1.0]
    """
    table = arrays.matrix(responses, "responses", axes="agents, items")
    warn_if_small("FA", *table.shape)
    complete = table[~np.isnan(table).any(axis=1)]
    varied = np.ptp(complete, axis=0) > 0 if len(complete) else np.zeros(table.shape[1], bool)
    if len(complete) < 3 or varied.sum() < 2:
        counts = (len(complete), int(varied.sum()))
        raise ScoringError(f"FA needs 3 whole agents and 2 items that vary, got {counts}.")
    correlation = np.atleast_2d(np.corrcoef(complete[:, varied].T))
    loadings = np.full(table.shape[1], np.nan)
    loadings[varied] = _axis(correlation, rounds)
    return FactorLoadings(loadings, float(np.nansum(loadings**2) / varied.sum()))


def _varies(table: Floats) -> npt.NDArray[np.bool_]:
    """Return the items that some solve and some do not."""
    ones = np.nansum(table, axis=0)
    varied = np.asarray((ones > 0) & (ones < (~np.isnan(table)).sum(axis=0)))
    if not varied.any():
        raise ScoringError("IRT needs an item that some agents solve and some do not, got none.")
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
        renewed = math.sqrt(max(float(values[-1]), 0.0)) * vectors[:, -1]
        renewed = np.clip(renewed * (np.sign(renewed.sum()) or 1.0), -1.0, 1.0)
        if np.abs(renewed - loadings).max() < 1e-9:
            break
        loadings = renewed
        np.fill_diagonal(reduced, renewed**2)
    return loadings
