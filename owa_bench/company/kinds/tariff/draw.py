"""Draws a world of the kind `tariff`."""

import datetime as dt
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from owa_bench.company.books import Books
from owa_bench.company.draw import Company, CompanySpec, draw_company
from owa_bench.company.hosts import draw_hosts
from owa_bench.company.kinds.contract import CaseSpec, CaseWorld, NoWorldError
from owa_bench.company.kinds.tariff.departures import DepartureCounts, DepartureSet, draw_departures
from owa_bench.company.kinds.tariff.engine import PricedShipments
from owa_bench.company.kinds.tariff.matter import FreightBill, PlannedShipment, TariffMatter
from owa_bench.company.kinds.tariff.published import draw_published
from owa_bench.company.kinds.tariff.shipments import draw_shipments
from owa_bench.company.kinds.tariff.texts import TariffTexts
from owa_bench.company.language.policy import Policy
from owa_bench.company.language.tariff_form import tariff_of
from owa_bench.company.language.tariff_rules import Tariff
from owa_bench.seeding import pick, stream

_SUNDAY = 6
_BILL_DAYS = 175  # of pickup, before the last bill
_POOL = 600  # shipments out of which the planned ones are chosen
_PLAIN_SHARE = 6  # one planned shipment in so many is plain, at least
_TOUCHED = 3  # planned shipments of each departure, at least


class LevelSizes(NamedTuple):
    """Sizes of a level.

    Attributes:
        bills: Of the half year.
        planned: Shipments to forecast.
        quota: Test quotes.
        counts: Of departures.
        drift: Odds of an earlier engine, and of a correction of the fuel percentage.
        clerk: Share of bills that a clerk has changed by hand.
        most: Departures that touch one planned shipment, as a rule.
    """

    bills: int
    planned: int
    quota: int
    counts: DepartureCounts
    drift: float
    clerk: float
    most: int = 9


SIZES = {
    1: LevelSizes(500, 16, 60, DepartureCounts(2, 0, 0), 0.0, 0.0, 1),
    2: LevelSizes(1200, 24, 50, DepartureCounts(3, 1, 0), 0.6, 0.03),
    3: LevelSizes(2400, 36, 40, DepartureCounts(5, 2, 2), 0.55, 0.06),
}
_SHOWN = 8  # bills of the current engine that each of its departures alone touches, at least
_NOTED = 3  # bills of this level or above do not say who made them


class _Dates(NamedTuple):
    """Days and minutes of a case."""

    monday: dt.date
    first_bill: dt.date
    last_bill: dt.date
    history_ends: dt.date
    begins: dt.datetime
    ends: dt.datetime


def draw_world(spec: CaseSpec) -> CaseWorld:
    """Return a world.

    Args:
        spec: What it is drawn from.
    Raises: NoWorldError: The tariff and its departures make no case that can be solved.
    """
    rng = stream(spec.seed, "tariff", spec.level)
    company = draw_company(CompanySpec(spec.seed, customers=120, orders=20, practice=spec.practice))
    sizes = SIZES[spec.level]
    history = rng.random() < sizes.drift
    released = history or rng.random() < sizes.drift  # a release may change no rule
    dates = _dates(rng, company.today, released=released)
    policy = draw_published(rng, dates.first_bill - dt.timedelta(int(rng.integers(20, 200))))
    tariff = tariff_of(policy)
    fuel = _fuel(rng, dates)
    customers = tuple(company.books.customers.values())
    week = [dates.monday + dt.timedelta(n) for n in range(_SUNDAY)]
    days = [week[n] for n in rng.integers(0, len(week), _POOL).tolist()]
    rows = draw_shipments(rng, tariff, customers, days, edge=0.3)
    pool = PricedShipments(tariff, rows, fuel)
    engine = draw_departures(rng, pool, sizes.counts, history=history)
    correction = _correction(rng, dates, fuel, sizes.drift)
    chosen = _choice(rng, pool, engine, sizes, correction[0])
    planned = _numbered(
        rng, "PS", 300, [rows[n] for n in chosen], lambda row: PlannedShipment(**row)
    )
    matter = TariffMatter(
        departures=engine.now,
        earlier=engine.earlier,
        late=engine.late,
        history_ends=dates.history_ends,
        late_from=dates.monday,
        release_event=bool(engine.late) and rng.random() < 0.5,
        fuel=fuel,
        correction=correction,
        shown_by={},
        quota=sizes.quota,
        released=released,
    )
    bills, shown_by = _bills(rng, spec.level, matter, tariff, customers, dates)
    matter = replace(matter, shown_by=shown_by)
    return _world(spec, company, policy, matter, dates, {"planned": planned, "bills": bills})


def _dates(rng: np.random.Generator, today: dt.date, *, released: bool) -> _Dates:
    monday = today + dt.timedelta(7 - today.weekday())
    last = today - dt.timedelta(int(rng.integers(3, 9)))
    first = last - dt.timedelta(_BILL_DAYS)
    ends = first + dt.timedelta(int(rng.integers(102, 116))) if released else first
    begins = dt.datetime.combine(today, dt.time(8, 5 * int(rng.integers(12))))
    return _Dates(monday, first, last, ends, begins, begins + dt.timedelta(hours=8))


def _fuel(rng: np.random.Generator, dates: _Dates) -> dict[str, int]:
    monday = dates.first_bill - dt.timedelta(dates.first_bill.weekday())
    percent = 900 + 25 * int(rng.integers(24))
    found = {}
    while monday <= dates.monday:
        found[monday.isoformat()] = percent
        percent = min(1800, max(600, percent + 25 * int(rng.integers(-4, 5))))
        monday += dt.timedelta(7)
    return found


def _correction(
    rng: np.random.Generator, dates: _Dates, fuel: dict[str, int], odds: float
) -> tuple[str, int]:
    """Return a correction: for the planned week, for the week after it, or none."""
    first = dates.monday + dt.timedelta(int(rng.integers(2, 5)))
    percent = fuel[dates.monday.isoformat()] + pick((-125, -75, 75, 125, 150), rng)
    if rng.random() < odds:
        return first.isoformat(), percent
    if rng.random() < odds:
        return (first + dt.timedelta(7)).isoformat(), percent
    return "", 0


def _choice(
    rng: np.random.Generator,
    pool: PricedShipments,
    engine: DepartureSet,
    sizes: LevelSizes,
    corrected_from: str,
) -> list[int]:
    """Return places of the planned shipments: some of each departure, and some plain ones."""
    count = sizes.planned
    touched = [np.flatnonzero(pool.moved(rule, engine.now)) for rule in engine.now]
    gone = [rule for rule in engine.earlier if rule not in engine.now]
    touched += [np.flatnonzero(pool.moved(rule, (*engine.now, rule))) for rule in gone]
    untouched = set(range(_POOL)).difference(*(places.tolist() for places in touched))
    last = corrected_from or "9999"
    plain = sorted(n for n in untouched if pool.days[n].isoformat() < last)
    least = max(_TOUCHED, count // _PLAIN_SHARE)
    if len(plain) < least:
        raise NoWorldError(f"{len(plain)} shipments are plain, not {least}")
    hits = np.bincount(np.concatenate(touched), minlength=_POOL)
    chosen: dict[int, None] = {}
    for some in touched:
        missing = _TOUCHED - sum(place in chosen for place in some.tolist())
        more = [p for p in rng.permutation(some).tolist() if p not in chosen]
        more.sort(key=lambda place: hits[place] > sizes.most)
        chosen.update(dict.fromkeys(more[: max(0, missing)]))
    chosen.update(dict.fromkeys(rng.permutation(plain).tolist()[:least]))
    rest = np.flatnonzero(hits <= sizes.most)
    chosen.update(dict.fromkeys(rng.permutation(rest).tolist()[: 2 * count]))
    places = list(chosen)[:count]
    return [places[n] for n in rng.permutation(count).tolist()]


def _numbered(
    rng: np.random.Generator, prefix: str, first: int, rows: Sequence[dict[str, Any]], make: Any
) -> tuple[Any, ...]:
    steps = (1 + rng.integers(0, 4, len(rows))).tolist()
    numbers = list(itertools.accumulate(steps, initial=first))[1:]
    return tuple(
        make({"id": f"{prefix}-{number}", **row}) for number, row in zip(numbers, rows, strict=True)
    )


def _bills(
    rng: np.random.Generator,
    level: int,
    matter: TariffMatter,
    tariff: Tariff,
    customers: Sequence[Any],
    dates: _Dates,
) -> tuple[tuple[FreightBill, ...], dict[str, tuple[str, ...]]]:
    """Return the bills, and the keys of those that show a departure by its class."""
    sizes = SIZES[level]
    span = (dates.last_bill - dates.first_bill).days
    days = []
    for offset in sorted(rng.integers(0, span + 1, sizes.bills).tolist()):
        day = dates.first_bill + dt.timedelta(offset)
        days.append(day - dt.timedelta(1) if day.weekday() == _SUNDAY else day)
    rows = draw_shipments(rng, tariff, customers, days, edge=0.15)
    priced = PricedShipments(tariff, rows, matter.fuel)
    current = [rule for rule in matter.departures if rule not in matter.late]
    recent = np.array([day >= matter.history_ends for day in priced.days])
    cents = np.where(recent, priced.prices(current), priced.prices(matter.earlier))
    by_hand = rng.random(sizes.bills) < sizes.clerk
    percent = np.array((90, 95, 85, 105))[rng.integers(0, 4, sizes.bills)]
    changed = np.where(rng.random(sizes.bills) < 0.7, cents * percent // 100, cents // 100 * 100)
    totals = np.where(by_hand, changed, cents).tolist()
    maker = [("clerk" if hand else "engine") if level < _NOTED else "" for hand in by_hand]
    for row, total, by in zip(rows, totals, maker, strict=True):
        row.update(billed_cents=int(total), made_by=by)
    bills = _numbered(rng, "FB", 52_000, rows, lambda row: FreightBill(**row))
    shown_by = {}
    for rule, alone in zip(current, priced.moved_alone(current), strict=True):
        if (count := int((alone & recent & ~by_hand).sum())) < _SHOWN:
            raise NoWorldError(f"{count} bills show a departure alone, not {_SHOWN}")
        places = np.flatnonzero(priced.moved(rule, current) & recent & ~by_hand).tolist()
        shown_by[rule.trap] = tuple(bills[place].id for place in places)
    return bills, shown_by


def _world(
    spec: CaseSpec,
    company: Company,
    policy: Policy,
    matter: TariffMatter,
    dates: _Dates,
    tables: dict[str, Iterable[Any]],
) -> CaseWorld:
    texts = TariffTexts(spec, company, policy, matter, dates.begins)
    books: Books = company.books
    hosts = draw_hosts(
        ("planned", "bills", "people"),
        ("quote", "book_freight"),
        stream(spec.seed, "tariff", "hosts"),
    )
    return CaseWorld(
        kind="tariff",
        level=spec.level,
        firm=company.name,
        trade=company.trade,
        domain=company.domain,
        begins=dates.begins,
        ends=dates.ends,
        tables={
            "planned": tuple(tables["planned"]),
            "bills": tuple(tables["bills"]),
            "people": tuple(books.people.values()),
        },
        policy=policy,
        text_seed=texts.text_seed,
        practice=spec.practice,
        pages=texts.pages(),
        mails=texts.mails(),
        events=texts.events(),
        facts=texts.facts(),
        hosts=hosts,
        matter=matter,
    )
