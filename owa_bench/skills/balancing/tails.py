"""Extreme values: how rare a surprise is, by a Pareto law fitted to the largest ones.

Above a high threshold, excesses of almost any quantity follow a generalised Pareto law
(Pickands, Ann. Statist. 3 (1975)). It is fitted on ticks of plain episodes; a surprise
that it gives less than a stated chance is an exceedance, and many of these in one
episode are what does not happen by chance.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from owa_bench.records.observables import Floats

SHARE = 0.1  # of the reference lies above the fit's threshold
_LEAST = 60  # values below which no tail is fitted


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted tail; the chance of a value above `start` falls by the Pareto law."""

    start: float
    shape: float
    scale: float
    share: float = SHARE

    def level(self, chance: float) -> float:
        """Return the value that is exceeded with `chance` (below `share`)."""
        from scipy.stats import genpareto

        excess = genpareto.isf(chance / self.share, self.shape, scale=self.scale)
        return self.start + float(excess)


def fit(values: Sequence[float] | Floats) -> Tail | None:
    """Return the tail of a reference, None where it holds too little for one."""
    from scipy.stats import genpareto

    known = np.asarray(values, dtype=float)
    if known.size < _LEAST:
        return None
    start = float(np.quantile(known, 1.0 - SHARE))
    excess = known[known > start] - start
    if excess.size < 5 or float(excess.max()) <= 0.0:
        return Tail(start=start, shape=0.0, scale=max(1e-6, 0.1 * abs(start)))
    shape, _, scale = genpareto.fit(excess, floc=0.0)
    return Tail(
        start=start,
        shape=float(min(max(shape, -0.5), 0.9)),
        scale=float(max(scale, 1e-6)),
    )


def chance_of(count: int, ticks: int, chance: float) -> float:
    """Return the chance of so many exceedances or more in so many ticks."""
    from scipy.stats import binom

    return float(binom.sf(count - 1, max(ticks, 1), chance)) if count else 1.0
