"""Family restock: order what runs low from a supplier. The last step writes."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import IntegerDraws, numbered
from owa_bench.envs.toolquest.families.restock.rule import solve
from owa_bench.envs.toolquest.families.restock.vendors import (
    DIRECTORY,
    INVENTORY,
    INVENTORY_WITHOUT_LINK,
    SUPPLY,
)
from owa_bench.envs.toolquest.provider_templates import (
    ProviderTemplate,
    Row,
    Rows,
    control_rows,
)
from owa_bench.envs.toolquest.task_spec import (
    BoundQuestion,
    SourcePlan,
    TaskFamily,
    TaskSpec,
)
from owa_bench.worlds.api import Value


class Size(NamedTuple):
    """Rows of a tier."""

    items: int
    classes: int
    offers: int
    repeats: int
    orders: int


SIZES = {
    1: Size(9, 2, 2, 2, 4),
    2: Size(18, 3, 2, 2, 8),
    3: Size(26, 4, 2, 4, 10),
    4: Size(26, 4, 2, 4, 10),
}
_PACKS = (1, 4, 5, 6, 10, 12)


def story(draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of this family."""
    size = SIZES[tier]
    classes = _classes(draws, size)
    items = _items(draws, size, classes)
    offers, pairs = _offers(draws, size, items)
    orders = _orders(draws, size, items, offers)
    inventory: Mapping[str, Rows] = {"classes": classes, "items": draws.shuffled(items)}
    supply: Mapping[str, Rows] = {
        "offers": offers,
        "orders": orders,
        "control": control_rows(
            {
                "offers": [o["price"] for o in offers],
                "orders": [o["total"] for o in orders],
            }
        ),
    }
    links = [{"sku": i["sku"], "part": i["part"]} for i in items]
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    vendors = ((INVENTORY, inventory), (SUPPLY, supply))
    if tier >= 3:
        vendors = (
            (INVENTORY_WITHOUT_LINK, inventory),
            (DIRECTORY, {"links": draws.shuffled(links)}),
            (SUPPLY, supply),
        )
    asked = items[0]["class"]
    return TaskSpec(
        vendors=vendors,
        sources=_sources(tier),
        rule={"item_status": "active", "open_status": "open"},
        text=_TEXT,
        units=(("offers", "price"), ("orders", "total")),
        duplicate=("offers", *pairs[draws.below(2)]),
        bound=BoundQuestion(
            "classes",
            "at_level",
            {"class": asked},
            f"In class {asked}, stock at exactly the reorder level is reordered.",
        ),
        docs=("items", "offers") if tier < 3 else ("items",),
        last="offers",
        writes="orders",
    )


_TEXT = (
    "Restock the warehouse kept by {inventory} from the supplier {supply}. An active "
    "item is due when its stock is below the reorder level of its class, or at the "
    "level where the class says so. Skip an item whose part has an open order already. "
    "Take the cheapest available offer of the part (the lowest offer id in a tie) and "
    "order the smallest whole number of packs that brings the stock to the target "
    "level or above. Place one purchase order per due item at {supply}: offer, "
    "quantity in units, and total (price times quantity, in the unit of that field). "
    "Write nothing else."
)


def _classes(draws: IntegerDraws, size: Size) -> list[Row]:
    return [
        {
            "class": name,
            "reorder_level": (level := draws.between(10, 60)),
            "target_level": level + draws.between(15, 90),
            "at_level": draws.coin(),
        }
        for name in draws.sample("ABCDEFGHJK", size.classes)
    ]


def _items(draws: IntegerDraws, size: Size, classes: Rows) -> list[Row]:
    """Return items; the first is at its level, the next two are below it."""
    skus = numbered(draws, "SK-", size.items, 5, near=40)
    parts = numbered(draws, "PN", size.items, 6, near=40)
    rows: list[Row] = []
    for i, (sku, part) in enumerate(zip(skus, parts, strict=True)):
        kind = draws.pick(classes)
        level = int(kind["reorder_level"])
        active = i < 3 or draws.percent(80)
        idle = _IDLE[i - 3] if 3 <= i < 5 else draws.pick(_IDLE)
        rows.append(
            {
                "sku": sku,
                "class": kind["class"],
                "status": "active" if active and not 3 <= i < 5 else idle,
                "on_hand": _stock(draws, level, i),
                "part": part,
            }
        )
    return rows


_IDLE = ("phased_out", "blocked")


def _stock(draws: IntegerDraws, level: int, i: int) -> int:
    """Return a stock at, below or above the reorder level."""
    if i == 0 or (i > 2 and draws.percent(15)):
        return level
    if i < 3 or draws.percent(20):
        return draws.below(level)
    return level + draws.between(1, 80)


def _offers(
    draws: IntegerDraws, size: Size, items: Rows
) -> tuple[list[Row], tuple[tuple[str, str], tuple[str, str]]]:
    """Return offers, and the ids of a repeated pair and of a twin pair.

    Every part has an available offer. The twin of an offer is equal but for its pack
    size, so it is another offer.
    """
    rows: list[dict[str, Value]] = [
        {
            "part": item["part"],
            "pack_size": draws.pick(_PACKS),
            "price": draws.cents(2, 90),
            "available": i == 0 or draws.percent(60),
        }
        for item in items
        for i in range(draws.between(1, size.offers))
    ]
    chosen = draws.sample(range(len(rows)), size.repeats)
    copies = [dict(rows[i]) for i in chosen]
    for copy in copies[: size.repeats // 2]:
        copy["pack_size"] = draws.pick([p for p in _PACKS if p != copy["pack_size"]])
    order = draws.shuffled(range(len(rows) + len(copies)))
    ids = [f"of-{4001 + place}" for place in order]
    both: list[Row] = [
        {"id": name, **row} for name, row in zip(ids, rows + copies, strict=True)
    ]
    repeat = (ids[chosen[-1]], ids[len(both) - 1])
    twin = (ids[chosen[0]], ids[len(rows)])
    return sorted(both, key=lambda row: str(row["id"])), (repeat, twin)


def _orders(draws: IntegerDraws, size: Size, items: Rows, offers: Rows) -> list[Row]:
    """Return earlier orders; open ones never for the first two items."""
    kept_due = {item["part"] for item in items[:2]}
    others = [offer for offer in offers if offer["part"] not in kept_due]
    rows: list[Row] = []
    for i in range(size.orders):
        offer = draws.pick(others if i == 1 else offers)
        quantity = int(offer["pack_size"]) * draws.between(1, 9)
        open_now = offer["part"] not in kept_due and draws.percent(60) and i > 0
        rows.append(
            {
                "id": f"po-{701 + i}",
                "offer": offer["id"],
                "quantity": quantity,
                "total": quantity * int(offer["price"]),
                "status": "open" if open_now or i == 1 else "received",
            }
        )
    return rows


def _sources(tier: int) -> tuple[SourcePlan, ...]:
    links = (SourcePlan("links", "directory", "links"),) if tier >= 3 else ()
    return (
        SourcePlan("classes", "inventory", "classes"),
        SourcePlan("items", "inventory", "items"),
        *links,
        SourcePlan("offers", "supply", "offers"),
        SourcePlan("orders", "supply", "orders"),
        SourcePlan("control", "supply", "control", optional=True),
    )


FAMILY = TaskFamily(
    name="restock",
    vendors=(INVENTORY, SUPPLY, DIRECTORY),
    columns=("offer", "quantity", "total"),
    story=story,
    solve=solve,
)
