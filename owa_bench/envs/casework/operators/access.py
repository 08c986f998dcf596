"""Operators on access: how the systems name things and turn pages. Their descriptions follow."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.company.hosts import CASES, PAGERS, WRAPPERS, in_case
from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.language.aliases import COLUMNS, PATHS
from owa_bench.company.systems import ServedColumn, ServedTable, SystemHost
from owa_bench.drift.operator import operator
from owa_bench.envs.casework.world_edits import (
    served_tables,
    shown_in,
    with_columns,
    with_hosts,
    with_lists,
)
from owa_bench.seeding import pick

_SMALL = 0.05  # access takes a small share of all drift


def _listing_hosts(world: CaseWorld) -> tuple[str, ...]:
    return tuple(host.host for host in world.hosts if host.tables)


@operator(announcement="D1", weight=_SMALL, targets=served_tables, group="access")
def column_rename(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Rename one field of a list.

    Changes: The field's name in replies and filters; the host's description follows.
    Leaves alone: Rows, meanings, every other field.
    Announcement: D1 (documented, breaking). Weight: 0.05.
    Source: docs/casework.md#drift.
    """
    host, served = shown_in(world, target)
    columns = [c.column for c in served.columns if (c.table or served.table) == target]
    column = pick(sorted({column for column in columns if column in COLUMNS}), rng)
    name = in_case(pick(COLUMNS[column], rng), host.habits.names)
    if any(name == c.name for c in served.columns):
        name = in_case(f"{column}_value", host.habits.names)

    def renamed(served: ServedColumn) -> ServedColumn:
        return replace(served, name=name)

    return with_columns(world, target, column, renamed)


def _renamed_paths(world: CaseWorld) -> tuple[str, ...]:
    return tuple(
        served.table for host in world.hosts for served in host.tables if served.path in PATHS
    )


@operator(announcement="D1", weight=_SMALL, targets=_renamed_paths, group="access")
def path_rename(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Serve a list under another path; the old one answers 404.

    Changes: The path; the host's description follows.
    Leaves alone: Rows, fields, pages, every other list.
    Announcement: D1 (documented, breaking). Weight: 0.05.
    Source: docs/casework.md#drift.
    """

    def renamed(served: ServedTable) -> tuple[ServedTable, ...]:
        root = next((path for path in PATHS if served.path.startswith(path)), "")
        if not root:
            return (served,)
        path = pick(PATHS[root], rng) + served.path.removeprefix(root)
        return (replace(served, path=path),)

    return with_lists(world, target, renamed)


@operator(announcement="D1", weight=_SMALL, targets=_listing_hosts, group="access")
def pager_swap(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Turn the pages of a host in another way, in another size.

    Changes: Pager and size of all its lists; the host's description follows.
    Leaves alone: Rows, fields, paths.
    Announcement: D1 (documented, breaking). Weight: 0.05.
    Source: docs/casework.md#drift.
    """

    def swapped(host: SystemHost) -> SystemHost:
        if host.host != target:
            return host
        others = [kind for kind in PAGERS if kind != host.habits.pager]
        size = 50 + 25 * int(rng.integers(8))
        return replace(host, habits=replace(host.habits, pager=pick(others, rng), size=size))

    return with_hosts(world, swapped)


@operator(announcement="D1", weight=_SMALL, targets=_listing_hosts, group="access")
def wrapper_swap(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Wrap the rows of a host's replies under another name.

    Changes: The name of the list in replies; the host's description follows.
    Leaves alone: Rows, fields, paths, pages.
    Announcement: D1 (documented, breaking). Weight: 0.05.
    Source: docs/casework.md#drift.
    """

    def swapped(host: SystemHost) -> SystemHost:
        if host.host != target:
            return host
        others = [name for name in WRAPPERS if name != host.habits.wrapper]
        return replace(host, habits=replace(host.habits, wrapper=pick(others, rng)))

    return with_hosts(world, swapped)


@operator(announcement="D1", weight=_SMALL, targets=_listing_hosts, group="access")
def name_case(world: CaseWorld, target: str) -> CaseWorld:
    """Write the field names of a host in the other case: snake_case or camelCase.

    Changes: Names of all fields; the host's description follows.
    Leaves alone: Rows, meanings, paths, pages.
    Announcement: D1 (documented, breaking). Weight: 0.05.
    Source: docs/casework.md#drift.
    """

    def swapped(host: SystemHost) -> SystemHost:
        if host.host != target:
            return host
        case = next(case for case in CASES if case != host.habits.names)
        tables = tuple(
            replace(
                served,
                columns=tuple(
                    replace(c, name=in_case(_snake(c.name), case)) for c in served.columns
                ),
            )
            for served in host.tables
        )
        return replace(host, habits=replace(host.habits, names=case), tables=tables)

    return with_hosts(world, swapped)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
