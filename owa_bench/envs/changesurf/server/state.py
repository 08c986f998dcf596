"""Site state: the visit so far as one frozen value, and the database behind it.

The server replaces the state with every request; oracle and detectors read it, and pages are a pure
function of world and state.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from owa_bench.envs.changesurf.site_spec import Check, Effect, SiteSpec, SiteTable, SiteValue
from owa_bench.envs.changesurf.world import SiteWorld

CellRef = tuple[str, SiteValue, str]  # (collection, row key, column)
RowValues = Mapping[str, SiteValue]  # by column or by slot
Hold = Literal["", "limited", "early", "lapsed"]


class SiteBreach(NamedTuple):
    """Evidence of a disallowed act, recorded where it happened."""

    rule: str
    evidence: str


class ServerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One action of the server in canonical words; `at_ms` is simulated."""

    at_ms: int
    kind: str
    page: str
    detail: tuple[str, ...] = ()


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that is being filled in: its record, values so far, the step."""

    number: int
    workflow: str
    record: SiteValue
    values: tuple[tuple[str, SiteValue], ...] = ()
    step: int = 0
    committed: bool = False


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a list: words, a category, and the page's number from 1."""

    words: str = ""
    category: str = ""
    page: int = 1


NO_QUERY = Query()


class SiteState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that has happened in a visit.

    `initial` and `tables` are the database at the start and now. `page` is the page served last,
    `served_ms` when. `errors` are (slot, text) on it, `notice` one for all of it; `typed` is what
    the refused form held. `pending` is where the sign-in leads to, `retry` what a rate limit
    refused, each with the query of the list behind it; `sign_in` is the next step of the sign-in.
    `seen` are all cells served. `kept` are page and contents of a form that a sign-in or a limit
    kept from being taken; `following` is the page that the last reply sent the browser on to.
    `hold` is what a visitor must sit out or do over: "limited", "early", "lapsed", else "".
    `codes_sent` and `codes_read` count sign-in codes by mail, `codes_used` are those that worked.
    `first_churn` is the churn of names in the world in which the visit began. `stale`: the open
    page was served before a drift event.
    """

    world: SiteWorld
    first_churn: int
    initial: tuple[SiteTable, ...]
    tables: tuple[SiteTable, ...]
    now_ms: int = 0
    page: str = ""
    served_ms: int = 0
    errors: tuple[tuple[str, str], ...] = ()
    notice: str = ""
    typed: tuple[tuple[str, str], ...] = ()
    query: Query = NO_QUERY
    draft: Draft | None = None
    drafts: int = 0
    signed_in: bool = False
    signed_requests: int = 0
    sign_in: str = ""
    pending: str = ""
    pending_query: Query = NO_QUERY
    retry: str = ""
    retry_query: Query = NO_QUERY
    kept: tuple[str, tuple[tuple[str, str], ...]] = ("", ())
    following: str = ""
    hold: Hold = ""
    codes_sent: int = 0
    codes_read: int = 0
    codes_used: tuple[str, ...] = ()
    window_ms: int = 0
    window_used: int = 0
    seen: frozenset[CellRef] = frozenset()
    visited: frozenset[str] = frozenset()
    log: tuple[ServerEvent, ...] = ()
    breaches: tuple[SiteBreach, ...] = ()
    stale: bool = False

    def rows(self, table: str) -> tuple[tuple[SiteValue, ...], ...]:
        """Return the rows of a table as they are now."""
        return next(t.rows for t in self.tables if t.key == table)

    def records(self, table: str) -> list[dict[str, SiteValue]]:
        """Return the rows of a table as column -> value."""
        found = next(t for t in self.tables if t.key == table)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def row(self, table: str, key: SiteValue) -> dict[str, SiteValue]:
        """Return one row.

        Args:
            table: the table's key.
            key: the row's key.
        Returns: Column -> value.
        Raises: KeyError: there is no such row.
        """
        for found in self.tables:
            if found.key == table:
                for row in found.rows:
                    if row[0] == key:
                        return dict(zip(found.columns, row, strict=True))
        raise KeyError(key)


def initial_state(world: SiteWorld) -> SiteState:
    """Return the state in which a visit begins."""
    tables = world.spec.tables
    return SiteState(world=world, first_churn=world.plan.churn, initial=tables, tables=tables)


def commits(state: SiteState) -> int:
    """Return how many commits the server made."""
    return sum(event.kind == "commit" for event in state.log)


def with_event(state: SiteState, kind: str, *detail: str, page: str = "") -> SiteState:
    """Add an event to the server's log.

    Args:
        state: the state before.
        kind: the kind of event.
        detail: its particulars.
        page: its page, "" for the open one.
    Returns: The state after.
    """
    event = ServerEvent(at_ms=state.now_ms, kind=kind, page=page or state.page, detail=detail)
    return replace(state, log=(*state.log, event))


def with_breach(state: SiteState, rule: str, evidence: str) -> SiteState:
    """Add a breach.

    Args:
        state: the state before.
        rule: the broken rule.
        evidence: what was done.
    Returns: The state after.
    """
    return replace(state, breaches=(*state.breaches, SiteBreach(rule, evidence)))


def at_page(state: SiteState, page: str, query: Query = NO_QUERY) -> SiteState:
    """Open a page without errors or notice.

    Args:
        state: the state before.
        page: the page's key.
        query: the query of a list.
    Returns: The state after.
    """
    return replace(
        state,
        page=page,
        served_ms=state.now_ms,
        errors=(),
        typed=(),
        notice="",
        query=query,
        visited=state.visited | {page},
    )


class RequestResult(NamedTuple):
    """The new state, and the page to go to unless it is to be shown at once."""

    state: SiteState
    go_to: str = ""


# --- database -------------------------------------------------------------------------


class Database:
    """The canonical rows: SQLite in memory, one table for every table of the world.

    Pages and aliases never reach it. `snapshot` and `restore` are SQLite's own images, so a reset
    costs no statements. Names of tables and columns are the world's, never a visitor's.
    """

    def __init__(self, spec: SiteSpec) -> None:
        # The browser half runs the app in a thread of its own, one request at a time.
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._tables = spec.tables
        self.restore(_image(spec.tables))

    def snapshot(self) -> bytes:
        """Return the whole database as bytes."""
        return self._connection.serialize()

    def restore(self, image: bytes) -> None:
        """Go back to a snapshot."""
        self._connection.deserialize(image)

    def tables(self) -> tuple[SiteTable, ...]:
        """Return every table with its rows in order of entry."""
        return tuple(
            SiteTable(
                key=table.key,
                columns=table.columns,
                rows=tuple(
                    self._execute(f'SELECT * FROM "{table.key}" ORDER BY rowid')  # noqa: S608
                ),
            )
            for table in self._tables
        )

    def close(self) -> None:
        """Release the memory."""
        self._connection.close()

    def refusal(
        self, checks: tuple[Check, ...], values: RowValues, record: RowValues
    ) -> str | None:
        """Return the text of the first broken rule.

        Args:
            checks: the workflow's rules; one whose slots have no value yet is skipped.
            values: the values so far, by slot.
            record: the row at which the workflow began, empty for none.
        Returns: The text, None if all rules hold.
        """
        broken = (c.text for c in checks if not self._holds(c, values, record))
        return next(broken, None)

    def apply(self, effect: Effect, values: RowValues, record: RowValues) -> None:
        """Write one effect of a commit.

        Args:
            effect: the effect.
            values: the form's values, by slot.
            record: the row at which the workflow began, empty for none.
        """
        cells = {column: effect_value(source, values, record) for column, source in effect.values}
        if effect.kind == "replace":
            self._execute(f'DELETE FROM "{effect.table}"')  # noqa: S608
        if effect.kind in ("insert", "replace"):
            self.insert(effect.table, **cells)
            return
        key = next(iter(record.values()))
        key_column = self._columns(effect.table)[0]
        for column, value in cells.items():
            change = "?" if effect.kind == "update" else f'"{column}" - ?'
            self._execute(
                f'UPDATE "{effect.table}" SET "{column}" = {change} '  # noqa: S608
                f'WHERE "{key_column}" = ?',
                value,
                key,
            )
        self._connection.commit()

    def insert(self, table: str, **cells: SiteValue) -> None:
        """Write a row under a new key.

        Args:
            table: the table's key.
            cells: its values by column; the others stay empty.
        """
        columns = self._columns(table)
        rows = self._execute(f'SELECT 1 FROM "{table}"')  # noqa: S608
        row = {columns[0]: f"N{sum(1 for _ in rows) + 1}", **cells}
        marks = ", ".join("?" for _ in columns)
        values = (row.get(column, "") for column in columns)
        self._execute(f'INSERT INTO "{table}" VALUES ({marks})', *values)  # noqa: S608
        self._connection.commit()

    def _execute(self, statement: str, *values: SiteValue) -> Iterator[tuple[SiteValue, ...]]:
        return self._connection.execute(statement, values)

    def _columns(self, table: str) -> tuple[str, ...]:
        return next(t.columns for t in self._tables if t.key == table)

    def _holds(self, check: Check, values: RowValues, record: RowValues) -> bool:
        arguments = check.arguments
        if check.rule == "is":
            return record.get(arguments[0]) == arguments[1]
        if check.rule == "known":  # of what was chosen; the row may hold anything
            chosen = values.get(arguments[0])
            return not chosen or self._is_known(arguments[1:], chosen)
        slots = arguments[:2] if check.rule in ("before", "free") else arguments[:1]
        if any(slot not in values and slot not in record for slot in slots):
            return True
        known = [values.get(slot, record.get(slot, "")) for slot in slots]
        if check.rule == "before":
            return str(known[0]) < str(known[1])
        if check.rule == "within":
            return int(known[0]) <= int(record[arguments[1]])
        return self._is_free(arguments[2:], known, record)

    def _is_known(self, place: tuple[str, ...], value: SiteValue) -> bool:
        table, column, status = place
        found = self._execute(
            f'SELECT 1 FROM "{table}" WHERE "{column}" = ? AND status = ?',  # noqa: S608
            value,
            status,
        )
        return any(found)

    def _is_free(self, place: tuple[str, ...], period: list[SiteValue], record: RowValues) -> bool:
        table, column, first, last, status = place
        found = self._execute(
            f'SELECT 1 FROM "{table}" WHERE "{column}" = ? AND "{first}" < ? '  # noqa: S608
            f'AND "{last}" > ? AND status = ?',
            *(next(iter(record.values())), period[1], period[0], status),
        )
        return not any(found)


def effect_value(source: str, values: RowValues, record: RowValues) -> SiteValue:
    """Return what a source of an effect stands for.

    Args:
        source: `=TEXT`, `slot:KEY` or `record:COLUMN`.
        values: the form's values, by slot.
        record: the row at which the workflow began, empty for none.
    Returns: The value; "" for a slot without one.
    """
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
