"""The vendors of the family restock: a warehouse, a supplier, a directory."""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_SKU = FieldTemplate(
    "sku",
    ("sku", "article", "stock_code"),
    "string",
    "Stock keeping unit of the item.",
    filterable=True,
)
_PART = FieldTemplate(
    "part",
    ("part", "part_no", "manufacturer_no"),
    "string",
    "Manufacturer's part number.",
    filterable=True,
)

INVENTORY = ProviderTemplate(
    "inventory",
    "inventory",
    ("Inventory", "Warehouse", "Stock"),
    "Keeps stock levels.",
    (
        ResourceTemplate(
            "classes",
            "Stock classes and when to reorder.",
            ("classes", "stock-classes", "policies", "reorder-rules", "groups"),
            (
                FieldTemplate(
                    "class",
                    ("class", "group", "class_name"),
                    "string",
                    "Name of the stock class.",
                ),
                FieldTemplate(
                    "reorder_level",
                    ("reorder_level", "minimum", "low_mark"),
                    "integer",
                    "Stock level below which items are reordered.",
                ),
                FieldTemplate(
                    "target_level",
                    ("target_level", "maximum", "fill_to"),
                    "integer",
                    "Stock level that an order must reach.",
                ),
                FieldTemplate(
                    "at_level",
                    ("at_level", "inclusive", "include_level"),
                    "boolean",
                    "Whether stock at exactly the reorder level is reordered too.",
                ),
            ),
            paged=False,
        ),
        ResourceTemplate(
            "items",
            "Items and what is on hand.",
            ("items", "stock", "articles", "goods", "products"),
            (
                _SKU,
                FieldTemplate(
                    "class",
                    ("class", "group", "stock_class"),
                    "string",
                    "Stock class of the item.",
                    filterable=True,
                ),
                FieldTemplate(
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
                FieldTemplate(
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
SUPPLY = ProviderTemplate(
    "supply",
    "supply",
    ("Supply", "Wholesale", "Parts"),
    "Sells parts and takes purchase orders.",
    (
        ResourceTemplate(
            "offers",
            "Offers of the catalogue.",
            ("offers", "catalogue", "price-list", "listings", "assortment"),
            (
                FieldTemplate(
                    "id",
                    ("id", "offer_id", "listing"),
                    "string",
                    "Identifier of the offer.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "part",
                    ("part", "part_no", "mpn"),
                    "string",
                    "Part number that is offered.",
                    filterable=True,
                ),
                FieldTemplate(
                    "pack_size",
                    ("pack_size", "multiple", "units_per_pack"),
                    "integer",
                    "Units per pack; only whole packs are sold.",
                ),
                FieldTemplate(
                    "price",
                    ("price", "unit_price", "each"),
                    "money",
                    "Price of one unit.",
                ),
                FieldTemplate(
                    "available",
                    ("available", "in_stock", "orderable"),
                    "boolean",
                    "Whether the offer can be ordered.",
                    filterable=True,
                ),
            ),
        ),
        ResourceTemplate(
            "orders",
            "Purchase orders.",
            ("orders", "purchase-orders", "procurements", "requisitions", "buys"),
            (
                FieldTemplate(
                    "id",
                    ("id", "order_id", "order_no"),
                    "string",
                    "Identifier of the order, given by the vendor.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "offer",
                    ("offer", "offer_ref", "listing_id"),
                    "string",
                    "Identifier of the offer that is ordered.",
                    identifier=True,
                    filterable=True,
                    writable=True,
                ),
                FieldTemplate(
                    "quantity",
                    ("quantity", "units", "count"),
                    "integer",
                    "Units ordered.",
                    writable=True,
                ),
                FieldTemplate(
                    "total",
                    ("total", "order_value", "sum"),
                    "money",
                    "Price of the whole order.",
                    writable=True,
                ),
                FieldTemplate(
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
