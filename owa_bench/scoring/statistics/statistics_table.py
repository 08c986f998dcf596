"""Sufficient statistics: a table with a row per (task, repeat, day) unit.

Axes add columns to a StatisticsTable; weights times columns are Totals per family; a statistic is
read from Totals alone. All entries are whole numbers in float64 below 2^53, so sums depend neither
on their order nor on the CPU or the library.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Array, Flags, Floats, Integers, Observables

SHARE = 10**9  # a task's share of an episode, in whole parts
MILLION = 10**6  # qualities and probabilities carry six decimals
_EXACT = float(1 << 53)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResamplingUnits:
    """The units that clusters are made of: (task, repeat, day), sorted by family first.

    `row` maps an episode to its unit, `task`, `repeat` and `day` a unit to its own, `family` a task
    to its family (an index into `families`), `body` a task to the body of a fleet on which it is
    played, NO_UNIT elsewhere; None: none is. A task is a pair id.
    """

    families: tuple[str, ...]
    row: Integers
    task: Integers
    repeat: Integers
    day: Integers
    family: Integers
    body: Integers | None = None

    @property
    def unit_family(self) -> Integers:
        """The family of each unit."""
        return self.family[self.task]


def resampling_units(table: Observables, families: tuple[str, ...]) -> ResamplingUnits:
    """Return the units of a table of episodes.

    Args:
        table: Counted episodes, at least one.
        families: "suite/family" names of the plan, sorted.
    Returns: The units, sorted by family, task, repeat and day.
    Raises: ScoringError: No episode, a family outside the plan, or a pair in two families.
    """
    if not len(table):
        raise ScoringError("No counted episode: there is nothing to resample.")
    unknown = sorted(set(table.family.tolist()) - set(families))
    if unknown:
        raise ScoringError(f"Families must be those of the plan, got {', '.join(unknown)}.")
    code = np.searchsorted(np.array(families), table.family)
    pairs, pair = np.unique(table.pair, return_inverse=True)
    number = code * len(pairs) + pair.reshape(-1)
    tasks, first, task = np.unique(number, return_index=True, return_inverse=True)
    counts = np.bincount(tasks % len(pairs))
    if counts.max() > 1:
        raise ScoringError(f"A pair belongs to one family, got {pairs[counts.argmax()]} in two.")
    unit = task.reshape(-1)
    for column in (table.repeat, table.day):
        values, place = np.unique(column, return_inverse=True)
        unit = unit * len(values) + place.reshape(-1)
    _, one, row = np.unique(unit, return_index=True, return_inverse=True)
    return ResamplingUnits(
        families=families,
        row=row.reshape(-1),
        task=task.reshape(-1)[one],
        repeat=table.repeat[one],
        day=table.day[one],
        family=code[first],
        body=table.unit[first],
    )


class Columns(NamedTuple):
    """Named sufficient statistics, a row per unit; equal columns are stored once.

    `names` maps a statistic to its column, `constants` are numbers that do not depend on the
    weights.
    """

    names: dict[str, int]
    table: Floats
    constants: dict[str, float]


class StatisticsTable:
    """Collects the columns of every statistic over one set of units."""

    def __init__(self, units: ResamplingUnits) -> None:
        self.units = units
        self._columns: dict[str, Floats] = {}
        self._constants: dict[str, float] = {}

    def add_constant(self, name: str, value: float) -> None:
        """Store a number that does not depend on the weights.

        Args:
            name: Name to read it by from `Totals.constants`.
            value: The number.
        """
        self._constants[name] = value

    def count_tasks(self, mask: Flags) -> int:
        """Return how many distinct tasks have a row where `mask` is true.

        Args:
            mask: (episodes,).
        """
        return len(np.unique(self.units.task[self.units.row[mask]]))

    def add_mean(self, name: str, values: Array, mask: Flags, *, scale: int = MILLION) -> None:
        """Add a quantity to be averaged over each task's masked episodes.

        Each task has the same weight, however many of its episodes are counted.

        Args:
            name: Name to read it by from `Totals.mean`.
            values: (episodes,), read where `mask` is true.
            mask: (episodes,).
            scale: Parts of the value that are kept.
        Raises: ScoringError: Shapes differ, a value is not finite, or sums would not be exact.
        """
        if np.shape(values) != np.shape(mask):
            raise ScoringError(
                f"`{name}` must have a value per episode, shape {np.shape(mask)}, got "
                f"shape {np.shape(values)}."
            )
        kept = np.round(np.where(mask, values, 0.0) * scale)
        if not np.isfinite(kept).all():
            raise ScoringError(f"`{name}` must be a number in every counted episode, got NaN.")
        task = self.units.task[self.units.row]
        rows = np.bincount(task, weights=mask, minlength=len(self.units.family))
        share = np.where(mask, np.round(SHARE / np.maximum(rows[task], 1.0)), 0.0)
        self._store(name, np.round(self._by_unit(kept * share) / scale))
        self._store(f"{name}#", self._by_unit(share))

    def add_sum(self, name: str, row: Integers, values: Floats) -> None:
        """Add a quantity with any number of entries an episode, to six decimals.

        Args:
            name: Name to read it by from `Totals.sum` and `Totals.pooled`.
            row: (entries,) row of each entry's episode.
            values: (entries,).
        Raises: ScoringError: Sums would not be exact.
        """
        entries = np.round(values * MILLION)
        self._store(name, _sums(self.units.row[row], entries, len(self.units.task)))

    def add_entries(self, name: str, row: Integers, values: Array) -> None:
        """Add a quantity to be averaged over entries, and under "NAME#" their count.

        Args:
            name: Name to read it by from `Totals.mean` and `Totals.pooled_mean`.
            row: (entries,) row of each entry's episode.
            values: (entries,).
        Raises: ScoringError: Sums would not be exact.
        """
        self.add_sum(name, row, values.astype(np.float64))
        self.add_sum(f"{name}#", row, np.ones(len(row)))

    def add_presence(self, name: str, mask: Flags) -> None:
        """Add whether a unit has an episode where `mask` is true.

        Args:
            name: Name to read it by from `Totals.sum`.
            mask: (episodes,).
        """
        self._store(name, np.minimum(self._by_unit(mask.astype(np.float64)), 1.0))

    def columns(self) -> Columns:
        """Return all columns added so far."""
        places: dict[bytes, int] = {}
        names = {
            name: places.setdefault(column.tobytes(), len(places))
            for name, column in self._columns.items()
        }
        table = np.empty((len(self.units.task), len(places)))
        for name, place in names.items():
            table[:, place] = self._columns[name]
        return Columns(names, table, self._constants)

    def _by_unit(self, values: Floats) -> Floats:
        return _sums(self.units.row, values, len(self.units.task))

    def _store(self, name: str, column: Floats) -> None:
        if name in self._columns:
            raise ScoringError(f"A column is added once, got `{name}` twice.")
        most = float(np.abs(column).max()) * len(column)
        if not most < _EXACT:
            raise ScoringError(f"`{name}` must add up below 2^53 parts, could reach {most:g}.")
        self._columns[name] = column


def _sums(place: Integers, values: Floats, size: int) -> Floats:
    """Return the sums of `values` by place, added in order of the rows."""
    return np.bincount(place, weights=values, minlength=size).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Totals:
    """Weighted sums per resample and family, from which every statistic is read.

    A resample is the whole sample, or the sample without one cluster. `read` collects the names of
    the columns that were read.
    """

    names: dict[str, int]
    table: Floats  # (resamples, families, columns)
    family_weights: Floats
    constants: dict[str, float]
    read: set[str] = field(default_factory=set)

    def mean(self, name: str) -> Floats:
        """Return the mean per family (resamples, families), NaN without episodes."""
        return _quotient(self.sum(name), self.sum(f"{name}#"))

    def sum(self, name: str) -> Floats:
        """Return a column's sum (resamples, families), in the parts it was added in."""
        if name not in self.names:
            own = [known for known in self.names if known[:2] == name[:2]]
            raise ScoringError(f"No column is called `{name}`; near: {', '.join(own)}.")
        self.read.add(name)
        column: Floats = self.table[:, :, self.names[name]]
        return column

    def pooled(self, name: str) -> Floats:
        """Return a column's sum over all families (resamples,)."""
        total: Floats = self.sum(name).sum(axis=1)
        return total

    def pooled_mean(self, name: str) -> Floats:
        """Return the mean over all entries (resamples,), NaN without entries."""
        return _quotient(self.pooled(name), self.pooled(f"{name}#"))

    def overall_mean(self, name: str) -> Floats:
        """Return the weighted mean over families (resamples,) of a column's means."""
        return self.overall(self.mean(name))

    def overall(self, per_family: Floats) -> Floats:
        """Return the weighted mean over families of a statistic.

        Args:
            per_family: (resamples, families); NaN families are left out and the weights
                renormalised.
        Returns: (resamples,), NaN where every family is NaN.
        """
        known = ~np.isnan(per_family)
        weights = np.where(known, self.family_weights, 0.0)
        whole = weights.sum(axis=1)
        parts = (np.where(known, per_family, 0.0) * weights).sum(axis=1)
        return _quotient(parts, whole)


def _quotient(sums: Floats, counts: Floats) -> Floats:
    """Return sums over counts, NaN where the count is 0."""
    nothing = np.full_like(counts, np.nan)
    quotient: Floats = np.divide(sums, counts, out=nothing, where=counts > 0)
    return quotient


def weighted_totals(
    weights: Floats, columns: Columns, family: Integers, family_weights: Floats
) -> Totals:
    """Return weights times columns, family by family.

    Args:
        weights: (resamples, n).
        columns: Table of (n, c) sufficient statistics.
        family: (n,) sorted, the family of each row.
        family_weights: (families,), sum 1.
    Returns: Sums (resamples, families, c).
    Raises: ScoringError: The weights do not fit the columns.
    """
    count = len(columns.table)
    if weights.ndim != 2 or weights.shape[1] != count or len(family) != count:
        raise ScoringError(
            f"Weights must be (resamples, {count}), got {weights.shape}; families {family.shape}."
        )
    edges = np.searchsorted(family, np.arange(len(family_weights) + 1))
    table = np.empty((len(weights), len(family_weights), columns.table.shape[1]))
    for k, (first, last) in enumerate(pairwise(edges)):
        table[:, k, :] = weights[:, first:last] @ columns.table[first:last]
    return Totals(columns.names, table, family_weights, columns.constants)
