"""Draws a company: everything that is so before a case arranges its facts."""

import datetime as dt
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from owa_bench.company.books import Books
from owa_bench.company.calendars import SATURDAY, calendar, countries, utc
from owa_bench.company.tables import (
    Contact,
    Customer,
    Delay,
    Employee,
    Invoice,
    ListPrice,
    Order,
    OrderLine,
    Product,
    ProofOfDelivery,
    ServicePlan,
    Shipment,
)
from owa_bench.seeding import pick, stream

FIRMS: tuple[tuple[str, str], ...] = (
    ("Ardent", "industrial supplies"),
    ("Bremond & Vos", "laboratory equipment"),
    ("Castellane", "workshop equipment"),
    ("Dorfmann", "packaging machines"),
    ("Evenwold", "bearings and drives"),
    ("Fairlie", "fittings and valves"),
)
REGIONS = ("Central", "West", "North", "South", "Overseas")
# Roles that decide something come first, one person each; the others have several people.
HEADS = (
    "Head of Customer Accounts",
    "Finance Controller",
    "Head of Finance",
    *(f"Team Lead {region}" for region in REGIONS),
    "Policy Owner, Credits",
    "Pricing Manager",
    "Logistics Manager",
    "Treasury Clerk",
    "Tax Specialist",
    "Sales Director",
)
STAFF = {
    "Receivables Clerk": 5,
    "Account Manager": 10,
    "Warehouse Planner": 3,
    "IT Support": 2,
    "Order Desk": 8,
}
CAUSES = (
    "sorting_backlog",
    "vehicle_breakdown",
    "mislabelled",
    "weather",
    "customs",
    "consignee_absent",
)
_PLANS: tuple[ServicePlan, ...] = ("Basic",) * 5 + ("Plus",) * 3 + ("Prime",) * 2
_DISCOUNTS = (0, 0, 3, 5, 5, 8, 10, 12)
_TERMS = (14, 30, 30, 45)
_CASH = ("", "", "2% 10 days", "2% 14 days", "3% 8 days")
_PRODUCTS, _LISTS = 90, 3
_QUANTITIES = (1, 1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 25)
_LINES = (1, 1, 2, 2, 3, 4)
_PROMISED = (3, 4, 5, 6, 8)  # business days
_LATE = (1,) * 8 + (2,) * 6 + (3,) * 5 + (4,) * 4 + (5,) * 3 + (6,) * 3 + (7, 7, 9, 9, 12)
_ON_TIME = 0.72
_LEFT = 0.12  # of contacts beside the first
_HOME, _VAT = "DE", 19
_SIGNERS = ("Goods-in", "Porter", "Reception", "Warehouse")
DAMAGE_REMARKS = (
    "carton crushed, goods damaged",
    "goods damaged on arrival",
    "packaging wet, pieces damaged",
    "pallet hit, goods damaged",
)
PLAIN_REMARKS = (
    "left at gate 3",
    "one carton opened for inspection",
    "driver in a hurry",
    "pallet exchanged",
    "second attempt",
)
_REMARKS = (*PLAIN_REMARKS, *DAMAGE_REMARKS)
_DAYS = 180  # of orders before today
_WEIGHTS = (1, 1, 1, 1, 2, 2, 3, 5, 8)  # of customers among orders


class CompanySpec(NamedTuple):
    """What a company is drawn from.

    Attributes:
        seed: Of all that is drawn.
        customers: How many there are.
        orders: How many there are.
        practice: Whether only words are used that practice may show.
    """

    seed: int
    customers: int = 240
    orders: int = 1500
    practice: bool = False


class Company(NamedTuple):
    """A company on a day.

    Attributes:
        name: Of the firm.
        trade: What it sells.
        domain: Of its addresses.
        today: The day on which a case begins; a business day at home.
        books: Its tables.
    """

    name: str
    trade: str
    domain: str
    today: dt.date
    books: Books


@cache
def _words() -> Mapping[str, tuple[str, ...]]:
    text = files("owa_bench.company").joinpath("data/names.toml").read_text("utf-8")
    return {name: tuple(words) for name, words in tomllib.loads(text).items()}


def words(name: str, *, practice: bool) -> tuple[str, ...]:
    """Return a list of words; practice sees the first two thirds of it.

    Args:
        name: Of the list.
        practice: Whether it is for practice.
    """
    whole = _words()[name]
    return whole[: 2 * len(whole) // 3] if practice else whole


def draw_company(spec: CompanySpec) -> Company:
    """Return a company.

    Args:
        spec: What it is drawn from.
    """
    rng = stream(spec.seed, "company")
    name, trade = pick(FIRMS, rng)
    domain = name.lower().replace(" & ", "-") + ".example"
    year = 2027 + int(rng.integers(8))
    home = calendar(_HOME, year)
    today = home.add(dt.date(year, 3, 1) + dt.timedelta(int(rng.integers(250))), 1)
    books = Books()
    _people(books, spec, domain)
    _products(books, spec, today)
    _customers(books, spec)
    _orders(books, spec, today)
    return Company(name, trade, domain, today, books)


def _people(books: Books, spec: CompanySpec, domain: str) -> None:
    rng = stream(spec.seed, "company", "people")
    roles = [*HEADS, *(role for role, count in STAFF.items() for _ in range(count))]
    first = words("first_names", practice=spec.practice)
    last = words("last_names", practice=spec.practice)
    chosen = rng.choice(len(first) * len(last), len(roles), replace=False).tolist()
    number = 10
    for role, place in zip(roles, chosen, strict=True):
        number += 1 + int(rng.integers(9))
        given, family = first[place % len(first)], last[place // len(first)]
        email = f"{given}.{family}@{domain}".lower()
        books.people.put(
            Employee(id=f"P{number:03d}", name=f"{given} {family}", role=role, email=email)
        )


def _products(books: Books, spec: CompanySpec, today: dt.date) -> None:
    """Draw articles, and lists of prices that came into force one after the other."""
    rng = stream(spec.seed, "company", "products")
    kinds = words("article_kinds", practice=spec.practice)
    articles = words("articles", practice=spec.practice)
    places = rng.choice(len(kinds) * len(articles), _PRODUCTS, replace=False).tolist()
    numbers = (1000 + rng.choice(9000, _PRODUCTS, replace=False)).tolist()
    prices: dict[str, int] = {}
    for place, number in zip(places, numbers, strict=True):
        kind, article = kinds[place % len(kinds)], articles[place // len(kinds)]
        euros = 12 << int(rng.integers(6))  # 12 to 384, and up to twice that
        euros += int(rng.integers(euros))
        product = Product(
            id=f"{article[:3].upper()}-{number}",
            name=f"{kind} {article}",
            weight_g=50 + euros * int(rng.integers(5, 40)),
        )
        books.products.put(product)
        prices[product.id] = 100 * euros + (0, 50, 90, 95)[int(rng.integers(4))]
    last = 10 + int(rng.integers(50))
    days = [today - dt.timedelta(n) for n in (_DAYS + 90, 120, last)]
    for number, day in enumerate(days):
        name = f"PL-{day.year % 100}{'ABC'[number]}"
        if number:
            for product_id in rng.permutation(list(prices))[: _PRODUCTS // 2].tolist():
                share = 94 + int(rng.integers(18))
                prices[product_id] = prices[product_id] * share // 500 * 5
        for product_id, cents in prices.items():
            books.prices.put(
                ListPrice(
                    id=f"{name}/{product_id}",
                    price_list=name,
                    product=product_id,
                    valid_from=day,
                    cents=cents,
                )
            )


def _customers(books: Books, spec: CompanySpec) -> None:
    rng = stream(spec.seed, "company", "customers")
    codes = [code for code, country in countries().items() for _ in range(country.share)]
    stems = words("firm_stems", practice=spec.practice)
    trades = words("firm_trades", practice=spec.practice)
    first = words("first_names", practice=spec.practice)
    last = words("last_names", practice=spec.practice)
    cores = rng.choice(len(stems) * len(trades), spec.customers, replace=False).tolist()
    number, contact = 10_200, 2_000
    for core in cores:
        stem, trade = stems[core % len(stems)], trades[core // len(stems)]
        code = pick(codes, rng)
        country = countries()[code]
        city, postcode = pick(country.cities, rng)
        number += 1 + int(rng.integers(12))
        domain = f"{stem}-{trade}.example".lower()
        digits = rng.integers(0, 10, 12).tolist()
        account = "".join(map(str, digits))
        books.customers.put(
            Customer(
                id=f"C-{number}",
                name=f"{stem} {trade} {pick(country.forms, rng)}",
                country=code,
                city=city,
                postcode=postcode,
                region=country.region,
                plan=pick(_PLANS, rng),
                discount=pick(_DISCOUNTS, rng),
                payment_days=pick(_TERMS, rng),
                cash_discount=pick(_CASH, rng),
                account=f"{code}{account[:2]} {account[2:6]} {account[6:10]} {account[10:]}",
                domain=domain,
            )
        )
        families = rng.choice(len(last), 1 + int(rng.integers(3)), replace=False).tolist()
        for nth, place in enumerate(families):
            given, family = pick(first, rng), last[place]
            left = nth > 0 and rng.random() < _LEFT
            contact += 1 + int(rng.integers(5))
            books.contacts.put(
                Contact(
                    id=f"K-{contact}",
                    customer=f"C-{number}",
                    name=f"{given} {family}",
                    email=f"{given[0]}.{family}@{domain}".lower(),
                    status="left" if left else "active",
                )
            )


def _price_table(books: Books) -> tuple[list[dt.date], list[dict[str, int]]]:
    """Return the days from which lists are in force, and the prices of each."""
    found: dict[dt.date, dict[str, int]] = {}
    for price in books.prices.values():
        found.setdefault(price.valid_from, {})[price.product] = price.cents
    days = sorted(found)
    return days, [found[day] for day in days]


def _keys(prefix: str, first: int, steps: Sequence[int]) -> list[str]:
    """Return keys with gaps, in order."""
    return [f"{prefix}-{number}" for number in itertools.accumulate(steps, initial=first)][1:]


def _orders(books: Books, spec: CompanySpec, today: dt.date) -> None:
    """Draw orders with their lines, deliveries and bills, in the order of time."""
    rng = stream(spec.seed, "company", "orders")
    count = spec.orders
    customers = [c for c in books.customers.values() for _ in range(pick(_WEIGHTS, rng))]
    products = list(books.products)
    days, lists = _price_table(books)
    # More orders lately than long ago: the later of two draws.
    ages = np.minimum(rng.integers(0, _DAYS, count), rng.integers(0, _DAYS, count))
    ordered = sorted((today - dt.timedelta(6 + int(age)) for age in ages), reverse=False)
    keys = _keys("SO", 410_000, (1 + rng.integers(0, 5, count)).tolist())
    shipments = _keys("SH", 770_000, (1 + rng.integers(0, 4, count)).tolist())
    bills = _keys("RE", 318_000, (1 + rng.integers(0, 4, count)).tolist())
    who = rng.integers(0, len(customers), count).tolist()
    sizes = [_LINES[n] for n in rng.integers(0, len(_LINES), count).tolist()]
    total = sum(sizes)
    amounts = [_QUANTITIES[n] for n in rng.integers(0, len(_QUANTITIES), total).tolist()]
    starts = rng.integers(0, len(products), count).tolist()
    steps = (1 + 2 * rng.integers(0, 22, count)).tolist()  # odd, and 90 is even: no article twice
    place = 0
    for number, day in enumerate(ordered):
        while day.weekday() >= SATURDAY:
            day -= dt.timedelta(1)
        customer = customers[who[number]]
        prices = lists[sum(start <= day for start in days) - 1]
        net = 0
        for line in range(sizes[number]):
            product = products[(starts[number] + line * steps[number]) % len(products)]
            unit = (prices[product] * (100 - customer.discount) + 50) // 100
            quantity = amounts[place]
            place += 1
            net += unit * quantity
            books.order_lines.put(
                OrderLine(
                    id=f"{keys[number]}/{line + 1}",
                    order=keys[number],
                    number=line + 1,
                    product=product,
                    quantity=quantity,
                    unit_cents=unit,
                )
            )
        books.orders.put(
            Order(
                id=keys[number],
                customer=customer.id,
                day=day,
                net_cents=net,
                shipment=shipments[number],
            )
        )
        shipped = _shipment(books, rng, customer, day, (keys[number], shipments[number]), today)
        issued = shipped + dt.timedelta(int(rng.integers(2)))
        vat = (net * _VAT + 50) // 100 if customer.country == _HOME else 0
        due = issued + dt.timedelta(customer.payment_days)
        paid = due < today - dt.timedelta(5) or rng.random() < 0.3
        books.invoices.put(
            Invoice(
                id=bills[number],
                customer=customer.id,
                order=keys[number],
                issued=issued,
                due=due,
                net_cents=net,
                vat_cents=vat,
                status="paid" if paid else "open",
            )
        )


def _shipment(
    books: Books,
    rng: np.random.Generator,
    customer: Customer,
    day: dt.date,
    keys: tuple[str, str],
    today: dt.date,
) -> dt.date:
    """Draw the delivery of an order, and return the day on which it left."""
    days = calendar(customer.country, today.year)
    promised = days.add(day, pick(_PROMISED, rng))
    order, key = keys
    late = 0 if rng.random() < _ON_TIME else pick(_LATE, rng)
    delivered = days.add(promised, late) if late else days.add(promised, -int(rng.integers(2)))
    shipped = max(day, min(promised, delivered) - dt.timedelta(1 + int(rng.integers(3))))
    minute = 8 * 60 + int(rng.integers(10 * 60))
    there = delivered < today
    books.shipments.put(
        Shipment(
            id=key,
            order=order,
            customer=customer.id,
            promised=promised,
            shipped=shipped,
            delivered_at=utc(customer.country, delivered, minute) if there else None,
        )
    )
    if there:
        signed = utc(customer.country, delivered, minute + int(rng.integers(8)))
        books.proofs.put(
            ProofOfDelivery(
                id=f"POD-{key[3:]}",
                shipment=key,
                signed_at=signed,
                signed_by=pick(_SIGNERS, rng),
                remark=pick(_REMARKS, rng) if rng.random() < 0.12 else "",
            )
        )
    if late:
        causes = rng.permutation(len(CAUSES))[: 1 + int(rng.integers(3))].tolist()
        hours = sorted((6 + rng.permutation(24 * late)[: len(causes)]).tolist(), reverse=True)
        for number, (cause, hour) in enumerate(zip(causes, hours, strict=True)):
            books.delays.put(
                Delay(
                    id=f"{key}/{number + 1}",
                    shipment=key,
                    cause=CAUSES[cause],
                    hours=hour,
                    day=promised + dt.timedelta(1),
                )
            )
    return shipped
