"""Means over episodes with their intervals over tasks, for descriptive tables."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from owa_bench.records.observables import Floats
from owa_bench.records.score import Interval
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.jackknife import Clusters, jackknife_estimate

_LEVEL = 0.95


def task_of(pair: str) -> str:
    """Return the task that an episode belongs to, under any drift, help and repeat.

    Args:
        pair: The plan's name of its world.
    Returns: The pair; of a world of a trial the trial, which one memory goes through.

    >>> task_of("trial/cartpole3d@3/balance/T1/0000/0007")
    'trial/cartpole3d@3/balance/T1/0000'
    """
    return pair.rpartition("/")[0] if pair.startswith("trial/") else pair


def interval_columns(*names: str) -> tuple[str, ...]:
    """Return the columns of figures: each, and the two ends of its interval."""
    return tuple(f"{name}{end}" for name in names for end in ("", " low", " high"))


def mean_over_tasks(
    values: Floats, tasks: NDArray[Any], *, share: bool = True
) -> tuple[float | None, float | None, float | None]:
    """Return a mean over episodes and its 95 percent interval over tasks.

    Formula:
        x = sum(v) / n; without task j: (sum(v) - sum_j(v)) / (n - n_j)
    Shapes: `values` and `tasks` (episodes,). Units: those of the values.
    Missing: no ends where one task was played, nothing where a value is NaN.
    Errors: none. Source: docs/scoring.md#intervals.

    >>> mean_over_tasks(np.array([1.0, 1.0, 1.0]), np.array([0, 1, 2]))
    (1.0, 0.2924018, 1.0)
    """
    interval = estimate_over_tasks(values, tasks, share=share)
    return figure(float(values.mean())), interval.low, interval.high


def estimate_over_tasks(values: Floats, tasks: NDArray[Any], *, share: bool = True) -> Interval:
    """Return the interval of `mean_over_tasks`, or why there is none.

    Args:
        values: (episodes,) what is averaged.
        tasks: (episodes,) the task of each.
        share: Whether the mean lies in [0, 1].
    Returns: The 95 percent interval; its method says how many tasks it rests on.
    """
    without, one = without_each_task(values, tasks), "no interval: one task was played"
    of = np.arange(len(without))
    scheme = Clusters("tasks like these", "tasks", of, np.zeros_like(of), one)
    point = float(values.mean())
    return jackknife_estimate(point, without, scheme, share=share).interval(_LEVEL)


def without_each_task(values: ArrayLike, tasks: ArrayLike) -> Floats:
    """Return the mean of all episodes but those of one task, for each task.

    Args:
        values: (episodes,) what is averaged.
        tasks: (episodes,) the task of each.
    Returns: (tasks,); NaN where there is one task.
    """
    every, (_, of) = np.asarray(values), np.unique(tasks, return_inverse=True)
    counts, sums = np.bincount(of), np.bincount(of, weights=every)
    left = len(every) - counts
    nothing = np.full(len(left), np.nan)
    np.divide(sums.sum() - sums, left, out=nothing, where=left > 0)
    return nothing
