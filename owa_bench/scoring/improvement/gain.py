"""Total gain of a campaign: its last mornings against the frozen control, task by task.

The gate of kappa reads it. A slope over days takes a memory that changed once, for better or worse
by luck of the tasks, for a trend; and it says nothing about how much was gained.
"""

import math
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Improvement
from owa_bench.records.score import TotalGain
from owa_bench.scoring.improvement.checkpoints import CheckpointSeries
from owa_bench.scoring.improvement.curvature import on_link
from owa_bench.scoring.statistics.bootstrap import figure, rounded
from owa_bench.scoring.statistics.distributions import t_quantile, t_tail

_MICRO = 10**6  # micro-USD a USD


class PairedGain(NamedTuple):
    """A gain over the control, its error and degrees of freedom, and p of "there is none"."""

    value: float
    error: float
    freedom: int
    p: float

    def lower(self, level: float) -> float:
        """Return the one-sided lower bound."""
        return self.value - t_quantile(level, self.freedom) * self.error


def paired_gain(own: Floats, frozen: Floats) -> PairedGain:
    """Return the gain of a lane over its frozen control, paired by task and day.

    Formula:
        g = mean over tasks and days of (own - frozen)
        se^2 = s_days^2 / days + s_tasks^2 / tasks, s the spread of the means by day and
        by task; t on the fewer of days - 1 and tasks - 1
        p one-sided, at least 2^-tasks: the sign test's where all tasks gain alike
    Shapes: two arrays (tasks, days). Units: capability.
    Missing: none. Errors: ScoringError if shapes differ, a value is not finite, or there
        are fewer than two tasks or days.
    Source: [R] docs/scoring.md#kappa.

    >>> own = np.array([[0.6, 0.8], [0.5, 0.5], [0.9, 0.9]])
    >>> round(paired_gain(own, own - 0.1).value, 9), paired_gain(own, own - 0.1).p
    (0.1, 0.125)
    """
    if own.shape != frozen.shape or own.ndim != 2 or min(own.shape) < 2:
        raise ScoringError(
            f"A gain needs two tasks and days of both lanes, got {own.shape} and {frozen.shape}."
        )
    if not np.isfinite(own + frozen).all():
        raise ScoringError("A gain cannot read NaN or infinity: leave the task out.")
    gaps = np.round(own - frozen, 12)
    variances = [
        float(np.round(gaps.mean(axis=axis), 12).var(ddof=1)) / gaps.shape[1 - axis]
        for axis in (0, 1)
    ]
    value, error = float(gaps.mean()), math.sqrt(sum(variances))
    freedom = min(gaps.shape) - 1
    p = float(t_tail(value / error, freedom)) if error else (1 - np.sign(value)) / 2
    return PairedGain(value, error, freedom, max(float(p), 2.0 ** -len(gaps)))


def total_gain(
    family: str, points: CheckpointSeries, frozen: CheckpointSeries | None, rules: Improvement
) -> TotalGain:
    """Return what a family gained by the last mornings of the window, per unit spent.

    Formula:
        `paired_gain` of the last `gain_days` days that count; over the mean of R then,
        in kappa units; on the logit link the difference of both means' logits
    Shapes: series of checkpoints; a record. Units: capability, kappa units, USD.
    Missing: a reason without a frozen control on these days, or with fewer than two
        tasks that both played on all of them; no logit where a mean is 0.
    Errors: none. Source: [R] docs/scoring.md#kappa.

    Args:
        family: Family of the checkpoints.
        points: The agent's checkpoints.
        frozen: Those of its frozen control.
        rules: Published numbers.
    """
    place = list(points.counted[-rules.gain_days :])
    days = [points.days[k] for k in place]
    if frozen is None or not set(days) <= set(frozen.days):
        return TotalGain(reason="no frozen control was played on the last mornings")
    there = [frozen.days.index(day) for day in days]
    own, other = points.cells[family], frozen.cells[family]
    _, mine, its = np.intersect1d(own.tasks, other.tasks, return_indices=True)
    pair = np.stack((own.means[mine][:, place], other.means[its][:, there]))
    pair = pair[:, np.isfinite(pair).all(axis=(0, 2))]
    if min(pair.shape[1:]) < 2:
        return TotalGain(reason="fewer than two tasks were played on the last mornings by both")
    found, units = paired_gain(*pair), float(points.spent[place].mean())
    logits = on_link(pair.mean(axis=(1, 2)), "logit", rules.link_clip)
    return TotalGain(
        value=figure(found.value),
        low=figure(found.lower(1 - rules.alpha)),
        p=rounded(found.p),
        units=figure(units),
        usd=figure(units * points.unit / _MICRO),
        unit_usd=figure(points.unit / _MICRO),
        per_unit=figure(found.value / units),
        logit_per_unit=figure(float(logits[0] - logits[1]) / units),
        days=len(days),
        tasks=pair.shape[1],
    )
