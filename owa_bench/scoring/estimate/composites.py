"""Composites of axes and budgets: the index, and the delegability frontier."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import BUDGET_NAMES, Array, Floats
from owa_bench.records.protocol import Index, Protocol, Robotics
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.sample import Sample, under_all_budgets
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, Totals

EMBODIED, EMBODIED_AXIS = "AAI with E", "E"


def composite(values: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return the weighted geometric mean of axes; a zero on any gives 0.

    Formula:
        AAI = prod_i a_i^(w_i), weights normalised to sum 1
    Shapes: a list of arrays (resamples,), one weight each; result (resamples,).
    Units: axis values in [0, 1]; result in [0, 1].
    Missing: an axis with weight 0 is not read; NaN in gives NaN out.
    Errors: ScoringError unless there is a weight above 0 and values lie in [0, 1].
    Source: [S] eq 12 of the AAI paper.

    >>> composite([np.array([0.25]), np.array([1.0])], [1, 1])
    array([0.5])
    """
    shares = _shares(values, weights)
    logs = np.zeros_like(values[0])
    with np.errstate(divide="ignore"):
        for value, share in zip(values, shares, strict=True):
            if share > 0:
                logs = logs + share * np.log(value)
    return np.exp(logs)


def evenness(values: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return U = AAI / (weighted arithmetic mean): 1 for a flat profile.

    Formula:
        U = AAI / sum_i w_i a_i
    Shapes: as `composite`. Units: a share in (0, 1].
    Missing: NaN where every axis is 0.
    Errors: as `composite`.
    Source: [R] eq 34 of the AAI paper.

    >>> evenness([np.array([0.25]), np.array([1.0])], [1, 1])
    array([0.8])
    """
    shares = _shares(values, weights)
    mean = np.sum([w * a for w, a in zip(shares, values, strict=True)], axis=0)
    result: Floats = np.divide(
        composite(values, weights), mean, out=np.full_like(mean, np.nan), where=mean > 0
    )
    return result


def _shares(values: Sequence[Floats], weights: Sequence[float]) -> list[float]:
    whole = float(sum(weights))
    if len(values) != len(weights) or not len(values) or whole <= 0 or min(weights) < 0:
        raise ScoringError(f"{len(values)} axes need as many weights, some above 0, got {weights}.")
    for value in values:
        if ((value < 0) | (value > 1)).any():
            raise ScoringError("Axis values must lie in [0, 1]; leave a missing axis out by name.")
    return [weight / whole for weight in weights]


def needed(rules: Index) -> Mapping[str, tuple[str, ...]]:
    """Return the axes that each composite needs."""
    used = tuple(symbol for symbol, weight in rules.weights.items() if weight > 0)
    dynamic = tuple(symbol for symbol in used if symbol not in rules.dynamic_without)
    return {
        "AAI": used,
        "AAI_dyn": dynamic,
        "jaggedness": used,
        "AAI_J": used,
        "core": tuple(rules.core),
    }


def made_of(symbols: Sequence[str], protocol: Protocol) -> dict[str, tuple[str, ...]]:
    """Return the axes of every composite that is computable.

    Args:
        symbols: Axes with evidence.
        protocol: Weights.
    Returns: Axes by name.
    """
    wanted = dict(needed(protocol.index))
    if EMBODIED_AXIS in symbols:
        weights = protocol.robotics.weights
        wanted[EMBODIED] = tuple(str(s) for s, weight in weights.items() if weight > 0)
    return {name: axes for name, axes in wanted.items() if set(axes) <= set(symbols)}


def index_statistics(values: Mapping[str, Floats], rules: Index) -> dict[str, Floats]:
    """Return every composite whose axes all have evidence.

    Args:
        values: (resamples,) by symbol of an axis.
        rules: Weights and exponent of the protocol.
    Returns: (resamples,) by name.
    """
    statistics: dict[str, Floats] = {}
    for name, symbols in needed(rules).items():
        if any(symbol not in values for symbol in symbols):
            continue
        axes = [values[symbol] for symbol in symbols]
        weights = [rules.weights.get(symbol, 0.0) for symbol in symbols]  # type: ignore[call-overload]
        if name == "core":
            statistics[name] = composite(axes, [1.0] * len(axes))
        elif name == "jaggedness":
            statistics[name] = evenness(axes, weights)
        elif name == "AAI_J":
            even = np.nan_to_num(evenness(axes, weights))
            statistics[name] = composite(axes, weights) * even**rules.gamma
        else:
            statistics[name] = composite(axes, weights)
    return statistics


def embodied_index(values: Mapping[str, Floats], rules: Robotics) -> dict[str, Floats]:
    """Return the index with E under the robotics weights, where E has evidence.

    Args:
        values: (resamples,) by symbol of an axis.
        rules: Weights of the robotics annex.
    Returns: (resamples,) by name; nothing without evidence on an axis.
    """
    used = [str(symbol) for symbol, weight in rules.weights.items() if weight > 0]
    if EMBODIED_AXIS not in values or any(s not in values for s in used):
        return {}
    weights = [rules.weights[s] for s in used]  # type: ignore[index]
    return {EMBODIED: composite([values[s] for s in used], weights)}


def delta_method(
    covariance: Floats, weights: Sequence[float], point: Sequence[float]
) -> float | None:
    """Return the standard error of the index by the delta method on eq 12.

    Formula:
        se = AAI sqrt(g' S g), g_i = w_i / a_i, S the covariance of the axes
    Shapes: `covariance` (axes, axes), weights and points (axes,); a scalar.
    Units: as the index.
    Missing: None where an axis with weight is 0: the method does not hold there.
    Errors: as `composite`.
    Source: [S] section 3.2 of the AAI paper, uncertainty (a).

    >>> round(delta_method(np.array([[0.01]]), [1.0], [0.5]), 6)
    0.1
    """
    at = np.array(point, dtype=np.float64)
    shares = np.array(_shares(list(at[:, None]), weights))
    if (at[shares > 0] <= 0).any():
        return None
    slopes = np.where(shares > 0, shares / np.maximum(at, np.finfo(float).tiny), 0.0)
    whole = float(composite(list(at[:, None]), weights)[0])
    return whole * float(np.sqrt(slopes @ covariance @ slopes))


class FrontierGrid(NamedTuple):
    """Intervention budgets of a frontier by rising demand, or why there is none.

    `demand` is the mean demand of a budget's episodes, `target` s: the share of episodes with
    q_state >= q*.
    """

    budgets: tuple[int, ...]
    demand: Floats
    target: float
    reason: str | None = None


def demand(budget: Array, horizon: Array, share: float) -> Floats:
    """Return the autonomy demand of episodes under an intervention budget.

    Formula:
        a = 1 - min(k, k_max) / k_max, k_max = ceil(share * H_t); no limit and the
        protocol's budget are k_max
    Shapes: two arrays (episodes,); result the same. Units: counts; a share.
    Missing: H_t = 0 counts as k_max = 1.
    Errors: ScoringError if the shapes differ.
    Source: [D] docs/scoring.md#frontier.

    >>> demand(np.array([0, 2, 9, -1]), np.full(4, 8), 0.5)
    array([1. , 0.5, 0. , 0. ])
    """
    if budget.shape != horizon.shape:
        raise ScoringError(f"Budgets and horizons differ: {budget.shape}, {horizon.shape}.")
    most = np.maximum(np.ceil(share * horizon), 1.0)
    spent = np.where(budget < 0, most, np.minimum(budget, most))
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

    Linear between points; flat below the smallest demand, where a non-increasing frontier can only
    be higher.

    Args:
        fit: (resamples, points) fitted quality.
        demands: (points,) rising, in [0, 1].
    Returns: (resamples,).
    Source: [S] section 6 of the AAI paper.

    >>> area(np.array([[1.0, 0.5]]), np.array([0.5, 1.0]))
    array([0.875])
    """
    inner = ((fit[:, 1:] + fit[:, :-1]) / 2 * np.diff(demands)).sum(axis=1)
    result: Floats = fit[:, 0] * demands[0] + inner
    return result


def area_bounds(fit: Floats, demands: Floats) -> tuple[float, float]:
    """Return the least and the greatest area of a non-increasing frontier.

    Between two points it lies anywhere between their values, below the smallest demand anywhere
    from its first value to 1.

    Args:
        fit: (points,) fitted quality.
        demands: (points,) rising, in [0, 1].
    Returns: Two areas.

    >>> area_bounds(np.array([1.0, 0.5]), np.array([0.5, 1.0]))
    (0.75, 1.0)
    >>> area_bounds(np.array([1.0, 0.5, 0.25]), np.array([0.25, 0.5, 1.0]))
    (0.5, 0.75)
    """
    steps, first = np.diff(demands), demands[0]
    low = fit[0] * first + (fit[1:] * steps).sum()
    high = first + (fit[:-1] * steps).sum()
    return float(low), float(high)


def delegable_bounds(fit: Floats, demands: Floats, target: float) -> tuple[float, float]:
    """Return the least and the greatest deleg(s) of a non-increasing frontier.

    Args:
        fit: (points,) fitted share of successes.
        demands: (points,) rising, in [0, 1].
        target: s.
    Returns: The largest demand that was played and reaches s, and the smallest that was played and
        does not; 0 and 1 where there is none.

    >>> delegable_bounds(np.array([1.0, 0.5]), np.array([0.0, 1.0]), 0.75)
    (0.0, 1.0)
    """
    reached = demands[fit >= target]
    below = demands[fit < target]
    return float(reached.max(initial=0.0)), float(below.min(initial=1.0))


def delegable(fit: Floats, demands: Floats, target: float) -> Floats:
    """Return deleg(s): the length of the demands at which the frontier reaches s.

    Args:
        fit: (resamples, points) fitted share of episodes with q_state >= q*.
        demands: (points,) rising, in [0, 1].
        target: s.
    Returns: (resamples,).

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


def add_frontier(sample: Sample, statistics: StatisticsTable) -> FrontierGrid:
    """Add q_state and success per budget, over tasks played under every budget.

    Args:
        sample: Counted episodes of one agent.
        statistics: Table to add columns to.
    Returns: The budgets; with a reason where there is no frontier.
    """
    table = sample.table
    budgets = sorted(set(table.interventions.tolist()))
    target = sample.protocol.frontier.success_share
    if len(budgets) < 2:
        return FrontierGrid((), np.zeros(0), target, "one intervention budget only")
    if 0 not in budgets:
        return FrontierGrid((), np.zeros(0), target, "no run without any intervention")
    common = under_all_budgets(table, len(budgets)) & ~table.crew.control
    if not common.any():
        return FrontierGrid((), np.zeros(0), target, "no task was played under every budget")
    share = sample.protocol.frontier.interventions_share
    asked = demand(table.interventions, table.horizon, share)
    rows = {k: common & (table.interventions == k) for k in budgets}
    means = {k: float(asked[rows[k]].mean()) for k in budgets}
    order = sorted(budgets, key=lambda k: (means[k], -k))
    for pair in itertools.pairwise(order):
        if means[pair[0]] == means[pair[1]]:
            names = " and ".join(f"`{BUDGET_NAMES.get(k, k)}`" for k in pair)
            why = f"the budgets {names} make the same demand: draw one of them"
            return FrontierGrid((), np.zeros(0), target, why)
    for k in order:
        statistics.add_mean(f"F:{k}", table.q_state, rows[k])
        statistics.add_mean(f"F_u:{k}", table.u, rows[k])
    return FrontierGrid(tuple(order), np.array([means[k] for k in order]), target)


def frontier_statistics(totals: Totals, grid: FrontierGrid) -> dict[StatisticKey, Floats]:
    """Return both frontiers, of q_state (F) and of success (F_u), AUF and deleg.

    Args:
        totals: Weighted totals of the columns.
        grid: Budgets of the frontier.
    Returns: (resamples,) each; nothing without a frontier.
    """
    if grid.reason:
        return {}
    statistics, fits = {}, {}
    for name in ("F", "F_u"):
        seen = np.stack([totals.overall_mean(f"{name}:{k}") for k in grid.budgets], axis=1)
        fits[name] = falling_fit(seen, np.ones(len(grid.budgets)))
        for i in range(len(grid.budgets)):
            statistics[StatisticKey(name, "seen", place=i)] = seen[:, i]
            statistics[StatisticKey(name, "fit", place=i)] = fits[name][:, i]
    statistics[StatisticKey("AUF")] = area(fits["F"], grid.demand)
    statistics[StatisticKey("deleg")] = delegable(fits["F_u"], grid.demand, grid.target)
    return statistics
