"""The rows of a company: amounts are whole cents, days are dates, times are UTC."""

import datetime as dt
from typing import Literal

import msgspec

ServicePlan = Literal["Basic", "Plus", "Prime"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a table; `id` is its key."""

    id: str


class Employee(Row, frozen=True, kw_only=True):
    """Somebody who works in the company; `deputy` is the id of the person who stands in."""

    name: str
    role: str
    email: str
    deputy: str = ""
    away_from: dt.date | None = None
    away_to: dt.date | None = None


class Customer(Row, frozen=True, kw_only=True):
    """A firm that buys; `discount` is percent of the list price, `payment_days` its term."""

    name: str
    country: str
    city: str
    postcode: str
    region: str
    plan: ServicePlan
    discount: int
    payment_days: int
    cash_discount: str
    account: str
    domain: str
    parent: str = ""


class Contact(Row, frozen=True, kw_only=True):
    """Somebody who writes for a customer."""

    customer: str
    name: str
    email: str
    status: str = "active"


class Product(Row, frozen=True, kw_only=True):
    """An article; `id` is its number in the catalogue."""

    name: str
    weight_g: int


class ListPrice(Row, frozen=True, kw_only=True):
    """The price of an article from a day on, by a list."""

    price_list: str
    product: str
    valid_from: dt.date
    cents: int


class Order(Row, frozen=True, kw_only=True):
    """An order; `net_cents` is the sum of its lines."""

    customer: str
    day: dt.date
    net_cents: int
    shipment: str


class OrderLine(Row, frozen=True, kw_only=True):
    """A line of an order."""

    order: str
    number: int
    product: str
    quantity: int
    unit_cents: int


class Shipment(Row, frozen=True, kw_only=True):
    """The delivery of an order; `delivered_at` is None while it is on its way."""

    order: str
    customer: str
    promised: dt.date
    shipped: dt.date
    delivered_at: dt.datetime | None


class ProofOfDelivery(Row, frozen=True, kw_only=True):
    """What was signed at the door."""

    shipment: str
    signed_at: dt.datetime
    signed_by: str
    remark: str = ""


class Delay(Row, frozen=True, kw_only=True):
    """A cause of a delay and its hours."""

    shipment: str
    cause: str
    hours: int
    day: dt.date


class Invoice(Row, frozen=True, kw_only=True):
    """A bill for an order; `status` is open, paid or cancelled."""

    customer: str
    order: str
    issued: dt.date
    due: dt.date
    net_cents: int
    vat_cents: int
    status: str
    replaced_by: str = ""


class CreditNote(Row, frozen=True, kw_only=True):
    """Money given back on an invoice."""

    customer: str
    invoice: str
    kind: str
    cents: int
    issued: dt.date
    applied: bool = False


class CustomerContract(Row, frozen=True, kw_only=True):
    """A clause that a customer has, in force from a day to a day."""

    customer: str
    title: str
    text: str
    valid_from: dt.date
    valid_to: dt.date
    signed: bool = True


class QueueRequest(Row, frozen=True, kw_only=True):
    """A request that waits at the desk; `received` is the company's local time."""

    mail: str
    sender: str
    subject: str
    received: dt.datetime
    status: str = "open"


class BankLine(Row, frozen=True, kw_only=True):
    """A line of a bank statement; `cents` is negative where money left the account."""

    booked: dt.date
    value: dt.date
    cents: int
    payer: str
    account: str
    text: str
    reference: str


class BankStatement(Row, frozen=True, kw_only=True):
    """A statement of the bank: its days, and the sum of its lines as a check."""

    first: dt.date
    last: dt.date
    version: int
    lines: int
    total_cents: int


class RegisteredPayer(Row, frozen=True, kw_only=True):
    """Somebody who pays for a customer."""

    customer: str
    payer: str
    kind: str
    valid_from: dt.date
    valid_to: dt.date
