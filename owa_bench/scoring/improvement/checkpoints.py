"""Checkpoints of a campaign: resources, capability and every axis day by day."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import NO_DAY, Flags, Floats, Names, Observables
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable, ClosureResult, Curve, KappaScore
from owa_bench.scoring.axis import Axis
from owa_bench.scoring.closures.maintenance import CLEAN, DRIFTED
from owa_bench.scoring.estimate.estimates import point_estimates
from owa_bench.scoring.estimate.gate_statistics import FamilyQuality, family_qualities
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.improvement.curvature import Curvature, curvature
from owa_bench.scoring.observe.attempt_sets import RevisionEvidence, human_part
from owa_bench.scoring.observe.expert_time import expert_minutes
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.distributions import t_quantile

DYNAMIC, AREA = "AAI_dyn", "AUF"


class FamilyCells(NamedTuple):
    """Mean quality by task and checkpoint (tasks, checkpoints), NaN where it was not played."""

    tasks: Names
    means: Floats

    @property
    def without_each(self) -> Floats | None:
        """The mean over tasks without each (tasks, checkpoints), None where that is unknown."""
        count = len(self.tasks)
        if count < 2 or np.isnan(self.means).any():
            return None
        left: Floats = (self.means.sum(axis=0) - self.means) / (count - 1)
        return left


class CheckpointSeries(NamedTuple):
    """Checkpoints of one agent in order of days.

    `spent` is cumulative agent-initiated cost in kappa units, `quality` maps a family to its mean
    quality at each checkpoint, `cells` to that of each of its tasks. `total` is agent and human
    cost in kappa units, `floor` a family's lower bound at the last checkpoint. `counted` are the
    places of the longest run of consecutive days with enough practice and new spending; `human`
    says which part humans had up to its end, "" if none.
    """

    days: tuple[int, ...]
    spent: Floats
    unit: float
    quality: Mapping[str, Floats]
    reason: str | None = None
    total: Floats = np.zeros(0)
    floor: Mapping[str, float] = {}
    counted: tuple[int, ...] = ()
    human: str = ""
    cells: Mapping[str, FamilyCells] = {}


def kappa_unit(table: Observables, protocol: Protocol, prices: PriceCard) -> float:
    """Return one kappa unit, the same for everybody who plays the same checkpoints.

    Formula:
        .1 [D] x sum over the checkpoint's unaided episodes of an expert's minutes x price of
        a minute
    Shapes: a table of episodes; a scalar. Units: micro-USD.
    Missing: NaN where the card has no price of a supervisor's minute, or no work is stated.
    Errors: none. Source: [D] docs/scoring.md#kappa.
    """
    marks = _unaided(table)
    days = np.unique(table.day[marks])
    each = expert_minutes(table, protocol.economics)
    passes = [math.fsum(each[marks & (table.day == day)]) for day in days]
    most = max(passes, default=0.0)
    cost = None if math.isnan(most) else prices.cost("supervisor_min", most)
    return math.nan if cost is None else protocol.improvement.unit_share * cost


def _unaided(table: Observables) -> Flags:
    """Return the checkpoint episodes without help: one pass a day over its tasks."""
    marks = (table.phase == "checkpoint") & (table.day != NO_DAY)
    unaided: Flags = marks & (table.interventions == 0) & (table.calendar == "")
    return unaided


def checkpoint_series(
    table: Observables,
    families: tuple[str, ...],
    protocol: Protocol,
    prices: PriceCard,
    lost: Mapping[int, float] = {},
) -> CheckpointSeries:
    """Return the checkpoints of a campaign.

    Only the agent stream counts: all that could change the state of the lane, attempts that the
    harness lost included; checkpoints are copies and cost the evaluation.

    Args:
        table: the arm's episodes, practice and checkpoints.
        families: the families whose quality is read.
        protocol: published numbers.
        prices: the price card.
        lost: micro-USD of lost attempts of the agent, by day.
    Returns: The series; without checkpoints or priced costs it says why.
    """
    marks = _unaided(table)
    days = sorted(set(table.day[marks].tolist()))
    if not days:
        why = "no checkpoints: not a campaign"
        return CheckpointSeries((), np.zeros(0), 0.0, {}, why)
    quality = {family: _means(table, marks, days, family) for family in families}
    unit = kappa_unit(table, protocol, prices)
    dated = table.day != NO_DAY  # the rest is played once, outside the lane
    spent = np.array(
        [
            float(table.cost_agent[dated & (table.day <= day)].sum())
            + sum(cost for when, cost in lost.items() if when <= day)
            for day in days
        ]
    )
    human = np.array([float(table.cost_human[dated & (table.day <= day)].sum()) for day in days])
    reason: str | None = None
    if np.isnan(spent).any():
        gaps = table.usage_gaps()
        reason = "the price card leaves a cost unknown"
        reason = f"a cost is unknown: {gaps}" if gaps else reason
    elif not unit > 0:
        reason = "an expert's pass over the checkpoint has no price: no kappa unit"
    else:
        spent, human = spent / unit, human / unit
    last = marks & (table.day == days[-1])
    level = protocol.statistics.gate_level
    counted = _counted_days(table, days, spent, protocol.improvement.practice_min)
    inside = table.day <= (days[counted[-1]] if counted else NO_DAY)
    return CheckpointSeries(
        days=tuple(days),
        spent=spent,
        unit=unit,
        quality=quality,
        reason=reason,
        total=spent + human,
        floor={family: _floor(table, last, family, level) for family in families},
        counted=counted,
        human=human_part(table.take(inside & (table.phase == "practice"))),
        cells={family: _cells(table, marks, days, family) for family in families},
    )


def _counted_days(
    table: Observables, days: Sequence[int], spent: Floats, least: int
) -> tuple[int, ...]:
    """Return the places of the longest run of consecutive days that count."""
    practice = table.phase == "practice"
    before = np.concatenate(([0.0], spent[:-1]))
    best: list[int] = []
    run: list[int] = []
    for place, day in enumerate(days):
        fresh = (practice & (table.day == day)).sum() >= least
        fresh = fresh and spent[place] > before[place]
        next_day = bool(run) and day == days[run[-1]] + 1
        run = [*(run if next_day else ()), place] if fresh else []
        best = run if len(run) >= len(best) else best
    return tuple(best)


def _floor(table: Observables, rows: Flags, family: str, level: float) -> float:
    """Return the one-sided lower bound of a family's mean over tasks, NaN below 2."""
    here = rows & (table.family == family)
    pairs, code = np.unique(table.pair[here], return_inverse=True)
    if len(pairs) < 2:
        return math.nan
    means = np.bincount(code, table.q[here]) / np.bincount(code)
    error = float(means.std(ddof=1)) / math.sqrt(len(pairs))
    return float(means.mean()) - t_quantile(level, len(pairs) - 1) * error


def _cells(table: Observables, marks: Flags, days: list[int], family: str) -> FamilyCells:
    """Return the mean quality of each task of a family at each checkpoint."""
    rows = marks & (table.family == family)
    tasks, task = np.unique(table.pair[rows], return_inverse=True)
    cell = task.reshape(-1), np.searchsorted(days, table.day[rows])
    sums, counts = np.zeros((2, len(tasks), len(days)))
    np.add.at(sums, cell, table.q[rows])
    np.add.at(counts, cell, 1.0)
    nothing = np.full_like(sums, np.nan)
    return FamilyCells(tasks, np.divide(sums, counts, out=nothing, where=counts > 0))


def _means(table: Observables, marks: Flags, days: list[int], family: str) -> Floats:
    rows = [marks & (table.day == day) & (table.family == family) for day in days]
    return np.array([table.q[r].mean() if r.any() else math.nan for r in rows])


class DailyEstimates(NamedTuple):
    """Estimates of each checkpoint alone, NaN where not computable.

    `values` maps an axis symbol, AAI_dyn and AUF to its series, `frontier` holds the fitted
    frontier of a day, `families` mean and error of each family's quality.
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

    def _sample(self, day: int) -> Sample:
        rows = (self.table.phase == "checkpoint") & (self.table.day == day)
        return self.sample_of(self.table.take(rows))

    def points(self, days: Sequence[int]) -> DailyEstimates:
        """Return the axes, AAI_dyn and the frontier of every day."""
        samples = [self._sample(day) for day in days]
        points = [
            point_estimates(sample, self.axes) if len(sample.table) else {} for sample in samples
        ]
        names = (DYNAMIC, AREA, *(axis.symbol for axis in self.axes))
        columns = [[point.get(StatisticKey(name), np.nan) for point in points] for name in names]
        return DailyEstimates(
            values=dict(zip(names, np.array(columns, dtype=float), strict=True)),
            frontier=tuple(_fitted_frontier(point) for point in points),
            families=tuple(family_qualities(sample) for sample in samples),
        )

    def lane_ratios(self) -> dict[str, float | None]:
        """Return axes and AAI_dyn of the drifted lane over the clean one, by name."""
        lanes: dict[str, Mapping[StatisticKey, float]] = {}
        for name in (CLEAN, DRIFTED):
            rows = self.table.take(self.table.condition == name)
            plain = replace(rows, condition=np.full(len(rows), ""))
            sample = self.sample_of(plain)
            lanes[name] = point_estimates(sample, self.axes) if len(sample.table) else {}
        ratios: dict[str, float | None] = {}
        for symbol in (DYNAMIC, "A", "G", "P", "W"):
            key = StatisticKey(symbol)
            clean, drifted = (lanes[name].get(key, math.nan) for name in (CLEAN, DRIFTED))
            ratios[symbol] = figure(drifted / clean) if clean > 0 else None
        return ratios


def _fitted_frontier(point: Mapping[StatisticKey, float]) -> tuple[float, ...]:
    """Return the fitted frontier by rising demand, nothing without one."""
    keys = (StatisticKey("F", "fit", place=i) for i in range(len(point)))
    return tuple(point[key] for key in takewhile(point.__contains__, keys))


class FrozenControl(NamedTuple):
    """The same checkpoints played by the frozen control: nothing learnt is kept."""

    points: CheckpointSeries
    daily: DailyEstimates


class CampaignWindow(NamedTuple):
    """The checkpoints of one arm with everything measured at them.

    `flow` is the axis R of the run, None without evidence; `frozen` the control; `practised`
    what the attempt sets of practice show.
    """

    points: CheckpointSeries
    daily: DailyEstimates
    frozen: FrozenControl | None
    table: Observables
    closures: Mapping[str, ClosureResult]
    kappas: tuple[KappaScore, ...]
    flow: float | None
    protocol: Protocol
    practised: RevisionEvidence | None = None

    @property
    def level(self) -> float:
        """Two-sided level of intervals."""
        return self.protocol.statistics.level

    def curvature_of(self, values: Floats, link: str) -> Curvature:
        """Return the curvature of a series on the agent's spending.

        Args:
            values: (checkpoints,) capabilities.
            link: name of the link.
        Returns: Slope and curvature with their intervals.
        """
        return curvature(
            self.points.spent,
            values,
            link,
            self.protocol.improvement,
            level=self.level,
            days=np.array(self.points.days, dtype=np.float64),
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
