"""Depot, a shop: look a product up, buy an exact variant, return an order."""

from owa_bench.envs.changesurf import plots
from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.plots import Plot, Rows, Site, Task
from owa_bench.worlds.site import (
    Collection,
    Effect,
    SiteTable,
    SiteValue,
    Slot,
    Workflow,
)

WORDS = {
    "menu:products": "Products|Catalogue|Shop || Assortment|Range",
    "menu:orders": "My orders|Order history|Purchases || Past deliveries|Bought by me",
    "act:buy": "Buy|Order|Purchase || Acquire|Get one",
    "flow:buy": "Your order|Checkout|Order form || Purchase sheet|Finish buying",
    "commit:buy": "Place order|Buy now|Complete purchase || Order bindingly|Pay and go",
    "act:return": "Return|Send back|Give back || Reverse|Hand back",
    "flow:return": "Return an order|Return form|Send an order back "
    "|| Refund sheet|Give goods back",
    "commit:return": "Submit return|Start the return|Register return "
    "|| File the refund|Book the return",
    "slot:quantity": "Quantity|Number of pieces|How many || Units|Item count",
    "slot:voucher": "Voucher code|Promo code|Coupon || Discount token|Gift code",
    "slot:delivery": "Delivery|Shipping method|How to ship || Dispatch by|Transport",
    "slot:address": "Delivery address|Ship to|Street and town || Destination|Drop-off",
    "slot:gift": "Gift wrapping|Wrap as a gift|Gift paper || Present box|Festive wrap",
    "slot:day": "Delivery date|Preferred day|Arrive on || Wanted on|Bring it on",
    "slot:reason": "Reason|Why you return it|Cause || Grounds|What went wrong",
    "slot:refund": "Refund to|Money back by|Repayment || Credit to|Reimburse via",
    "slot:pieces": "Pieces to return|Return quantity|Items sent back "
    "|| Units returned|Returned count",
    "column:id": "Number|No.|Reference || Ident|Key",
    "column:name": "Product|Article|Item || Goods|Merchandise",
    "column:group": "Category|Department|Group || Section|Shelf",
    "column:colour": "Colour|Shade|Hue || Tint|Finish",
    "column:size": "Size|Fit|Format || Cut|Dimension",
    "column:price": "Price|Unit price|Costs || Charge|Rate",
    "column:stock": "In stock|Available|On hand || Left|Remaining",
    "column:weight": "Weight in grams|Grams|Mass (g) || Heaviness (g)|Parcel grams",
    "column:product": "Ordered item|Ordered product|Ordered article || Bought|Contents",
    "column:quantity": "Ordered pieces|Ordered units|Pcs || Count|Volume",
    "column:ordered": "Ordered on|Order date|Date of order || Placed on|Bought on",
    "column:total": "Total|Order total|Sum || Amount due|Invoice sum",
    "column:status": "Status|State|Progress || Stage|Situation",
}
NAMES = {
    "quantity": "pieces",
    "voucher": "voucher",
    "delivery": "delivery by",
    "address": "send it to",
    "gift": "wrapped as a gift",
    "day": "arriving on",
    "reason": "because",
    "refund": "money back as",
    "pieces": "pieces sent back",
}
_GOODS = ("Canvas bag", "Rain jacket", "Wool scarf", "Trail shoe", "Field lamp")
_GROUPS = ("Bags", "Jackets", "Knitwear", "Shoes", "Lamps")
_COLOURS = ("blue", "green", "black", "red", "sand")
_SIZES = ("S", "M", "L")
_STREETS = ("12 Mill Lane, Oakham", "7 Harbour Row, Selby", "31 Elm Court, Wick")
_DELIVERY = plots.options("Standard post", "Express courier", "Pickup point")
_REASONS = plots.options("Wrong size", "Damaged", "Not as shown", "Changed my mind")
_REFUNDS = plots.options("Original payment", "Shop credit")
_OPEN = "delivered"
_SIZES_OF_TIER = {1: (6, 4), 2: (16, 8), 3: (34, 14)}
_PRODUCT_COLUMNS = (
    *("id", "name", "group", "colour", "size", "price", "stock", "weight"),
)
_ORDER_COLUMNS = (
    *("id", "product", "quantity", "ordered", "total", "status", "delivery"),
    *("address", "gift", "voucher", "day", "reason", "refund", "pieces"),
)
_VOUCHERS = SiteTable(
    key="vouchers",
    columns=("id", "code", "status"),
    rows=(("V1", "SPRING10", "open"), ("V2", "AUTUMN15", "expired")),
)
_COLLECTIONS = (
    Collection(
        key="products",
        columns=plots.columns(
            "id name group:choice colour size price:money stock:number weight:number"
        ),
        title="name",
        category="group",
        secluded=("weight",),
    ),
    Collection(
        key="orders",
        columns=plots.columns(
            "id product quantity:number ordered:date total:money status:choice"
        ),
        title="id",
        category="status",
    ),
)


def draw(draws: Draws, tier: int, goal: str) -> Plot:
    """Return the shop with its products and orders, and the task of `goal`."""
    day = plots.today(draws)
    count, past = _SIZES_OF_TIER[tier]
    products = _products(draws, count)
    orders = _orders(draws, products, day, past)
    workflows = (_buy(tier), _return(tier))
    tasks = {"quote": _quote, "buy": _purchase, "return": _giving_back}
    task = (
        _impossible(draws, tier, products, day)
        if goal == "infeasible"
        else tasks[goal](draws, tier, products, orders, day)
    )
    asked = draws.pick(products)
    other = (int(asked[6]) + draws.between(1, 9)) if draws.coin() else int(asked[6])
    return Plot(
        today=day,
        user="visitor",
        tables=(
            SiteTable(key="products", columns=_PRODUCT_COLUMNS, rows=tuple(products)),
            SiteTable(key="orders", columns=_ORDER_COLUMNS, rows=tuple(orders)),
            _VOUCHERS,
        ),
        collections=_COLLECTIONS,
        workflows=workflows,
        task=task,
        fact=("products", asked[0], "stock", other),
    )


def _products(draws: Draws, count: int) -> Rows:
    kinds = [
        (good, colour, size)
        for good in range(len(_GOODS))
        for colour in _COLOURS
        for size in _SIZES
    ]
    rows: Rows = []
    for i, (good, colour, size) in enumerate(draws.sample(kinds, count)):
        name = f"{_GOODS[good]}, {colour}, {size}"
        price, stock = draws.cents(15, 180), draws.between(3, 7)
        weight = draws.between(20, 180) * 10
        group = _GROUPS[good]
        rows.append((f"P{101 + i}", name, group, colour, size, price, stock, weight))
    return rows


def _orders(draws: Draws, products: Rows, day: str, count: int) -> Rows:
    rows: Rows = []
    for i in range(count):
        product, pieces = draws.pick(products), draws.between(1, 4)
        made = draws.day(day, -draws.between(1, 9))
        total = pieces * int(product[5])
        rest = ("standard-post", draws.pick(_STREETS), "no", "", "", "", "", 0)
        row = (f"A-{2040 + i}", product[1], pieces, made, total, _OPEN, *rest)
        rows.append(row)
    return rows


def _buy(tier: int) -> Workflow:
    slots = [
        Slot(key="quantity", kind="number"),
        Slot(key="delivery", kind="choice", options=_DELIVERY),
        Slot(key="address", kind="text"),
    ]
    if tier >= 2:
        slots.append(Slot(key="voucher", kind="text", required=False))
        slots.append(plots.box("gift"))
    if tier >= 3:
        slots.append(Slot(key="day", kind="date"))
    cells = plots.cells(slots)
    return Workflow(
        key="buy",
        record="products",
        slots=tuple(slots),
        effects=(
            Effect(
                kind="insert",
                table="orders",
                values=(("product", "record:name"), ("status", "=placed"), *cells),
            ),
            Effect(kind="take", table="products", values=(("stock", "slot:quantity"),)),
        ),
        checks=(
            plots.only(
                "within", "quantity", "stock", "There are not that many in stock."
            ),
            plots.only(
                *("known", "voucher", "vouchers", "code", "open"),
                "This voucher is not valid.",
            ),
        ),
    )


def _return(tier: int) -> Workflow:
    slots = [Slot(key="reason", kind="choice", options=_REASONS)]
    if tier >= 2:
        slots.append(Slot(key="refund", kind="choice", options=_REFUNDS))
    if tier >= 3:
        slots.append(Slot(key="pieces", kind="number"))
    cells = plots.cells(slots)
    checks = [plots.only("is", "status", _OPEN, "Only delivered orders can go back.")]
    if tier >= 3:
        checks.append(
            plots.only("within", "pieces", "quantity", "The order had fewer pieces.")
        )
    return Workflow(
        key="return",
        record="orders",
        slots=tuple(slots),
        effects=(
            Effect(
                kind="update", table="orders", values=(("status", "=returned"), *cells)
            ),
        ),
        checks=tuple(checks),
    )


def _quote(draws: Draws, tier: int, products: Rows, orders: Rows, _day: str) -> Task:
    if tier < 3:
        row = draws.pick(products)
        times = draws.between(2, 4) if tier == 2 else 1
        words = f"What do {times} pieces of" if times > 1 else "What does"
        verb = "cost" if times > 1 else "cost each"
        text = f"{words} `{row[1]}` {verb}?"
        cells = [("products", row[0], "price")]
        return plots.finding(text, times * int(row[5]), cells)
    chosen = draws.sample(orders, 3)
    names = ", ".join(str(row[0]) for row in chosen)
    text = f"What do the orders {names} come to together?"
    total = sum(int(row[4]) for row in chosen)
    return plots.finding(text, total, [("orders", row[0], "total") for row in chosen])


def _values(draws: Draws, tier: int, stock: int, day: str) -> dict[str, SiteValue]:
    values: dict[str, SiteValue] = {
        "quantity": draws.between(2, min(3, stock)),
        "delivery": draws.pick(_DELIVERY).value,
        "address": draws.pick(_STREETS),
    }
    if tier >= 2:
        values["voucher"] = "SPRING10"
        values["gift"] = draws.pick(("yes", "no"))
    if tier >= 3:
        values["day"] = draws.day(day, draws.between(1, 4))
    return values


def _purchase(draws: Draws, tier: int, products: Rows, _orders: Rows, day: str) -> Task:
    row = draws.pick(products)
    values = _values(draws, tier, int(row[6]), day)
    return Task(f"Buy `{row[1]}`.", "buy", values, row[0])


def _giving_back(
    draws: Draws, tier: int, _products: Rows, orders: Rows, _day: str
) -> Task:
    row = draws.pick(orders)
    values: dict[str, SiteValue] = {"reason": draws.pick(_REASONS).value}
    if tier >= 2:
        values["refund"] = draws.pick(_REFUNDS).value
    if tier >= 3:
        values["pieces"] = draws.between(1, int(row[2]))
    return Task(f"Return the order {row[0]}.", "return", values, row[0])


def _impossible(draws: Draws, tier: int, products: Rows, day: str) -> Task:
    """Return an order of more pieces than there are, or with a dead voucher."""
    row = draws.pick(products)
    values = _values(draws, tier, int(row[6]), day)
    if tier >= 2 and draws.coin():
        values["voucher"] = "AUTUMN15"
    else:
        row = min(products, key=lambda product: int(product[6]))
        values["quantity"] = int(row[6]) + draws.between(1, 2)
    return Task(f"Buy `{row[1]}`.", "buy", values, row[0])


SITE = Site(
    key="depot",
    goals=("quote", "buy", "return"),
    infeasible="buy",
    brands=("North Depot", "Cobble Store", "Larkfield Goods", "Tern Outfitters"),
    words=WORDS,
    names=NAMES,
    draw=draw,
)
