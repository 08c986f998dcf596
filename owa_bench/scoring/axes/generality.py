"""Axis G: the share of families that an agent covers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.axis import Anchors, Laid, Sample, bounds, calibrate
from owa_bench.scoring.cells import Ledger, Totals


def covers(quality: Floats, threshold: Floats, decimals: int) -> Flags:
    """Return which families reach their threshold, compared in fixed decimals."""
    met: Flags = np.round(quality, decimals) >= np.round(threshold, decimals)
    return met


def generality(quality: Floats, threshold: Floats, decimals: int = 6) -> Floats:
    """Return the share of families whose mean quality reaches their threshold.

    Formula:
        G = (families k with mean quality_k >= theta_k) / K
    Shapes: quality (resamples, families), threshold (families,); result (resamples,).
    Units: quality Q in [0, 1]; result a share.
    Missing: NaN where a family holds no episode: it is neither covered nor not.
    Errors: ScoringError if the shapes do not fit or there is no family.
    Source: [S] eq 3 of the AAI paper; theta_k [D] in the protocol.

    >>> generality(np.array([[0.7, 0.5, 0.6, 0.1]]), np.full(4, 0.6))
    array([0.5])
    """
    if quality.ndim != 2 or threshold.shape != quality.shape[1:] or not threshold.size:
        raise ScoringError(
            "generality needs (resamples, families) and (families,), got "
            f"{quality.shape} and {threshold.shape}."
        )
    covered = covers(quality, threshold, decimals)
    share: Floats = covered.mean(axis=1)
    return np.where(np.isnan(quality).any(axis=1), np.nan, share)


class Generality:
    """G of the AAI scale."""

    name = "generality"
    symbol = "G"
    formula = staticmethod(generality)
    amounts: tuple[str, ...] = ()

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay quality per family over the base rows."""
        cells = int(sample.base.sum())
        held = set(sample.table.family[sample.base].tolist())
        empty = [name for name in sample.families if name not in held]
        if empty:
            return Laid(0, cells, f"no counted episode of {', '.join(empty)}")
        ledger.mean("G", sample.table.q, sample.base)
        return Laid(cells, cells)

    def _thresholds(self, sample: Sample) -> Floats:
        of = sample.protocol.generality.of
        return np.array([of(family) for family in sample.families])

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return the share of covered families."""
        decimals = sample.protocol.statistics.gate_decimals
        return generality(totals.mean("G"), self._thresholds(sample), decimals)

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """The oracle covers every family: 1."""
        return bounds(sample, self.symbol, np.ones(len(totals.table)))

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return N(raw)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Mean quality of each family and whether it is covered."""
        quality = totals.mean("G")
        decimals = sample.protocol.statistics.gate_decimals
        covered = covers(quality, self._thresholds(sample), decimals)
        means = {
            f"quality of {f}": quality[:, i] for i, f in enumerate(sample.families)
        }
        return means | {
            f"covered {f}": covered[:, i].astype(np.float64)
            for i, f in enumerate(sample.families)
        }

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """The thresholds in force."""
        limits = self._thresholds(sample).tolist()
        return {"thresholds": dict(zip(sample.families, limits, strict=True))}


AXIS = Generality()
