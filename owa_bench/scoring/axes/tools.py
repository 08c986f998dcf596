"""Axis T: tool economy, breadth of tool use times success under drift.

A category is a kind of tool (`records/tool_kinds.py`), so that many vendors of one kind are one.
"""

import math

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.records.tool_kinds import TOOL_KINDS
from owa_bench.scoring.axis import Axis, Coverage, Diagnostics, FloatsByName
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, Totals

_USED = "T:used "  # prefix of the columns of categories used under drift


def tool_economy(used: Floats, success: Floats, grid: Floats, prior: int) -> Floats:
    """Return tool breadth times the area under success against drift magnitude.

    Formula:
        T = N(min(1, ln(1 + |C_used|) / ln(1 + C0)) * integral_0^1 succ(delta) ddelta)
        the integral by the trapezoid rule on the published grid
    Shapes: used (resamples,), success (resamples, grid), grid (grid,); result
        (resamples,).
    Units: `used` counts tool categories; success a rate; delta a weight share.
    Missing: NaN where a magnitude has no episode.
    Errors: ScoringError if shapes do not fit, or the grid does not rise from 0 to 1.
    Source: [R] eqs 7-9 of the AAI paper; C0 and the grid [D] in the protocol.

    >>> curve = np.array([[1.0, 0.5, 0.0]])
    >>> tool_economy(np.array([12.0]), curve, np.array([0.0, 0.5, 1.0]), 12)
    array([0.5])
    """
    fits = success.ndim == 2 and used.shape == success.shape[:1]
    if not fits or grid.shape != success.shape[1:] or len(grid) < 2:
        raise ScoringError(
            "tool_economy needs (resamples,), (resamples, grid) and (grid,), got "
            f"{used.shape}, {success.shape} and {grid.shape}."
        )
    if grid[0] != 0 or grid[-1] != 1 or (np.diff(grid) <= 0).any():
        raise ScoringError(f"The grid of magnitudes must rise from 0 to 1, got {grid.tolist()}.")
    area = ((success[:, 1:] + success[:, :-1]) / 2 * np.diff(grid)).sum(axis=1)
    breadth = np.minimum(1.0, np.log1p(used) / math.log1p(prior))
    result: Floats = breadth * area
    return result


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add success per magnitude, and the categories used under drift.

    Only categories used on enough tasks have a column. The upper anchor counts the categories that
    enough tasks offer.
    """
    table, rules = sample.table, sample.protocol.tools
    rows = sample.base & table.needs_tools
    cells, grid = int(rows.sum()), sample.protocol.drift.magnitudes
    played = set(table.delta[rows].tolist())
    absent = [f"{delta:g}" for delta in grid if delta not in played]
    odd = [name for name in table.categories if name not in TOOL_KINDS]
    if not cells:
        return Coverage(0, 0, "no counted episode needs tools")
    if odd:
        reason = f"recorded before calls had a kind of tool: {odd[0]} is none, play again"
        return Coverage(0, cells, reason)
    if absent:
        return Coverage(0, cells, f"drift magnitudes {', '.join(absent)} not played")
    for i, delta in enumerate(grid):
        statistics.add_mean(f"T:{i}", table.u, rows & (table.delta == delta))
    drifted = rows & (table.delta > 0)
    for j, name in enumerate(table.categories):
        used = drifted & table.used[:, j]
        if statistics.count_tasks(used) >= rules.distinct_instances:
            statistics.add_presence(f"{_USED}{name}", used)
    breadth = math.log1p(len(_needed(sample))) / math.log1p(rules.size_prior)
    statistics.add_constant("T:breadth", min(1.0, breadth))
    return Coverage(int((rows & np.isin(table.delta, grid)).sum()), cells)


def _success(totals: Totals, sample: Sample) -> Floats:
    """Return succ(delta) (resamples, grid)."""
    size = len(sample.protocol.drift.magnitudes)
    return np.stack([totals.overall_mean(f"T:{i}") for i in range(size)], axis=1)


def _categories_used(totals: Totals, sample: Sample) -> Floats:
    """Return how many categories were used with success on enough tasks."""
    enough = sample.protocol.tools.distinct_instances
    counts = np.zeros(len(totals.table))
    for name in totals.names:
        if name.startswith(_USED):
            counts += totals.pooled(name) >= enough
    return counts


def _raw(totals: Totals, sample: Sample) -> Floats:
    grid = np.array(sample.protocol.drift.magnitudes)
    used, prior = _categories_used(totals, sample), sample.protocol.tools.size_prior
    return tool_economy(used, _success(totals, sample), grid, prior)


def _secondary(totals: Totals, sample: Sample) -> FloatsByName:
    """Return the curve succ(delta), and the number of categories used."""
    curve = _success(totals, sample).T
    grid = sample.protocol.drift.magnitudes
    return {
        f"success at {delta:g}": success for delta, success in zip(grid, curve, strict=True)
    } | {"categories used": _categories_used(totals, sample)}


def _needed(sample: Sample) -> tuple[str, ...]:
    """Return the kinds of tool that enough tasks under drift need."""
    return _on_enough_tasks(sample, sample.table.offered)


def _on_enough_tasks(sample: Sample, flags: Flags) -> tuple[str, ...]:
    """Return the kinds whose flags (episodes, kinds) are set on enough tasks under drift."""
    table, enough = sample.table, sample.protocol.tools.distinct_instances
    rows = sample.base & table.needs_tools & (table.delta > 0)
    counts = [len(set(table.pair[rows & mask].tolist())) for mask in flags.T]
    return tuple(n for n, c in zip(table.categories, counts, strict=True) if c >= enough)


def _coverage(sample: Sample) -> Diagnostics:
    """Return the kinds of tool that the tasks need, and those that were used."""
    needed, used = _needed(sample), _on_enough_tasks(sample, sample.table.used)
    return {
        "coverage, used": len(used) / len(needed) if needed else None,
        "categories": list(needed),
        "used": list(used),
    }


AXIS = Axis(
    "T",
    "tool economy",
    formula=tool_economy,
    collect=_collect,
    raw=_raw,
    high=lambda totals: np.full(len(totals.table), totals.constants["T:breadth"]),
    secondary=_secondary,
    amounts=("categories used",),
    diagnostics=_coverage,
)
