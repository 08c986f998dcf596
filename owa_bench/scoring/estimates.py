"""Estimates: every statistic of one agent from one matrix of bootstrap weights."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Array, Flags, Floats, Integers
from owa_bench.records.plan import BootstrapSpec
from owa_bench.scoring import composites
from owa_bench.scoring.axis import Axis, Coverage
from owa_bench.scoring.bootstrap import (
    BootstrapEstimate,
    Sampling,
    bootstrap_weights,
    sampling,
)
from owa_bench.scoring.gate_statistics import (
    DELIVERED,
    CognitiveCoverage,
    ProjectOutcomes,
    add_cognition,
    add_projects,
)
from owa_bench.scoring.sample import Sample
from owa_bench.scoring.statistics_table import (
    Columns,
    ResamplingUnits,
    StatisticsTable,
    Totals,
    resampling_units,
    weighted_totals,
)

TASKS = "tasks like these"
SEEDS = "same tasks, new seeds"
StatisticArrays = dict[str, Floats]  # (resamples,) by name


class AxisFailure(ScoringError):
    """An axis could not be computed; `symbol` says which."""

    def __init__(self, axis: Axis, step: str, error: Exception) -> None:
        words = str(error) if isinstance(error, ScoringError) else repr(error)
        super().__init__(
            f"not computable, {step} of axis `{axis.name}` failed: {words}"
        )
        self.symbol = axis.symbol


class DriftCurve(NamedTuple):
    """A statistic over drift magnitude: names, magnitudes, episodes at each."""

    key: str
    name: str
    y_label: str
    x: tuple[float, ...]
    used: tuple[int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its points among the statistics."""
        return tuple(f"curve/{self.key}/{i}" for i in range(len(self.x)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEstimates:
    """Every statistic of one agent by name, with its resamples.

    Names: "A" (value), "A/raw", "A/low", "A/high", "A/beside/NAME", and those of the
    index, the frontier and the curves. `coverage` says what each axis rests on,
    `smallest` how many tasks the smallest family has.
    """

    point: Mapping[str, float]
    tasks: Mapping[str, Floats]
    seeds: Mapping[str, Floats]
    by_tasks: Sampling
    by_seeds: Sampling
    coverage: Mapping[str, Coverage]
    grid: composites.FrontierGrid
    curves: tuple[DriftCurve, ...]
    cognition: CognitiveCoverage
    projects: ProjectOutcomes
    smallest: int

    def over_tasks(self, name: str, *, bounded: bool = True) -> BootstrapEstimate:
        """Return a statistic's estimate over *tasks like these*.

        Args:
            name: Name of the statistic.
            bounded: Whether it is a share.

        Returns:
            Point estimate and resamples.
        """
        point = self.point.get(name, np.nan)
        return BootstrapEstimate(point, self.tasks.get(name), self.by_tasks, bounded)

    def over_seeds(self, name: str) -> BootstrapEstimate:
        """Return a share's estimate over *same tasks, new seeds*."""
        point = self.point.get(name, np.nan)
        return BootstrapEstimate(point, self.seeds.get(name), self.by_seeds)


def estimate(
    sample: Sample,
    axes: Sequence[Axis],
    spec: BootstrapSpec,
    root: str,
    *,
    seeds: bool = True,
) -> ArmEstimates:
    """Return every statistic of a sample, resampled twice under the replay root.

    An axis that raises is missing, with the reason; the others stand.

    Args:
        sample: Counted episodes of one agent.
        axes: Axes to estimate.
        spec: Number of resamples.
        root: Replay root, from which the weights are drawn.
        seeds: Whether seeds are resampled too, not tasks alone.

    Returns:
        Point estimates and resamples.
    """
    failed: dict[str, Coverage] = {}
    while True:
        try:
            return _estimate(sample, axes, spec, root, failed, seeds=seeds)
        except AxisFailure as failure:
            failed[failure.symbol] = Coverage(0, len(sample.table), str(failure))


def _estimate(
    sample: Sample,
    axes: Sequence[Axis],
    spec: BootstrapSpec,
    root: str,
    failed: Mapping[str, Coverage],
    *,
    seeds: bool,
) -> ArmEstimates:
    """Return every statistic but those of axes that failed; AxisFailure for one more.

    Args:
        sample: Counted episodes of one agent.
        axes: Axes to estimate.
        spec: Number of resamples.
        root: Replay root, from which the weights are drawn.
        failed: Coverage of axes that failed, by symbol.
        seeds: Whether seeds are resampled too, not tasks alone.
    """
    units = resampling_units(sample.table, sample.families)
    table = StatisticsTable(units)
    coverage = dict(failed)
    for axis in axes:
        if axis.symbol not in failed:
            with _named(axis, "collecting the episodes"):
                coverage[axis.symbol] = axis.add_columns(sample, table)
    present = [axis for axis in axes if coverage[axis.symbol].reason is None]
    grid, curves = composites.add_frontier(sample, table), _add_curves(sample, table)
    cognition, projects = add_cognition(sample, table), add_projects(sample, table)

    def read(totals: Totals) -> StatisticArrays:
        statistics = _axis_statistics(present, sample, totals)
        scores = {axis.symbol: statistics[axis.symbol] for axis in present}
        statistics |= composites.index_statistics(scores, sample.protocol.index)
        statistics |= composites.embodied_index(scores, sample.protocol.robotics)
        statistics |= composites.frontier_statistics(totals, grid)
        for name in (name for curve in curves for name in curve.columns):
            statistics[name] = totals.overall_mean(name)
        for name in cognition.names:
            statistics[name] = totals.pooled_mean(name)
        if projects.number:
            statistics[DELIVERED] = totals.overall_mean(DELIVERED)
        return statistics

    by_tasks, by_seeds = _samplings(units, sample)
    if not seeds:
        by_seeds = by_seeds._replace(reason="seeds were not resampled")
    source = _Source(read, table.columns(), units, sample, spec, root)
    return ArmEstimates(
        point=source.point(),
        tasks=source.resamples(by_tasks),
        seeds=source.resamples(by_seeds),
        by_tasks=by_tasks,
        by_seeds=by_seeds,
        coverage=coverage,
        grid=grid,
        curves=curves,
        cognition=cognition,
        projects=projects,
        smallest=int(np.unique(units.family, return_counts=True)[1].min()),
    )


def _axis_statistics(
    axes: Sequence[Axis], sample: Sample, totals: Totals
) -> StatisticArrays:
    statistics: StatisticArrays = {}
    for axis in axes:
        key = axis.symbol
        with _named(axis, "the raw statistic"):
            raw = axis.raw_statistic(totals, sample)
        with _named(axis, "the calibration"):
            anchors = axis.anchor_bounds(totals, sample)
            statistics[key] = axis.value(raw, anchors)
        statistics[f"{key}/raw"] = raw
        statistics[f"{key}/low"], statistics[f"{key}/high"] = anchors
        with _named(axis, "a secondary statistic"):
            for name, values in axis.secondary(totals, sample).items():
                statistics[f"{key}/beside/{name}"] = values
    return statistics


@contextmanager
def _named(axis: Axis, step: str) -> Iterator[None]:
    """Raise what an axis raises as an AxisFailure, whatever it is: it may be foreign.

    Args:
        axis: The axis.
        step: What it is doing, for the message.
    """
    try:
        yield
    except Exception as error:
        raise AxisFailure(axis, step, error) from error


def _add_curves(sample: Sample, statistics: StatisticsTable) -> tuple[DriftCurve, ...]:
    """Add success and quality over the nominal drift magnitudes that were played."""
    table, base = sample.table, sample.base
    tools = base & table.needs_tools
    cases: tuple[tuple[str, str, Array, Flags], ...] = (
        ("success", "share of tool-requiring tasks that succeed", table.u, tools),
        ("quality", "mean quality Q", table.q, base),
    )
    curves = []
    for key, label, values, mask in cases:
        played = tuple(sorted({d for d in table.delta[mask].tolist() if d == d}))
        rows = [mask & (table.delta == delta) for delta in played]
        used = tuple(int(row.sum()) for row in rows)
        curve = DriftCurve(key, f"{key} by drift magnitude", label, played, used)
        for name, row in zip(curve.columns, rows, strict=True):
            statistics.add_mean(name, values, row)
        curves.append(curve)
    return tuple(curves)


def task_estimates(
    sample: Sample,
    statistics: StatisticsTable,
    names: Sequence[str],
    spec: BootstrapSpec,
    root: str,
) -> Mapping[str, BootstrapEstimate]:
    """Return weighted means over families, resampled over *tasks like these*.

    Args:
        sample: Counted episodes of one agent.
        statistics: Table that holds the columns.
        names: Columns that were added by `add_mean`.
        spec: Number of resamples.
        root: Replay root, from which the weights are drawn.

    Returns:
        Estimates of shares, by column.
    """

    def read(totals: Totals) -> StatisticArrays:
        return {name: totals.overall_mean(name) for name in names}

    units = statistics.units
    source = _Source(read, statistics.columns(), units, sample, spec, root)
    how, _ = _samplings(units, sample)
    point, tasks = source.point(), source.resamples(how)
    return {n: BootstrapEstimate(point[n], tasks.get(n), how) for n in names}


def _samplings(units: ResamplingUnits, sample: Sample) -> tuple[Sampling, Sampling]:
    """Return the schemes of tasks inside families and of seeds inside tasks."""
    small = sample.protocol.statistics.small_family
    sizes = np.bincount(units.family, minlength=len(sample.families))
    weights, single = sample.weights[sizes > 0], "a family holds one task"
    by_tasks = sampling(TASKS, units.family, weights, small=small, single=single)
    weights = (sample.weights / np.maximum(sizes, 1))[units.family]
    single = "a task was played with one repeat"
    by_seeds = sampling(SEEDS, units.task, weights, small=small, single=single)
    return by_tasks, by_seeds


class _Source(NamedTuple):
    """The columns of a sample, and the function from weighted sums to statistics."""

    read: Callable[[Totals], StatisticArrays]
    columns: Columns
    units: ResamplingUnits
    sample: Sample
    spec: BootstrapSpec
    root: str

    def point(self) -> dict[str, float]:
        """Return the statistics under weight 1 for every unit."""
        ones = np.ones((1, len(self.units.task)))
        family, weights = self.units.unit_family, self.sample.weights
        totals = weighted_totals(ones, self.columns, family, weights)
        return {name: float(x[0]) for name, x in self.read(totals).items()}

    def resamples(self, how: Sampling) -> StatisticArrays:
        """Return every statistic's resamples, none where there is nothing to draw.

        Tasks are resampled inside families with their seeds whole, or seeds inside
        tasks.
        """
        if how.reason:
            return {}
        columns, strata, family = self._strata(how)
        label = how.method.partition(":")[0]
        weights = bootstrap_weights(strata, self.spec.resamples, self.root, label)
        parts = [
            self.read(weighted_totals(w, columns, family, self.sample.weights))
            for w in weights
        ]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def _strata(self, how: Sampling) -> tuple[Columns, Integers, Integers]:
        """Return the columns to weigh, the stratum of their rows and their family."""
        units = self.units
        if how.method.startswith(TASKS):
            return self.columns.by_task(units), units.family, units.family
        return self.columns, units.task, units.unit_family
