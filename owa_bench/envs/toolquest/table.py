"""Local work on rows behind handles: filter, join, aggregate, sort, choose.

Pure: tables in, a table out. A request that makes no sense raises `TableError`, which
the session turns into words for the agent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

Record = Mapping[str, Any]


class TableError(Exception):
    """A table request that cannot be carried out; the message says why."""


class DataTable(NamedTuple):
    """Columns and rows, and the steps they came from."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    steps: tuple[int, ...] = ()


def find_rows(document: Any, steps: tuple[int, ...] = ()) -> DataTable:
    """Return the rows of a reply: the first list of objects in it, breadth first."""
    level = [document]
    while level:
        for node in level:
            if isinstance(node, list) and all(isinstance(item, dict) for item in node):
                return from_records(node, steps)
        level = [
            child for node in level if isinstance(node, dict) for child in node.values()
        ]
    raise TableError("There is no list of objects behind this handle.")


def from_records(records: Sequence[Record], steps: tuple[int, ...] = ()) -> DataTable:
    """Return objects as rows; the columns are all their keys, in order of sight."""
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    rows = tuple(tuple(record.get(key) for key in columns) for record in records)
    return DataTable(columns, rows, steps)


def stack(parts: Sequence[DataTable]) -> DataTable:
    """Return several tables one below the other, by column name."""
    if len(parts) == 1:
        return parts[0]
    records = [
        dict(zip(part.columns, row, strict=True)) for part in parts for row in part.rows
    ]
    merged = from_records(records, tuple(sorted({s for p in parts for s in p.steps})))
    return merged if records else DataTable(parts[0].columns, (), merged.steps)


def work(
    table: DataTable, other: DataTable | None, request: Mapping[str, Any]
) -> DataTable:
    """Return what the steps of a request make of a table, in the order of the tool."""
    if other is not None:
        table = join(table, other, request["join"])
    table = where(table, request.get("where", {}))
    if "group" in request or "aggregate" in request:
        table = group(table, request.get("group", []), request.get("aggregate", {}))
    table = sort(table, request.get("sort", []))
    if "columns" in request:
        places = [_place(table, name) for name in request["columns"]]
        rows = tuple(tuple(row[i] for i in places) for row in table.rows)
        table = DataTable(tuple(request["columns"]), rows, table.steps)
    return table


def _place(table: DataTable, name: str) -> int:
    if name not in table.columns:
        known = ", ".join(table.columns) or "none"
        raise TableError(f"There is no column `{name}`; the columns are {known}.")
    return table.columns.index(name)


def where(table: DataTable, wanted: Mapping[str, Any]) -> DataTable:
    """Return the rows whose cells equal the wanted values."""
    tests = [(_place(table, name), value) for name, value in wanted.items()]
    rows = tuple(r for r in table.rows if all(r[i] == value for i, value in tests))
    return DataTable(table.columns, rows, table.steps)


def join(left: DataTable, right: DataTable, on: Mapping[str, Any]) -> DataTable:
    """Return the rows of both tables that agree; a clash of names gets `right_`."""
    i, j = _place(left, on["left"]), _place(right, on["right"])
    partners: dict[Any, list[tuple[Any, ...]]] = {}
    for row in right.rows:
        partners.setdefault(_hashable(row[j]), []).append(row)
    columns = left.columns + tuple(
        f"right_{name}" if name in left.columns else name for name in right.columns
    )
    lonely = [(None,) * len(right.columns)] if on.get("kind") == "left" else []
    rows = tuple(
        row + partner
        for row in left.rows
        for partner in partners.get(_hashable(row[i]), lonely)
    )
    return DataTable(columns, rows, tuple(sorted({*left.steps, *right.steps})))


def group(
    table: DataTable, names: Sequence[str], outputs: Mapping[str, str]
) -> DataTable:
    """Return one row a group with its aggregates."""
    places = [_place(table, name) for name in names]
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in table.rows:
        groups.setdefault(tuple(_hashable(row[i]) for i in places), []).append(row)
    makers = [_aggregate(table, text) for text in outputs.values()]
    rows = tuple(
        key + tuple(make(members) for make in makers) for key, members in groups.items()
    )
    return DataTable((*names, *outputs), rows, table.steps)


def _aggregate(table: DataTable, text: str) -> Callable[[list[tuple[Any, ...]]], Any]:
    """Return the function that `count`, `sum:x`, `min:x` or `max:x` stands for."""
    word, _, name = text.partition(":")
    if word == "count":
        return len
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "sum": sum,
        "min": min,
        "max": max,
    }
    if word not in functions:
        raise TableError(f"An aggregate is count, sum:x, min:x or max:x, got `{text}`.")
    i, function = _place(table, name), functions[word]

    def apply(rows: list[tuple[Any, ...]]) -> Any:
        try:
            return function([row[i] for row in rows])
        except TypeError as error:
            raise TableError(f"`{text}` cannot be taken of these values.") from error

    return apply


def sort(table: DataTable, names: Sequence[str]) -> DataTable:
    """Return the rows in order of columns; `-name` runs downwards."""
    rows = list(table.rows)
    for name in reversed(names):
        i = _place(table, name.removeprefix("-"))
        rows.sort(key=lambda row: _order(row[i]), reverse=name.startswith("-"))
    return DataTable(table.columns, tuple(rows), table.steps)


def _order(value: Any) -> tuple[int, Any]:
    """Return a key that puts numbers before text before the rest."""
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (2, str(value))


def _hashable(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict) else value


def view(table: DataTable, handle: str, offset: int, limit: int, room: int) -> str:
    """Return JSON of as many rows from `offset` on as fit into `room` characters."""
    head = {"handle": handle, "columns": table.columns, "total": len(table.rows)}
    shown: list[str] = []
    left = room - len(msgspec.json.encode(head)) - 60
    for row in table.rows[offset : offset + limit]:
        text = msgspec.json.encode(row).decode()
        left -= len(text) + 1
        if left < 0:
            break
        shown.append(text)
    if not shown and offset < len(table.rows) and limit > 0:
        raise TableError("One row is longer than an answer; choose fewer `columns`.")
    end = offset + len(shown)
    more = end if end < len(table.rows) else None
    front = msgspec.json.encode({**head, "offset": offset, "next_offset": more})
    return f'{front.decode()[:-1]},"rows":[{",".join(shown)}]}}'
