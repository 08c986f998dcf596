"""Names fields by what their values must be: keys that meet, sums that add up.

Words alone cannot tell two renamed text fields apart. The rule of a goal can: an
entry's account is the id of some account, a status column holds the status asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from owa_bench.skills import schema_matching
from owa_bench.skills.api_solver.resource_table import (
    CENTS_IN_DOLLAR,
    ResourceTable,
    number,
)
from owa_bench.skills.api_solver.rule_tables import Clue, Clues

WEIGHT = 2.0  # of one satisfied clue against the likeness of words
LEAST_MET = 0.5  # share of keys that are found where they should be
ROUNDS = 2  # sheets lean on each other's names, so the second look sees more


class ColumnEvidence:
    """Weighs the ways in which the sheets of a goal may be named."""

    def __init__(
        self, sheets: Mapping[str, ResourceTable], rule: Mapping[str, Any], clues: Clues
    ) -> None:
        self._sheets = sheets
        self._clues = clues
        self._rule = rule
        self._totals = dict(_totals(sheets.values()))

    def settle(self) -> None:
        """Give every sheet with renamed fields its likeliest names."""
        for _ in range(ROUNDS):
            for sheet in self._sheets.values():
                if sheet.fit.missing:
                    self._name(sheet)

    def consistency(self, sheet: ResourceTable) -> float:
        """Return in [0, 1] how well a sheet's values are what they must be, sums aside.

        1 where nothing can be said: no clue speaks of the sheet.
        """
        columns = {
            role: schema_matching.column(sheet.crop.rows, name)
            for role, name in sheet.names.items()
        }
        clues = self._clues.get(sheet.source.id, ())
        held = [self._holds(c, sheet, columns) for c in clues if c.kind != "adds"]
        shares = [share for share in held if share is not None]
        return sum(shares) / len(shares) if shares else 1.0

    def meets(self, sheet: ResourceTable) -> bool:
        """Return whether every key of a sheet is found where the rule looks for it."""
        columns = {
            role: schema_matching.column(sheet.crop.rows, name)
            for role, name in sheet.names.items()
        }
        clues = self._clues.get(sheet.source.id, ())
        held = [self._holds(c, sheet, columns) for c in clues if c.kind == "kin"]
        return all(share is None or share >= LEAST_MET for share in held)

    def money(self, source: str) -> list[str]:
        """Return the roles of a list whose amounts a control total would cover."""
        clues = self._clues.get(source, ())
        return [clue.role for clue in clues if clue.kind == "adds"]

    def is_added_up(self, source: str) -> bool:
        """Return whether a list of this id has an amount that control totals cover."""
        return bool(self.money(source))

    def _name(self, sheet: ResourceTable) -> None:
        """Choose the best naming; its lead is over the best that reads otherwise."""
        weighed: dict[tuple[str | None, ...], float] = {}
        names: dict[tuple[str | None, ...], dict[str, str]] = {}
        for naming in schema_matching.namings(sheet.fit):
            roles = sheet.roles_under(naming)
            key = tuple(roles.get(role) for role in sheet.source.fields)
            score = sum(sheet.fit.scores[pair] for pair in naming.items())
            score += WEIGHT * self._support(sheet, roles)
            if score > weighed.get(key, float("-inf")):
                weighed[key], names[key] = score, roles
        if not weighed:
            return
        order = sorted(weighed, key=lambda key: -weighed[key])
        sheet.names = names[order[0]]
        second = weighed[order[1]] if len(order) > 1 else float("-inf")
        sheet.lead = weighed[order[0]] - second

    def _support(self, sheet: ResourceTable, names: Mapping[str, str]) -> float:
        """Return how many more clues hold than fail when the roles have these names."""
        rows = sheet.crop.rows
        columns = {
            role: schema_matching.column(rows, name) for role, name in names.items()
        }
        clues = self._clues.get(sheet.source.id, ())
        if sheet.source.is_control:
            return self._control(columns)
        held = (self._holds(clue, sheet, columns) for clue in clues)
        return sum(2.0 * share - 1.0 for share in held if share is not None)

    def _holds(
        self, clue: Clue, sheet: ResourceTable, columns: Mapping[str, Sequence[Any]]
    ) -> float | None:
        """Return in [0, 1] how far a clue holds, None if nothing can be said."""
        values = columns.get(clue.role)
        if not values:
            return None
        match clue.kind:
            case "unique":
                return len(set(values)) / len(values)
            case "holds":
                return float(self._rule.get(clue.what) in values)
            case "below":
                pairs = zip(values, columns.get(clue.what, ()), strict=False)
                return _share([a <= b for a, b in pairs if type(a) is type(b)])
            case "meets" | "like":
                return None  # they say how values lie, not what they are called
            case "kin":
                return _shared(values, self._column(clue.what))
            case _:
                total = self._totals.get(sheet.source.id)
                if total is None:
                    return None
                added = sum(number(v) or 0 for v in values)
                return float(total in (round(added), round(added * CENTS_IN_DOLLAR)))

    def _control(self, columns: Mapping[str, Sequence[Any]]) -> float:
        """Return how well control totals name lists and count their rows."""
        lists = columns.get("list", ())
        known = [self._sheets.get(str(name)) for name in lists]
        counts = zip(known, columns.get("count", ()), strict=False)
        counted = [len(s.crop.rows) == n for s, n in counts if s is not None]
        named = _share([s is not None for s in known]) or 0.0
        return named + (_share(counted) or 0.0)

    def _column(self, place: str) -> list[Any]:
        """Return the values of "source.role" as that sheet is named now."""
        source, _, role = place.partition(".")
        sheet = self._sheets.get(source)
        if sheet is None or role not in sheet.names:
            return []
        return schema_matching.column(sheet.crop.rows, sheet.names[role])


def _totals(sheets: Any) -> Iterator[tuple[str, Any]]:
    """Yield the control total of each list."""
    for sheet in sheets:
        if sheet.source.is_control:
            for row in sheet.table():
                yield str(row.get("list")), row.get("total")


def _shared(first: Sequence[Any], second: Sequence[Any]) -> float | None:
    """Return the share of values of the smaller column that the other holds."""
    one, two = set(first), set(second)
    return len(one & two) / min(len(one), len(two)) if one and two else None


def _share(truths: Sequence[bool]) -> float | None:
    """Return the share that is true, None for none."""
    return sum(truths) / len(truths) if truths else None
