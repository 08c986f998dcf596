"""Sufficient statistics: per (task, repeat) unit, whole numbers that add exactly.

An axis lays columns into a Ledger; weights times columns give Totals per family; an
axis reads its statistic from Totals alone. Everything in between is whole numbers in
float64 below 2^53, so sums do not depend on their order, the CPU or the library.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Array, Flags, Floats, Integers, Observables

SHARE = 10**9  # a task's share of an episode, in whole parts
MILLION = 10**6  # qualities and probabilities carry six decimals
_EXACT = float(1 << 53)
_UNTHREADED = 250_000  # multiplications of one product below OpenBLAS' threshold
_DEPTH = 128  # units a block


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of resampling: (task, repeat), sorted by family, task and repeat.

    `row` maps an episode to its unit, `task` a unit to its task, `family` a task to its
    family (an index into `families`). A task is a pair id.
    """

    families: tuple[str, ...]
    row: Integers
    task: Integers
    family: Integers

    @property
    def unit_family(self) -> Integers:
        """The family of each unit."""
        return self.family[self.task]


def units_of(table: Observables, families: tuple[str, ...]) -> Units:
    """Return the units of a table; ScoringError for a pair in two families."""
    if not len(table):
        raise ScoringError("No counted episode: there is nothing to resample.")
    unknown = sorted(set(table.family.tolist()) - set(families))
    if unknown:
        raise ScoringError(
            f"Families must be those of the plan, got {', '.join(unknown)}."
        )
    code = np.searchsorted(np.array(families), table.family)
    pairs, pair = np.unique(table.pair, return_inverse=True)
    tasks, task = np.unique(np.stack((code, pair)), axis=1, return_inverse=True)
    held = np.bincount(tasks[1])
    if held.max() > 1:
        raise ScoringError(
            f"A pair belongs to one family, got {pairs[held.argmax()]} in two."
        )
    units, row = np.unique(
        np.stack((task.reshape(-1), table.repeat)), axis=1, return_inverse=True
    )
    return Units(families=families, row=row.reshape(-1), task=units[0], family=tasks[0])


class Columns(NamedTuple):
    """Named sufficient statistics, a row per unit; equal columns are held once.

    `names` maps a statistic to its column, `constants` are numbers that no weight
    changes.
    """

    names: dict[str, int]
    table: Floats
    constants: dict[str, float]

    def by_task(self, units: Units) -> "Columns":
        """Return the columns summed over the repeats of each task."""
        starts = np.searchsorted(units.task, np.arange(len(units.family)))
        return self._replace(table=np.add.reduceat(self.table, starts, axis=0))


class Ledger:
    """Collects the columns of every axis over one set of units."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._columns: dict[str, Floats] = {}
        self._constants: dict[str, float] = {}

    def constant(self, name: str, value: float) -> None:
        """Keep a number that no weight changes."""
        self._constants[name] = value

    def tasks(self, mask: Flags) -> int:
        """Return how many distinct tasks hold a row where `mask` is true."""
        return len(np.unique(self._units.task[self._units.row[mask]]))

    def mean(
        self, name: str, values: Array, mask: Flags, *, scale: int = MILLION
    ) -> None:
        """Lay a quantity whose mean over a task's masked episodes is wanted.

        Each task weighs the same, however many of its episodes are counted. `scale`
        is how many parts of the value are kept.
        """
        kept = np.round(np.where(mask, values, 0.0) * scale)
        if not np.isfinite(kept).all():
            raise ScoringError(
                f"`{name}` must be a number in every counted episode, got NaN."
            )
        task = self._units.task[self._units.row]
        rows = np.bincount(task, weights=mask, minlength=len(self._units.family))
        share = np.where(mask, np.round(SHARE / np.maximum(rows[task], 1.0)), 0.0)
        self._put(name, np.round(self._by_unit(kept * share) / scale))
        self._put(f"{name}#", self._by_unit(share))

    def add(self, name: str, row: Integers, values: Floats) -> None:
        """Lay a quantity with any number of entries an episode, to six decimals."""
        entries = np.round(values * MILLION)
        self._put(name, _added(self._units.row[row], entries, len(self._units.task)))

    def presence(self, name: str, held: Flags) -> None:
        """Lay whether a unit holds an episode where `held` is true."""
        self._put(name, np.minimum(self._by_unit(held.astype(np.float64)), 1.0))

    def columns(self) -> Columns:
        """Return everything laid so far."""
        held: dict[bytes, int] = {}
        names = {
            name: held.setdefault(column.tobytes(), len(held))
            for name, column in self._columns.items()
        }
        table = np.empty((len(self._units.task), len(held)))
        for name, place in names.items():
            table[:, place] = self._columns[name]
        return Columns(names, table, self._constants)

    def _by_unit(self, values: Floats) -> Floats:
        return _added(self._units.row, values, len(self._units.task))

    def _put(self, name: str, column: Floats) -> None:
        if name in self._columns:
            raise ScoringError(f"A column is laid once, got `{name}` twice.")
        most = float(np.abs(column).max()) * len(column)
        if not most < _EXACT:
            raise ScoringError(
                f"`{name}` must add up below 2^53 parts, could reach {most:g}."
            )
        self._columns[name] = column


def _added(place: Integers, values: Floats, size: int) -> Floats:
    """Return the sums of `values` by place, in order of the rows."""
    return np.bincount(place, weights=values, minlength=size).astype(np.float64)


class Totals(NamedTuple):
    """Weighted sums per resample and family: what every statistic is made of."""

    names: dict[str, int]
    table: Floats  # (resamples, families, columns)
    family_weights: Floats
    constants: dict[str, float]

    def mean(self, name: str) -> Floats:
        """Return the mean per family (resamples, families), NaN without episodes."""
        count = self.sum(f"{name}#")
        return np.divide(
            self.sum(name), count, out=np.full_like(count, np.nan), where=count > 0
        )

    def sum(self, name: str) -> Floats:
        """Return a column's sum per family, in the parts it was laid in."""
        column: Floats = self.table[:, :, self.names[name]]
        return column

    def overall(self, per_family: Floats) -> Floats:
        """Return the battery's weighted mean of a family value (resamples,).

        Families that cannot tell (NaN) are left out and the weights renormalised.
        """
        known = ~np.isnan(per_family)
        weights = np.where(known, self.family_weights, 0.0)
        whole = weights.sum(axis=1)
        parts = (np.where(known, per_family, 0.0) * weights).sum(axis=1)
        mean: Floats = np.divide(
            parts, whole, out=np.full_like(whole, np.nan), where=whole > 0
        )
        return mean


def totals(
    weights: Floats, columns: Columns, family: Integers, family_weights: Floats
) -> Totals:
    """Return weights times columns, family by family.

    Shapes: weights (resamples, n), the table of columns (n, c), family (n,) sorted.
    Errors: ScoringError if the weights do not fit the columns.
    """
    count = len(columns.table)
    if weights.ndim != 2 or weights.shape[1] != count or len(family) != count:
        raise ScoringError(
            f"Weights must be (resamples, {count}), got {weights.shape}; "
            f"families {family.shape}."
        )
    edges = np.searchsorted(family, np.arange(len(family_weights) + 1))
    table = np.empty((len(weights), len(family_weights), columns.table.shape[1]))
    for k, (first, last) in enumerate(pairwise(edges)):
        table[:, k, :] = _product(weights[:, first:last], columns.table[first:last])
    return Totals(columns.names, table, family_weights, columns.constants)


def _product(weights: Floats, columns: Floats) -> Floats:
    """Return weights times columns, in blocks too small for BLAS to start threads.

    On a busy machine threads that wait for each other cost many times the work
    (measured: 1.6 s for 0.03 s). The sums are whole numbers: blocks change no bit.
    """
    resamples, width = len(weights), max(columns.shape[1], 1)
    rows = max(1, _UNTHREADED // (min(_DEPTH, max(len(columns), 1)) * width))
    whole = resamples - resamples % rows
    result = np.zeros((resamples, columns.shape[1]))
    for first in range(0, len(columns), _DEPTH):
        part = slice(first, first + _DEPTH)
        stack = weights[:whole, part].reshape(-1, rows, columns[part].shape[0])
        block = np.matmul(stack, columns[part])
        result[:whole] += block.reshape(whole, columns.shape[1])
        result[whole:] += weights[whole:, part] @ columns[part]
    return result
