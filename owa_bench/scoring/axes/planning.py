"""Axis P: planning, the depth of solved plans as a share of the possible depth."""

import numpy as np

from owa_bench.records.observables import Floats, Integers
from owa_bench.scoring.axis import Axis, Diagnostics, check_shapes, per_suite
from owa_bench.scoring.sample import Sample


def planning(solved: Floats, possible: Floats) -> Floats:
    """Return solved plan depth as a share of the depth there was.

    Formula:
        P = N(sum_t min(d_t, D*) / sum_t min(D_t, D*))
    Shapes: two arrays of the same shape (resamples,), the two sums; result the same.
    Units: nodes on the longest chain of prerequisites; result a share.
    Missing: NaN where the tasks have no depth at all; NaN in gives NaN out.
    Errors: ScoringError if shapes differ or an array is empty.
    Source: [R] eq 4 of the AAI paper; D* [D] per suite in the protocol.

    >>> planning(np.array([9.0]), np.array([12.0]))
    array([0.75])
    """
    check_shapes("planning", solved, possible)
    return np.divide(
        solved, possible, out=np.full_like(possible, np.nan), where=possible > 0
    )


def _shallow(sample: Sample) -> str | None:
    """Return why a suite is refused: its mean D_t is below a share of D*."""
    share = sample.protocol.admissibility.depth_share
    for suite in sorted(set(sample.table.suite[sample.base].tolist())):
        rows = sample.base & (sample.table.suite == suite)
        mean = float(sample.table.depth[rows].mean())
        target = sample.protocol.depths.of(suite)
        if mean < share * target:
            return (
                f"mean depth of {suite} is {mean:.2f}, "
                f"below {share} D* = {share * target:g}"
            )
    return None


def _capped(sample: Sample, depth: Integers) -> Floats:
    caps = per_suite(sample.table.suite, sample.protocol.depths)
    capped: Floats = np.minimum(depth, caps)
    return capped


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
    columns={
        "solved": lambda sample: _capped(sample, sample.table.d),
        "possible": lambda sample: _capped(sample, sample.table.depth),
    },
    missing=_shallow,
    secondary=lambda totals, sample: {
        "mean solved depth": totals.overall_mean("P:solved")
    },
    amounts=("mean solved depth",),
    diagnostics=_distributions,
)
