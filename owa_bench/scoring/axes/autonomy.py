"""Axis A: autonomy, the share of the horizon completed without intervention."""

import numpy as np

from owa_bench.records.observables import Array, Floats
from owa_bench.scoring.axis import Axis, Diagnostics, check_values, per_suite
from owa_bench.scoring.sample import Sample


def autonomy(success: Array, helped: Array, run: Array, horizon: Array) -> Floats:
    """Return each episode's share of the horizon completed without help.

    Formula:
        a_t = 1                     if the episode succeeded with no intervention
              min(n_t, H_t) / H_t   otherwise, H_t = min(H, oracle's accepted actions)
        A   = N(mean_t a_t)
    Shapes: four arrays (episodes,); result (episodes,).
    Units: `run` and `horizon` in verified actions; result a share in [0, 1].
    Missing: an episode whose oracle needs no action (H_t = 0) counts by success alone.
    Errors: ScoringError if shapes differ, an array is empty or holds NaN.
    Source: [R] eq 2 of the AAI paper; H [D] per suite in the protocol.

    >>> autonomy(np.array([True, True, False]), np.array([0, 1, 0]),
    ...          np.array([9, 4, 0]), np.array([8, 8, 8]))
    array([1. , 0.5, 0. ])
    """
    check_values("autonomy", success, helped, run, horizon)
    share = np.minimum(run, horizon) / np.maximum(horizon, 1)
    return np.where(success.astype(bool) & (helped == 0), 1.0, share)


def _shares(sample: Sample) -> Floats:
    table = sample.table
    caps = per_suite(table.suite, sample.protocol.horizons)
    caps = np.where(table.horizon_cap > 0, table.horizon_cap, caps)
    return autonomy(table.u > 0, table.helped, table.n, np.minimum(table.horizon, caps))


def _quartiles(sample: Sample) -> Diagnostics:
    runs = np.quantile(sample.table.n[sample.base], (0, 0.25, 0.5, 0.75, 1))
    return {"longest unaided run, quartiles": [float(x) for x in runs]}


AXIS = Axis(
    "A",
    "autonomy",
    formula=autonomy,
    columns={
        "share": _shares,
        "alone": lambda sample: (sample.table.u > 0) & (sample.table.helped == 0),
    },
    raw=lambda totals, sample: totals.overall_mean("A:share"),
    secondary=lambda totals, sample: {
        "finished unaided": totals.overall_mean("A:alone")
    },
    diagnostics=_quartiles,
)
