"""Silent drift inferred from rows: renamed values, shifted bounds, other units.

The documents list the values of a field and the goal's rule names the one it is about: a value that
nothing tells of, beside one that is missing, is that one under another name. Periods meet without a
gap, so ends that are all as many days off have moved. What stays open is a doubt, which lowers the
stated odds.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from owa_bench.agents.solvers import documents
from owa_bench.agents.solvers.api_solver.column_evidence import Clues
from owa_bench.agents.solvers.api_solver.family_rules import RoleRow
from owa_bench.agents.solvers.api_solver.resource_table import (
    CENTS,
    CENTS_IN_DOLLAR,
    DOLLARS,
    ResourceTable,
    number,
)

VALUES, ENDS, KEYS, UNITS = "values", "ends", "keys", "units"
ENOUGH = 8  # amounts, none of which has decimals
FIRST, LAST, INCLUDED = "first_day", "last_day", "last_day_included"


def compare(
    table: ResourceTable, rule: Mapping[str, Any], clues: Clues, *, exact: bool = False
) -> None:
    """Infer silent changes of a table, and note what stays open.

    Args:
        table: The table; its `values`, `shifts`, `units` and `doubts` are updated.
        rule: The parameters that the goal names.
        clues: Clues to the columns of every source.
        exact: The goal says that every list has an amount that is no whole dollar.
    """
    own = clues.get(table.source.id, ())
    needed = {c.role: str(rule.get(c.what)) for c in own if c.kind == "holds"}
    for role in dict.fromkeys((*table.choices, *needed)):
        _values(table, role, needed.get(role, ""))
    for clue in own:
        if clue.kind == "meets":
            _ends(table, clue.what)
    _decimals(table, exact=exact)


def _values(table: ResourceTable, role: str, needed: str) -> None:
    """Find which documented value each value that nothing tells of stands for."""
    served = list(dict.fromkeys(map(str, table.column(role))))
    documented = table.choices.get(role, ())
    if not served or (not documented and needed in served):
        return
    words = documents.words(table.source.fields.get(role, ""))
    strange = [v for v in served if not (v in documented if documented else _describes(v, words))]
    missing = [value for value in documented or (needed,) if value not in served]
    if not strange or not missing:
        if strange or (needed and needed in missing):
            table.doubts.add(VALUES)  # there may be none, or another word for it
        return
    table.fetched.doc_errors.add(VALUES)
    if len(strange) > 1 or len(missing) > 1:
        table.doubts.add(VALUES)
    table.values[role] = {strange[0]: needed if needed in missing else missing[0]}


def _describes(value: str, words: frozenset[str]) -> bool:
    """Return whether the words of a description name a value."""
    return documents.words(value) <= words


def _ends(table: ResourceTable, group: str) -> None:
    """Find by how many days the ends of periods are off; `group` tells them apart."""
    try:
        offsets = set(_offsets(table.role_rows(), group))
    except (KeyError, TypeError, ValueError):  # a role without dates
        offsets = set()
    if len(offsets) == 1:
        table.shifts[LAST] = -offsets.pop()
    elif table.fetched.rows:
        table.doubts.add(ENDS)


def _offsets(rows: Sequence[RoleRow], group: str) -> Iterable[int]:
    """Yield how many days after it should each period ends, by the next one."""
    periods: dict[Any, list[RoleRow]] = {}
    for row in rows:
        periods.setdefault(row.get(group), []).append(row)
    for line in periods.values():
        line.sort(key=lambda row: str(row.get(FIRST)))
        for row, following in itertools.pairwise(line):
            due = _day(following, FIRST) - bool(row[INCLUDED])
            yield _day(row, LAST) - due


def _day(row: RoleRow, role: str) -> int:
    return date.fromisoformat(row[role][:10]).toordinal()


def _decimals(table: ResourceTable, *, exact: bool) -> None:
    """Settle units that control totals leave open: what has decimals is dollars.

    What has none is cents where amounts are `exact`. Elsewhere dollars without any are a doubt:
    they may be cents that nobody announced.
    """
    if table.checked:
        return
    for role, unit in list(table.units.items()):
        amounts = _amounts(table, role)
        if any(amount != int(amount) for amount in amounts):
            table.units[role] = DOLLARS
            table.checked = True
        elif exact and amounts:
            table.units[role] = CENTS
            table.checked = True
        elif unit == DOLLARS and len(amounts) >= ENOUGH:
            table.doubts.add(UNITS)


def counterpart(table: ResourceTable, tables: Mapping[str, ResourceTable], clues: Clues) -> None:
    """Settle an open unit by a list whose unit is known and that has like amounts.

    Args:
        table: The table; its `units` and `doubts` are updated.
        tables: All tables by source.
        clues: Clues to the columns of every source.
    """
    for clue in clues.get(table.source.id, ()):
        source, _, role = clue.what.partition(".")
        other = tables.get(source)
        if clue.kind != "like" or table.checked or other is None or not other.checked:
            continue
        known = _cents(other, role, other.units.get(role))
        shares = {unit: len(_cents(table, clue.role, unit) & known) for unit in (CENTS, DOLLARS)}
        if 2 * max(shares.values()) >= min(len(known), len(table.fetched.rows)):
            table.units[clue.role] = max(shares, key=lambda unit: shares[unit])
            table.checked = True
            table.doubts.discard(UNITS)


def _cents(table: ResourceTable, role: str, unit: str | None) -> set[int]:
    """Return the amounts of a role in cents, if they are served in a unit."""
    scale = CENTS_IN_DOLLAR if unit == DOLLARS else 1
    return {round(amount * scale) for amount in _amounts(table, role)}


def _amounts(table: ResourceTable, role: str) -> list[float | int]:
    amounts = map(number, table.column(role))
    return [amount for amount in amounts if amount is not None]
