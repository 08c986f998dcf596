"""Family currency_rollup: its roles, bound, and its answer in another way."""

from fractions import Fraction
from math import floor

from tests.envs.toolquest.by_hand.rows import linked, rows_of, unique

ROLES = {
    "branches": "id code status entity",
    "receipts": "id branch date currency amount",
    "links": "code entity",
    "entities": "entity group opening",
    "rates": "currency first_day last_day last_day_included rate",
    "sales_control": "list count total",
    "treasury_control": "list count total",
}
LINKED = "entity"  # which the directory holds from T3 on
BOUND = ("treasury", "rates", "last_day_included")
WRITES = False


def converted(world, receipt, base):
    if receipt["currency"] == base:
        return receipt["amount"]
    held = [
        r
        for r in rows_of(world, "treasury", "rates")
        if r["currency"] == receipt["currency"]
        and r["first_day"] <= receipt["date"]
        and (receipt["date"], not r["last_day_included"]) <= (r["last_day"], False)
    ]
    if not held:
        return 0
    rate = Fraction(min(held, key=lambda r: r["first_day"])["rate"], 10000)
    return floor(receipt["amount"] * rate + Fraction(1, 2))


def answer(world, tier, rule):
    entity_of = linked(world, tier, "sales", "branches", "code", "entity")
    receipts = unique(rows_of(world, "sales", "receipts"))
    entities = rows_of(world, "treasury", "entities")
    found = []
    for group in sorted({e["group"] for e in entities}):
        mine = [e for e in entities if e["group"] == group]
        branches = {
            b["id"]
            for b in rows_of(world, "sales", "branches")
            if b["status"] == "open" and entity_of[b["code"]] in {e["entity"] for e in mine}
        }
        amounts = [
            converted(world, r, rule["base"])
            for r in receipts
            if r["branch"] in branches and rule["first_day"] <= r["date"] <= rule["last_day"]
        ]
        if amounts:
            total = sum(amounts) + sum(e["opening"] for e in mine)
            found.append((group, len(amounts), total))
    return found
