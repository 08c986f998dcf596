"""Depot, a shop: look a product up, buy an exact variant, return an order."""

from owa_bench.envs.changesurf import site_schema as schema
from owa_bench.envs.changesurf.site_schema import Site, SiteDraw, SiteFact, SiteRows, SiteTask
from owa_bench.envs.changesurf.site_spec import Effect, SiteTable, SiteValue, Workflow

_LABELS = """
menu:products    Products|Catalogue|Shop || Assortment|Range
menu:orders      My orders|Order history|Purchases || Past deliveries|Bought by me
act:buy          Buy|Order|Purchase || Acquire|Get one
flow:buy         Your order|Checkout|Order form || Purchase sheet|Finish buying
commit:buy       Place order|Buy now|Complete purchase || Order bindingly|Pay and go
act:return       Return|Send back|Give back || Reverse|Hand back
flow:return      Return an order|Return form|Send an order back \
                 || Refund sheet|Give goods back
commit:return    Submit return|Start the return|Register return \
                 || File the refund|Book the return
slot:quantity    (pieces) Quantity|Number of pieces|How many || Units|Item count
slot:voucher     (voucher) Voucher code|Promo code|Coupon || Discount token|Gift code
slot:delivery    (delivery by) Delivery|Shipping method|How to ship \
                 || Dispatch by|Transport
slot:address     (send it to) Delivery address|Ship to|Street and town \
                 || Destination|Drop-off
slot:gift        (wrapped as a gift) Gift wrapping|Wrap as a gift|Gift paper \
                 || Present box|Festive wrap
slot:day         (arriving on) Delivery date|Preferred day|Arrive on \
                 || Wanted on|Bring it on
slot:reason      (because) Reason|Why you return it|Cause || Grounds|What went wrong
slot:refund      (money back as) Refund to|Money back by|Repayment \
                 || Credit to|Reimburse via
slot:pieces      (pieces sent back) Pieces to return|Return quantity|Items sent back \
                 || Units returned|Returned count
column:id        Number|No.|Reference || Ident|Key
column:name      Product|Article|Item || Goods|Merchandise
column:group     Category|Department|Group || Section|Shelf
column:colour    Colour|Shade|Hue || Tint|Finish
column:size      Size|Fit|Format || Cut|Dimension
column:price     Price|Unit price|Costs || Charge|Rate
column:stock     In stock|Available|On hand || Left|Remaining
column:weight    Weight in grams|Grams|Mass (g) || Heaviness (g)|Parcel grams
column:product   Ordered item|Ordered product|Ordered article || Bought|Contents
column:quantity  Ordered pieces|Ordered units|Pcs || Count|Volume
column:ordered   Ordered on|Order date|Date of order || Placed on|Bought on
column:total     Total|Order total|Sum || Amount due|Invoice sum
column:status    Status|State|Progress || Stage|Situation
"""

_GOODS = {
    "Canvas bag": "Bags",
    "Rain jacket": "Jackets",
    "Wool scarf": "Knitwear",
    "Trail shoe": "Shoes",
    "Field lamp": "Lamps",
}
_COLOURS = ("blue", "green", "black", "red", "sand")
_SIZES = ("S", "M", "L")
_STREETS = ("12 Mill Lane, Oakham", "7 Harbour Row, Selby", "31 Elm Court, Wick")
_DELIVERY = schema.options("Standard post", "Express courier", "Pickup point")
_REASONS = schema.options("Wrong size", "Damaged", "Not as shown", "Changed my mind")
_REFUNDS = schema.options("Original payment", "Shop credit")
_COUNTS = {1: (6, 4), 2: (16, 8), 3: (34, 14)}


def _tables(draw: SiteDraw) -> tuple[SiteTable, ...]:
    count, past = _COUNTS[draw.tier]
    kinds = [(good, colour, x) for good in _GOODS for colour in _COLOURS for x in _SIZES]
    products: SiteRows = [
        (
            *(f"P{i}", f"{good}, {colour}, {size}", _GOODS[good], colour, size),
            *(draw.cents(15, 180), draw.between(3, 7), draw.between(20, 180) * 10),
        )
        for i, (good, colour, size) in enumerate(draw.sample(kinds, count), 101)
    ]
    orders: SiteRows = []
    for i in range(past):
        product, pieces = draw.pick(products), draw.between(1, 4)
        day, total = draw.day(-draw.between(1, 9)), pieces * int(product[5])
        order = (f"A-{2040 + i}", product[1], pieces, day, total, "delivered")
        rest = ("standard-post", draw.pick(_STREETS), "no", "", "", "", "", 0)
        orders.append((*order, *rest))
    vouchers: SiteRows = [("V1", "SPRING10", "open"), ("V2", "AUTUMN15", "expired")]
    return (
        schema.table("products", "id name group colour size price stock weight", products),
        schema.table(
            "orders",
            "id product quantity ordered total status delivery address gift voucher "
            "day reason refund pieces",
            orders,
        ),
        schema.table("vouchers", "id code status", vouchers),
    )


def _workflows(draw: SiteDraw) -> tuple[Workflow, ...]:
    buying = schema.slots(
        draw,
        "quantity:number delivery:choice address",
        "voucher? gift:check",
        "day:date",
        delivery=_DELIVERY,
    )
    tiers = ("reason:choice", "refund:choice", "pieces:number")
    returning = schema.slots(draw, *tiers, reason=_REASONS, refund=_REFUNDS)
    order = schema.effect("insert", "orders", buying, product="record:name", status="=placed")
    stock = Effect(kind="take", table="products", values=(("stock", "slot:quantity"),))
    give_back = schema.effect("update", "orders", returning, status="=returned")
    refusals = {"is status delivered": "Only delivered orders can go back."}
    if draw.tier == 3:
        refusals["within pieces quantity"] = "The order had fewer pieces."
    return (
        schema.workflow(
            "buy",
            buying,
            order,
            stock,
            record="products",
            refusals={
                "within quantity stock": "There are not that many in stock.",
                "known voucher vouchers code open": "This voucher is not valid.",
            },
        ),
        schema.workflow("return", returning, give_back, record="orders", refusals=refusals),
    )


def _quote(draw: SiteDraw) -> SiteTask:
    if draw.tier < 3:
        row = draw.pick(draw.rows["products"])
        times = draw.between(2, 4) if draw.tier == 2 else 1
        text = f"What does `{row[1]}` cost each?"
        if times > 1:
            text = f"What do {times} pieces of `{row[1]}` cost?"
        cells = [("products", row[0], "price")]
        return schema.question(text, times * int(row[5]), cells)
    chosen = draw.sample(draw.rows["orders"], 3)
    names = ", ".join(str(row[0]) for row in chosen)
    text = f"What do the orders {names} come to together?"
    total = sum(int(row[4]) for row in chosen)
    return schema.question(text, total, [("orders", row[0], "total") for row in chosen])


def _buying(draw: SiteDraw, stock: int) -> dict[str, SiteValue]:
    return draw.values(
        "buy",
        quantity=lambda: draw.between(2, min(3, stock)),
        address=lambda: draw.pick(_STREETS),
        voucher=lambda: "SPRING10",
        day=lambda: draw.day(draw.between(1, 4)),
    )


def _buy(draw: SiteDraw) -> SiteTask:
    row = draw.pick(draw.rows["products"])
    return SiteTask(f"Buy `{row[1]}`.", "buy", _buying(draw, int(row[6])), row[0])


def _return(draw: SiteDraw) -> SiteTask:
    row = draw.pick(draw.rows["orders"])
    values = draw.values("return", pieces=lambda: draw.between(1, int(row[2])))
    return SiteTask(f"Return the order {row[0]}.", "return", values, row[0])


def _impossible(draw: SiteDraw) -> SiteTask:
    """Return an order of more pieces than there are, or with an expired voucher."""
    products = draw.rows["products"]
    row = draw.pick(products)
    values = _buying(draw, int(row[6]))
    if draw.tier >= 2 and draw.coin():
        values["voucher"] = "AUTUMN15"
    else:
        row = min(products, key=lambda product: int(product[6]))
        values["quantity"] = int(row[6]) + draw.between(1, 2)
    return SiteTask(f"Buy `{row[1]}`.", "buy", values, row[0])


SITE = Site(
    key="depot",
    user="visitor",
    brands=("North Depot", "Cobble Store", "Larkfield Goods", "Tern Outfitters"),
    labels=_LABELS,
    collections=(
        schema.collection(
            "products",
            "id name group:choice colour size price:money stock:number weight:number",
            title="name",
            category="group",
            secluded="weight",
        ),
        schema.collection(
            "orders",
            "id product quantity:number ordered:date total:money status:choice",
            title="id",
            category="status",
        ),
    ),
    tables=_tables,
    workflows=_workflows,
    tasks={"quote": _quote, "buy": _buy, "return": _return, "infeasible": _impossible},
    infeasible="buy",
    fact=SiteFact("products", "stock"),
)
