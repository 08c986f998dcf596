"""Edits of a case's world that operators share: lists of hosts, rows of tables, pages."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.systems import ServedColumn, ServedTable, SystemHost
from owa_bench.errors import DriftError


def with_hosts(world: CaseWorld, change: Callable[[SystemHost], SystemHost]) -> CaseWorld:
    """Return a world with every host changed.

    Args:
        world: Before.
        change: Of one host.
    """
    return replace(world, hosts=tuple(map(change, world.hosts)))


def with_lists(
    world: CaseWorld, table: str, change: Callable[[ServedTable], tuple[ServedTable, ...]]
) -> CaseWorld:
    """Return a world with the lists of a table changed, wherever they are.

    Args:
        world: Before.
        table: Of the world.
        change: From a list to those that take its place.
    Raises: DriftError: No host serves the table.
    """
    if not any(served.table == table for host in world.hosts for served in host.tables):
        raise DriftError(f"`target` must name a table that is served, got {table!r}.")

    def changed(host: SystemHost) -> SystemHost:
        lists = (change(s) if s.table == table else (s,) for s in host.tables)
        return replace(host, tables=tuple(served for part in lists for served in part))

    return with_hosts(world, changed)


def with_columns(
    world: CaseWorld, table: str, column: str, change: Callable[[ServedColumn], ServedColumn]
) -> CaseWorld:
    """Return a world with a column changed in every list that shows it.

    Args:
        world: Before.
        table: Of the world.
        column: Of the table.
        change: Of the served column.
    """

    def changed(host: SystemHost) -> SystemHost:
        return replace(
            host,
            tables=tuple(
                replace(
                    served,
                    columns=tuple(
                        change(c) if (c.table or served.table, c.column) == (table, column) else c
                        for c in served.columns
                    ),
                )
                for served in host.tables
            ),
        )

    return with_hosts(world, changed)


def with_row(world: CaseWorld, table: str, row: Any) -> CaseWorld:
    """Return a world with a row in place of the row of the same key.

    Args:
        world: Before.
        table: Of the world.
        row: The new one.
    """
    rows = tuple(row if old.id == row.id else old for old in world.tables[table])
    return replace(world, tables={**world.tables, table: rows})


def served_tables(world: CaseWorld, among: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the tables that are served, each once.

    Args:
        world: Any.
        among: Only these; all if empty.
    """
    wanted = set(among)
    names = dict.fromkeys(served.table for host in world.hosts for served in host.tables)
    return tuple(name for name in names if not wanted or name in wanted)


def host_of(world: CaseWorld, table: str) -> SystemHost:
    """Return the first host that serves a table.

    Args:
        world: Any.
        table: Of the world.
    """
    return next(h for h in world.hosts if any(s.table == table for s in h.tables))


def shown_in(world: CaseWorld, table: str) -> tuple[SystemHost, ServedTable]:
    """Return the first list that shows columns of a table, its own or another's.

    Args:
        world: Any.
        table: Of the world.
    """
    return next(
        (host, served)
        for host in world.hosts
        for served in host.tables
        if any((column.table or served.table) == table for column in served.columns)
    )
