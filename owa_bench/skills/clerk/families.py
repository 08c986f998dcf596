"""What each family of goals asks for, computed from tables by role.

A table is a list of rows {role: value}; money is in cents and a repeated posting stands
once. The rules are those of the goal's own words.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
Rows = list[list[Any]]


def compute(family: str, tables: Tables, rule: Mapping[str, Any]) -> Rows | None:
    """Return the rows that the goal asks for, None for a family not known here."""
    known = FAMILIES.get(family.partition("-")[0])
    return known(tables, rule) if known else None


def _reconcile(tables: Tables, rule: Mapping[str, Any]) -> Rows:
    """Return account, reference and ledger minus bank of each entry that differs."""
    period = next(row for row in tables["periods"] if row["name"] == rule["period"])
    accounts = {
        row["id"]: row
        for row in tables["accounts"]
        if row["status"] == rule["account_status"]
    }
    bank_of = _linked(tables, "accounts", "code", "bank_account")
    paid = {
        (row["bank_account"], row["reference"]): row["amount"]
        for row in tables["transfers"]
    }
    found = []
    for entry in tables["entries"]:
        account = accounts.get(entry["account"])
        if account is None or not _inside(entry["date"], period):
            continue
        place = (bank_of.get(account["code"]), entry["reference"])
        difference = entry["amount"] - paid.get(place, 0)
        if difference:
            found.append([account["code"], entry["reference"], difference])
    return sorted(found)


def _inside(date: str, period: Row) -> bool:
    """Return whether an ISO date lies in a period, bound as the period says."""
    last = period["last_day"]
    before = date <= last if period["last_day_included"] else date < last
    return bool(period["first_day"] <= date and before)


def _sla_report(tables: Tables, rule: Mapping[str, Any]) -> Rows:
    """Return breaches, minutes over and credit in cents of each customer with one."""
    customers = {row["id"]: row["code"] for row in tables["customers"]}
    contract_of = _linked(tables, "customers", "code", "contract")
    plan_of = {row["contract"]: row["plan"] for row in tables["agreements"]}
    targets = {(row["plan"], row["priority"]): row for row in tables["targets"]}
    sums: dict[str, list[int]] = {}
    for ticket in tables["tickets"]:
        code = customers.get(ticket["customer"])
        plan = plan_of.get(contract_of.get(code))
        target = targets.get((plan, ticket["priority"]))
        inside = rule["first_day"] <= ticket["opened"][:10] <= rule["last_day"]
        if code is None or target is None or not inside:
            continue
        over = ticket["minutes"] - target["minutes"]
        if over > 0 or (over == 0 and target["limit_is_breach"]):
            total = sums.setdefault(code, [0, 0, 0])
            total[0] += 1
            total[1] += over
            total[2] += target["credit"]
    return [[code, *total] for code, total in sorted(sums.items())]


def _restock(tables: Tables, rule: Mapping[str, Any]) -> Rows:
    """Return offer, quantity and total in cents of each order that is due."""
    classes = {row["class"]: row for row in tables["classes"]}
    part_of = _linked(tables, "items", "sku", "part")
    offers: dict[Any, list[Row]] = {}
    for offer in tables["offers"]:
        offers.setdefault(offer["part"], []).append(offer)
    ordered = {
        row["offer"] for row in tables["orders"] if row["status"] == rule["open_status"]
    }
    due = []
    for item in tables["items"]:
        level = classes.get(item["class"])
        part = part_of.get(item["sku"])
        choices = [offer for offer in offers.get(part, []) if offer["available"]]
        if item["status"] != rule["item_status"] or level is None or not choices:
            continue
        if any(offer["id"] in ordered for offer in offers[part]):
            continue
        if not _is_due(item["on_hand"], level):
            continue
        offer = min(choices, key=lambda choice: (choice["price"], str(choice["id"])))
        packs = -(-(level["target_level"] - item["on_hand"]) // offer["pack_size"])
        quantity = packs * offer["pack_size"]
        due.append([offer["id"], quantity, quantity * offer["price"]])
    return sorted(due)


def _is_due(on_hand: int, level: Row) -> bool:
    """Return whether a stock of `on_hand` is to be filled up in its class."""
    reorder = level["reorder_level"]
    return bool(on_hand < reorder or (on_hand == reorder and level["at_level"]))


def _linked(tables: Tables, source: str, key: str, value: str) -> dict[Any, Any]:
    """Return key -> value from the linking table, or from `source` itself."""
    return {row[key]: row[value] for row in tables.get("links") or tables[source]}


FAMILIES: Mapping[str, Callable[[Tables, Mapping[str, Any]], Rows]] = {
    "reconcile": _reconcile,
    "sla_report": _sla_report,
    "restock": _restock,
}
