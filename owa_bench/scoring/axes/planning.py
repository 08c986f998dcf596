"""Axis P: planning, the depth of solved plans as a share of the possible depth."""

import numpy as np

from owa_bench.records.observables import Floats, Integers
from owa_bench.scoring.axis import Axis, Diagnostics, check_shapes
from owa_bench.scoring.observe.sample import Sample


def planning(solved: Floats, possible: Floats) -> Floats:
    """Return solved plan depth as a share of the depth there was.

    Formula:
        P = N(sum_t w_t min(d_t, D_t, D*) / sum_t min(D_t, D*))
        w_t = 1 where the task succeeded, else q_state: what was fetched and not
              delivered has no depth
        d_t = greatest j of a path v1 -> .. -> vj of solved nodes joined by flows,
              less 1 if vj flows nowhere (`observables.solved_depth`)
    Shapes: two arrays of the same shape (resamples,), the two sums; result the same.
    Units: nodes; D_t those of the longest path of the instance's DAG; a share.
    Missing: NaN where the tasks have no depth at all; NaN in gives NaN out.
    Errors: ScoringError if shapes differ or an array is empty.
    Source: [R] eq 4 of the AAI paper; D* [D] on the suite's card.

    >>> planning(np.array([9.0]), np.array([12.0]))
    array([0.75])
    """
    check_shapes("planning", solved, possible)
    return np.divide(solved, possible, out=np.full_like(possible, np.nan), where=possible > 0)


def _shallow(sample: Sample) -> str | None:
    """Return why a suite is refused: its mean D_t is below a share of D*."""
    share = sample.protocol.admissibility.depth_share
    for suite in sorted(set(sample.table.suite[sample.base].tolist())):
        rows = sample.base & (sample.table.suite == suite)
        mean = float(sample.table.depth[rows].mean())
        target = int(sample.table.depth_cap[rows].max())
        if mean < share * target:
            needed = share * target
            return f"plans of {suite} are {mean:.2f} steps deep on average, and P needs {needed:g}"
    return None


def _solved(sample: Sample) -> Floats:
    """Return w_t min(d_t, D_t, D*) of every episode."""
    table = sample.table
    weight: Floats = np.where(table.u > 0, 1.0, table.q_state)
    return weight * _capped(sample, np.minimum(table.d, table.depth))


def _capped(sample: Sample, depth: Integers) -> Integers:
    caps = sample.table.depth_cap
    return np.where(caps > 0, np.minimum(depth, caps), depth)


def _distributions(sample: Sample) -> Diagnostics:
    """Return the numbers of episodes by d and by D_t."""
    table, base = sample.table, sample.base
    return {
        "episodes by solved depth": np.bincount(table.d[base]).tolist(),
        "episodes by possible depth": np.bincount(table.depth[base]).tolist(),
    }


AXIS = Axis(
    "P",
    "planning",
    formula=planning,
    columns={"solved": _solved, "possible": lambda sample: _capped(sample, sample.table.depth)},
    missing=_shallow,
    secondary=lambda totals, sample: {"mean solved depth": totals.overall_mean("P:solved")},
    amounts=("mean solved depth",),
    diagnostics=_distributions,
)
