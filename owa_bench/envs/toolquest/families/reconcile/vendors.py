"""The vendors of the family reconcile: a ledger, a bank, a directory."""

from owa_bench.envs.toolquest.blueprints import (
    CONTROL,
    FieldPlan,
    ResourcePlan,
    VendorPlan,
)
from owa_bench.envs.toolquest.story import link_vendor, shed

_CODE = FieldPlan(
    "code",
    ("code", "account_code", "gl_code"),
    "string",
    "Code of the account in the chart of accounts.",
    filterable=True,
)
_BANK = FieldPlan(
    "bank_account",
    ("bank_account", "iban", "settlement_account"),
    "string",
    "Number of the bank account that settles the account.",
    filterable=True,
)

LEDGER = VendorPlan(
    "ledger",
    "ledger",
    ("Ledger", "Books", "Accounting"),
    "Keeps general ledgers.",
    (
        ResourcePlan(
            "periods",
            "Accounting periods and their bounds.",
            ("periods", "fiscal-periods", "calendar", "quarters", "closing-periods"),
            (
                FieldPlan(
                    "name", ("name", "period", "label"), "string", "Name of the period."
                ),
                FieldPlan(
                    "first_day",
                    ("first_day", "starts", "from_date"),
                    "date",
                    "First day of the period.",
                ),
                FieldPlan(
                    "last_day",
                    ("last_day", "ends", "to_date"),
                    "date",
                    "Day on which the period ends.",
                    bound=True,
                ),
                FieldPlan(
                    "last_day_included",
                    ("last_day_included", "end_inclusive", "closes_after"),
                    "boolean",
                    "Whether the last day belongs to the period.",
                ),
            ),
            paged=False,
        ),
        ResourcePlan(
            "accounts",
            "Accounts of the ledger.",
            ("accounts", "ledger-accounts", "chart", "gl-accounts", "books"),
            (
                FieldPlan(
                    "id",
                    ("id", "account_id", "key"),
                    "string",
                    "Identifier of the account.",
                    identifier=True,
                    filterable=True,
                ),
                _CODE,
                FieldPlan(
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
        ResourcePlan(
            "entries",
            "Bookings on the accounts of the ledger.",
            ("entries", "journal-lines", "bookings", "postings", "movements"),
            (
                FieldPlan(
                    "id",
                    ("id", "entry_id", "line"),
                    "string",
                    "Identifier of the booking.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "account",
                    ("account", "account_ref", "booked_to"),
                    "string",
                    "Identifier of the account that is booked.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "reference",
                    ("reference", "document", "voucher"),
                    "string",
                    "Reference of the business document.",
                    filterable=True,
                ),
                FieldPlan(
                    "date",
                    ("date", "booked_on", "booking_day"),
                    "date",
                    "Day of the booking.",
                    filterable=True,
                ),
                FieldPlan(
                    "amount", ("amount", "value", "booked"), "money", "Booked amount."
                ),
            ),
            methods=("GET", "DELETE"),
        ),
        CONTROL,
    ),
)
BANK = VendorPlan(
    "bank",
    "payments",
    ("Bank", "Payments", "Clearing"),
    "Moves money between accounts.",
    (
        ResourcePlan(
            "transfers",
            "Transfers on the bank accounts.",
            ("transfers", "payments", "transactions", "settlements", "remittances"),
            (
                FieldPlan(
                    "id",
                    ("id", "transfer_id", "trace"),
                    "string",
                    "Identifier of the transfer.",
                    identifier=True,
                    filterable=True,
                ),
                FieldPlan(
                    "bank_account",
                    ("bank_account", "iban", "account_number"),
                    "string",
                    "Number of the bank account.",
                    filterable=True,
                ),
                FieldPlan(
                    "reference",
                    ("reference", "remittance", "end_to_end"),
                    "string",
                    "Reference that the payer gave.",
                    filterable=True,
                ),
                FieldPlan(
                    "date",
                    ("date", "value_date", "settled_on"),
                    "date",
                    "Value day of the transfer.",
                    filterable=True,
                ),
                FieldPlan(
                    "amount", ("amount", "value", "sum"), "money", "Transferred amount."
                ),
            ),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_CODE, _BANK, "Which bank account settles which account.")
LEDGER_WITHOUT_LINK = shed(LEDGER, "accounts", "bank_account")
