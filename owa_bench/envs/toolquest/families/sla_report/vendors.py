"""The vendors of the family sla_report: a help desk, contracts, a directory."""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_CODE = FieldTemplate(
    "code",
    ("code", "customer_code", "client_code"),
    "string",
    "Code of the customer.",
    filterable=True,
)
_CONTRACT = FieldTemplate(
    "contract",
    ("contract", "agreement_no", "contract_ref"),
    "string",
    "Number of the customer's contract.",
    filterable=True,
)

HELPDESK = ProviderTemplate(
    "helpdesk",
    "helpdesk",
    ("Helpdesk", "Support", "Service"),
    "Keeps support tickets.",
    (
        ResourceTemplate(
            "customers",
            "Customers of the help desk.",
            ("customers", "clients", "organisations", "companies", "tenants"),
            (
                FieldTemplate(
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
        ResourceTemplate(
            "tickets",
            "Tickets that customers opened.",
            ("tickets", "cases", "requests", "incidents", "issues"),
            (
                FieldTemplate(
                    "id",
                    ("id", "ticket_id", "case_no"),
                    "string",
                    "Identifier of the ticket.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "customer",
                    ("customer", "requester", "opened_by"),
                    "string",
                    "Identifier of the customer who opened the ticket.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "subject",
                    ("subject", "topic", "headline"),
                    "string",
                    "What the ticket is about.",
                ),
                FieldTemplate(
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
                FieldTemplate(
                    "opened",
                    ("opened", "opened_on", "created"),
                    "date",
                    "Day on which the ticket was opened.",
                    filterable=True,
                ),
                FieldTemplate(
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
CONTRACTS = ProviderTemplate(
    "contracts",
    "contracts",
    ("Contracts", "Agreements", "Terms"),
    "Keeps contracts and their service levels.",
    (
        ResourceTemplate(
            "agreements",
            "Contracts and the plan each is on.",
            ("agreements", "contracts", "subscriptions", "deals", "engagements"),
            (
                FieldTemplate(
                    "contract",
                    ("contract", "number", "contract_no"),
                    "string",
                    "Number of the contract.",
                    filterable=True,
                ),
                FieldTemplate(
                    "plan",
                    ("plan", "package", "edition"),
                    "string",
                    "Plan that the contract is on.",
                    filterable=True,
                ),
            ),
        ),
        ResourceTemplate(
            "targets",
            "Service levels of each plan and priority.",
            ("targets", "service-levels", "slas", "objectives", "commitments"),
            (
                FieldTemplate(
                    "plan",
                    ("plan", "package", "edition"),
                    "string",
                    "Plan that the level belongs to.",
                    filterable=True,
                ),
                FieldTemplate(
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
                FieldTemplate(
                    "minutes",
                    ("minutes", "max_minutes", "answer_within"),
                    "integer",
                    "Minutes within which an answer is due.",
                ),
                FieldTemplate(
                    "limit_is_breach",
                    ("limit_is_breach", "strict", "limit_excluded"),
                    "boolean",
                    "Whether an answer at exactly the limit is a breach.",
                ),
                FieldTemplate(
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
