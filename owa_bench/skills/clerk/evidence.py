"""Names fields by what their values must be: keys that meet, sums that add up.

Words alone cannot tell two renamed text fields apart. The rule of a goal can: an
entry's account is the id of some account, a status column holds the status asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.skills import elimination
from owa_bench.skills.clerk.sheet import CENTS_IN_DOLLAR, Sheet, number

WEIGHT = 2.0  # of one satisfied clue against the likeness of words
ROUNDS = 2  # sheets lean on each other's names, so the second look sees more


class Clue(NamedTuple):
    """What a role's values must be, of kind unique, below, holds, kin or adds.

    `what` is another role (below), a key of the rule (holds), "source.role" (kin).
    """

    role: str
    kind: str
    what: str = ""


def _clues(text: str) -> tuple[Clue, ...]:
    """Return the clues of a source, written `role kind what; role kind`."""
    return tuple(Clue(*part.split()) for part in text.split(";"))


CLUES: Mapping[str, tuple[Clue, ...]] = {
    "periods": _clues("name holds period; first_day below last_day"),
    "accounts": _clues(
        "id unique; code unique; status holds account_status; id kin entries.account;"
        "code kin links.code; bank_account kin transfers.bank_account"
    ),
    "entries": _clues(
        "id unique; account kin accounts.id; reference kin transfers.reference;"
        "amount adds"
    ),
    "transfers": _clues(
        "id unique; bank_account kin accounts.bank_account; amount adds;"
        "bank_account kin links.bank_account; reference kin entries.reference"
    ),
    "customers": _clues(
        "id unique; code unique; id kin tickets.customer; code kin links.code;"
        "contract kin agreements.contract"
    ),
    "tickets": _clues(
        "id unique; customer kin customers.id; priority kin targets.priority"
    ),
    "agreements": _clues(
        "contract unique; contract kin customers.contract; plan kin targets.plan;"
        "contract kin links.contract"
    ),
    "targets": _clues(
        "plan kin agreements.plan; priority kin tickets.priority; credit adds"
    ),
    "classes": _clues(
        "class unique; class kin items.class; reorder_level below target_level"
    ),
    "items": _clues(
        "sku unique; class kin classes.class; status holds item_status;"
        "part kin offers.part; sku kin links.sku"
    ),
    "offers": _clues(
        "id unique; id kin orders.offer; part kin items.part; part kin links.part;"
        "price adds"
    ),
    "orders": _clues(
        "id unique; offer kin offers.id; status holds open_status; total adds"
    ),
    "links": _clues(
        "code kin accounts.code; code kin customers.code; sku kin items.sku;"
        "bank_account kin transfers.bank_account; part kin offers.part;"
        "contract kin agreements.contract"
    ),
}


class Evidence:
    """Weighs the ways in which the sheets of a goal may be named."""

    def __init__(self, sheets: Mapping[str, Sheet], rule: Mapping[str, Any]) -> None:
        self._sheets = sheets
        self._rule = rule
        self._totals = dict(_totals(sheets.values()))

    def settle(self) -> None:
        """Give every sheet with renamed fields its likeliest names."""
        for _ in range(ROUNDS):
            for sheet in self._sheets.values():
                if sheet.fit.missing:
                    self._name(sheet)

    def consistency(self, sheet: Sheet) -> float:
        """Return in [0, 1] how well a sheet's values are what they must be, sums aside.

        1 where nothing can be said: no clue speaks of the sheet.
        """
        columns = {
            role: elimination.column(sheet.crop.rows, name)
            for role, name in sheet.names.items()
        }
        clues = CLUES.get(sheet.source.id, ())
        held = [self._holds(c, sheet, columns) for c in clues if c.kind != "adds"]
        shares = [share for share in held if share is not None]
        return sum(shares) / len(shares) if shares else 1.0

    @staticmethod
    def is_added_up(source: str) -> bool:
        """Return whether a list of this id has an amount that control totals cover."""
        return any(clue.kind == "adds" for clue in CLUES.get(source, ()))

    def _name(self, sheet: Sheet) -> None:
        """Choose the best naming; its lead is over the best that reads otherwise."""
        weighed: dict[tuple[str | None, ...], float] = {}
        names: dict[tuple[str | None, ...], dict[str, str]] = {}
        for naming in elimination.namings(sheet.fit):
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

    def _support(self, sheet: Sheet, names: Mapping[str, str]) -> float:
        """Return how many more clues hold than fail when the roles have these names."""
        rows = sheet.crop.rows
        columns = {role: elimination.column(rows, name) for role, name in names.items()}
        clues = CLUES.get(sheet.source.id, ())
        if sheet.source.is_control:
            return self._control(columns)
        held = (self._holds(clue, sheet, columns) for clue in clues)
        return sum(2.0 * share - 1.0 for share in held if share is not None)

    def _holds(
        self, clue: Clue, sheet: Sheet, columns: Mapping[str, Sequence[Any]]
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
        return elimination.column(sheet.crop.rows, sheet.names[role])


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
