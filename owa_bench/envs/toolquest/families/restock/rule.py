"""The rule of restock: from rows to the right answer."""

from collections.abc import Iterable

from owa_bench.envs.toolquest.rows import (
    AnswerRow,
    RuleParameters,
    SourceRow,
    Sources,
    linked,
)
from owa_bench.worlds.api import Value


def solve(sources: Sources, rule: RuleParameters) -> list[AnswerRow]:
    """Return (offer id, quantity, total in cents) of every order that is due."""
    levels = {c["class"]: c for c in sources["classes"]}
    part_of = linked(sources, sources["items"], "sku", "part")
    offers = {o["id"]: o for o in sources["offers"]}
    ordered = {
        offers[o["offer"]]["part"]
        for o in sources["orders"]
        if o["status"] == rule["open_status"] and o["offer"] in offers
    }
    due: list[AnswerRow] = []
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


def _cheapest(offers: Iterable[SourceRow], part: Value | None) -> SourceRow | None:
    """Return the cheapest available offer of a part, the lowest id in a tie."""
    rows = [o for o in offers if o["part"] == part and o["available"]]
    return min(rows, key=lambda o: (int(o["price"]), str(o["id"])), default=None)
