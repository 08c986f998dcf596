"""The vendors of the family currency_rollup: tills, a treasury, a directory."""

from owa_bench.envs.toolquest.blueprints import (
    CONTROL,
    FieldPlan,
    ResourcePlan,
    VendorPlan,
)
from owa_bench.envs.toolquest.story import link_vendor, shed

_CODE = FieldPlan(
    "code",
    ("code", "branch_code", "shop_no"),
    "string",
    "Code of the branch.",
    filterable=True,
)
_ENTITY = FieldPlan(
    "entity",
    ("entity", "company", "legal_entity"),
    "string",
    "Number of the legal entity that runs the branch.",
    filterable=True,
)

SALES = VendorPlan(
    "sales",
    "commerce",
    ("Sales", "Tills", "Retail"),
    "Collects the receipts of branches.",
    (
        ResourcePlan(
            "branches",
            "Branches that take money.",
            ("branches", "shops", "stores", "outlets", "sites"),
            (
                FieldPlan(
                    "id",
                    ("id", "branch_id", "key"),
                    "string",
                    "Identifier of the branch.",
                    identifier=True,
                    filterable=True,
                ),
                _CODE,
                FieldPlan(
                    "status",
                    ("status", "state", "condition"),
                    "enum",
                    "Status of the branch: open, closed or planned.",
                    choices=(
                        ("open", "trading", "live", "in_service"),
                        ("closed", "shut"),
                        ("planned", "future"),
                    ),
                    filterable=True,
                ),
                _ENTITY,
            ),
        ),
        ResourcePlan(
            "receipts",
            "Receipts of the branches, each in its own currency.",
            ("receipts", "takings", "sales", "tickets", "slips"),
            (
                FieldPlan(
                    "id",
                    ("id", "receipt_id", "slip_no"),
                    "string",
                    "Identifier of the receipt.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "branch",
                    ("branch", "branch_ref", "taken_at"),
                    "string",
                    "Identifier of the branch that took the money.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "date",
                    ("date", "taken_on", "business_day"),
                    "date",
                    "Day on which the money was taken.",
                    filterable=True,
                ),
                FieldPlan(
                    "currency",
                    ("currency", "tender", "coin"),
                    "string",
                    "Currency of the amount.",
                    filterable=True,
                ),
                FieldPlan(
                    "amount",
                    ("amount", "value", "taken"),
                    "money",
                    "Amount taken, in the currency of the receipt.",
                ),
            ),
            methods=("GET", "DELETE"),
        ),
        CONTROL,
    ),
)
TREASURY = VendorPlan(
    "treasury",
    "treasury",
    ("Treasury", "Forex", "Exchange"),
    "Keeps exchange rates and the books of legal entities.",
    (
        ResourcePlan(
            "entities",
            "Legal entities and the groups that they report to.",
            ("entities", "companies", "subsidiaries", "legal-entities", "holdings"),
            (
                FieldPlan(
                    "entity",
                    ("entity", "company", "entity_no"),
                    "string",
                    "Number of the legal entity.",
                    filterable=True,
                ),
                FieldPlan(
                    "group",
                    ("group", "segment", "reports_to"),
                    "string",
                    "Name of the group that the entity reports to.",
                    filterable=True,
                ),
                FieldPlan(
                    "opening",
                    ("opening", "brought_forward", "balance"),
                    "money",
                    "Opening balance of the entity, in the group's currency.",
                ),
            ),
        ),
        ResourcePlan(
            "rates",
            "Exchange rates and the days on which they hold.",
            ("rates", "exchange-rates", "fixings", "conversions", "quotes"),
            (
                FieldPlan(
                    "currency",
                    ("currency", "tender", "from_currency"),
                    "string",
                    "Currency that is exchanged.",
                    filterable=True,
                ),
                FieldPlan(
                    "first_day",
                    ("first_day", "starts", "valid_from"),
                    "date",
                    "First day of the rate.",
                ),
                FieldPlan(
                    "last_day",
                    ("last_day", "ends", "valid_to"),
                    "date",
                    "Day on which the rate ends.",
                    bound=True,
                ),
                FieldPlan(
                    "last_day_included",
                    ("last_day_included", "end_inclusive", "closes_after"),
                    "boolean",
                    "Whether the last day belongs to the rate.",
                ),
                FieldPlan(
                    "rate",
                    ("rate", "quote", "parity"),
                    "integer",
                    "Cents of the group's currency for 10000 cents of this one.",
                ),
            ),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_CODE, _ENTITY, "Which legal entity runs which branch.")
SALES_WITHOUT_LINK = shed(SALES, "branches", "entity")
