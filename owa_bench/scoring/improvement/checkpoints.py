"""Checkpoints of a campaign: resources, capability and every axis day by day."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from scipy import stats

from owa_bench.records.observables import NO_DAY, Flags, Floats, Observables
from owa_bench.records.plan import BootstrapSpec
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable, ClosureResult, Curve, KappaScore
from owa_bench.scoring.axis import Axis
from owa_bench.scoring.estimates import ArmEstimates, estimate
from owa_bench.scoring.gate_statistics import FamilyQuality, family_qualities
from owa_bench.scoring.improvement.curvature import Curvature, curvature
from owa_bench.scoring.maintenance import Day
from owa_bench.scoring.sample import Sample

DYNAMIC, AREA = "AAI_dyn", "AUF"
_POINT = BootstrapSpec(resamples=1)


class CheckpointSeries(NamedTuple):
    """Checkpoints of one agent in order of days.

    `spent` is cumulative agent-initiated cost in kappa units, `quality` maps a family
    to its mean quality at each checkpoint. `total` is agent and human cost in kappa
    units, `floor` a family's lower bound at the last checkpoint.
    """

    days: tuple[int, ...]
    spent: Floats
    unit: float
    quality: Mapping[str, Floats]
    reason: str | None = None
    total: Floats = np.zeros(0)
    floor: Mapping[str, float] = {}


def checkpoint_series(
    table: Observables, families: tuple[str, ...], gate_level: float = 0.95
) -> CheckpointSeries:
    """Return the checkpoints of a campaign.

    Only the agent stream counts; one kappa unit is the cheapest cost, help left out,
    at which the frozen snapshot was run once.

    Args:
        table: the arm's episodes, practice and checkpoints.
        families: the families whose quality is read.
        gate_level: one-sided level of each family's lower bound.

    Returns:
        The series; without checkpoints or priced costs it says why.
    """
    marks = table.phase == "checkpoint"
    days = sorted(set(table.day[marks & (table.day != NO_DAY)].tolist()))
    if not days:
        why = "no checkpoints: not a campaign"
        return CheckpointSeries((), np.zeros(0), 0.0, {}, why)
    quality = {family: _means(table, marks, days, family) for family in families}
    own = table.cost_agent + table.cost_evaluation - table.cost_checked_help
    passes = [float(own[marks & (table.day == day)].sum()) for day in days]
    spent = np.array([float(table.cost_agent[table.day <= d].sum()) for d in days])
    human = np.array([float(table.cost_human[table.day <= d].sum()) for d in days])
    unit, total = min(passes), spent
    reason: str | None = None
    if np.isnan(spent).any() or np.isnan(passes).any():
        gaps = table.usage_gaps()
        reason = "the price card leaves a cost unknown"
        reason = f"a cost is unknown: {gaps}" if gaps else reason
    elif unit <= 0:
        reason = "a checkpoint costs nothing under this price card: no kappa unit"
    else:
        spent = spent / unit
        total = spent + human / unit
    last = marks & (table.day == days[-1])
    floor = {family: _floor(table, last, family, gate_level) for family in families}
    return CheckpointSeries(tuple(days), spent, unit, quality, reason, total, floor)


def _floor(table: Observables, rows: Flags, family: str, level: float) -> float:
    """Return the one-sided lower bound of a family's mean over tasks, NaN below 2."""
    here = rows & (table.family == family)
    pairs, code = np.unique(table.pair[here], return_inverse=True)
    if len(pairs) < 2:
        return math.nan
    means = np.bincount(code, table.q[here]) / np.bincount(code)
    error = float(means.std(ddof=1)) / math.sqrt(len(pairs))
    return float(means.mean()) - float(stats.t.ppf(level, len(pairs) - 1)) * error


def _means(table: Observables, marks: Flags, days: list[int], family: str) -> Floats:
    rows = [marks & (table.day == day) & (table.family == family) for day in days]
    return np.array([table.q[r].mean() if r.any() else math.nan for r in rows])


class DailyEstimates(NamedTuple):
    """Estimates of each checkpoint alone, NaN where not computable.

    `values` maps an axis symbol, AAI_dyn and AUF to its series, `frontier` holds the
    fitted frontier of a day, `families` mean and error of each family's quality.
    """

    values: Mapping[str, Floats]
    frontier: tuple[tuple[float, ...], ...]
    families: tuple[Mapping[str, FamilyQuality], ...]

    @property
    def dynamic(self) -> Floats:
        """AAI_dyn at each checkpoint."""
        return self.values[DYNAMIC]


class DayEstimator(NamedTuple):
    """Estimates single checkpoint days of one arm."""

    table: Observables
    axes: Sequence[Axis]
    sample_of: Callable[[Observables], Sample]
    spec: BootstrapSpec
    root: str

    def _sample(self, day: int) -> Sample:
        rows = (self.table.phase == "checkpoint") & (self.table.day == day)
        return self.sample_of(self.table.take(rows))

    def _estimate(self, sample: Sample, spec: BootstrapSpec) -> ArmEstimates | None:
        if not len(sample.table):
            return None
        return estimate(sample, self.axes, spec, self.root, seeds=False)

    def points(self, days: Sequence[int]) -> DailyEstimates:
        """Return the axes, AAI_dyn and the frontier of every day."""
        samples = [self._sample(day) for day in days]
        found = [self._estimate(sample, _POINT) for sample in samples]
        points = [one.point if one else {} for one in found]
        names = (DYNAMIC, AREA, *(axis.symbol for axis in self.axes))
        columns = [[point.get(name, np.nan) for point in points] for name in names]
        return DailyEstimates(
            values=dict(zip(names, np.array(columns, dtype=float), strict=True)),
            frontier=tuple(_fitted(point) for point in points),
            families=tuple(family_qualities(sample) for sample in samples),
        )

    def resampled(self, day: int) -> Day | None:
        """Return one day's AAI_dyn with resamples, None where not computable.

        Equal instances give equal weights, so that days are compared in pairs.
        """
        sample = self._sample(day)
        found = self._estimate(sample, self.spec)
        if found is None or DYNAMIC not in found.point or DYNAMIC not in found.tasks:
            return None
        table = sample.table
        rows = zip(table.pair.tolist(), table.repeat.tolist(), strict=True)
        units = tuple(sorted({f"{pair}/{repeat}" for pair, repeat in rows}))
        return Day(found.point[DYNAMIC], found.tasks[DYNAMIC], found.by_tasks, units)


def _fitted(point: Mapping[str, float]) -> tuple[float, ...]:
    """Return the fitted frontier by rising demand, nothing without one."""
    places = (f"F/fit/{i}" for i in range(len(point)))
    return tuple(point[name] for name in takewhile(point.__contains__, places))


class FrozenControl(NamedTuple):
    """The same checkpoints played by the frozen control: nothing learnt is kept."""

    points: CheckpointSeries
    daily: DailyEstimates


class CampaignWindow(NamedTuple):
    """The checkpoints of one arm with everything measured at them.

    `flow` is the axis R of the run, None without evidence; `frozen` the control.
    """

    points: CheckpointSeries
    daily: DailyEstimates
    frozen: FrozenControl | None
    table: Observables
    closures: Mapping[str, ClosureResult]
    kappas: tuple[KappaScore, ...]
    flow: float | None
    protocol: Protocol
    resamples: int
    root: str

    @property
    def level(self) -> float:
        """Two-sided level of intervals."""
        return self.protocol.statistics.level

    def curvature_of(self, values: Floats, link: str) -> Curvature:
        """Return the curvature of a series on the agent's spending.

        Args:
            values: (checkpoints,) capabilities.
            link: name of the link.

        Returns:
            Slope and curvature with their intervals.
        """
        return curvature(
            self.points.spent,
            values,
            link,
            self.protocol.improvement,
            level=self.level,
            resamples=self.resamples,
            root=self.root,
        )


class Dynamics(NamedTuple):
    """An arm's dynamics: curvature by link, responses by axis, tables and curves."""

    bends: Mapping[str, Curvature] = {}
    innovation: float | None = None
    link_steps: int | None = None
    score: float | None = None
    responses: Mapping[str, float] = {}
    tables: tuple[CellTable, ...] = ()
    curves: tuple[Curve, ...] = ()


def closures_hold(closures: Mapping[str, ClosureResult]) -> bool | None:
    """Return whether both closures hold; None: not every one was tested."""
    states = {closure.status for closure in closures.values()}
    if "FAIL" in states:
        return False
    return True if states == {"PASS"} else None


def yes_or_no(mark: bool | None) -> str:
    """Return a mark in words.

    >>> yes_or_no(True), yes_or_no(None)
    ('yes', 'NO EVIDENCE')
    """
    return {True: "yes", False: "no", None: "NO EVIDENCE"}[mark]
