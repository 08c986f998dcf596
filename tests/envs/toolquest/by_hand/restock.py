"""Family restock: its roles, its bound, and its answer worked out in another way."""

from tests.envs.toolquest.by_hand.rows import linked, rows_of

ROLES = {
    "classes": "class reorder_level target_level at_level",
    "items": "sku class status on_hand part",
    "links": "sku part",
    "offers": "id part pack_size price available",
    "orders": "id offer quantity total status",
    "control": "list count total",
}
LINKED = "part"  # which the directory holds from T3 on
BOUND = ("inventory", "classes", "at_level")
WRITES = True


def answer(world, tier, rule):
    part_of = linked(world, tier, "inventory", "items", "sku", "part")
    offers = rows_of(world, "supply", "offers")
    found = []
    for item in rows_of(world, "inventory", "items"):
        [level] = [c for c in rows_of(world, "inventory", "classes") if c["class"] == item["class"]]
        threshold = level["reorder_level"] + (1 if level["at_level"] else 0)
        if item["status"] != "active" or item["on_hand"] >= threshold:
            continue
        mine = [o for o in offers if o["part"] == part_of[item["sku"]]]
        names = {o["id"] for o in mine}
        if any(
            o["offer"] in names and o["status"] == "open"
            for o in rows_of(world, "supply", "orders")
        ):
            continue
        best = sorted((o["price"], o["id"], o["pack_size"]) for o in mine if o["available"])[0]
        quantity = best[2]
        while item["on_hand"] + quantity < level["target_level"]:
            quantity += best[2]
        found.append((best[1], quantity, quantity * best[0]))
    return found
