"""The vendors of the family deduplicate: customer records, billing, a directory."""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_CODE = FieldTemplate(
    "code",
    ("code", "customer_code", "record_no"),
    "string",
    "Code of the customer record.",
    filterable=True,
)
_ACCOUNT = FieldTemplate(
    "account",
    ("account", "debtor", "billing_account"),
    "string",
    "Number of the debtor account that the record is billed on.",
    filterable=True,
)

CRM = ProviderTemplate(
    "crm",
    "crm",
    ("Contacts", "Relations", "Clientele"),
    "Keeps customer records.",
    (
        ResourceTemplate(
            "policies",
            "Merge policies of the customer segments.",
            ("policies", "merge-policies", "matching-rules", "segments", "limits"),
            (
                FieldTemplate(
                    "segment",
                    ("segment", "bracket", "customer_group"),
                    "string",
                    "Name of the customer segment.",
                ),
                FieldTemplate(
                    "days",
                    ("days", "max_days", "window"),
                    "integer",
                    "Days after the standing record in which later ones are merged.",
                ),
                FieldTemplate(
                    "limit_included",
                    ("limit_included", "inclusive", "counts_limit"),
                    "boolean",
                    "Whether a record made exactly at the limit is merged too.",
                ),
            ),
            paged=False,
        ),
        ResourceTemplate(
            "customers",
            "Customer records, some of them made twice.",
            ("customers", "contacts", "people", "clients", "parties"),
            (
                FieldTemplate(
                    "id",
                    ("id", "customer_id", "key"),
                    "string",
                    "Identifier of the record.",
                    identifier=True,
                    filterable=True,
                ),
                _CODE,
                FieldTemplate(
                    "email",
                    ("email", "mail", "mailbox"),
                    "string",
                    "E-mail address of the customer.",
                    filterable=True,
                ),
                FieldTemplate(
                    "tax_number",
                    ("tax_number", "vat_id", "fiscal_code"),
                    "string",
                    "Tax number of the customer.",
                    filterable=True,
                ),
                FieldTemplate(
                    "segment",
                    ("segment", "bracket", "class"),
                    "string",
                    "Segment that the customer belongs to.",
                    filterable=True,
                ),
                FieldTemplate(
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
                FieldTemplate(
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
BILLING = ProviderTemplate(
    "billing",
    "billing",
    ("Billing", "Invoicing", "Receivables"),
    "Bills customers.",
    (
        ResourceTemplate(
            "invoices",
            "Invoices on the debtor accounts.",
            ("invoices", "bills", "receivables", "claims", "open-items"),
            (
                FieldTemplate(
                    "id",
                    ("id", "invoice_id", "number"),
                    "string",
                    "Identifier of the invoice.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "account",
                    ("account", "debtor_account", "billed_to"),
                    "string",
                    "Number of the debtor account that is billed.",
                    filterable=True,
                ),
                FieldTemplate(
                    "issued",
                    ("issued", "invoice_date", "billed_on"),
                    "date",
                    "Day on which the invoice was issued.",
                    filterable=True,
                ),
                FieldTemplate(
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
                FieldTemplate(
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
