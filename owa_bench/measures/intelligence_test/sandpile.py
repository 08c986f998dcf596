"""The Bak-Tang-Wiesenfeld sandpile on a grid of 2, 3 or 4 dimensions.

The model of section 6.2 of the Intelligence Test paper: why failure counts follow a power law, and
how the exponent depends on scale. The grid is open: sand falls off its edges. The inner loop is
compiled where numba is installed; without it numpy topples a whole generation of cells at once.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Integers

Relax = Callable[[Integers, Integers, Integers, int], Integers]


def avalanches(
    *,
    side: int,
    dimension: int,
    grains: int,
    warm_up: int | None = None,
    compiled: bool | None = None,
    rng: np.random.Generator,
) -> Integers:
    """Return the size of the avalanche that each grain sets off.

    Formula: a cell of 2 d grains or more topples, one grain to each of its 2 d
        neighbours; size = topplings until no cell does; grains fall on cells drawn
        uniformly. The start is 2 d - 1 everywhere (a recurrent state); the first
        `warm_up` grains (one a cell by default) are not reported
    Shapes: (grains,) of counts, 0 where nothing toppled.
    Units: topplings.
    Missing: nothing.
    Errors: ScoringError for a dimension outside 1 .. 4, or a side or count below 1.
    Source: Intelligence Test paper, section 6.2 [S]; Bak, Tang and Wiesenfeld (1987).

    >>> rng = np.random.default_rng(0)
    >>> avalanches(side=1, dimension=2, grains=8, compiled=False, rng=rng).tolist()
    [0, 0, 0, 1, 0, 0, 0, 1]
    """
    if not 1 <= dimension <= 4 or side < 1 or grains < 1:
        raise ScoringError(
            "`dimension` must be 1 .. 4, `side` and `grains` at least 1, got "
            f"{dimension}, {side}, {grains}."
        )
    cells = side**dimension
    first = cells if warm_up is None else warm_up
    drops = rng.integers(0, cells, first + grains)
    grid = np.full(cells, 2 * dimension - 1, dtype=np.int64)
    neighbours = _neighbours(side, dimension)
    relax = _compiled() if compiled is None or compiled else None
    if relax is None:
        relax = _generations
    return relax(grid, neighbours, drops, 2 * dimension)[first:]


def _neighbours(side: int, dimension: int) -> Integers:
    """Return each cell's neighbours (cells, 2 d); the edge is the extra last cell."""
    cells = side**dimension
    places = np.stack(np.unravel_index(np.arange(cells), (side,) * dimension))
    columns = []
    for axis in range(dimension):
        for step in (-1, 1):
            moved = places.copy()
            moved[axis] += step
            inside = (moved[axis] >= 0) & (moved[axis] < side)
            flat = np.ravel_multi_index(tuple(moved.clip(0, side - 1)), (side,) * dimension)
            columns.append(np.where(inside, flat, cells))
    return np.stack(columns, axis=1).astype(np.int64)


def _generations(grid: Integers, neighbours: Integers, drops: Integers, limit: int) -> Integers:
    """Relax with numpy: all unstable cells of a generation topple at once."""
    cells = grid.size
    sand = np.append(grid, 0)
    sizes = np.zeros(drops.size, dtype=np.int64)
    for i, drop in enumerate(drops.tolist()):
        sand[drop] += 1
        unstable = np.array([drop]) if sand[drop] >= limit else np.zeros(0, np.int64)
        while unstable.size:
            times = sand[unstable] // limit
            sizes[i] += int(times.sum())
            sand[unstable] -= limit * times
            reached = neighbours[unstable]
            np.add.at(sand, reached, times[:, None])
            sand[cells] = 0
            touched = np.unique(np.append(reached, unstable))
            unstable = touched[sand[touched] >= limit]
    return sizes


@cache
def _compiled() -> Relax | None:
    """Return the compiled loop, or None where numba is not installed."""
    try:
        import numba
    except ImportError:
        return None
    relax: Relax = numba.njit(cache=False)(_one_by_one)
    return relax


def _one_by_one(grid: Integers, neighbours: Integers, drops: Integers, limit: int) -> Integers:
    """Relax with a stack of unstable cells; plain loops, to be compiled."""
    cells = grid.size
    sand = np.zeros(cells + 1, dtype=np.int64)
    sand[:cells] = grid
    stack = np.zeros(cells + 1, dtype=np.int64)
    sizes = np.zeros(drops.size, dtype=np.int64)
    for i in range(drops.size):
        drop = drops[i]
        sand[drop] += 1
        depth = 0
        if sand[drop] >= limit:
            stack[0] = drop
            depth = 1
        while depth > 0:
            depth -= 1
            cell = stack[depth]
            times = sand[cell] // limit
            sand[cell] -= limit * times
            sizes[i] += times
            for k in range(limit):
                near = neighbours[cell, k]
                if near == cells:
                    continue
                before = sand[near]
                sand[near] += times
                if before < limit <= sand[near]:
                    stack[depth] = near
                    depth += 1
    return sizes
