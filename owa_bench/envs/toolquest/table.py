"""Reply bodies behind handles, and local work on their rows.

Bodies are kept whole; `Handles` reads them and joins, filters, aggregates and sorts their rows. A
request that makes no sense raises `TableError`, which the session turns into words for the agent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

MOST_CELLS = 1_000_000


class TableError(Exception):
    """A table request that cannot be carried out; the message says why."""


class DataTable(NamedTuple):
    """Columns and rows, and the steps they came from."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    steps: tuple[int, ...] = ()


def find_rows(document: Any, steps: tuple[int, ...] = ()) -> DataTable:
    """Return the rows of a reply: the first list of objects in it, breadth first.

    Args:
        document: A JSON value.
        steps: The steps that it came from.
    Returns: The rows as a table.
    Raises: TableError: There is no list of objects.
    """
    level = [document]
    while level:
        for node in level:
            if isinstance(node, list) and all(isinstance(item, dict) for item in node):
                return from_records(node, steps)
        level = [child for node in level if isinstance(node, dict) for child in node.values()]
    raise TableError("There is no list of objects behind this handle.")


def from_records(records: Sequence[Mapping[str, Any]], steps: tuple[int, ...] = ()) -> DataTable:
    """Return objects as rows; the columns are all their keys, in order of sight.

    Args:
        records: Objects.
        steps: The steps that they came from.
    Returns: A table; a missing key is None.
    """
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    rows = tuple(tuple(record.get(key) for key in columns) for record in records)
    return DataTable(columns, rows, steps)


def stack(parts: Sequence[DataTable]) -> DataTable:
    """Return several tables one below the other, by column name.

    Args:
        parts: Tables, at least one.
    Returns: One table with the columns of all.
    Raises: TableError: It would be too large.
    """
    if len(parts) == 1:
        return parts[0]
    names = {name for part in parts for name in part.columns}
    _check_size(sum(len(part.rows) for part in parts) * len(names))
    records = [dict(zip(part.columns, row, strict=True)) for part in parts for row in part.rows]
    merged = from_records(records, tuple(sorted({s for p in parts for s in p.steps})))
    return merged if records else DataTable(parts[0].columns, (), merged.steps)


def transform(table: DataTable, other: DataTable | None, request: Mapping[str, Any]) -> DataTable:
    """Return what the steps of a request make of a table, in the order of the tool.

    Args:
        table: The table.
        other: The table to join, None without a join.
        request: Arguments of the tool `table`.
    Raises: TableError: The request names no column, or an aggregate that there is not.
    """
    if other is not None:
        table = join(table, other, request["join"])
    table = _where(table, request.get("where", {}))
    if "group" in request or "aggregate" in request:
        table = _group(table, request.get("group", []), request.get("aggregate", {}))
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


def _where(table: DataTable, wanted: Mapping[str, Any]) -> DataTable:
    """Return the rows whose cells equal the wanted values."""
    tests = [(_place(table, name), value) for name, value in wanted.items()]
    rows = tuple(r for r in table.rows if all(r[i] == value for i, value in tests))
    return DataTable(table.columns, rows, table.steps)


def join(left: DataTable, right: DataTable, on: Mapping[str, Any]) -> DataTable:
    """Return the rows of both tables that agree; a clash of names gets `right_`.

    Args:
        left: The first table.
        right: The second table.
        on: The columns `left` and `right`, and the `kind`: inner or left.
    Returns: A table with the columns of both.
    Raises: TableError: There is no such column, or the table would be too large.
    """
    i, j = _place(left, on["left"]), _place(right, on["right"])
    partners: dict[Any, list[tuple[Any, ...]]] = {}
    for row in right.rows:
        partners.setdefault(_hashable(row[j]), []).append(row)
    columns = left.columns + tuple(
        f"right_{name}" if name in left.columns else name for name in right.columns
    )
    unmatched = [(None,) * len(right.columns)] if on.get("kind") == "left" else []
    matches = (partners.get(_hashable(row[i]), unmatched) for row in left.rows)
    _check_size(sum(map(len, matches)) * len(columns))
    rows = tuple(
        row + partner for row in left.rows for partner in partners.get(_hashable(row[i]), unmatched)
    )
    return DataTable(columns, rows, tuple(sorted({*left.steps, *right.steps})))


def _check_size(cells: int) -> None:
    if cells > MOST_CELLS:
        raise TableError(
            f"The table would have {cells:,} cells, more than {MOST_CELLS:,}: filter "
            "or choose columns first."
        )


def _group(table: DataTable, names: Sequence[str], outputs: Mapping[str, str]) -> DataTable:
    """Return one row a group with its aggregates."""
    places = [_place(table, name) for name in names]
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in table.rows:
        groups.setdefault(tuple(_hashable(row[i]) for i in places), []).append(row)
    makers = [_aggregate(table, text) for text in outputs.values()]
    rows = tuple(key + tuple(make(members) for make in makers) for key, members in groups.items())
    return DataTable((*names, *outputs), rows, table.steps)


def _aggregate(table: DataTable, text: str) -> Callable[[list[tuple[Any, ...]]], Any]:
    """Return the function that `count`, `sum:x`, `min:x` or `max:x` stands for."""
    word, _, name = text.partition(":")
    if word == "count":
        return len
    functions: dict[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}
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
    """Return the rows in order of columns; `-name` runs downwards.

    Args:
        table: The table.
        names: Columns, the most important first.
    Returns: The sorted table; numbers stand before text.
    Raises: TableError: There is no such column.
    """
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
    """Return JSON of as many rows from `offset` on as fit into `room` characters.

    Args:
        table: The table.
        handle: The handle that it goes by.
        offset: First row, from 0.
        limit: Most rows.
        room: Characters there are.
    Returns: JSON text.
    Raises: TableError: One row is longer than the room.
    """
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


_SLICE = 3_500  # characters that `read` shows at once


class StoredBody(NamedTuple):
    """A body as it came, or a table that was made; `steps` say from where."""

    content: bytes | DataTable
    steps: tuple[int, ...]


class Handles:
    """The handles of an episode, `art:1` onwards."""

    def __init__(self) -> None:
        self._kept: dict[str, StoredBody] = {}

    def keep(self, content: bytes | DataTable, *steps: int) -> str:
        """Return a new handle for a body or table.

        Args:
            content: What to keep.
            *steps: The steps that it came from.
        """
        handle = f"art:{len(self._kept) + 1}"
        self._kept[handle] = StoredBody(content, steps)
        return handle

    def _get(self, handle: str) -> StoredBody:
        if handle not in self._kept:
            last = f"art:1 to art:{len(self._kept)}" if self._kept else "none yet"
            raise TableError(f"There is no handle `{handle}`; there are {last}.")
        return self._kept[handle]

    def steps_of(self, handles: Sequence[str]) -> set[int]:
        """Return the steps whose replies the handles hold."""
        return {step for handle in handles for step in self._get(handle).steps}

    def rows_of(self, source: str | Sequence[str]) -> DataTable:
        """Return the rows behind one handle, or behind several stacked."""
        names = [source] if isinstance(source, str) else source
        parts = []
        for name in names:
            kept = self._get(name)
            if isinstance(kept.content, DataTable):
                parts.append(kept.content)
            else:
                parts.append(find_rows(_parsed(name, kept.content), kept.steps))
        return stack(parts)

    def table(self, request: Mapping[str, Any], *, room: int) -> str:
        """Carry out a table request; return the text of the new handle's rows.

        Args:
            request: Arguments of the tool `table`.
            room: Characters there are.
        Returns: JSON text.
        Raises: TableError: The request makes no sense.
        """
        other = self.rows_of(request["join"]["source"]) if "join" in request else None
        result = transform(self.rows_of(request["source"]), other, request)
        handle = self.keep(result, *result.steps)
        return view(
            result, handle, request.get("offset", 0), request.get("limit", len(result.rows)), room
        )

    def read(self, handle: str, *, offset: int, pointer: str, room: int) -> str:
        """Return the next characters of a body, whole or from a JSON pointer on.

        Args:
            handle: The handle.
            offset: First character, from 0.
            pointer: JSON pointer (RFC 6901), "" for the whole body.
            room: Characters there are.
        Returns: JSON text with the next characters.
        Raises: TableError: There is no such handle or pointer.
        """
        kept = self._get(handle)
        if isinstance(kept.content, DataTable):
            whole = msgspec.json.encode(kept.content._asdict()).decode()
        else:
            whole = kept.content.decode("utf-8", "replace")
        if pointer:
            part = _at(_parsed(handle, whole.encode()), pointer)
            whole = msgspec.json.encode(part).decode()
        size = _SLICE
        while True:
            text = _slice(handle, whole, offset, size)
            if len(text) <= room or size < 100:
                return text
            size -= max(50, len(text) - room)


def _slice(handle: str, whole: str, offset: int, size: int) -> str:
    end = min(offset + size, len(whole))
    answer = {
        "handle": handle,
        "characters": len(whole),
        "offset": offset,
        "next_offset": end if end < len(whole) else None,
        "text": whole[offset:end],
    }
    return msgspec.json.encode(answer).decode()


def _parsed(handle: str, content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise TableError(f"What `{handle}` holds is not JSON.") from error


def _at(document: Any, pointer: str) -> Any:
    """Return the part of a document at an RFC 6901 pointer."""
    for step in pointer.removeprefix("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and name in map(str, range(len(document))):
            document = document[int(name)]
        else:
            raise TableError(f"There is nothing at the pointer `{pointer}`.")
    return document
