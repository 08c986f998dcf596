"""Operators on structure: lists that move, split, merge and retire; a step that is required."""

import datetime as dt

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.language.aliases import PATHS
from owa_bench.company.systems import RetiredPath, ServedCall, ServedTable, SystemHost
from owa_bench.drift.operator import operator
from owa_bench.envs.casework.world_edits import host_of, served_tables, with_hosts, with_lists
from owa_bench.errors import DriftError
from owa_bench.seeding import pick

_SPLIT = {
    "invoices": ("status", ("open", "paid", "cancelled")),
    "contacts": ("status", ("active", "left")),
}
_MERGED = {"proofs": "shipments"}
_MOVED = ("credit_notes", "contracts", "people", "delays")
_RETIRED = ("order_lines", "prices", "orders", "customers")
_VIEW = "orders"
_CONFIRM = "/confirmations"


def _movable(world: CaseWorld) -> tuple[str, ...]:
    return served_tables(world, _MOVED)


@operator(announcement="D1", weight=0.4, targets=_movable, group="structure")
def list_moved(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Move a list to another system.

    Changes: The host of the list; both hosts' descriptions follow, the old one answers 404.
    Leaves alone: Rows, meanings of fields, every other list.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Source: docs/casework.md#drift.
    """
    home = host_of(world, target)
    others = [host.host for host in world.hosts if host is not home and host.tables]
    goal = pick(others, rng)
    moved = tuple(served for served in home.tables if served.table == target)

    def changed(host: SystemHost) -> SystemHost:
        if host is home:
            kept = tuple(served for served in host.tables if served.table != target)
            return replace(host, tables=kept)
        return replace(host, tables=(*host.tables, *moved)) if host.host == goal else host

    return with_hosts(world, changed)


def _splittable(world: CaseWorld) -> tuple[str, ...]:
    return served_tables(world, _SPLIT)


@operator(announcement="D1", weight=0.4, targets=_splittable, group="structure")
def list_split(world: CaseWorld, target: str) -> CaseWorld:
    """Split a list in two by its status: each half has a path of its own.

    Changes: The paths; the host's description says which rows each half holds.
    Leaves alone: Rows, fields, pages, every other list.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Source: docs/casework.md#drift.
    """
    column, values = _SPLIT[target]

    def halves(served: ServedTable) -> tuple[ServedTable, ...]:
        if served.only is not None:
            return (served,)
        return tuple(
            replace(served, path=f"{served.path}/{value}", only=(column, value), retired=None)
            for value in values
        )

    return with_lists(world, target, halves)


def _mergeable(world: CaseWorld) -> tuple[str, ...]:
    return served_tables(world, _MERGED)


@operator(announcement="D1", weight=0.4, targets=_mergeable, group="structure")
def list_merged(world: CaseWorld, target: str) -> CaseWorld:
    """Merge a list into another one: its fields become fields of the rows that they belong to.

    Changes: The list is gone; the other list's description has its fields.
    Leaves alone: Values and meanings, every other list.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Source: docs/casework.md#drift.
    """
    goal = _MERGED[target]
    source = next(s for host in world.hosts for s in host.tables if s.table == target)
    owner = goal.removesuffix("s")

    def widened(served: ServedTable) -> tuple[ServedTable, ...]:
        taken = {column.name for column in served.columns}
        added = tuple(
            replace(column, table=target)
            for column in source.columns
            if column.column not in ("id", owner) and column.name not in taken
        )
        return (replace(served, columns=(*served.columns, *added)),)

    world = with_lists(world, goal, widened)
    return with_lists(world, target, lambda served: ())


def _retirable(world: CaseWorld) -> tuple[str, ...]:
    return served_tables(world, _RETIRED)


@operator(announcement="D1", weight=0.4, targets=_retirable, group="structure")
def path_retired(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Announce that a path will answer only until a time of the day; a new one is there.

    Changes: A second path; the old one answers 404 from the announced time on.
    Leaves alone: Rows, fields, pages, every other list.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Source: docs/casework.md#drift.
    """
    until = world.begins + dt.timedelta(minutes=30 + int(rng.integers(90)))

    def retired(served: ServedTable) -> tuple[ServedTable, ...]:
        root = next((path for path in PATHS if served.path.startswith(path)), served.path)
        path = f"/v2{root}{served.path.removeprefix(root)}"
        return (replace(served, path=path, retired=RetiredPath(path=served.path, until=until)),)

    return with_lists(world, target, retired)


def _confirmable(world: CaseWorld) -> tuple[str, ...]:
    return tuple(
        call.call for host in world.hosts for call in host.calls if call.call and not call.confirm
    )


@operator(announcement="D1", weight=0.8, targets=_confirmable, group="structure")
def step_required(world: CaseWorld, target: str) -> CaseWorld:
    """Let a call count only after its receipt was confirmed.

    Changes: The call answers with a receipt; its description names the second step.
    Leaves alone: What the call does once it is confirmed; every other call.
    Announcement: D1 (documented, breaking). Weight: 0.8.
    Raises: DriftError: The world has no such call.
    Source: docs/casework.md#drift.
    """
    if target not in {call.call for host in world.hosts for call in host.calls}:
        raise DriftError(f"`target` must name a call of the world, got {target!r}.")

    def confirmed(call: ServedCall) -> ServedCall:
        return replace(call, confirm=_CONFIRM) if call.call == target else call

    return with_hosts(world, lambda host: replace(host, calls=tuple(map(confirmed, host.calls))))


def _viewable(world: CaseWorld) -> tuple[str, ...]:
    lists = [served for host in world.hosts for served in host.tables if served.table == _VIEW]
    return (_VIEW,) if len(lists) == 1 else ()


@operator(announcement="D0", weight=0.2, targets=_viewable, group="structure")
def view_added(world: CaseWorld, target: str) -> CaseWorld:
    """Add a capability: a second host serves a list too, beside the first one.

    Changes: One list more, on the host of customers; the host's description has it.
    Leaves alone: Everything that was there.
    Announcement: D0 (documented, compatible). Weight: 0.2.
    Source: docs/casework.md#drift.
    """
    served = next(s for host in world.hosts for s in host.tables if s.table == target)
    goal = host_of(world, "customers").host

    def widened(host: SystemHost) -> SystemHost:
        if host.host != goal:
            return host
        added = replace(served, path=f"/history{served.path}", retired=None)
        return replace(host, tables=(*host.tables, added))

    return with_hosts(world, widened)
