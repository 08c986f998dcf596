"""Tables of a few episodes each joined to one, as if all episodes had been read at once."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from owa_bench.records.observables import SPENT, Array, Crew, Integers, Observables

_BY_NAME = {"spent": "spent_by", "used": "categories", "offered": "categories"}


def join_tables(parts: list[Observables]) -> Observables:
    """Return one table of all episodes, by plan index and attempt.

    Args:
        parts: Tables of some episodes each, one at least; emptied, so that no column is there twice
            for longer than it takes to join it.
    Returns: The rows of all.
    """
    table = parts.pop() if len(parts) == 1 else _joined(parts)
    order = np.lexsort((table.attempt, table.index))
    return table if np.array_equal(order, np.arange(len(order))) else _arranged(table, order)


def _joined(parts: list[Observables]) -> Observables:
    """Return the rows of the parts one after the other; the parts are emptied."""
    own = {key for part in parts for key in part.spent_by}.difference(SPENT)
    names: dict[str, tuple[Any, ...]] = {
        "spent_by": (*SPENT, *sorted(own)),
        "categories": tuple(sorted({name for part in parts for name in part.categories})),
    }
    known = {by: [getattr(part, by) for part in parts] for by in names}
    counts = [len(part) for part in parts]
    given = {
        item.name: [getattr(part, item.name) for part in parts]
        for item in fields(Observables)
        if item.name not in names
    }
    parts.clear()
    columns: dict[str, Any] = dict(names)
    for name in tuple(given):
        values = given.pop(name)
        if name in _BY_NAME:
            by = _BY_NAME[name]
            values = [
                _spread(value, own_names, names[by])
                for value, own_names in zip(values, known[by], strict=True)
            ]
        if isinstance(values[0], Crew):
            columns[name] = _joined_columns(values)
        elif is_dataclass(values[0]):
            columns[name] = _joined_columns(values, counts)
        else:
            columns[name] = np.concatenate(values)
    return Observables(**columns)


def _spread(values: Array, own: Sequence[Any], names: Sequence[Any]) -> Array:
    """Return columns under the names of all parts; what a part lacks is 0 there."""
    spread = np.zeros((len(values), len(names)), dtype=values.dtype)
    spread[:, [names.index(name) for name in own]] = values
    return spread


def _joined_columns(tables: Sequence[Any], counts: Sequence[int] = ()) -> Any:
    """Return tables of one kind joined; with counts of episodes, those of entries."""
    columns = {}
    for name in (item.name for item in fields(tables[0])):
        values = [getattr(table, name) for table in tables]
        if counts and name == "row":
            begins = np.cumsum([0, *counts[:-1]])
            values = [value + begin for value, begin in zip(values, begins, strict=True)]
        columns[name] = np.concatenate(_as_wide(values))
    return type(tables[0])(**columns)


def _as_wide(values: Sequence[Array]) -> Sequence[Array]:
    """Return arrays with as many columns as the widest, zeros added; others as they are."""
    if values[0].ndim == 1:
        return values
    width = max(value.shape[1] for value in values)
    return [np.pad(value, ((0, 0), (0, width - value.shape[1]))) for value in values]


def _arranged(table: Observables, order: Integers) -> Observables:
    """Return the rows in another order, the entries of each with it."""
    places = np.argsort(order)  # of the old rows
    columns = {}
    for item in fields(table):
        value = getattr(table, item.name)
        if isinstance(value, Crew):
            value = Crew(**{part.name: getattr(value, part.name)[order] for part in fields(value)})
        elif is_dataclass(value) and not isinstance(value, type):
            value = _arranged_entries(value, places)
        elif isinstance(value, np.ndarray):
            value = value[order]
        columns[item.name] = value
    return Observables(**columns)


def _arranged_entries(table: Any, places: Integers) -> Any:
    """Return entries by the new place of their episode, in their order within it."""
    rows = places[table.row]
    order = np.argsort(rows, kind="stable")
    columns = {item.name: getattr(table, item.name)[order] for item in fields(table)}
    return type(table)(**(columns | {"row": rows[order]}))
