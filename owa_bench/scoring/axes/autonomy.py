"""Axis A: autonomy, the share of the horizon completed without intervention."""

import numpy as np

from owa_bench.records.observables import Array, Floats, Integers
from owa_bench.scoring.axis import Axis, Coverage, Diagnostics, check_values
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.statistics_table import StatisticsTable


def autonomy(success: Array, quality: Array, helped: Array, run: Array, horizon: Array) -> Floats:
    """Return each episode's share of the horizon completed without help.

    Formula:
        h_t = min(n_t, H_t) / H_t          1 where H_t = 0
        a_t = 1                            success, k_t = 0
              q_state_t h_t                failure, k_t = 0
              h_t / (1 + k_t)              success, k_t >= 1
              q_state_t h_t / (1 + k_t)    failure, k_t >= 1
        A   = N(mean_t a_t), over the episodes under the protocol's priced budget
    Shapes: five arrays (episodes,); result (episodes,).
    Units: k interventions granted; n the verified actions of the longest segment
        between them, H_t those of the oracle, at most H; result a share in [0, 1].
    Missing: the axis, where no episode under budget 0 was played under the protocol's
        budget too.
    Errors: ScoringError if shapes differ, an array is empty or holds NaN.
    Source: [R] eq 2 of the AAI paper; H [D] on the suite's card.

    >>> autonomy(np.array([1, 0, 1, 0]), np.array([1, 0.5, 1, 0.5]),
    ...          np.array([0, 0, 1, 3]), np.array([2, 8, 8, 4]), np.full(4, 8))
    array([1.    , 0.5   , 0.5   , 0.0625])
    """
    check_values("autonomy", success, quality, helped, run, horizon)
    share = np.minimum(run, horizon) / np.maximum(horizon, 1)
    share = np.where(horizon > 0, share, 1.0)
    won = success.astype(bool)
    earned: Floats = np.where(won, 1.0, quality) * share / (1 + helped)
    return np.where(won & (helped == 0), 1.0, earned)


def _horizon(sample: Sample) -> Integers:
    table = sample.table
    capped = np.minimum(table.horizon, table.horizon_cap)
    return np.where(table.horizon_cap > 0, capped, table.horizon)


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add the shares under the protocol's budget, and those without help beside."""
    table, base, priced = sample.table, sample.base, sample.priced
    cells, used = int(base.sum()), int(priced.sum())
    if not cells:
        return Coverage(0, 0, "no counted episode without help")
    shares = autonomy(table.u > 0, table.q_state, table.helped, table.n, _horizon(sample))
    if not used:
        alone = float(shares[base].mean())
        why = "no priced help: no task was played under the protocol's budget too"
        return Coverage(0, cells, f"{why}; at budget 0 the mean share is {alone:.3f}")
    statistics.add_mean("A:share", shares, priced)
    statistics.add_mean("A:alone", shares, base)
    statistics.add_mean("A:unaided", (table.u > 0) & (table.helped == 0), priced)
    return Coverage(used, used)


def _quartiles(sample: Sample) -> Diagnostics:
    rows = sample.table.take(sample.priced)
    quartiles = (0, 0.25, 0.5, 0.75, 1)
    return {
        "longest unaided run, quartiles": np.quantile(rows.n, quartiles).tolist(),
        "interventions granted, quartiles": np.quantile(rows.helped, quartiles).tolist(),
    }


AXIS = Axis(
    "A",
    "autonomy",
    formula=autonomy,
    collect=_collect,
    raw=lambda totals, sample: totals.overall_mean("A:share"),
    secondary=lambda totals, sample: {
        "finished unaided": totals.overall_mean("A:unaided"),
        "share at budget 0": totals.overall_mean("A:alone"),
    },
    diagnostics=_quartiles,
)
