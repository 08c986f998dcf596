"""The vendors of the family currency_rollup: tills, a treasury, a directory."""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_CODE = FieldTemplate(
    "code",
    ("code", "branch_code", "shop_no"),
    "string",
    "Code of the branch.",
    filterable=True,
)
_ENTITY = FieldTemplate(
    "entity",
    ("entity", "company", "legal_entity"),
    "string",
    "Number of the legal entity that runs the branch.",
    filterable=True,
)

SALES = ProviderTemplate(
    "sales",
    "commerce",
    ("Sales", "Tills", "Retail"),
    "Collects the receipts of branches.",
    (
        ResourceTemplate(
            "branches",
            "Branches that take money.",
            ("branches", "shops", "stores", "outlets", "sites"),
            (
                FieldTemplate(
                    "id",
                    ("id", "branch_id", "key"),
                    "string",
                    "Identifier of the branch.",
                    identifier=True,
                    filterable=True,
                ),
                _CODE,
                FieldTemplate(
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
        ResourceTemplate(
            "receipts",
            "Receipts of the branches, each in its own currency.",
            ("receipts", "takings", "sales", "tickets", "slips"),
            (
                FieldTemplate(
                    "id",
                    ("id", "receipt_id", "slip_no"),
                    "string",
                    "Identifier of the receipt.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "branch",
                    ("branch", "branch_ref", "taken_at"),
                    "string",
                    "Identifier of the branch that took the money.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "date",
                    ("date", "taken_on", "business_day"),
                    "date",
                    "Day on which the money was taken.",
                    filterable=True,
                ),
                FieldTemplate(
                    "currency",
                    ("currency", "tender", "coin"),
                    "string",
                    "Currency of the amount.",
                    filterable=True,
                ),
                FieldTemplate(
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
TREASURY = ProviderTemplate(
    "treasury",
    "treasury",
    ("Treasury", "Forex", "Exchange"),
    "Keeps exchange rates and the books of legal entities.",
    (
        ResourceTemplate(
            "entities",
            "Legal entities and the groups that they report to.",
            ("entities", "companies", "subsidiaries", "legal-entities", "holdings"),
            (
                FieldTemplate(
                    "entity",
                    ("entity", "company", "entity_no"),
                    "string",
                    "Number of the legal entity.",
                    filterable=True,
                ),
                FieldTemplate(
                    "group",
                    ("group", "segment", "reports_to"),
                    "string",
                    "Name of the group that the entity reports to.",
                    filterable=True,
                ),
                FieldTemplate(
                    "opening",
                    ("opening", "brought_forward", "balance"),
                    "money",
                    "Opening balance of the entity, in the group's currency.",
                ),
            ),
        ),
        ResourceTemplate(
            "rates",
            "Exchange rates and the days on which they hold.",
            ("rates", "exchange-rates", "fixings", "conversions", "quotes"),
            (
                FieldTemplate(
                    "currency",
                    ("currency", "tender", "from_currency"),
                    "string",
                    "Currency that is exchanged.",
                    filterable=True,
                ),
                FieldTemplate(
                    "first_day",
                    ("first_day", "starts", "valid_from"),
                    "date",
                    "First day of the rate.",
                ),
                FieldTemplate(
                    "last_day",
                    ("last_day", "ends", "valid_to"),
                    "date",
                    "Day on which the rate ends.",
                    bound=True,
                ),
                FieldTemplate(
                    "last_day_included",
                    ("last_day_included", "end_inclusive", "closes_after"),
                    "boolean",
                    "Whether the last day belongs to the rate.",
                ),
                FieldTemplate(
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
