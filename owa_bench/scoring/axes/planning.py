"""Axis P: how deep the plans are that an agent carries out."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.records.observables import Floats
from owa_bench.scoring.axis import (
    Anchors,
    Laid,
    Sample,
    bounds,
    calibrate,
    check_shapes,
    per_suite,
)
from owa_bench.scoring.cells import Ledger, Totals


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


class Planning:
    """P of the AAI scale."""

    name = "planning"
    symbol = "P"
    formula = staticmethod(planning)
    amounts: tuple[str, ...] = ("mean solved depth",)

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay solved and possible depth, both capped at D*, over the base rows."""
        table, base = sample.table, sample.base
        cells = int(base.sum())
        if not cells:
            return Laid(0, 0, "no counted episode")
        shallow = self._shallow(sample)
        if shallow:
            return Laid(0, cells, shallow)
        target = per_suite(table.suite, sample.protocol.depths)
        ledger.mean("P:solved", np.minimum(table.d, target), base)
        ledger.mean("P:possible", np.minimum(table.depth, target), base)
        return Laid(cells, cells)

    def _shallow(self, sample: Sample) -> str | None:
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

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return the share of the possible depth that was solved."""
        return planning(
            totals.overall(totals.mean("P:solved")),
            totals.overall(totals.mean("P:possible")),
        )

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """The oracle solves every node: 1."""
        return bounds(sample, self.symbol, np.ones(len(totals.table)))

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return N(raw)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Mean solved depth, capped at D*."""
        return {"mean solved depth": totals.overall(totals.mean("P:solved"))}

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Distribution of d and of D_t: episodes at each depth."""
        table, base = sample.table, sample.base
        return {
            "episodes by solved depth": np.bincount(table.d[base]).tolist(),
            "episodes by possible depth": np.bincount(table.depth[base]).tolist(),
        }


AXIS = Planning()
