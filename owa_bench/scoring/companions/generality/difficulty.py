"""Difficulties made from responses, for items that bring none: the seed's table 1.

Each transformation returns what `curve.generality` reads: responses and difficulties.
They are populational: another population gives other difficulties. Below the table's
sizes each warns (`SmallSampleWarning`) and names them.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.companions import checks


class SmallSampleWarning(UserWarning):
    """Fewer agents or items than the seed's table 1 asks; the result is fragile."""


class Transformed(NamedTuple):
    """Responses (agents, columns), a difficulty per column, and its source item."""

    responses: Floats
    difficulties: Floats
    item: npt.NDArray[np.int64]


LEAST: dict[str, tuple[int, int]] = {
    "GA": (1, 5),
    "Opp": (5, 1),
    "ARef": (20, 20),
    "Rnk": (20, 5),
    "DRef": (1, 5),
    "IRT": (200, 20),
    "FA": (0, 5),  # agents: ten an item
}
"""Least (agents, items) of each case [S table 1]."""


def warn_if_small(case: str, agents: int, items: int) -> None:
    """Warn where a table is smaller than the seed's table 1 asks for a case."""
    least_agents, least_items = LEAST[case]
    if case == "FA":
        least_agents = 10 * items
    if agents < least_agents or items < least_items:
        msg = (
            f"{case} asks for at least {least_agents} agents and {least_items} items "
            f"(generality seed, table 1), got {agents} and {items}: read its result "
            "as a sketch."
        )
        warnings.warn(msg, SmallSampleWarning, stacklevel=3)


def opponents(matches: npt.ArrayLike) -> Transformed:
    """Return matches with each opponent's mean score as its difficulty (Opp).

    Formula: h_i = mean over j of r[i, j], the score of opponent i in its own matches
    Shapes: (agents, agents), r[j, i] the score of j against i; the same and (agents,).
    Units: scores in [0, 1] (win 1, draw 0.5); difficulty in [0, 1].
    Missing: NaN is a match not played (the diagonal too) and is left out.
    Errors: ScoringError if the matrix is not square, out of range, or an agent never
        played.
    Source: generality seed, table 1, Opp [S].

    >>> order = np.triu(np.ones((5, 5)))  # each beats all after it
    >>> np.fill_diagonal(order, np.nan)
    >>> opponents(order).difficulties.tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """
    scores = checks.matrix(matches, "matches", axes="agents, agents")
    if scores.shape[0] != scores.shape[1]:
        raise ScoringError(
            f"`matches` must be square (agents, agents), got shape {scores.shape}."
        )
    checks.within(scores, "matches", 0.0, 1.0)
    _every(scores.T, "agent", "matches")
    _warn_small("Opp", scores)
    return Transformed(scores, np.nanmean(scores, axis=1), np.arange(len(scores)))


def reference_agent(responses: npt.ArrayLike, reference: npt.ArrayLike) -> Transformed:
    """Return who reaches a reference agent, and how many fall short (ARef).

    Formula: r'[j, i] = r[j, i] >= reference_i;  h_i = share of agents below reference_i
    Shapes: responses (agents, items), reference (items,); (agents, items) and (items,).
    Units: any; difficulty in [0, 1].
    Missing: NaN responses stay NaN and are left out of the share.
    Errors: ScoringError for lengths that differ, or an item that nobody answered.
    Source: generality seed, table 1, ARef [S].

    >>> scores = np.tile(np.arange(20.0)[:, None], 20)  # agent j scores j everywhere
    >>> float(reference_agent(scores, np.full(20, 15.0)).difficulties[0])
    0.75
    """
    table = _real(responses, "ARef")
    line = checks.vector(reference, "reference")
    checks.same_length(table.T, line, "items of `responses` and `reference`")
    reached = _reached(table, line)
    return Transformed(reached, 1.0 - np.nanmean(reached, axis=0), _items(table, 1))


def ranks(responses: npt.ArrayLike, *, count: int = 5) -> Transformed:
    """Return who reaches each of `count` ranks of each item's population (Rnk).

    Formula: threshold k of item i is the value at rank ceil(k M / c) from below of its
        M values; r' = r >= threshold; h = k / c, k = 1 .. c
    Shapes: (agents, items); (agents, count * items) and (count * items,), item by item.
    Units: any; difficulty in (0, 1], 1 = the best agent's own value.
    Missing: NaN responses stay NaN and have no rank.
    Errors: ScoringError if `count` is below 1, or for an item that nobody answered.
    Source: generality seed, table 1, Rnk [S]; the place of the ranks [R].

    >>> scores = np.tile(np.arange(20.0)[:, None], 5)  # agent j scores j everywhere
    >>> ranks(scores, count=2).responses[[0, 10, 19], :2].tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """
    table = _real(responses, "Rnk")
    steps = _steps(count) / count
    columns = []
    for column in table.T:
        known = np.sort(column[~np.isnan(column)])
        places = np.ceil(steps * known.size - 1e-9).astype(np.int64) - 1
        columns.append(_reached(column[:, None], known[places]))
    return Transformed(
        np.hstack(columns), np.tile(steps, len(columns)), _items(table, count)
    )


def reference_distribution(
    responses: npt.ArrayLike, reference: npt.ArrayLike, *, count: int = 5
) -> Transformed:
    """Return who reaches each of `count` quantiles of a reference distribution (DRef).

    Formula: r' = r >= quantile k / (c + 1) of the item's reference values;
        h = k / (c + 1), k = 1 .. c
    Shapes: responses (agents, items), reference (samples, items); as `ranks`.
    Units: any; difficulty in (0, 1).
    Missing: NaN responses stay NaN; NaN reference values are left out.
    Errors: ScoringError if the items differ, `count` is below 1, or an item has no
        response or reference.
    Source: generality seed, table 1, DRef [S]; the place of the quantiles [R].

    >>> people = np.tile(np.array([[1.0], [2.0], [3.0]]), 5)
    >>> one = reference_distribution(np.full((1, 5), 2.0), people, count=3)
    >>> one.difficulties[:3].tolist(), one.responses[0, :3].tolist()
    ([0.25, 0.5, 0.75], [1.0, 1.0, 0.0])
    """
    table = _real(responses, "DRef")
    samples = checks.matrix(reference, "reference", axes="samples, items")
    checks.same_length(table.T, samples.T, "items of `responses` and `reference`")
    _every(samples, "item", "reference")
    steps = _steps(count) / (count + 1)
    columns = [
        _reached(column[:, None], np.nanquantile(sample, steps))
        for column, sample in zip(table.T, samples.T, strict=True)
    ]
    return Transformed(
        np.hstack(columns), np.tile(steps, len(columns)), _items(table, count)
    )


def disagreeing_neighbours(
    features: npt.ArrayLike, classes: npt.ArrayLike, *, neighbours: int = 10
) -> Floats:
    """Return per instance the share of its nearest neighbours of another class (KDN).

    Formula: h_i = |{k nearest of i, Euclidean, without i: class differs}| / k
    Shapes: features (instances, columns), classes (instances,); (instances,).
    Units: difficulty in [0, 1].
    Missing: nothing may be missing.
    Errors: ScoringError for NaN features, lengths that differ, or too few instances.
    Source: generality seed, section on feature-based classification [S, k = 10].

    >>> disagreeing_neighbours([[0.0], [1.0], [5.0]], [0, 0, 1], neighbours=1).tolist()
    [0.0, 0.0, 1.0]
    """
    table = checks.matrix(features, "features", axes="instances, columns")
    checks.finite(table, "features")
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


def _real(responses: npt.ArrayLike, case: str) -> Floats:
    """Return a response matrix in which every item has an answer; warn if small."""
    table = checks.matrix(responses, "responses", axes="agents, items")
    _every(table, "item", "responses")
    _warn_small(case, table)
    return table


def _warn_small(case: str, table: Floats) -> None:
    warn_if_small(case, *table.shape)


def _every(table: Floats, kind: str, name: str) -> None:
    """ScoringError with the first column (agent or item) that holds no number."""
    answered = np.sum(~np.isnan(table), axis=0) > 0
    if not answered.all():
        place = int(np.argmin(answered))
        raise ScoringError(
            f"`{name}` holds no number for {kind} {place}: leave it out."
        )


def _steps(count: int) -> Floats:
    if count < 1:
        raise ScoringError(f"`count` must be at least 1, got {count}.")
    return np.arange(1.0, count + 1.0)


def _reached(values: Floats, lines: Floats) -> Floats:
    """Return 1 where a value is at least its line, 0 where not, NaN where missing."""
    met = (values >= lines).astype(np.float64)
    return np.where(np.isnan(values), np.nan, met)


def _items(table: Floats, count: int) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(table.shape[1]), count)
