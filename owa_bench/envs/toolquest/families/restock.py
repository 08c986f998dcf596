"""Task family restock: purchase orders for items that run low. The last step writes."""

from collections.abc import Iterable, Iterator

from owa_bench.envs.toolquest import draws, task_spec
from owa_bench.envs.toolquest.provider_templates import parse
from owa_bench.envs.toolquest.world import Value

_VENDORS = """
inventory/inventory (Inventory|Warehouse|Stock) Keeps stock levels.
  classes unpaged (classes|stock-classes|policies|reorder-rules|groups) Stock classes
      and when to reorder.
    class:string (class|group|class_name) Name of the stock class.
    reorder_level:integer (reorder_level|minimum|low_mark) Stock level below which items
      are reordered.
    target_level:integer (target_level|maximum|fill_to) Stock level that an order must
      reach.
    at_level:boolean (at_level|inclusive|include_level) Whether stock at exactly the
      reorder level is reordered too.
  items (items|stock|articles|goods|products) Items and what is on hand.
    sku:string? (sku|article|stock_code) Stock keeping unit of the item.
    class:string? (class|group|stock_class) Stock class of the item.
    status:enum? (status|state|lifecycle) active=current|selling|listed phased_out=ended
      blocked=held Status of the item: active, phased_out or blocked.
    on_hand:integer (on_hand|quantity|available_units) Units on hand.
    part:string? (part|part_no|manufacturer_no) Manufacturer's part number.
supply/supply (Supply|Wholesale|Parts) Sells parts and takes purchase orders.
  offers (offers|catalogue|price-list|listings|assortment) Offers of the catalogue.
    id:string! (id|offer_id|listing) Identifier of the offer.
    part:string? (part|part_no|mpn) Part number that is offered.
    pack_size:integer (pack_size|multiple|units_per_pack) Units per pack; only whole
      packs are sold.
    price:money (price|unit_price|each) Price of one unit.
    available:boolean? (available|in_stock|orderable) Whether the offer can be ordered.
  orders POST DELETE (orders|purchase-orders|procurements|requisitions|buys) Purchase
      orders.
    id:string! (id|order_id|order_no) Identifier of the order, given by the vendor.
    offer:string!+ (offer|offer_ref|listing_id) Identifier of the offer that is ordered.
    quantity:integer+ (quantity|units|count) Units ordered.
    total:money+ (total|order_value|sum) Price of the whole order.
    status:enum? (status|state|progress) open=pending|in_transit|placed received=done
      Status of the order: open or received.
  control
"""
_PACKS = (1, 4, 5, 6, 10, 12)
_IDLE = ("phased_out", "blocked")


def draw(rng: draws.IntegerDraws, size: task_spec.Sizes) -> task_spec.TaskData:
    """Return the data of a task.

    Args:
        rng: Small integers.
        size: Numbers of items, classes, offers a part, repeated offers and orders.
    Returns: Stock classes, items, the offers of their parts, and earlier orders.
    """
    classes = _classes(rng, size["classes"])
    items = list(_items(rng, size["items"], classes))
    offers = _offers(rng, size, items)
    orders = list(_orders(rng, size["orders"], items, draws.by_id(offers.rows)))
    return task_spec.TaskData(
        tables={
            "classes": classes,
            "items": rng.shuffled(items),
            "offers": draws.by_id(offers.rows),
            "orders": orders,
        },
        links=items,
        rule={"item_status": "active", "open_status": "open"},
        pairs=offers.pairs,
        where={"class": items[0]["class"]},
    )


def _classes(rng: draws.IntegerDraws, count: int) -> list[task_spec.SourceRow]:
    return [
        {
            "class": name,
            "reorder_level": (level := rng.between(10, 60)),
            "target_level": level + rng.between(15, 90),
            "at_level": rng.coin(),
        }
        for name in rng.sample("ABCDEFGHJK", count)
    ]


def _items(
    rng: draws.IntegerDraws, count: int, classes: task_spec.SourceRows
) -> Iterator[task_spec.SourceRow]:
    """Yield items; the first is at its level, the next two are below it."""
    skus = draws.random_codes(rng, "SK-", count, 5)
    parts = draws.random_codes(rng, "PN", count, 6)
    for i, (sku, part) in enumerate(zip(skus, parts, strict=True)):
        kind = rng.pick(classes)
        active = i < 3 or rng.percent(80)
        idle = _IDLE[i - 3] if 3 <= i < 5 else rng.pick(_IDLE)
        yield {
            "sku": sku,
            "class": kind["class"],
            "status": "active" if active and not 3 <= i < 5 else idle,
            "on_hand": _stock(rng, int(kind["reorder_level"]), i),
            "part": part,
        }


def _stock(rng: draws.IntegerDraws, level: int, i: int) -> int:
    """Return a stock at, below or above the reorder level."""
    if i == 0 or (i > 2 and rng.percent(15)):
        return level
    if i < 3 or rng.percent(20):
        return rng.below(level)
    return level + rng.between(1, 80)


def _offers(
    rng: draws.IntegerDraws, size: task_spec.Sizes, items: task_spec.SourceRows
) -> draws.Postings:
    """Return offers; every part has an available one.

    Two that look alike are equal but for their pack size.
    """
    rows = [
        {
            "part": item["part"],
            "pack_size": rng.pick(_PACKS),
            "price": rng.cents(2, 90),
            "available": i == 0 or rng.percent(60),
        }
        for item in items
        for i in range(rng.between(1, size["offers"]))
    ]

    def alter(row: dict[str, Value]) -> None:
        row["pack_size"] = rng.pick([p for p in _PACKS if p != row["pack_size"]])

    return draws.with_copies(rng, rows, size["repeats"], alter, "of-4001")


def _orders(
    rng: draws.IntegerDraws, count: int, items: task_spec.SourceRows, offers: task_spec.SourceRows
) -> Iterator[task_spec.SourceRow]:
    """Yield earlier orders; open ones never for the first two items."""
    due = {item["part"] for item in items[:2]}
    others = [offer for offer in offers if offer["part"] not in due]
    for i in range(count):
        offer = rng.pick(others if i == 1 else offers)
        quantity = int(offer["pack_size"]) * rng.between(1, 9)
        open_now = offer["part"] not in due and rng.percent(60) and i > 0
        yield {
            "id": f"po-{701 + i}",
            "offer": offer["id"],
            "quantity": quantity,
            "total": quantity * int(offer["price"]),
            "status": "open" if open_now or i == 1 else "received",
        }


def solve(sources: task_spec.Sources, rule: task_spec.RuleParameters) -> list[task_spec.AnswerRow]:
    """Return the orders that are due.

    Args:
        sources: Rows by source.
        rule: `item_status` and `open_status`.
    Returns: (offer id, quantity, total in cents) of every order that is due.
    """
    levels = {c["class"]: c for c in sources["classes"]}
    part_of = task_spec.key_map(sources, sources["items"], "sku", "part")
    offers = {o["id"]: o for o in sources["offers"]}
    ordered = {
        offers[o["offer"]]["part"]
        for o in sources["orders"]
        if o["status"] == rule["open_status"] and o["offer"] in offers
    }
    due: list[task_spec.AnswerRow] = []
    for item in sources["items"]:
        level, stock = levels[item["class"]], int(item["on_hand"])
        gap = int(level["reorder_level"]) - stock
        low = gap > 0 or (gap == 0 and bool(level["at_level"]))
        part = part_of.get(item["sku"])
        if item["status"] != rule["item_status"] or not low or part in ordered:
            continue
        if (best := _cheapest(offers.values(), part)) is not None:
            pack = int(best["pack_size"])
            packs = -(-(int(level["target_level"]) - stock) // pack)
            quantity = packs * pack
            due.append((best["id"], quantity, quantity * int(best["price"])))
    return due


def _cheapest(
    offers: Iterable[task_spec.SourceRow], part: Value | None
) -> task_spec.SourceRow | None:
    """Return the cheapest available offer of a part, the lowest id in a tie."""
    rows = [o for o in offers if o["part"] == part and o["available"]]
    return min(rows, key=lambda o: (int(o["price"]), str(o["id"])), default=None)


FAMILY = task_spec.TaskFamily(
    name="restock",
    vendors=parse(_VENDORS),
    link=task_spec.VendorLink("items", "sku", "part", "Which part number belongs to which item."),
    sizes="items 9 18 26; classes 2 3 4; offers 2 2 2; repeats 2 2 4; orders 4 8 10",
    columns=("offer", "quantity", "total"),
    sources=("classes", "items", "links", "offers", "orders"),
    text=(
        "Restock the warehouse kept by {inventory} from the supplier {supply}. An "
        "active item is due when its stock is below the reorder level of its class, or "
        "at the level where the class says so. Skip an item whose part has an open "
        "order already. Take the cheapest available offer of the part (the lowest "
        "offer id in a tie) and order the smallest whole number of packs that brings "
        "the stock to the target level or above. Place one purchase order per due item "
        "at {supply}: offer, quantity in units, and total (price times quantity, in "
        "the unit of that field). Write nothing else."
    ),
    duplicates="offers",
    bound="classes.at_level",
    bound_text="In class {class}, stock at exactly the reorder level is reordered.",
    documents=("items", "offers"),
    last="offers",
    draw=draw,
    solve=solve,
    writes="orders",
)
