"""Estimates: every statistic of one agent, and what it is without one cluster each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from owa_bench.errors import ScoringError, error_line
from owa_bench.records.observables import Array, Flags, Floats
from owa_bench.scoring.axis import Axis, Coverage
from owa_bench.scoring.estimate import composites
from owa_bench.scoring.estimate.gate_statistics import (
    DELIVERED,
    CognitiveCoverage,
    ProjectOutcomes,
    add_cognition,
    add_projects,
)
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.sample import NOT_APART, OF_APART, Sample
from owa_bench.scoring.statistics.jackknife import (
    Clusters,
    JackknifeEstimate,
    jackknife_estimate,
    repeat_clusters,
    task_clusters,
    without_each,
)
from owa_bench.scoring.statistics.statistics_table import (
    Columns,
    ResamplingUnits,
    StatisticsTable,
    Totals,
    resampling_units,
    weighted_totals,
)

StatisticArrays = dict[StatisticKey, Floats]  # (resamples,) each


class AxisFailure(ScoringError):
    """An axis could not be computed; `symbol` says which."""

    def __init__(self, axis: Axis, step: str, error: Exception) -> None:
        ours = isinstance(error, ScoringError)
        said = str(error) if ours else error_line(error)
        super().__init__(f"not computable, {step} of axis `{axis.name}` failed: {said}")
        self.symbol = axis.symbol


class DriftCurve(NamedTuple):
    """A measure over drift magnitude: its names, magnitudes, episodes at each."""

    measure: str
    name: str
    y_label: str
    x: tuple[float, ...]
    used: tuple[int, ...]

    @property
    def keys(self) -> tuple[StatisticKey, ...]:
        """The keys of its points."""
        return tuple(StatisticKey(self.measure, "curve", place=i) for i in range(len(self.x)))


class LeftOut(NamedTuple):
    """Statistics without one cluster each, and the clusters that each one reads.

    `values` and `read` are (clusters,) each; `units` counts the clusters of an exact bound, for a
    composite those of the axis with the fewest.
    """

    clusters: Clusters
    values: Mapping[StatisticKey, Floats]
    read: Mapping[StatisticKey, Flags]
    units: Mapping[StatisticKey, int]
    composites: frozenset[StatisticKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEstimates:
    """Every statistic of one agent, and its values without one cluster each.

    `coverage` says what each axis rests on, `smallest` how many tasks the smallest family has.
    """

    point: Mapping[StatisticKey, float]
    tasks: LeftOut
    seeds: LeftOut
    coverage: Mapping[str, Coverage]
    grid: composites.FrontierGrid
    curves: tuple[DriftCurve, ...]
    cognition: CognitiveCoverage
    projects: ProjectOutcomes
    smallest: int

    def over_tasks(self, key: StatisticKey, *, share: bool = True) -> JackknifeEstimate:
        """Return a statistic's estimate over *tasks like these*.

        Args:
            key: Key of the statistic.
            share: Whether it lies in [0, 1].
        Returns: The estimate; a composite with an axis at 0 has no interval.
        """
        return _estimate_of(key, self.point, self.tasks, share=share)

    def over_seeds(self, key: StatisticKey) -> JackknifeEstimate:
        """Return a share's estimate over *same tasks, new seeds*."""
        return _estimate_of(key, self.point, self.seeds)


def _estimate_of(
    key: StatisticKey, point: Mapping[StatisticKey, float], left_out: LeftOut, *, share: bool = True
) -> JackknifeEstimate:
    """Return the estimate of a statistic, one without a value where it is unknown."""
    clusters, value = left_out.clusters, point.get(key, np.nan)
    zero = key in left_out.composites and value == 0
    return jackknife_estimate(
        value,
        left_out.values.get(key, np.full(len(clusters.stratum), np.nan)),
        clusters,
        left_out.read.get(key),
        units=left_out.units.get(key),
        share=share,
        reason="an axis stands at 0" if zero else None,
    )


def estimate(sample: Sample, axes: Sequence[Axis]) -> ArmEstimates:
    """Return every statistic of a sample with its values without one cluster each.

    An axis that raises is missing, with the reason; the others stand.

    Args:
        sample: Counted episodes of one agent.
        axes: Axes to estimate.
    Returns: Point estimates and what intervals are read from.
    """
    failed = _passed_over(sample)
    while True:
        try:
            return _estimate(sample, axes, failed)
        except AxisFailure as failure:
            failed[failure.symbol] = Coverage(0, len(sample.table), str(failure))


def point_estimates(sample: Sample, axes: Sequence[Axis]) -> Mapping[StatisticKey, float]:
    """Return every statistic of a sample, without what intervals are read from.

    Args:
        sample: Counted episodes of one agent.
        axes: Axes to estimate.
    Returns: Their values; those of axes that raise are left out.
    """
    failed = _passed_over(sample)
    while True:
        try:
            return _collect(sample, axes, failed).source.point()
        except AxisFailure as failure:
            failed[failure.symbol] = Coverage(0, len(sample.table), str(failure))


def _passed_over(sample: Sample) -> dict[str, Coverage]:
    """Return the axes without evidence where sandboxes were not apart, by symbol."""
    if not sample.shared_root:
        return {}
    reason = f"{NOT_APART}: {sample.shared_root}"
    return {s: Coverage(0, len(sample.table), reason) for s in OF_APART}


class _Collected(NamedTuple):
    """What was added to a table, and the source that reads statistics from it."""

    source: "_Source"
    coverage: Mapping[str, Coverage]
    grid: composites.FrontierGrid
    curves: tuple[DriftCurve, ...]
    cognition: CognitiveCoverage
    projects: ProjectOutcomes


def _collect(sample: Sample, axes: Sequence[Axis], failed: Mapping[str, Coverage]) -> _Collected:
    """Add every column to a table; AxisFailure for one more axis that fails.

    Args:
        sample: Counted episodes of one agent.
        axes: Axes to estimate.
        failed: Coverage of axes that failed, by symbol.
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
    parts: list[_Part] = [partial(_axis_statistics, axis, sample) for axis in present]
    parts.append(partial(composites.frontier_statistics, grid=grid))
    means = [key for curve in curves for key in curve.keys]
    means += [DELIVERED] * bool(projects.number)
    parts += [partial(_mean, key) for key in means]
    parts += [partial(_pooled_mean, key) for key in cognition.keys]
    made_of = composites.made_of([axis.symbol for axis in present], sample.protocol)
    source = _Source(parts, made_of, table.columns(), units, sample)
    return _Collected(source, coverage, grid, curves, cognition, projects)


def _estimate(sample: Sample, axes: Sequence[Axis], failed: Mapping[str, Coverage]) -> ArmEstimates:
    """Return every statistic but those of axes that failed."""
    collected = _collect(sample, axes, failed)
    units, source = collected.source.units, collected.source
    return ArmEstimates(
        point=source.point(),
        tasks=source.without_each(task_clusters(units)),
        seeds=source.without_each(repeat_clusters(units)),
        coverage=collected.coverage,
        grid=collected.grid,
        curves=collected.curves,
        cognition=collected.cognition,
        projects=collected.projects,
        smallest=int(np.unique(units.family, return_counts=True)[1].min()),
    )


def _mean(key: StatisticKey, totals: Totals) -> StatisticArrays:
    return {key: totals.overall_mean(key.column)}


def _share_of(
    key: StatisticKey, part: StatisticKey, rest: StatisticKey, totals: Totals
) -> StatisticArrays:
    one, other = totals.overall_mean(part.column), totals.overall_mean(rest.column)
    nothing = np.full_like(one, np.nan)
    return {key: np.divide(one, one + other, out=nothing, where=one + other > 0)}


def _pooled_mean(key: StatisticKey, totals: Totals) -> StatisticArrays:
    return {key: totals.pooled_mean(key.column)}


def _axis_statistics(axis: Axis, sample: Sample, totals: Totals) -> StatisticArrays:
    with _named(axis, "the raw statistic"):
        raw = axis.raw_statistic(totals, sample)
        _check_statistic("the raw statistic", raw, totals)
    with _named(axis, "the calibration"):
        anchors = axis.anchor_bounds(totals, sample)
        value, (low, high) = axis.value(raw, anchors), anchors
        factor = np.ones_like(value) if axis.factor is None else axis.factor(totals, sample)
        value = value * factor
    statistics = {
        StatisticKey(axis.symbol): value,
        StatisticKey(axis.symbol, "raw"): raw,
        StatisticKey(axis.symbol, "low"): low,
        StatisticKey(axis.symbol, "high"): high,
        StatisticKey(axis.symbol, "factor"): factor,
    }
    with _named(axis, "a secondary statistic"):
        for name, values in axis.secondary(totals, sample).items():
            _check_statistic(f"`{name}`", values, totals)
            statistics[StatisticKey(axis.symbol, "beside", name)] = values
    return statistics


def _check_statistic(name: str, values: Any, totals: Totals) -> None:
    """Refuse a statistic that does not have one value per resample."""
    due, got = (len(totals.table),), np.shape(values)
    if got != due:
        raise ScoringError(
            f"{name} must be an array of shape {due}, one value a resample, got shape {got}."
        )


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
    for measure, label, values, mask in cases:
        played = tuple(sorted({d for d in table.delta[mask].tolist() if d == d}))
        rows = [mask & (table.delta == delta) for delta in played]
        used = tuple(int(row.sum()) for row in rows)
        curve = DriftCurve(measure, f"{measure} by drift magnitude", label, played, used)
        for key, row in zip(curve.keys, rows, strict=True):
            statistics.add_mean(key.column, values, row)
        curves.append(curve)
    return tuple(curves)


def task_estimates(
    sample: Sample,
    statistics: StatisticsTable,
    means: Sequence[StatisticKey],
    shares: Mapping[StatisticKey, tuple[StatisticKey, StatisticKey]] = {},
) -> Mapping[StatisticKey, JackknifeEstimate]:
    """Return weighted means over families, with intervals over *tasks like these*.

    Args:
        sample: Counted episodes of one agent.
        statistics: Table that holds the columns.
        means: Keys whose columns were added by `add_mean`.
        shares: By key of a share a / (a + b) of two of these means, the two keys.
    Returns: Estimates of shares.
    """
    parts: list[_Part] = [partial(_mean, key) for key in means]
    parts += [partial(_share_of, key, *pair) for key, pair in shares.items()]
    units = statistics.units
    source = _Source(parts, {}, statistics.columns(), units, sample)
    point, tasks = source.point(), source.without_each(task_clusters(units))
    return {key: _estimate_of(key, point, tasks) for key in (*means, *shares)}


_Part = Callable[[Totals], StatisticArrays]


class _Source(NamedTuple):
    """Parts that read statistics from totals; composites are made of their values.

    `made_of` maps the name of a composite to the symbols of its axes.
    """

    parts: Sequence[_Part]
    made_of: Mapping[str, tuple[str, ...]]
    columns: Columns
    units: ResamplingUnits
    sample: Sample

    def point(self) -> dict[StatisticKey, float]:
        """Return the statistics of all units."""
        statistics = self._read(self._whole_totals())
        return {key: float(values[0]) for key, values in statistics.items()}

    def without_each(self, clusters: Clusters) -> LeftOut:
        """Return the statistics without each cluster, and the clusters they read."""
        family, weights = self.units.unit_family, self.sample.weights
        chunks = without_each(self.columns, clusters, family, weights)
        parts = [self._read(totals) for totals in chunks]
        values = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        read = self._clusters_read(clusters)
        units = {key: clusters.count(mask) for key, mask in read.items()}
        for name, symbols in self.made_of.items():
            key, axes = StatisticKey(name), [StatisticKey(symbol) for symbol in symbols]
            counts = [units[axis] for axis in axes if units[axis]]
            units[key] = min(counts, default=0)  # R reads sets of its own
            read[key] = np.logical_or.reduce([read[axis] for axis in axes])
        indices = frozenset(map(StatisticKey, self.made_of))
        return LeftOut(clusters, values, read, units, indices)

    def _whole_totals(self) -> Totals:
        ones = np.ones((1, len(self.units.task)))
        family, weights = self.units.unit_family, self.sample.weights
        return weighted_totals(ones, self.columns, family, weights)

    def _read(self, totals: Totals) -> StatisticArrays:
        statistics: StatisticArrays = {}
        for part in self.parts:
            statistics |= part(totals)
        symbols = [symbol for axes in self.made_of.values() for symbol in axes]
        axes = {symbol: statistics[StatisticKey(symbol)] for symbol in symbols}
        protocol = self.sample.protocol
        indices = composites.index_statistics(axes, protocol.index)
        indices |= composites.embodied_index(axes, protocol.robotics)
        return statistics | {StatisticKey(name): values for name, values in indices.items()}

    def _clusters_read(self, clusters: Clusters) -> dict[StatisticKey, Flags]:
        """Return by statistic which clusters hold something that it reads."""
        filled = np.zeros((len(clusters.stratum), self.columns.table.shape[1]), dtype=np.bool_)
        np.logical_or.at(filled, clusters.of, (self.columns.table != 0)[clusters.members])
        masks: dict[StatisticKey, Flags] = {}
        totals = self._whole_totals()
        for part in self.parts:
            totals.read.clear()
            keys = part(totals)
            places = [self.columns.names[name] for name in totals.read]
            mask: Flags = np.asarray(filled[:, places].any(axis=1))
            masks.update(dict.fromkeys(keys, mask))
        return masks
