"""Goals of the family restock: order what runs low from a supplier."""

from collections.abc import Mapping
from typing import Any

from owa_bench.skills.api_solver.rule_tables import (
    AnswerRows,
    FamilyRule,
    RoleRow,
    Tables,
    clues,
    linked,
)


def compute(tables: Tables, rule: Mapping[str, Any]) -> AnswerRows:
    """Return offer, quantity and total in cents of each order that is due."""
    classes = {row["class"]: row for row in tables["classes"]}
    part_of = linked(tables, "items", "sku", "part")
    offers: dict[Any, list[RoleRow]] = {}
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


def _is_due(on_hand: int, level: RoleRow) -> bool:
    """Return whether a stock of `on_hand` is to be filled up in its class."""
    reorder = level["reorder_level"]
    return bool(on_hand < reorder or (on_hand == reorder and level["at_level"]))


RULE = FamilyRule(
    compute,
    {
        "classes": clues(
            "class unique; class kin items.class; reorder_level below target_level"
        ),
        "items": clues(
            "sku unique; class kin classes.class; status holds item_status; "
            "part kin offers.part; sku kin links.sku"
        ),
        "offers": clues(
            "id unique; id kin orders.offer; part kin items.part; "
            "part kin links.part; price adds"
        ),
        "orders": clues(
            "id unique; offer kin offers.id; status holds open_status; total adds"
        ),
        "links": clues("sku kin items.sku; part kin offers.part"),
    },
)
