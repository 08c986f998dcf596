"""Bootstrap weights from raw Philox output: whole numbers, equal on every machine.

Rescaled bootstrap (Rao and Wu 1988): of n units in a stratum n - 1 are drawn with
replacement, so that the spread of the resamples is unbiased even for small n.
"""

import hashlib
from collections.abc import Iterator

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Integers

_ROWS_AT_ONCE = 400  # resamples a chunk: fewer starve the matrix product (measured)
_CELLS_AT_ONCE = 20_000_000  # weights a chunk at most: 160 MB


def philox(root: str, *path: str | int) -> np.random.Philox:
    """Return the raw generator named `path` under a replay root."""
    text = "/".join(str(part) for part in (root, *path))
    key = hashlib.sha256(text.encode()).digest()[:16]
    return np.random.Philox(key=int.from_bytes(key, "little"))


def _below(bits: np.random.Philox, rows: int, columns: int, limit: int) -> Integers:
    """Return a (rows, columns) table of whole numbers in [0, limit).

    Multiply-shift on 32-bit halves, an even number of them a row, so that the table
    does not depend on how its rows are cut into chunks; the bias is below limit / 2^32.
    """
    halves = (columns + 1) // 2
    raw = bits.random_raw(rows * halves).astype("<u8", copy=False).view("<u4")
    kept = raw.reshape(rows, 2 * halves)[:, :columns].astype(np.uint64)
    kept *= np.uint64(limit)
    kept >>= np.uint64(32)
    return kept.view(np.int64)


def resampled(
    strata: Integers, resamples: int, root: str, *path: str | int
) -> Iterator[Floats]:
    """Yield chunks of a weight matrix (resamples, units).

    Formula:
        w[b, u] = how often unit u is among the n - 1 drawn from its stratum of n
    Shapes: `strata` (units,), the stratum of each unit, sorted; chunks (b, units).
    Units: whole numbers in float64, so that products with whole numbers are exact.
    Missing: a stratum of one unit keeps weight 1.
    Errors: ScoringError if `strata` is empty or not sorted.
    Source: [R] Rao and Wu (1988); `traces-and-audit.md` section 5.

    >>> table = np.concatenate(list(resampled(np.array([0, 0, 0, 1]), 2, "root")))
    >>> table.sum(axis=1), table[:, 3]
    (array([3., 3.]), array([1., 1.]))
    """
    units = len(strata)
    if not units or bool((np.diff(strata) < 0).any()):
        raise ScoringError(
            f"Strata must be sorted and hold a unit at least, got {strata!r}."
        )
    starts = np.concatenate(([0], np.flatnonzero(np.diff(strata)) + 1))
    sizes = np.diff(np.concatenate((starts, [units])))
    groups = [
        (int(size), starts[sizes == size], philox(root, *path, int(size)))
        for size in np.unique(sizes)
    ]
    chunk = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // units))
    for first in range(0, resamples, chunk):
        yield _chunk(groups, min(chunk, resamples - first), units)


def _chunk(
    groups: list[tuple[int, Integers, np.random.Philox]], rows: int, units: int
) -> Floats:
    """Return `rows` rows of the weight matrix."""
    weights = np.zeros((rows, units))
    lines = np.arange(rows, dtype=np.int64)[:, None] * units
    for size, starts, bits in groups:
        if size == 1:
            weights[:, starts] = 1.0
            continue
        places = _below(bits, rows, len(starts) * (size - 1), size)
        places += np.repeat(starts, size - 1)[None, :]
        places += lines
        counts = np.bincount(places.ravel(), minlength=rows * units)
        weights += counts.reshape(rows, units)
    return weights
