"""The families' rules as pure functions from rows to the right answer.

`sources` maps a source's id to its rows, role to value, money in cents. Source: the
section Goal of this folder's README.md.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from owa_bench.worlds.api import Value

Row = Mapping[str, Value]
Sources = Mapping[str, Sequence[Row]]
Rule = Mapping[str, Value]
Cells = tuple[Value, ...]


class Solution(NamedTuple):
    """Columns and rows of an artefact, or of the records to be written."""

    columns: tuple[str, ...]
    rows: tuple[Cells, ...]


def solve(family: str, sources: Sources, rule: Rule) -> Solution:
    """Return what the family's rule makes of the rows, sorted."""
    columns, rows = _RULES[family]
    return Solution(columns, tuple(sorted(rows(sources, rule))))


def distinct(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without repeated postings: equal in all but the id."""
    kept: dict[tuple[tuple[str, Value], ...], Row] = {}
    for row in rows:
        kept.setdefault(tuple(cell for cell in row.items() if cell[0] != "id"), row)
    return list(kept.values())


def reconcile(sources: Sources, rule: Rule) -> list[Cells]:
    """Return (account code, reference, ledger - bank in cents) where they differ."""
    period = next(p for p in sources["periods"] if p["name"] == rule["period"])
    accounts = {
        a["id"]: a for a in sources["accounts"] if a["status"] == rule["account_status"]
    }
    bank_account = _link(sources, sources["accounts"], "code", "bank_account")
    paid = {
        (t["bank_account"], t["reference"]): int(t["amount"])
        for t in distinct(sources["transfers"])
    }
    found: list[Cells] = []
    for entry in distinct(sources["entries"]):
        account = accounts.get(entry["account"])
        if account is None or not _within(period, str(entry["date"])):
            continue
        code = account["code"]
        bank = paid.get((bank_account.get(code, ""), entry["reference"]), 0)
        if bank != entry["amount"]:
            found.append((code, entry["reference"], int(entry["amount"]) - bank))
    return found


def sla_report(sources: Sources, rule: Rule) -> list[Cells]:
    """Return (customer code, breaches, minutes over, credit in cents) per customer."""
    codes = {c["id"]: c["code"] for c in sources["customers"]}
    contract = _link(sources, sources["customers"], "code", "contract")
    plans = {a["contract"]: a["plan"] for a in sources["agreements"]}
    targets = {(t["plan"], t["priority"]): t for t in sources["targets"]}
    sums: dict[Value, list[int]] = defaultdict(lambda: [0, 0, 0])
    for ticket in distinct(sources["tickets"]):
        if not str(rule["first_day"]) <= str(ticket["opened"]) <= str(rule["last_day"]):
            continue
        code = codes[ticket["customer"]]
        target = targets[plans[contract[code]], ticket["priority"]]
        over = int(ticket["minutes"]) - int(target["minutes"])
        if over > 0 or (over == 0 and target["limit_is_breach"]):
            total = sums[code]
            total[0] += 1
            total[1] += over
            total[2] += int(target["credit"])
    return [(code, *total) for code, total in sums.items()]


def restock(sources: Sources, rule: Rule) -> list[Cells]:
    """Return (offer id, quantity, total in cents) of every order that is due."""
    levels = {c["class"]: c for c in sources["classes"]}
    part_of = _link(sources, sources["items"], "sku", "part")
    offers = {o["id"]: o for o in sources["offers"]}
    ordered = {
        offers[o["offer"]]["part"]
        for o in sources["orders"]
        if o["status"] == rule["open_status"] and o["offer"] in offers
    }
    due: list[Cells] = []
    for item in sources["items"]:
        level, stock = levels[item["class"]], int(item["on_hand"])
        gap = int(level["reorder_level"]) - stock
        low = gap > 0 or (gap == 0 and bool(level["at_level"]))
        part = part_of.get(item["sku"])
        if item["status"] != rule["item_status"] or not low or part in ordered:
            continue
        best = _cheapest(offers.values(), part)
        if best is not None:
            pack = int(best["pack_size"])
            packs = -(-(int(level["target_level"]) - stock) // pack)
            quantity = packs * pack
            due.append((best["id"], quantity, quantity * int(best["price"])))
    return due


def _cheapest(offers: Iterable[Row], part: Value | None) -> Row | None:
    """Return the cheapest available offer of a part, the lowest id in a tie."""
    rows = [o for o in offers if o["part"] == part and o["available"]]
    return min(rows, key=lambda o: (int(o["price"]), str(o["id"])), default=None)


def _within(period: Row, day: str) -> bool:
    """Return whether an ISO day lies in the period."""
    last = str(period["last_day"])
    return str(period["first_day"]) <= day and (
        day < last or (day == last and bool(period["last_day_included"]))
    )


def _link(
    sources: Sources, own: Sequence[Row], key: str, value: str
) -> dict[Value, Value]:
    """Return key -> value from `links`, or from the rows themselves without it."""
    return {row[key]: row[value] for row in sources.get("links", own)}


_RULES: Mapping[str, tuple[tuple[str, ...], Callable[[Sources, Rule], list[Cells]]]] = {
    "reconcile": (("account_code", "reference", "difference_cents"), reconcile),
    "sla_report": (
        ("customer_code", "breaches", "minutes_over", "credit_cents"),
        sla_report,
    ),
    "restock": (("offer", "quantity", "total"), restock),
}
