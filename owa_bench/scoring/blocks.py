"""Stationary block bootstrap: resampled days whose neighbours stay together."""

import math

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Integers
from owa_bench.scoring.weights import philox

_HALF = float(1 << 32)


def block_length(days: int) -> float:
    """Return the mean length of a block: the cube root of the series' length.

    Source: [D] Politis and Romano (1994), rate of the optimal length.

    >>> block_length(27)
    3.0
    """
    return max(1.0, round(math.exp(math.log(days) / 3), 9))


def blocks(days: int, resamples: int, root: str, *path: str | int) -> Integers:
    """Return which day each place of each resampled series holds.

    Formula:
        day[b, 0] is uniform; day[b, i] = day[b, i - 1] + 1 (circular) with
        probability 1 - 1 / L, else uniform again; L = cube root of the days
    Shapes: (resamples, days). Units: indices of days.
    Missing: none. Errors: ScoringError unless there is a day and a resample.
    Source: [S] block bootstrap over days; Politis and Romano (1994).

    >>> blocks(5, 2, "root").shape
    (2, 5)
    """
    if days < 1 or resamples < 1:
        raise ScoringError(
            f"Blocks need a day and a resample at least, got {days}, {resamples}."
        )
    bits = philox(root, *path, "blocks", days)
    raw = bits.random_raw(2 * resamples * days).astype("<u8", copy=False)
    draws = (raw >> np.uint64(32)).astype(np.float64).reshape(2, resamples, days)
    fresh = draws[0] < math.floor(_HALF / block_length(days))
    fresh[:, 0] = True
    start = np.floor(draws[1] / _HALF * days).astype(np.int64)
    place = np.arange(days)
    last = np.maximum.accumulate(np.where(fresh, place, 0), axis=1)
    chosen = np.take_along_axis(start, last, axis=1) + place - last
    held: Integers = chosen % days
    return held
