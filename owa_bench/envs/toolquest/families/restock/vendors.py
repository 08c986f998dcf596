"""The vendors of the family restock: a warehouse, a supplier, a directory."""

from owa_bench.envs.toolquest.blueprints import (
    CONTROL,
    FieldPlan,
    ResourcePlan,
    VendorPlan,
)
from owa_bench.envs.toolquest.story import link_vendor, shed

_SKU = FieldPlan(
    "sku",
    ("sku", "article", "stock_code"),
    "string",
    "Stock keeping unit of the item.",
    filterable=True,
)
_PART = FieldPlan(
    "part",
    ("part", "part_no", "manufacturer_no"),
    "string",
    "Manufacturer's part number.",
    filterable=True,
)

INVENTORY = VendorPlan(
    "inventory",
    "inventory",
    ("Inventory", "Warehouse", "Stock"),
    "Keeps stock levels.",
    (
        ResourcePlan(
            "classes",
            "Stock classes and when to reorder.",
            ("classes", "stock-classes", "policies", "reorder-rules", "groups"),
            (
                FieldPlan(
                    "class",
                    ("class", "group", "class_name"),
                    "string",
                    "Name of the stock class.",
                ),
                FieldPlan(
                    "reorder_level",
                    ("reorder_level", "minimum", "low_mark"),
                    "integer",
                    "Stock level below which items are reordered.",
                ),
                FieldPlan(
                    "target_level",
                    ("target_level", "maximum", "fill_to"),
                    "integer",
                    "Stock level that an order must reach.",
                ),
                FieldPlan(
                    "at_level",
                    ("at_level", "inclusive", "include_level"),
                    "boolean",
                    "Whether stock at exactly the reorder level is reordered too.",
                ),
            ),
            paged=False,
        ),
        ResourcePlan(
            "items",
            "Items and what is on hand.",
            ("items", "stock", "articles", "goods", "products"),
            (
                _SKU,
                FieldPlan(
                    "class",
                    ("class", "group", "stock_class"),
                    "string",
                    "Stock class of the item.",
                    filterable=True,
                ),
                FieldPlan(
                    "status",
                    ("status", "state", "lifecycle"),
                    "enum",
                    "Status of the item: active, phased_out or blocked.",
                    choices=(
                        ("active", "current", "selling", "listed"),
                        ("phased_out", "ended"),
                        ("blocked", "held"),
                    ),
                    filterable=True,
                ),
                FieldPlan(
                    "on_hand",
                    ("on_hand", "quantity", "available_units"),
                    "integer",
                    "Units on hand.",
                ),
                _PART,
            ),
        ),
    ),
)
SUPPLY = VendorPlan(
    "supply",
    "supply",
    ("Supply", "Wholesale", "Parts"),
    "Sells parts and takes purchase orders.",
    (
        ResourcePlan(
            "offers",
            "Offers of the catalogue.",
            ("offers", "catalogue", "price-list", "listings", "assortment"),
            (
                FieldPlan(
                    "id",
                    ("id", "offer_id", "listing"),
                    "string",
                    "Identifier of the offer.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "part",
                    ("part", "part_no", "mpn"),
                    "string",
                    "Part number that is offered.",
                    filterable=True,
                ),
                FieldPlan(
                    "pack_size",
                    ("pack_size", "multiple", "units_per_pack"),
                    "integer",
                    "Units per pack; only whole packs are sold.",
                ),
                FieldPlan(
                    "price",
                    ("price", "unit_price", "each"),
                    "money",
                    "Price of one unit.",
                ),
                FieldPlan(
                    "available",
                    ("available", "in_stock", "orderable"),
                    "boolean",
                    "Whether the offer can be ordered.",
                    filterable=True,
                ),
            ),
        ),
        ResourcePlan(
            "orders",
            "Purchase orders.",
            ("orders", "purchase-orders", "procurements", "requisitions", "buys"),
            (
                FieldPlan(
                    "id",
                    ("id", "order_id", "order_no"),
                    "string",
                    "Identifier of the order, given by the vendor.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "offer",
                    ("offer", "offer_ref", "listing_id"),
                    "string",
                    "Identifier of the offer that is ordered.",
                    identifier=True,
                    filterable=True,
                    writable=True,
                ),
                FieldPlan(
                    "quantity",
                    ("quantity", "units", "count"),
                    "integer",
                    "Units ordered.",
                    writable=True,
                ),
                FieldPlan(
                    "total",
                    ("total", "order_value", "sum"),
                    "money",
                    "Price of the whole order.",
                    writable=True,
                ),
                FieldPlan(
                    "status",
                    ("status", "state", "progress"),
                    "enum",
                    "Status of the order: open or received.",
                    choices=(
                        ("open", "pending", "in_transit", "placed"),
                        ("received", "done"),
                    ),
                    filterable=True,
                ),
            ),
            methods=("GET", "POST", "DELETE"),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_SKU, _PART, "Which part number belongs to which item.")
INVENTORY_WITHOUT_LINK = shed(INVENTORY, "items", "part")
