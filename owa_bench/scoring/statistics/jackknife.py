"""Jackknife: the interval of any statistic from its values without one cluster each.

A cluster is a task within its family and, where the estimand spans days, a day too: days that play
the same tasks tell nothing about other tasks, so both errors enter. For *same tasks, new seeds* a
cluster is a repeat within its task. Days are correlated, tasks are not. Shares are treated on the
logit scale, positive amounts on the log scale. Nothing is drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from owa_bench.records.observables import NO_DAY, NO_UNIT, Flags, Floats, Integers
from owa_bench.records.score import Interval
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.distributions import t_quantile
from owa_bench.scoring.statistics.slopes import MEAN_METHOD, mean_level
from owa_bench.scoring.statistics.statistics_table import Columns, ResamplingUnits, Totals

_CELLS_AT_ONCE = 4_000_000  # sums a chunk at most: 32 MB
_SAME = 1e-9  # relative difference below which two values are one and the same
TASKS = "tasks like these"
SEEDS = "same tasks, new seeds"
_FLAT = "no cluster differs from another: alpha^(1 / clusters)"


class Clusters(NamedTuple):
    """Clusters of units, and the strata of clusters.

    Attributes:
        label: What the interval is about, "tasks like these".
        noun: What a cluster is that is no day, in the plural.
        of: (memberships,) the cluster of each membership of a unit.
        stratum: (clusters,) stratum of each cluster.
        single: Why there is no interval where a stratum holds one cluster.
        days: (clusters,) the day of each, rising, where clusters are days; NO_DAY of
            those that are tasks.
        unit: (memberships,) the unit of each; None: every unit has one, in order.
    """

    label: str
    noun: str
    of: Integers
    stratum: Integers
    single: str
    days: Integers | None = None
    unit: Integers | None = None

    @property
    def members(self) -> Integers:
        """The unit of each membership."""
        return np.arange(len(self.of)) if self.unit is None else self.unit

    def count(self, read: Flags) -> int:
        """Return the clusters of an exact bound: the fewer of days and tasks.

        Args:
            read: (clusters,) whether a statistic reads a cluster.
        """
        dated = read & (np.zeros_like(read) if self.days is None else self.days != NO_DAY)
        kinds = [int(dated.sum()), int((read & ~dated).sum())]
        return min((number for number in kinds if number), default=0)


def task_clusters(units: ResamplingUnits) -> Clusters:
    """Return the clusters of *tasks like these*: tasks, and days if there are two.

    Tasks are in a stratum a family; tasks of one body of a fleet are one cluster, for they are
    alike, in a stratum of bodies. Where no task is played on two days, a unit with a day is in
    the cluster of its day alone, which holds the whole of its task.

    Args:
        units: The units.
    """
    dated = units.day != NO_DAY
    days, day = np.unique(units.day[dated], return_inverse=True)
    one_task = "a family holds one task"
    if len(days) < 2:
        if units.body is not None and (units.body != NO_UNIT).any():
            return _with_bodies(units, units.body, one_task)
        return Clusters(TASKS, "tasks", units.task, units.family, one_task)
    cells = np.unique(np.stack((units.task, units.day))[:, dated], axis=1)
    again = bool(np.bincount(cells[0]).max() > 1)
    by_task = ~dated | again
    tasks, task = np.unique(units.task[by_task], return_inverse=True)
    single = f"one day was played, or {one_task}" if len(tasks) else "one day was played"
    return Clusters(
        TASKS,
        "tasks",
        of=np.concatenate((day.reshape(-1), len(days) + task.reshape(-1))),
        stratum=np.concatenate((np.zeros_like(days), 1 + units.family[tasks])),
        single=single,
        days=np.concatenate((days, np.full(len(tasks), NO_DAY))),
        unit=np.concatenate((np.flatnonzero(dated), np.flatnonzero(by_task))),
    )


def _with_bodies(units: ResamplingUnits, body_of: Integers, one_task: str) -> Clusters:
    """Return the clusters of tasks, those of one body together.

    Args:
        units: The units.
        body_of: (tasks,) the body of each, or NO_UNIT.
        one_task: Why there is no interval where a family holds one task.
    """
    embodied = body_of != NO_UNIT
    bodies, body = np.unique(body_of[embodied], return_inverse=True)
    of_task = np.cumsum(~embodied) - 1
    loose = int((~embodied).sum())
    of_task[embodied] = loose + body.reshape(-1)
    apart = np.full(len(bodies), len(units.families))
    stratum = np.concatenate((units.family[~embodied], apart))
    noun = "tasks and units" if loose else "units of the fleet"
    single = f"{one_task}, or one unit was played" if loose else "one unit was played"
    return Clusters(TASKS, noun, of_task[units.task], stratum, single)


def repeat_clusters(units: ResamplingUnits) -> Clusters:
    """Return the clusters of *same tasks, new seeds*: repeats within their tasks."""
    keys = np.stack((units.task, units.repeat))
    repeats, of = np.unique(keys, axis=1, return_inverse=True)
    single = "a task was played with one repeat"
    return Clusters(SEEDS, "repeats", of.reshape(-1), repeats[0], single)


def without_each(
    columns: Columns, clusters: Clusters, family: Integers, family_weights: Floats
) -> Iterator[Totals]:
    """Yield, in chunks, the totals of all units but those of one cluster.

    Args:
        columns: Table of (units, c) sufficient statistics.
        clusters: Clusters of each unit.
        family: (units,) family of each unit.
        family_weights: (families,), sum 1.
    Yields: Totals (clusters of the chunk, families, c), in order of the clusters.
    """
    families, width = len(family_weights), columns.table.shape[1]
    count, unit = len(clusters.stratum), clusters.members
    key = clusters.of * families + family[unit]
    order = np.argsort(key, kind="stable")
    cells, starts = np.unique(key[order], return_index=True)
    sums = np.add.reduceat(columns.table[unit[order]], starts, axis=0)
    whole = np.zeros((families, width))
    np.add.at(whole, family, columns.table)
    chunk = max(1, _CELLS_AT_ONCE // max(families * width, 1))
    for first in range(0, count, chunk):
        size = min(chunk, count - first)
        table = np.repeat(whole[None], size, axis=0).reshape(size * families, width)
        here = (cells >= first * families) & (cells < (first + size) * families)
        table[cells[here] - first * families] -= sums[here]
        yield Totals(
            columns.names, table.reshape(size, families, width), family_weights, columns.constants
        )


def covariance(values: Floats, stratum: Integers) -> Floats:
    """Return the jackknife covariance of statistics.

    Formula:
        S = sum over strata h of (n_h - 1) / n_h sum_j d_hj d_hj', d_hj the statistics
        without cluster j of stratum h less their mean over that stratum
    Shapes: `values` (clusters, statistics), `stratum` (clusters,); result
        (statistics, statistics).
    Units: those of the statistics, squared.
    Missing: a stratum of one cluster adds nothing. Errors: none.
    Source: [R] docs/scoring.md#intervals; for a mean, the square of its usual error.

    >>> x = np.array([1.0, 2.0, 6.0])
    >>> covariance((9.0 - x)[:, None] / 2, np.zeros(3, dtype=int)).round(6)
    array([[2.333333]])
    """
    sizes = np.maximum(np.bincount(stratum), 1)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, stratum, values)
    gaps = values - (sums / sizes[:, None])[stratum]
    share = ((sizes - 1) / sizes)[stratum]
    matrix: Floats = (gaps * share[:, None]).T @ gaps
    return matrix


def standard_error(values: Floats, stratum: Integers) -> float:
    """Return the jackknife standard error of one statistic.

    Args:
        values: (clusters,) the statistic without each cluster.
        stratum: (clusters,) stratum of each cluster.
    Returns: The root of its `covariance` with itself.
    """
    return float(np.sqrt(covariance(values[:, None], stratum)[0, 0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class JackknifeEstimate:
    """A statistic with its values without one cluster each, and the interval of it.

    Attributes:
        point: The statistic.
        left_out: (clusters,) the statistic without each cluster that it reads.
        stratum: (clusters,) stratum of each.
        method: Words for the interval: label, clusters, degrees of freedom.
        units: Clusters of the exact bound where all of them are at one value.
        share: Whether the statistic lies in [0, 1]; else it is an amount.
        reason: Why there is no interval.
        days: (clusters,) the day of each, NO_DAY of one that is a task; None where
            no cluster is a day.
    """

    point: float
    left_out: Floats
    stratum: Integers
    method: str
    units: int
    share: bool = True
    reason: str | None = None
    days: Floats | None = None

    def _missing_reason(self) -> str | None:
        if not np.isfinite(self.point):
            return "the statistic is not computable"
        if self.reason:
            return self.reason
        if not self.units:
            return "it reads none of the tasks"
        if not np.isfinite(self.left_out).all():
            return "the statistic is not computable without one of its clusters"
        return None

    def _flat(self) -> bool:
        """Return whether no cluster moves the statistic."""
        gap = np.abs(self.left_out - self.point).max(initial=0.0)
        return bool(gap <= _SAME * max(abs(self.point), 1.0))

    def quantile(self, share: float) -> float:
        """Return the bound below which `share` of the law lies.

        Formula:
            share: logit^-1(logit x + t se), se the `standard_error` of the logits,
            or where one is infinite that of the shares / (x (1 - x)); t on
            sum (n_h - 1); of days t se is the quantile of `slopes.mean_level` of the
            pseudo-values J x - (J - 1) x_j, with the error over tasks in it, on the
            fewer degrees of freedom of both
            no cluster differs: x alpha^(1 / J), x + (1 - x) (1 - alpha^(1 / J)), so
            .05^(1 / J) where all are at 1, which is exact
            amount: exp(log x + t se) where all are positive, else x + t se
        Shapes: scalars. Units: those of the statistic.
        Missing: not to be asked where there is a reason. Errors: none.
        Source: [R] docs/scoring.md#intervals.
        """
        if not self.share:
            return self._amount(share)
        end, alpha = (0.0, share) if share < 1 / 2 else (1.0, 1 - share)
        rare = float(1 - alpha ** (1 / self.units))
        exact = self.point + rare * (end - self.point)
        if self._flat():
            return exact
        if not 0 < self.point < 1:  # cut to a bound, although clusters differ
            linear = self.point + self._reach(self.left_out, share)
            linear = min(max(linear, 0.0), 1.0)
            return min(exact, linear) if share < 1 / 2 else max(exact, linear)
        logits = scipy.special.logit(self.left_out)
        if np.isfinite(logits).all():
            reach = self._reach(logits, share)
        else:
            slope = self.point * (1 - self.point)
            reach = self._reach(self.left_out, share) / slope
        return float(scipy.special.expit(scipy.special.logit(self.point) + reach))

    def _amount(self, share: float) -> float:
        if self.point > 0 and (self.left_out > 0).all():
            reach = self._reach(np.log(self.left_out), share)
            return float(self.point * np.exp(reach))
        return self.point + self._reach(self.left_out, share)

    def _reach(self, left_out: Floats, share: float) -> float:
        """Return how far the quantile of a share lies from the statistic."""
        count = len(left_out)
        if self.days is not None:
            dated = self.days != NO_DAY
            by_day, by_task = left_out[dated], left_out[~dated]
            around = (len(by_day) - 1) * (by_day.mean() - by_day)  # pseudo-values less x
            level = mean_level(around, self.days[dated])
            if len(by_task):
                strata = self.stratum[~dated]
                freedom = len(by_task) - len(np.unique(strata))
                level = level.with_error(standard_error(by_task, strata), freedom)
            return float(level.upper(share))
        freedom = count - len(np.unique(self.stratum))
        return t_quantile(share, freedom) * standard_error(left_out, self.stratum)

    def interval(self, level: float) -> Interval:
        """Return the two-sided interval, or why there is none."""
        reason = self._missing_reason()
        if reason:
            return Interval(method=self.method, reason=reason)
        low, high = self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)
        flat = _FLAT if self._flat() else None
        return Interval(low=figure(low), high=figure(high), method=self.method, reason=flat)

    def lower(self, level: float) -> float | None:
        """Return the one-sided lower bound that gates read, None without one."""
        return None if self._missing_reason() else figure(self.quantile(1 - level))

    def upper(self, level: float) -> float | None:
        """Return the one-sided upper bound, None without one."""
        return None if self._missing_reason() else figure(self.quantile(level))

    def quartiles(self) -> tuple[float, float] | None:
        """Return the quartiles of the law, whose median is the statistic itself."""
        if self._missing_reason():
            return None
        low, high = figure(self.quantile(0.25)), figure(self.quantile(0.75))
        return None if low is None or high is None else (low, high)


def jackknife_estimate(
    point: float,
    left_out: Floats,
    clusters: Clusters,
    read: Flags | None = None,
    *,
    units: int | None = None,
    share: bool = True,
    reason: str | None = None,
) -> JackknifeEstimate:
    """Return an estimate over the clusters that a statistic reads.

    Args:
        point: The statistic.
        left_out: (clusters,) the statistic without each cluster.
        clusters: The scheme.
        read: (clusters,) whether the statistic reads a cluster; None: every one.
        units: Clusters of the exact bound, by default those that are read.
        share: Whether the statistic lies in [0, 1].
        reason: Why there is no interval.
    Returns: The estimate; without an interval where a stratum holds one cluster.
    """
    kept = np.ones(len(clusters.stratum), dtype=np.bool_) if read is None else read
    stratum = np.unique(clusters.stratum[kept], return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(stratum)
    if not reason and (not len(sizes) or sizes.min() < 2):
        reason = clusters.single
    freedom = len(stratum) - len(sizes)
    days = None if clusters.days is None else clusters.days[kept].astype(np.float64)
    if days is not None and (days == NO_DAY).all():
        days = None
    dated = 0 if days is None else int((days != NO_DAY).sum())
    counts = {"days": dated, clusters.noun: len(stratum) - dated}
    over = " and ".join(f"{number} {noun}" for noun, number in counts.items() if number)
    how = f"{freedom} degrees of freedom" if days is None else MEAN_METHOD
    return JackknifeEstimate(
        point=point,
        left_out=left_out[kept],
        stratum=stratum,
        method=f"{clusters.label}: jackknife over {over or f'0 {clusters.noun}'}, {how}",
        units=clusters.count(kept) if units is None else units,
        share=share,
        reason=reason,
        days=days,
    )
