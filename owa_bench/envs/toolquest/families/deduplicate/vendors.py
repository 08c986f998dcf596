"""The vendors of the family deduplicate: customer records, billing, a directory."""

from owa_bench.envs.toolquest.blueprints import (
    CONTROL,
    FieldPlan,
    ResourcePlan,
    VendorPlan,
)
from owa_bench.envs.toolquest.story import link_vendor, shed

_CODE = FieldPlan(
    "code",
    ("code", "customer_code", "record_no"),
    "string",
    "Code of the customer record.",
    filterable=True,
)
_ACCOUNT = FieldPlan(
    "account",
    ("account", "debtor", "billing_account"),
    "string",
    "Number of the debtor account that the record is billed on.",
    filterable=True,
)

CRM = VendorPlan(
    "crm",
    "crm",
    ("Contacts", "Relations", "Clientele"),
    "Keeps customer records.",
    (
        ResourcePlan(
            "policies",
            "Merge policies of the customer segments.",
            ("policies", "merge-policies", "matching-rules", "segments", "limits"),
            (
                FieldPlan(
                    "segment",
                    ("segment", "bracket", "customer_group"),
                    "string",
                    "Name of the customer segment.",
                ),
                FieldPlan(
                    "days",
                    ("days", "max_days", "window"),
                    "integer",
                    "Days after the standing record in which later ones are merged.",
                ),
                FieldPlan(
                    "limit_included",
                    ("limit_included", "inclusive", "counts_limit"),
                    "boolean",
                    "Whether a record made exactly at the limit is merged too.",
                ),
            ),
            paged=False,
        ),
        ResourcePlan(
            "customers",
            "Customer records, some of them made twice.",
            ("customers", "contacts", "people", "clients", "parties"),
            (
                FieldPlan(
                    "id",
                    ("id", "customer_id", "key"),
                    "string",
                    "Identifier of the record.",
                    identifier=True,
                    filterable=True,
                ),
                _CODE,
                FieldPlan(
                    "email",
                    ("email", "mail", "mailbox"),
                    "string",
                    "E-mail address of the customer.",
                    filterable=True,
                ),
                FieldPlan(
                    "tax_number",
                    ("tax_number", "vat_id", "fiscal_code"),
                    "string",
                    "Tax number of the customer.",
                    filterable=True,
                ),
                FieldPlan(
                    "segment",
                    ("segment", "bracket", "class"),
                    "string",
                    "Segment that the customer belongs to.",
                    filterable=True,
                ),
                FieldPlan(
                    "status",
                    ("status", "state", "condition"),
                    "enum",
                    "Status of the record: active, archived or blocked.",
                    choices=(
                        ("active", "live", "in_use", "enabled"),
                        ("archived", "shelved"),
                        ("blocked", "barred"),
                    ),
                    filterable=True,
                ),
                FieldPlan(
                    "created",
                    ("created", "made_on", "since"),
                    "date",
                    "Day on which the record was made.",
                    filterable=True,
                ),
                _ACCOUNT,
            ),
            methods=("GET", "DELETE"),
        ),
    ),
)
BILLING = VendorPlan(
    "billing",
    "billing",
    ("Billing", "Invoicing", "Receivables"),
    "Bills customers.",
    (
        ResourcePlan(
            "invoices",
            "Invoices on the debtor accounts.",
            ("invoices", "bills", "receivables", "claims", "open-items"),
            (
                FieldPlan(
                    "id",
                    ("id", "invoice_id", "number"),
                    "string",
                    "Identifier of the invoice.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "account",
                    ("account", "debtor_account", "billed_to"),
                    "string",
                    "Number of the debtor account that is billed.",
                    filterable=True,
                ),
                FieldPlan(
                    "issued",
                    ("issued", "invoice_date", "billed_on"),
                    "date",
                    "Day on which the invoice was issued.",
                    filterable=True,
                ),
                FieldPlan(
                    "status",
                    ("status", "state", "settlement"),
                    "enum",
                    "Status of the invoice: open, paid or cancelled.",
                    choices=(
                        ("open", "due", "unpaid", "outstanding"),
                        ("paid", "settled"),
                        ("cancelled", "void"),
                    ),
                    filterable=True,
                ),
                FieldPlan(
                    "amount",
                    ("amount", "value", "sum"),
                    "money",
                    "Amount of the invoice.",
                ),
            ),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_CODE, _ACCOUNT, "Which debtor account bills which record.")
CRM_WITHOUT_LINK = shed(CRM, "customers", "account")
