"""The site's database: SQLite in memory, one table for every table of the world."""

import sqlite3
from collections.abc import Mapping
from functools import lru_cache

from owa_bench.worlds.site import Check, Effect, SiteSpec, SiteTable, SiteValue

Row = Mapping[str, SiteValue]
Values = Mapping[str, SiteValue]


class Database:
    """Canonical rows; pages and aliases never reach it.

    `snapshot` and `restore` are SQLite's own images: a reset costs no statements.
    """

    def __init__(self, spec: SiteSpec) -> None:
        # The browser half runs the app in a thread of its own, one request at a time.
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._tables = spec.tables
        self.restore(_image(spec.tables))

    def snapshot(self) -> bytes:
        """Return the whole database as bytes."""
        return self._base.serialize()

    def restore(self, image: bytes) -> None:
        """Go back to a snapshot."""
        self._base.deserialize(image)

    def tables(self) -> tuple[SiteTable, ...]:
        """Return every table with its rows in order of entry."""
        return tuple(
            SiteTable(
                key=table.key,
                columns=table.columns,
                rows=tuple(
                    self._base.execute(f'SELECT * FROM "{table.key}" ORDER BY rowid')  # noqa: S608 - names are the world's, not a visitor's
                ),
            )
            for table in self._tables
        )

    def close(self) -> None:
        """Release the memory."""
        self._base.close()

    def refusal(
        self, checks: tuple[Check, ...], values: Values, record: Row
    ) -> str | None:
        """Return the text of the first rule that is broken, None if all hold.

        A rule whose slots have no value yet is left for later.
        """
        for check in checks:
            if not self._holds(check, values, record):
                return check.text
        return None

    def apply(self, effect: Effect, values: Values, record: Row) -> None:
        """Write what a commit writes."""
        cells = {
            column: _source(source, values, record) for column, source in effect.values
        }
        if effect.kind == "insert":
            self._insert(effect.table, cells)
            return
        key = next(iter(record.values()))
        key_column = self._columns(effect.table)[0]
        for column, value in cells.items():
            change = "?" if effect.kind == "update" else f'"{column}" - ?'
            self._base.execute(
                f'UPDATE "{effect.table}" SET "{column}" = {change} '  # noqa: S608
                f'WHERE "{key_column}" = ?',
                (value, key),
            )
        self._base.commit()

    def insert(self, table: str, **cells: SiteValue) -> None:
        """Write a row of the site's own: an extra, an answer."""
        self._insert(table, cells)

    def _insert(self, table: str, cells: Mapping[str, SiteValue]) -> None:
        columns = self._columns(table)
        number = self._base.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0]  # noqa: S608
        row = {columns[0]: f"N{number + 1}", **cells}
        marks = ", ".join("?" for _ in columns)
        self._base.execute(
            f'INSERT INTO "{table}" VALUES ({marks})',  # noqa: S608
            [row.get(column, "") for column in columns],
        )
        self._base.commit()

    def _columns(self, table: str) -> tuple[str, ...]:
        return next(t.columns for t in self._tables if t.key == table)

    def _holds(self, check: Check, values: Values, record: Row) -> bool:
        arguments = check.arguments
        if check.rule == "is":
            return record.get(arguments[0]) == arguments[1]
        slots = arguments[:2] if check.rule in ("before", "free") else arguments[:1]
        if any(slot not in values and slot not in record for slot in slots):
            return True
        known = [values.get(slot, record.get(slot, "")) for slot in slots]
        if check.rule == "before":
            return str(known[0]) < str(known[1])
        if check.rule == "within":
            return int(known[0]) <= int(record[arguments[1]])
        if check.rule == "known":
            return not known[0] or self._has(arguments[1:], known[0])
        return self._is_free(arguments[2:], known, record)

    def _has(self, place: tuple[str, ...], value: SiteValue) -> bool:
        table, column, status = place
        found = self._base.execute(
            f'SELECT 1 FROM "{table}" WHERE "{column}" = ? AND status = ?',  # noqa: S608
            (value, status),
        )
        return found.fetchone() is not None

    def _is_free(
        self, place: tuple[str, ...], known: list[SiteValue], record: Row
    ) -> bool:
        table, column, first, last, status = place
        key = next(iter(record.values()))
        found = self._base.execute(
            f'SELECT 1 FROM "{table}" WHERE "{column}" = ? AND "{first}" < ? '  # noqa: S608
            f'AND "{last}" > ? AND status = ?',
            (key, known[1], known[0], status),
        )
        return found.fetchone() is None


def _source(source: str, values: Values, record: Row) -> SiteValue:
    """Return what a source of an effect stands for."""
    if source.startswith("="):
        return source[1:]
    kind, _, key = source.partition(":")
    return values.get(key, "") if kind == "slot" else record[key]


@lru_cache(maxsize=32)
def _image(tables: tuple[SiteTable, ...]) -> bytes:
    """Return a database that holds the tables, as bytes."""
    base = sqlite3.connect(":memory:")
    try:
        for table in tables:
            columns = ", ".join(f'"{column}"' for column in table.columns)
            marks = ", ".join("?" for _ in table.columns)
            base.execute(f'CREATE TABLE "{table.key}" ({columns})')
            base.executemany(f'INSERT INTO "{table.key}" VALUES ({marks})', table.rows)  # noqa: S608
        base.commit()
        return base.serialize()
    finally:
        base.close()
