"""Means over episodes with their intervals over tasks, for descriptive tables."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from owa_bench.records.observables import Floats
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.jackknife import Clusters, jackknife_estimate

_LEVEL = 0.95


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
    _, of = np.unique(tasks, return_inverse=True)
    counts, sums = np.bincount(of), np.bincount(of, weights=values)
    point, left = float(values.mean()), len(values) - counts
    one = "one task was played"
    scheme = Clusters("tasks like these", "tasks", of, np.zeros_like(counts), one)
    without = np.divide(
        sums.sum() - sums, left, out=np.full(len(left), np.nan), where=left > 0
    )
    found = jackknife_estimate(point, without, scheme, share=share).interval(_LEVEL)
    return figure(point), found.low, found.high
