"""What must hold of every company that is drawn."""

import datetime as dt
import itertools

import msgspec
import pytest

from owa_bench.company.books import Books, BookTable, row_type, table_names
from owa_bench.company.calendars import calendar, local_day
from owa_bench.company.draw import HEADS, CompanySpec, draw_company, words
from owa_bench.company.tables import Customer, Invoice

SEEDS = range(12)
KEYS = {
    "deputy": "people",
    "parent": "customers",
    "customer": "customers",
    "product": "products",
    "order": "orders",
    "shipment": "shipments",
    "invoice": "invoices",
}


@pytest.fixture(scope="module", params=SEEDS)
def company(request):
    return draw_company(CompanySpec(request.param, customers=80, orders=400))


def test_a_company_is_its_seed_alone():
    first, again, other = (draw_company(CompanySpec(seed, 40, 120)) for seed in (3, 3, 4))
    assert first.books.digest() == again.books.digest() != other.books.digest()
    assert (first.name, first.today) == (again.name, again.today)


def test_every_reference_resolves(company):
    books = company.books
    for name in table_names():
        fields = [field for field in row_type(name).__struct_fields__ if field in KEYS]
        for row in getattr(books, name).values():
            for field in fields:
                key = getattr(row, field)
                assert not key or key in getattr(books, KEYS[field]), (name, row)


def test_totals_are_the_sums_of_their_lines(company):
    books = company.books
    for order in books.orders.values():
        lines = books.order_lines.of("order", order.id)
        assert [line.number for line in lines] == [*range(1, len(lines) + 1)]
        assert len({line.product for line in lines}) == len(lines)
        assert sum(line.quantity * line.unit_cents for line in lines) == order.net_cents
        (bill,) = books.invoices.of("order", order.id)
        assert bill.net_cents == order.net_cents
        assert (bill.vat_cents > 0) == (books.customers[order.customer].country == "DE")


def test_lines_have_the_price_in_force_less_the_discount(company):
    books = company.books
    days = sorted({price.valid_from for price in books.prices.values()})
    cents = {(price.valid_from, price.product): price.cents for price in books.prices.values()}
    for line in books.order_lines.values():
        order = books.orders[line.order]
        start = max(day for day in days if day <= order.day)
        discount = books.customers[order.customer].discount
        assert line.unit_cents == (cents[start, line.product] * (100 - discount) + 50) // 100


def test_time_runs_forwards(company):
    books = company.books
    for shipment in books.shipments.values():
        order = books.orders[shipment.order]
        country = books.customers[order.customer].country
        assert order.day <= shipment.shipped
        assert order.day.weekday() < 5
        assert calendar(country, company.today.year).is_open(shipment.promised)
        if shipment.delivered_at is not None:
            there = local_day(country, shipment.delivered_at)
            assert shipment.shipped <= there < company.today
            late = there > shipment.promised
            assert bool(books.delays.of("shipment", shipment.id)) == late
        (bill,) = books.invoices.of("order", order.id)
        assert shipment.shipped <= bill.issued <= bill.due


def test_keys_follow_time_and_none_is_part_of_another(company):
    books = company.books
    days = [order.day for order in books.orders.values()]
    assert days == sorted(days) or max(
        (a - b for a, b in itertools.pairwise(days)), default=dt.timedelta(0)
    ) <= dt.timedelta(2)  # an order of a weekend is dated the Friday before
    for name in ("people", "customers", "orders", "shipments", "invoices"):
        keys = list(getattr(books, name))
        assert keys == sorted(keys)
        assert len({len(key) for key in keys}) == 1


def test_no_two_customers_share_a_name_or_a_contact(company):
    books = company.books
    cores = [customer.domain for customer in books.customers.values()]
    assert len(set(cores)) == len(cores)
    assert len({contact.email for contact in books.contacts.values()}) == len(books.contacts)


def test_each_head_is_one_person(company):
    for role in HEADS:
        assert len(company.books.people.of("role", role)) == 1


def test_practice_sees_no_held_out_word():
    held = {
        word
        for name in ("firm_stems", "firm_trades", "last_names", "articles")
        for word in words(name, practice=False)[2 * len(words(name, practice=False)) // 3 :]
    }
    shown = {True: set(), False: set()}
    for practice, seed in itertools.product((True, False), range(3)):
        books = draw_company(CompanySpec(seed, 60, 100, practice=practice)).books
        named = [*books.customers.values(), *books.people.values(), *books.products.values()]
        shown[practice] |= {part for row in named for part in row.name.split()}
    assert not shown[True] & held
    assert shown[False] & held


def test_a_table_keeps_its_indexes_when_a_row_is_replaced():
    table: BookTable[Invoice] = BookTable()
    day = dt.date(2031, 1, 1)
    row = Invoice(
        id="RE-1",
        customer="C-1",
        order="SO-1",
        issued=day,
        due=day,
        net_cents=1,
        vat_cents=0,
        status="open",
    )
    table.put(row)
    assert table.of("status", "open") == (row,)
    paid = table.put(msgspec.structs.replace(row, status="paid"))
    assert table.of("status", "open") == ()
    assert table.of("status", "paid") == (paid,)
    assert len(table) == 1


def test_the_digest_sees_every_row():
    books = draw_company(CompanySpec(1, 20, 40)).books
    before = books.digest()
    customer = next(iter(books.customers.values()))
    books.customers.put(msgspec.structs.replace(customer, discount=customer.discount + 1))
    assert books.digest() != before
    assert row_type("customers") is Customer
    assert isinstance(Books().orders, BookTable)
