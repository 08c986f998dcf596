"""The vendors of the family reconcile: a ledger, a bank, a directory."""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_CODE = FieldTemplate(
    "code",
    ("code", "account_code", "gl_code"),
    "string",
    "Code of the account in the chart of accounts.",
    filterable=True,
)
_BANK = FieldTemplate(
    "bank_account",
    ("bank_account", "iban", "settlement_account"),
    "string",
    "Number of the bank account that settles the account.",
    filterable=True,
)

LEDGER = ProviderTemplate(
    "ledger",
    "ledger",
    ("Ledger", "Books", "Accounting"),
    "Keeps general ledgers.",
    (
        ResourceTemplate(
            "periods",
            "Accounting periods and their bounds.",
            ("periods", "fiscal-periods", "calendar", "quarters", "closing-periods"),
            (
                FieldTemplate(
                    "name", ("name", "period", "label"), "string", "Name of the period."
                ),
                FieldTemplate(
                    "first_day",
                    ("first_day", "starts", "from_date"),
                    "date",
                    "First day of the period.",
                ),
                FieldTemplate(
                    "last_day",
                    ("last_day", "ends", "to_date"),
                    "date",
                    "Day on which the period ends.",
                    bound=True,
                ),
                FieldTemplate(
                    "last_day_included",
                    ("last_day_included", "end_inclusive", "closes_after"),
                    "boolean",
                    "Whether the last day belongs to the period.",
                ),
            ),
            paged=False,
        ),
        ResourceTemplate(
            "accounts",
            "Accounts of the ledger.",
            ("accounts", "ledger-accounts", "chart", "gl-accounts", "books"),
            (
                FieldTemplate(
                    "id",
                    ("id", "account_id", "key"),
                    "string",
                    "Identifier of the account.",
                    identifier=True,
                    filterable=True,
                ),
                _CODE,
                FieldTemplate(
                    "status",
                    ("status", "state", "condition"),
                    "enum",
                    "Status of the account: open, closed or frozen.",
                    choices=(
                        ("open", "live", "in_use", "current"),
                        ("closed", "shut"),
                        ("frozen", "blocked"),
                    ),
                    filterable=True,
                ),
                _BANK,
            ),
        ),
        ResourceTemplate(
            "entries",
            "Bookings on the accounts of the ledger.",
            ("entries", "journal-lines", "bookings", "postings", "movements"),
            (
                FieldTemplate(
                    "id",
                    ("id", "entry_id", "line"),
                    "string",
                    "Identifier of the booking.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "account",
                    ("account", "account_ref", "booked_to"),
                    "string",
                    "Identifier of the account that is booked.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "reference",
                    ("reference", "document", "voucher"),
                    "string",
                    "Reference of the business document.",
                    filterable=True,
                ),
                FieldTemplate(
                    "date",
                    ("date", "booked_on", "booking_day"),
                    "date",
                    "Day of the booking.",
                    filterable=True,
                ),
                FieldTemplate(
                    "amount", ("amount", "value", "booked"), "money", "Booked amount."
                ),
            ),
            methods=("GET", "DELETE"),
        ),
        CONTROL,
    ),
)
BANK = ProviderTemplate(
    "bank",
    "payments",
    ("Bank", "Payments", "Clearing"),
    "Moves money between accounts.",
    (
        ResourceTemplate(
            "transfers",
            "Transfers on the bank accounts.",
            ("transfers", "payments", "transactions", "settlements", "remittances"),
            (
                FieldTemplate(
                    "id",
                    ("id", "transfer_id", "trace"),
                    "string",
                    "Identifier of the transfer.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "bank_account",
                    ("bank_account", "iban", "account_number"),
                    "string",
                    "Number of the bank account.",
                    filterable=True,
                ),
                FieldTemplate(
                    "reference",
                    ("reference", "remittance", "end_to_end"),
                    "string",
                    "Reference that the payer gave.",
                    filterable=True,
                ),
                FieldTemplate(
                    "date",
                    ("date", "value_date", "settled_on"),
                    "date",
                    "Value day of the transfer.",
                    filterable=True,
                ),
                FieldTemplate(
                    "amount", ("amount", "value", "sum"), "money", "Transferred amount."
                ),
            ),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_CODE, _BANK, "Which bank account settles which account.")
LEDGER_WITHOUT_LINK = shed(LEDGER, "accounts", "bank_account")
