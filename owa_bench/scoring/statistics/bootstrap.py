"""Resampled days from named streams, and figures as a judgement holds them.

Days come from raw Philox output, so they are equal on every machine. Only the interval of the AAI
paper that is printed beside kappa resamples; gates read none of it.
"""

import hashlib
import math

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Integers

_HALF = float(1 << 32)
_DIGITS = 7  # significant digits of a judgement's figures; sums are exact beyond them
_EXACT = float(1 << 53)  # doubles below it are all that canonical JSON holds


def philox(root: str, *path: str | int) -> np.random.Philox:
    """Return the raw generator named `path` under a replay root.

    Args:
        root: Replay root of the run, hexadecimal.
        path: Names of the stream below it.
    Returns: A generator of raw 64-bit words.
    """
    text = "/".join(str(part) for part in (root, *path))
    key = hashlib.sha256(text.encode()).digest()[:16]
    return np.random.Philox(key=int.from_bytes(key, "little"))


def block_length(days: int) -> float:
    """Return the mean length of a block: the cube root of the series' length.

    Source: [D] Politis and Romano (1994), rate of the optimal length.

    >>> block_length(27), block_length(1)
    (3.0, 1.0)
    """
    return max(1.0, round(math.exp(math.log(days) / 3), 9))


def block_bootstrap(days: int, resamples: int, root: str, *path: str | int) -> Integers:
    """Return which day each place of each resampled series holds.

    Formula:
        day[b, 0] is uniform; day[b, i] = day[b, i - 1] + 1 (circular) with
        probability 1 - 1 / L, else uniform again; L = cube root of the days
    Shapes: (resamples, days). Units: indices of days.
    Missing: none. Errors: ScoringError unless there is a day and a resample.
    Source: [S] block bootstrap over days; Politis and Romano (1994).

    >>> block_bootstrap(5, 2, "root").tolist()
    [[4, 0, 1, 1, 2], [2, 3, 4, 0, 4]]
    """
    if days < 1 or resamples < 1:
        raise ScoringError(f"Blocks need a day and a resample at least, got {days}, {resamples}.")
    bits = philox(root, *path, "blocks", days)
    raw = bits.random_raw(2 * resamples * days).astype("<u8", copy=False)
    draws = (raw >> np.uint64(32)).astype(np.float64).reshape(2, resamples, days)
    fresh = draws[0] < math.floor(_HALF / block_length(days))
    start = np.floor(draws[1] / _HALF * days).astype(np.int64)
    place = np.arange(days)
    last = np.maximum.accumulate(np.where(fresh, place, 0), axis=1)
    chosen = np.take_along_axis(start, last, axis=1) + place - last
    resampled: Integers = chosen % days
    return resampled


def rounded(value: float) -> float:
    """Return a number rounded to the significant digits that a judgement holds."""
    return float(f"{value:.{_DIGITS}g}") + 0.0


def figure(value: float | None) -> float | None:
    """Return a number as a judgement holds it: seven digits, None for no number.

    None too from 2^53 on, where a bound bounds nothing: of two tasks one may be a million times
    another. Canonical JSON writes such a number as a whole one, which it then refuses.

    >>> figure(float("nan")), figure(0.1 + 0.2), figure(1.2e18)
    (None, 0.3, None)
    """
    if value is None or not abs(value) < _EXACT:
        return None
    return rounded(value)
