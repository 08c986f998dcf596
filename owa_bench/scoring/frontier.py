"""The delegability frontier: quality against the autonomy that is demanded."""

from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import UNLIMITED, Array, Flags, Floats, Observables
from owa_bench.scoring.axis import Sample
from owa_bench.scoring.cells import Ledger, Totals


class Grid(NamedTuple):
    """The budgets of a frontier by rising demand, or why there is none.

    `demand` is the mean demand of a budget's episodes, `target` q* = theta.
    """

    budgets: tuple[int, ...]
    demand: Floats
    target: float
    reason: str | None = None


def demand(budget: Array, horizon: Array, share: float) -> Floats:
    """Return the autonomy demand of episodes under an intervention budget.

    Formula:
        a = 1 - min(k, k_max) / k_max, k_max = ceil(share * H_t); no limit is k_max
    Shapes: two arrays (episodes,); result the same. Units: counts; a share.
    Missing: H_t = 0 counts as k_max = 1.
    Errors: ScoringError if the shapes differ.
    Source: [D] section 6 of `aai-scale.md`.

    >>> demand(np.array([0, 2, 9, UNLIMITED]), np.full(4, 8), 0.5)
    array([1. , 0.5, 0. , 0. ])
    """
    if budget.shape != horizon.shape:
        raise ScoringError(
            f"Budgets and horizons differ: {budget.shape}, {horizon.shape}."
        )
    most = np.maximum(np.ceil(share * horizon), 1.0)
    spent = np.where(budget == UNLIMITED, most, np.minimum(budget, most))
    result: Floats = 1.0 - spent / most
    return result


def falling_fit(quality: Floats, weights: Floats) -> Floats:
    """Return the non-increasing least-squares fit of each row.

    Formula:
        F_i = min over j <= i of max over k >= i of the weighted mean of q_j .. q_k
    Shapes: quality (resamples, points), weights (points,); result (resamples, points).
    Units: as `quality`. Missing: a NaN makes its row NaN.
    Errors: ScoringError if the shapes do not fit or a weight is not above 0.
    Source: [S] section 6 of the AAI paper; min-max form of isotonic regression
        (Barlow et al. 1972).

    >>> falling_fit(np.array([[0.5, 0.9, 0.1]]), np.ones(3))
    array([[0.7, 0.7, 0.1]])
    """
    if quality.ndim != 2 or weights.shape != quality.shape[1:] or (weights <= 0).any():
        raise ScoringError(f"A fit needs a weight above 0 per point, got {weights}.")
    size = quality.shape[1]
    sums = np.cumsum(np.pad(quality * weights, ((0, 0), (1, 0))), axis=1)
    mass = np.cumsum(np.pad(weights, (1, 0)))
    fit = np.full_like(quality, np.inf)
    for j in range(size):
        means = (sums[:, j + 1 :] - sums[:, [j]]) / (mass[j + 1 :] - mass[j])
        reach = np.maximum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        fit[:, j:] = np.minimum(fit[:, j:], reach)
    return fit


def area(fit: Floats, demands: Floats) -> Floats:
    """Return AUF, the area under the frontier over demands 0 to 1.

    Linear between points; flat below the smallest demand, where a non-increasing
    frontier can only be higher. Source: [S] section 6.

    >>> area(np.array([[1.0, 0.5]]), np.array([0.5, 1.0]))
    array([0.875])
    """
    inner = ((fit[:, 1:] + fit[:, :-1]) / 2 * np.diff(demands)).sum(axis=1)
    result: Floats = fit[:, 0] * demands[0] + inner
    return result


def delegable(fit: Floats, demands: Floats, target: float) -> Floats:
    """Return deleg(q*): the share of demands at which the frontier reaches q*.

    >>> delegable(np.array([[1.0, 0.5], [0.4, 0.3]]), np.array([0.0, 1.0]), 0.75)
    array([0.5, 0. ])
    """
    best = np.where(fit[:, 0] >= target, demands[0], 0.0)
    for i in range(1, len(demands)):
        before, after = fit[:, i - 1], fit[:, i]
        fall = np.where(before > after, before - after, 1.0)
        crossing = np.clip((before - target) / fall, 0.0, 1.0)
        step = np.where(after >= target, 1.0, crossing)
        reach = demands[i - 1] + step * (demands[i] - demands[i - 1])
        best = np.where(before >= target, reach, best)
    return best


def lay_frontier(sample: Sample, ledger: Ledger) -> Grid:
    """Lay quality per intervention budget over what was played under every budget.

    The reason says why there is no frontier.
    """
    table = sample.table
    budgets = sorted(set(table.interventions.tolist()))
    target = float(table.theta.mean()) if len(table) else 1.0
    if len(budgets) < 2:
        return Grid((), np.zeros(0), target, "one intervention budget only")
    if 0 not in budgets:
        return Grid((), np.zeros(0), target, "no run without any intervention")
    common = _under_all(table, len(budgets))
    if not common.any():
        return Grid((), np.zeros(0), target, "no task was played under every budget")
    share = sample.protocol.frontier.interventions_share
    asked = demand(table.interventions, table.horizon, share)
    rows = {k: common & (table.interventions == k) for k in budgets}
    means = {k: float(asked[rows[k]].mean()) for k in budgets}
    order = sorted(budgets, key=lambda k: (means[k], -k))
    if len(set(means.values())) < len(means):
        return Grid((), np.zeros(0), target, "two budgets make the same demand")
    for k in order:
        ledger.mean(f"F:{k}", table.q, rows[k])
    return Grid(tuple(order), np.array([means[k] for k in order]), target)


def _under_all(table: Observables, budgets: int) -> Flags:
    """Return the rows whose task, repeat and drift were played under every budget."""
    keys = np.stack(
        (
            np.unique(table.pair, return_inverse=True)[1].reshape(-1),
            table.repeat,
            np.unique(table.delta, return_inverse=True)[1].reshape(-1),
            table.day,
        )
    )
    _, code = np.unique(keys, axis=1, return_inverse=True)
    code = code.reshape(-1)
    pairs = np.unique(np.stack((code, table.interventions)), axis=1)
    held: Flags = np.bincount(pairs[0])[code] == budgets
    return held


def frontier_statistics(sums: Totals, grid: Grid) -> dict[str, Floats]:
    """Return the observed and fitted frontier, AUF and deleg per resample."""
    if grid.reason:
        return {}
    seen = np.stack([sums.overall(sums.mean(f"F:{k}")) for k in grid.budgets], axis=1)
    fit = falling_fit(seen, np.ones(len(grid.budgets)))
    found = {f"F/seen/{i}": seen[:, i] for i in range(seen.shape[1])}
    found |= {f"F/fit/{i}": fit[:, i] for i in range(fit.shape[1])}
    found["AUF"] = area(fit, grid.demand)
    found["deleg"] = delegable(fit, grid.demand, grid.target)
    return found
