"""What nobody announced, told by the rows: renamed values, moved ends, other units.

The documents list the values of a field and the goal's rule names the one it is about:
a value that nothing tells of, beside one that is missing, is that one under another
name. Periods meet without a gap, so ends that are all as many days off have moved.
What does not settle is a doubt, and the clerk says so in its odds.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from owa_bench.skills import matching, schema_matching
from owa_bench.skills.api_solver.column_evidence import Clues
from owa_bench.skills.api_solver.family_rules import RoleRow
from owa_bench.skills.api_solver.resource_table import (
    CENTS,
    CENTS_IN_DOLLAR,
    DOLLARS,
    ResourceTable,
    number,
)

VALUES, ENDS, KEYS, UNITS = "values", "ends", "keys", "units"
ENOUGH = 8  # amounts, none of which has decimals
FIRST, LAST, INCLUDED = "first_day", "last_day", "last_day_included"


def compare(sheet: ResourceTable, rule: Mapping[str, Any], clues: Clues) -> None:
    """Read a sheet's values as they are meant, and note what cannot be told."""
    own = clues.get(sheet.source.id, ())
    needed = {c.role: str(rule.get(c.what)) for c in own if c.kind == "holds"}
    for role in dict.fromkeys((*sheet.choices, *needed)):
        _values(sheet, role, needed.get(role, ""))
    for clue in own:
        if clue.kind == "meets":
            _ends(sheet, clue.what)
    _decimals(sheet)


def _values(sheet: ResourceTable, role: str, needed: str) -> None:
    """Find which documented value each value that nothing tells of stands for."""
    shown = schema_matching.column(sheet.crop.rows, sheet.names.get(role, ""))
    served = list(dict.fromkeys(map(str, shown)))
    told = sheet.choices.get(role, ())
    if not served or (not told and needed in served):
        return
    words = matching.words(sheet.source.fields.get(role, ""))
    strange = [v for v in served if not (v in told if told else _said(v, words))]
    missing = [value for value in told or (needed,) if value not in served]
    if not strange or not missing:
        if strange or (needed and needed in missing):
            sheet.doubts.add(VALUES)  # there may be none, or another word for it
        return
    sheet.crop.lags.add(VALUES)
    if len(strange) > 1 or len(missing) > 1:
        sheet.doubts.add(VALUES)
    meant = needed if needed in missing else missing[0]
    sheet.values[role] = {strange[0]: meant}


def _said(value: str, words: frozenset[str]) -> bool:
    """Return whether a description names a value."""
    return matching.words(value) <= words


def _ends(sheet: ResourceTable, group: str) -> None:
    """Find by how many days the ends of periods are off; `group` tells them apart."""
    try:
        offsets = set(_offsets(sheet.table(), group))
    except (KeyError, TypeError, ValueError):  # a role without dates
        offsets = set()
    if len(offsets) == 1:
        sheet.shifts[LAST] = -offsets.pop()
    elif sheet.crop.rows:
        sheet.doubts.add(ENDS)


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


def _decimals(sheet: ResourceTable) -> None:
    """Settle units that control totals leave open: what has decimals is dollars.

    Dollars without any are a doubt: they may be cents that nobody announced.
    """
    if sheet.checked:
        return
    for role, unit in list(sheet.units.items()):
        amounts = _amounts(sheet, role)
        if any(amount != int(amount) for amount in amounts):
            sheet.units[role] = DOLLARS
            sheet.checked = True
        elif unit == DOLLARS and len(amounts) >= ENOUGH:
            sheet.doubts.add(UNITS)


def counterpart(
    sheet: ResourceTable, sheets: Mapping[str, ResourceTable], clues: Clues
) -> None:
    """Settle an open unit by a list whose unit is known and that has like amounts."""
    for clue in clues.get(sheet.source.id, ()):
        source, _, role = clue.what.partition(".")
        other = sheets.get(source)
        if clue.kind != "like" or sheet.checked or other is None or not other.checked:
            continue
        known = _cents(other, role, other.units.get(role))
        shares = {
            unit: len(_cents(sheet, clue.role, unit) & known)
            for unit in (CENTS, DOLLARS)
        }
        if 2 * max(shares.values()) >= min(len(known), len(sheet.crop.rows)):
            sheet.units[clue.role] = max(shares, key=lambda unit: shares[unit])
            sheet.checked = True
            sheet.doubts.discard(UNITS)


def _cents(sheet: ResourceTable, role: str, unit: str | None) -> set[int]:
    """Return the amounts of a role in cents, if they are served in a unit."""
    scale = CENTS_IN_DOLLAR if unit == DOLLARS else 1
    return {round(amount * scale) for amount in _amounts(sheet, role)}


def _amounts(sheet: ResourceTable, role: str) -> list[float | int]:
    shown = schema_matching.column(sheet.crop.rows, sheet.names.get(role, ""))
    return [amount for v in shown if (amount := number(v)) is not None]
