"""The vendors of the family sla_report: a help desk, contracts, a directory."""

from owa_bench.envs.toolquest.blueprints import (
    CONTROL,
    FieldPlan,
    ResourcePlan,
    VendorPlan,
)
from owa_bench.envs.toolquest.story import link_vendor, shed

_CODE = FieldPlan(
    "code",
    ("code", "customer_code", "client_code"),
    "string",
    "Code of the customer.",
    filterable=True,
)
_CONTRACT = FieldPlan(
    "contract",
    ("contract", "agreement_no", "contract_ref"),
    "string",
    "Number of the customer's contract.",
    filterable=True,
)

HELPDESK = VendorPlan(
    "helpdesk",
    "helpdesk",
    ("Helpdesk", "Support", "Service"),
    "Keeps support tickets.",
    (
        ResourcePlan(
            "customers",
            "Customers of the help desk.",
            ("customers", "clients", "organisations", "companies", "tenants"),
            (
                FieldPlan(
                    "id",
                    ("id", "customer_id", "key"),
                    "string",
                    "Identifier of the customer.",
                    identifier=True,
                    filterable=True,
                ),
                _CODE,
                _CONTRACT,
            ),
        ),
        ResourcePlan(
            "tickets",
            "Tickets that customers opened.",
            ("tickets", "cases", "requests", "incidents", "issues"),
            (
                FieldPlan(
                    "id",
                    ("id", "ticket_id", "case_no"),
                    "string",
                    "Identifier of the ticket.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "customer",
                    ("customer", "requester", "opened_by"),
                    "string",
                    "Identifier of the customer who opened the ticket.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "subject",
                    ("subject", "topic", "headline"),
                    "string",
                    "What the ticket is about.",
                ),
                FieldPlan(
                    "priority",
                    ("priority", "urgency", "level"),
                    "enum",
                    "Priority of the ticket: low, normal or high.",
                    choices=(
                        ("high", "urgent", "p1", "critical"),
                        ("normal", "p2"),
                        ("low", "p3"),
                    ),
                    filterable=True,
                ),
                FieldPlan(
                    "opened",
                    ("opened", "opened_on", "created"),
                    "date",
                    "Day on which the ticket was opened.",
                    filterable=True,
                ),
                FieldPlan(
                    "minutes",
                    ("minutes", "response_time", "waited"),
                    "integer",
                    "Minutes until the first answer.",
                ),
            ),
            methods=("GET", "DELETE"),
        ),
    ),
)
CONTRACTS = VendorPlan(
    "contracts",
    "contracts",
    ("Contracts", "Agreements", "Terms"),
    "Keeps contracts and their service levels.",
    (
        ResourcePlan(
            "agreements",
            "Contracts and the plan each is on.",
            ("agreements", "contracts", "subscriptions", "deals", "engagements"),
            (
                FieldPlan(
                    "contract",
                    ("contract", "number", "contract_no"),
                    "string",
                    "Number of the contract.",
                    filterable=True,
                ),
                FieldPlan(
                    "plan",
                    ("plan", "package", "edition"),
                    "string",
                    "Plan that the contract is on.",
                    filterable=True,
                ),
            ),
        ),
        ResourcePlan(
            "targets",
            "Service levels of each plan and priority.",
            ("targets", "service-levels", "slas", "objectives", "commitments"),
            (
                FieldPlan(
                    "plan",
                    ("plan", "package", "edition"),
                    "string",
                    "Plan that the level belongs to.",
                    filterable=True,
                ),
                FieldPlan(
                    "priority",
                    ("priority", "urgency", "class"),
                    "enum",
                    "Priority that the level is for.",
                    choices=(
                        ("high", "urgent", "p1", "critical"),
                        ("normal", "p2"),
                        ("low", "p3"),
                    ),
                    filterable=True,
                ),
                FieldPlan(
                    "minutes",
                    ("minutes", "max_minutes", "answer_within"),
                    "integer",
                    "Minutes within which an answer is due.",
                ),
                FieldPlan(
                    "limit_is_breach",
                    ("limit_is_breach", "strict", "limit_excluded"),
                    "boolean",
                    "Whether an answer at exactly the limit is a breach.",
                ),
                FieldPlan(
                    "credit",
                    ("credit", "penalty", "refund"),
                    "money",
                    "Credit due for one breach.",
                ),
            ),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_CODE, _CONTRACT, "Which contract covers which customer.")
HELPDESK_WITHOUT_LINK = shed(HELPDESK, "customers", "contract")
