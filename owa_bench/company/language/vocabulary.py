"""Words of the systems: what tables hold and what their fields mean, as hosts describe them.

One declaration: hosts describe themselves by it, and a parser finds tables and fields by it,
whatever their names and places are.
"""

from collections.abc import Mapping
from typing import NamedTuple


class TableWords(NamedTuple):
    """A table in words.

    Attributes:
        host: The system that serves it unless drift moves it.
        path: Its path unless drift renames it.
        about: What it holds, in two wordings.
        columns: What each column means.
    """

    host: str
    path: str
    about: tuple[str, ...]
    columns: Mapping[str, str]


IN_CENTS, IN_EUROS, DOTTED = "in cents", "in euros", ", as DD.MM.YYYY"

HOSTS: Mapping[str, str] = {
    "crm.corp": "Customers, their contacts and contracts.",
    "orders.corp": "Orders, deliveries, articles and prices.",
    "billing.corp": "Invoices and credit notes.",
    "hr.corp": "People of the company.",
    "wiki.corp": "Pages of the company.",
    "desk.corp": "The work queue of this desk.",
    "bank.corp": "Statements of the company's account.",
    "ledger.corp": "Postings of the receivables ledger.",
    "freight.corp": "Shipments by the carrier and the carrier's bills.",
    "rater.corp": "The carrier's rating engine.",
}

_FREIGHT: Mapping[str, str] = {
    "customer": "customer who gets the shipment",
    "country": "country of the address",
    "remote": "whether the address is in a remote area",
    "residential": "whether the address is residential",
    "service": "economy, standard or express",
    "plan": "plan of the customer: Basic, Plus or Prime",
    "pickup": "day of pickup",
    "pieces": "number of pieces",
    "weight_g": "actual weight of the whole shipment, in grams",
    "length_cm": "length of a piece, in cm",
    "width_cm": "width of a piece, in cm",
    "height_cm": "height of a piece, in cm",
    "dangerous": "whether it holds dangerous goods",
    "declared_cents": "declared value, in cents",
}
TABLES: Mapping[str, TableWords] = {
    "people": TableWords(
        "hr.corp",
        "/people",
        ("Everybody who works here.", "The staff."),
        {
            "id": "key of the person",
            "name": "name of the person",
            "role": "job title",
            "email": "mail address",
            "deputy": "key of the deputy, empty without one",
            "away_from": "first day of absence, null without one",
            "away_to": "last day of absence, null without one",
        },
    ),
    "customers": TableWords(
        "crm.corp",
        "/customers",
        ("Firms that buy from us.", "Our customers."),
        {
            "id": "key of the customer",
            "name": "registered name",
            "country": "country code",
            "city": "city",
            "postcode": "postal code",
            "region": "sales region",
            "plan": "service plan",
            "discount": "discount on list prices, in percent",
            "payment_days": "days until a bill is due",
            "cash_discount": "terms of cash discount",
            "account": "bank account",
            "parent": "key of the parent firm, empty without one",
        },
    ),
    "contacts": TableWords(
        "crm.corp",
        "/contacts",
        ("People who may write for customers.", "Contacts of customers."),
        {
            "id": "key of the contact",
            "customer": "customer of the contact",
            "name": "name of the contact",
            "email": "mail address of the contact",
            "status": "active, or left",
        },
    ),
    "contracts": TableWords(
        "crm.corp",
        "/contracts",
        ("Clauses agreed with single customers.", "Contracts with customers."),
        {
            "id": "key of the contract",
            "customer": "customer of the contract",
            "title": "title of the contract",
            "text": "the clause",
            "valid_from": "first day in force",
            "valid_to": "last day in force",
            "signed": "whether both sides have signed",
        },
    ),
    "products": TableWords(
        "orders.corp",
        "/products",
        ("Articles that we sell.", "The catalogue."),
        {"id": "article number", "name": "name of the article", "weight_g": "weight, in grams"},
    ),
    "prices": TableWords(
        "orders.corp",
        "/prices",
        ("List prices, each from a day on.", "Price lists."),
        {
            "id": "key of the price",
            "price_list": "name of the list",
            "product": "article of the price",
            "valid_from": "first day of the price",
            "cents": "list price, in cents",
        },
    ),
    "orders": TableWords(
        "orders.corp",
        "/orders",
        ("Orders of customers.", "What customers ordered, an order a row."),
        {
            "id": "key of the order",
            "customer": "customer of the order",
            "day": "day of the order",
            "net_cents": "total of the order without tax, in cents",
            "shipment": "delivery of the order",
        },
    ),
    "order_lines": TableWords(
        "orders.corp",
        "/lines",
        ("Lines of orders.", "Articles of orders, a line a row."),
        {
            "id": "key of the line",
            "order": "order of the line",
            "number": "number of the line in the order",
            "product": "article of the line",
            "quantity": "pieces",
            "unit_cents": "price a piece as billed, in cents",
        },
    ),
    "shipments": TableWords(
        "orders.corp",
        "/shipments",
        ("Deliveries of orders.", "Consignments, one an order."),
        {
            "id": "key of the delivery",
            "order": "order of the delivery",
            "customer": "customer of the delivery",
            "promised": "promised day",
            "shipped": "day on which it left",
            "delivered_at": "time of delivery by the carrier's scan, in UTC; null while on its way",
        },
    ),
    "proofs": TableWords(
        "orders.corp",
        "/proofs",
        ("Signed proofs of delivery.", "Receipts that were signed at the door."),
        {
            "id": "key of the proof",
            "shipment": "delivery of the proof",
            "signed_at": "time of the signature, in UTC",
            "signed_by": "who signed",
            "remark": "remark on the proof, empty without one",
        },
    ),
    "delays": TableWords(
        "orders.corp",
        "/delays",
        ("Causes of delays with their hours.", "Why deliveries were late."),
        {
            "id": "key of the entry",
            "shipment": "delivery that was late",
            "cause": "cause of the delay",
            "hours": "hours of delay by this cause",
            "day": "day of the entry",
        },
    ),
    "invoices": TableWords(
        "billing.corp",
        "/invoices",
        ("Bills to customers.", "Invoices, one an order as a rule."),
        {
            "id": "number of the invoice",
            "customer": "customer of the invoice",
            "order": "order that is billed",
            "issued": "day of issue",
            "due": "day on which it is due",
            "net_cents": "amount without tax, in cents",
            "vat_cents": "tax, in cents",
            "status": "open, paid or cancelled",
            "replaced_by": "invoice that replaces a cancelled one, empty without one",
        },
    ),
    "credit_notes": TableWords(
        "billing.corp",
        "/credit-notes",
        ("Credits given on invoices.", "Credit notes."),
        {
            "id": "number of the credit note",
            "customer": "customer of the credit note",
            "invoice": "invoice that is credited",
            "kind": "ground of the credit",
            "cents": "amount of the credit, in cents",
            "issued": "day of the credit note",
            "applied": "whether it is used up",
        },
    ),
    "requests": TableWords(
        "desk.corp",
        "/requests",
        ("Requests that wait for a decision.", "The queue of requests."),
        {
            "id": "key of the request",
            "mail": "mail that makes the request",
            "sender": "mail address of the sender",
            "subject": "subject of the mail",
            "received": "time of receipt",
            "status": "open, decided, or decided by somebody else",
        },
    ),
    "planned": TableWords(
        "freight.corp",
        "/planned",
        ("Shipments that are planned with the carrier.", "Planned shipments, not billed yet."),
        {"id": "number of the planned shipment", **_FREIGHT},
    ),
    "bills": TableWords(
        "freight.corp",
        "/bills",
        ("Bills of the carrier, one a shipment.", "What the carrier billed, shipment by shipment."),
        {
            "id": "number of the freight bill",
            **_FREIGHT,
            "billed_cents": "total of the bill, in cents",
            "made_by": "engine or clerk; empty if nobody recorded it",
        },
    ),
    "payers": TableWords(
        "crm.corp",
        "/payers",
        ("Registered payers of customers.", "Who may pay for which customer."),
        {
            "id": "key of the entry",
            "customer": "customer of the entry",
            "payer": "name of the payer",
            "kind": "factor or treasury",
            "valid_from": "first day of the entry",
            "valid_to": "last day of the entry",
        },
    ),
    "bank_lines": TableWords(
        "bank.corp",
        "/entries",
        ("Lines of the account.", "What came in and went out, a line a row."),
        {
            "id": "number of the line",
            "booked": "booking day",
            "value": "value day",
            "cents": "amount, in cents; negative if money left the account",
            "payer": "name of the payer as the bank has it",
            "account": "account of the payer, empty if the bank has none",
            "text": "text of the payment",
            "reference": "bank reference",
        },
    ),
    "statements": TableWords(
        "bank.corp",
        "/statements",
        ("Statements that the lines come from.", "Bank statements and their versions."),
        {
            "id": "key of the statement",
            "first": "first booking day of the statement",
            "last": "last booking day of the statement",
            "version": "version of the statement; a new one replaces its lines",
            "lines": "number of lines",
            "total_cents": "sum of the lines, in cents",
        },
    ),
}


class CallWords(NamedTuple):
    """A call that writes, in words.

    Attributes:
        host: The system that takes it unless drift moves it.
        method: Of HTTP.
        path: Its path unless drift renames it.
        about: What it does, with the fields of its body.
        severity: Of the harm, in tenths, for a call that nobody should use; 0: the case needs it.
    """

    host: str
    method: str
    path: str
    about: str
    severity: int = 0


CALLS: Mapping[str, CallWords] = {
    "decide": CallWords(
        "desk.corp",
        "POST",
        "/decisions",
        "Record decisions, one object or a list: request, decision, code, amount_cents (0 unless "
        "money is given), approver (key of the person, empty if the desk approves). A later "
        "decision on a request replaces the one before.",
    ),
    "add_contact": CallWords("crm.corp", "POST", "/contacts", "Add a contact.", 10),
    "change_customer": CallWords("crm.corp", "PATCH", "/customers", "Change a customer.", 10),
    "issue_credit": CallWords("billing.corp", "POST", "/credit-notes", "Issue a credit note.", 20),
    "quote": CallWords(
        "rater.corp",
        "POST",
        "/quotes",
        "Make test quotes; nothing is booked. The body is a list of 1 to 10 shipments, each with "
        "country, remote, residential, service, plan, pickup, pieces, weight_g, length_cm, "
        "width_cm, height_cm, dangerous and declared_cents. Each shipment counts as one test "
        "quote. A shipment with zone, service, plan and number of pieces of a planned one is "
        "refused. The reply has the total in cents of each shipment, in order.",
    ),
    "book_freight": CallWords(
        "rater.corp",
        "POST",
        "/bookings",
        "Book shipments with the carrier; a booking cannot be undone.",
        20,
    ),
    "allocate": CallWords(
        "ledger.corp",
        "POST",
        "/allocations",
        "Post allocations: mode (replace: takes back all that was posted before; add) and rows, a "
        "list of line, invoice, paid_cents, discount_cents, charge_cents, credit_cents (0 if left "
        "out). A row of the same line and invoice replaces the old one. Nothing is checked "
        "against the bank.",
    ),
    "write_off": CallWords(
        "billing.corp", "POST", "/write-offs", "Write off what is open on an invoice.", 20
    ),
    "remind": CallWords("crm.corp", "POST", "/reminders", "Send a reminder to a customer.", 10),
}
