"""An axis of somebody else: mean quality, by another name."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.scoring.axis import Anchors, Laid, Sample
from owa_bench.scoring.cells import Ledger, Totals

Floats = npt.NDArray[np.float64]


def mean_quality(quality: Floats) -> Floats:
    """Return the mean quality over families.

    Formula: mean over families of mean quality.
    Shapes: quality (resamples, families); result (resamples,).
    Units: quality in [0, 1].
    Missing: NaN where a family holds no episode.
    Errors: none.
    Source: an example.
    """
    mean: Floats = quality.mean(axis=1)
    return mean


class MeanQuality:
    """Mean quality over families, anchored at 0 and 1."""

    name = "mean_quality"
    symbol = "Q"
    formula = staticmethod(mean_quality)

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay quality per family over the base rows."""
        ledger.mean(self.symbol, sample.table.q, sample.base)
        cells = int(sample.base.sum())
        return Laid(cells, cells)

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return the mean quality per resample."""
        return mean_quality(totals.mean(self.symbol))

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """Return 0 and 1."""
        zeros = np.zeros(len(totals.table))
        return Anchors(zeros, zeros + 1.0)

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return the raw statistic: it is one already."""
        return raw

    def extra(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Return nothing more."""
        return {}

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Return nothing more."""
        return {}


AXIS = MeanQuality()
