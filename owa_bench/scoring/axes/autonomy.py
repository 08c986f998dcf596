"""Axis A: how far an agent gets before it needs a human."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.records.observables import Array, Floats
from owa_bench.scoring.axis import (
    Anchors,
    Laid,
    Sample,
    bounds,
    calibrate,
    check_values,
    per_suite,
)
from owa_bench.scoring.cells import Ledger, Totals


def autonomy(success: Array, helped: Array, run: Array, horizon: Array) -> Floats:
    """Return each episode's share of the horizon that was walked without help.

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
    alone = success.astype(bool) & (helped == 0)
    return np.where(alone, 1.0, share)


class Autonomy:
    """A of the AAI scale."""

    name = "autonomy"
    symbol = "A"
    formula = staticmethod(autonomy)
    amounts: tuple[str, ...] = ()

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay a_t and the share finished unaided over the base rows."""
        cells = int(sample.base.sum())
        if not cells:
            return Laid(0, 0, "no counted episode")
        table = sample.table
        alone = (table.u > 0) & (table.helped == 0)
        ledger.mean("A", self._shares(sample), sample.base)
        ledger.mean("A:alone", alone.astype(np.float64), sample.base)
        return Laid(cells, cells)

    def _shares(self, sample: Sample) -> Floats:
        table = sample.table
        caps = per_suite(table.suite, sample.protocol.horizons)
        horizon = np.minimum(table.horizon, caps)
        return autonomy(table.u > 0, table.helped, table.n, horizon)

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return mean_t a_t."""
        return totals.overall(totals.mean("A"))

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """The oracle finishes every task unaided: 1."""
        return bounds(sample, self.symbol, np.ones(len(totals.table)))

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return N(raw)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Share of tasks finished with no intervention."""
        return {"finished unaided": totals.overall(totals.mean("A:alone"))}

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Distribution of n over the base rows."""
        runs = sample.table.n[sample.base]
        return {
            "longest unaided run, quartiles": [
                float(x) for x in np.quantile(runs, (0, 0.25, 0.5, 0.75, 1))
            ]
        }


AXIS = Autonomy()
