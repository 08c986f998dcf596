"""Prices of shipments by a tariff, and by a rating engine that departs from it, in whole cents.

The module needs numpy alone, so that its source also runs in a sandbox without this package.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ShipmentFacts = Mapping[str, NDArray[Any]]

SERVICES = ("economy", "standard", "express")
PLANS = ("Basic", "Plus", "Prime")
FEES = ("remote", "residential", "oversize", "danger", "saturday", "handling", "customs")
ROUNDINGS = ("half a cent up", "always up", "always down")
SHIPMENT_FIELDS = (
    "country",
    "remote",
    "residential",
    "service",
    "plan",
    "pickup",
    "pieces",
    "weight_g",
    "length_cm",
    "width_cm",
    "height_cm",
    "dangerous",
    "declared_cents",
)
_SATURDAY, _NEVER = 5, -1
# Numbers of the calculation that are numbers of the tariff under the same name.
_SAME = (
    *("divisor", "step_g", "upper", "economy", "express", "pieces_from", "pieces_off", "plus"),
    *("prime", "minimum", "minimum_piece", "side_cm", "handling_g"),
    *("value_from", "value_rate", "value_whole"),
)
_WHOLE_KG = 1000


class Tariff(NamedTuple):
    """A published tariff.

    Attributes:
        zones: Zone of each country, from 0 on.
        divisor: Cubic centimetres that count as a kilogram; 0: volume does not count.
        step_g: Chargeable weight is rounded up to a multiple of it, g.
        bounds: Upper bounds of all bands of weight but the last, g.
        upper: 1: a weight equal to a bound belongs to the band above it.
        sliced: 1: each kilogram is charged at the rate of its own band.
        first: First amount of each zone, cents.
        kilo: Rates of each zone by band, cents a kilogram.
        economy: Percent of the freight.
        express: Percent of the freight.
        pieces_from: Pieces from which on there is a discount.
        pieces_off: The discount, percent; 0 without one.
        plus: Discount of the plan Plus, percent.
        prime: Discount of the plan Prime, percent.
        minimum: Of the freight, cents; 0 without one.
        minimum_piece: 1: the minimum is for each piece.
        fees: Amount of each fee, cents.
        by_piece: 1 for each fee that is charged for each piece.
        side_cm: Longest side without the oversize fee.
        handling_g: Chargeable weight without the handling fee.
        customs: Zones with the customs fee.
        value_from: Declared value without a charge, cents.
        value_rate: Of the declared value, in parts of 10,000; 0 without a charge.
        value_whole: 1: the whole value counts; 0: the part above `value_from`.
        fueled: 1 for each fee on which fuel is charged.
        rounding: Index in `ROUNDINGS`.
        sections: Names of the sections, in the order of their numbers from 1 on.
    """

    zones: Mapping[str, int]
    divisor: int
    step_g: int
    bounds: Sequence[int]
    upper: int
    sliced: int
    first: Sequence[int]
    kilo: Sequence[Sequence[int]]
    economy: int
    express: int
    pieces_from: int
    pieces_off: int
    plus: int
    prime: int
    minimum: int
    minimum_piece: int
    fees: Mapping[str, int]
    by_piece: Mapping[str, int]
    side_cm: int
    handling_g: int
    customs: Sequence[int]
    value_from: int
    value_rate: int
    value_whole: int
    fueled: Mapping[str, int]
    rounding: int
    sections: Sequence[str]


class Departure(NamedTuple):
    """A rule of the engine that the published tariff does not have.

    Attributes:
        section: The clause that it changes; "new": the tariff has no clause for it.
        knob: The number of the calculation that it changes.
        change: "set", "add" or "times" (percent).
        amount: Of the change.
        field: Of the shipments for which it holds; "" for all.
        compare: "is", "not", "above" or "most" (at most).
        value: That the field is compared with.
    """

    section: str
    knob: str
    change: str
    amount: int
    field: str
    compare: str
    value: int | str

    @property
    def trap(self) -> str:
        """Name of its class of trap."""
        return self.section if self.section != "new" else NEW_TRAPS[self.knob]


NEW_TRAPS = {
    "fee_fueled": "new_fee",
    "fee_piece": "new_piece_fee",
    "fee_plain": "new_plain_fee",
    "freight_permille": "new_percent",
}


def shipment_facts(rows: Iterable[Mapping[str, Any]], tariff: Tariff) -> dict[str, NDArray[Any]]:
    """Return the facts on shipments that rules look at.

    Args:
        rows: With the columns `SHIPMENT_FIELDS`; days as dates or in ISO form.
        tariff: Gives the zones.
    Returns: Arrays over the shipments, by fact; sizes in cm, weights in g, amounts in cents.
    """
    rows = list(rows)
    days = [row["pickup"] for row in rows]
    sides = np.array(
        [sorted((r["length_cm"], r["width_cm"], r["height_cm"]), reverse=True) for r in rows],
        dtype=np.int64,
    ).reshape(-1, 3)
    pieces = _integers(row["pieces"] for row in rows)
    return {
        "country": np.array([row["country"] for row in rows], dtype="U2"),
        "zone": _integers(tariff.zones[row["country"]] for row in rows),
        "customs": _integers(tariff.zones[row["country"]] in tariff.customs for row in rows),
        "service": _integers(SERVICES.index(row["service"]) for row in rows),
        "plan": _integers(PLANS.index(row["plan"]) for row in rows),
        "weekday": _integers(
            (dt.date.fromisoformat(day) if isinstance(day, str) else day).weekday() for day in days
        ),
        "pieces": pieces,
        "weight_g": _integers(row["weight_g"] for row in rows),
        "volume": sides.prod(axis=1) * pieces,
        "long_cm": sides[:, 0],
        "girth_cm": sides[:, 0] + 2 * (sides[:, 1] + sides[:, 2]),
        "declared": _integers(row["declared_cents"] for row in rows),
        "remote": _integers(row["remote"] for row in rows),
        "residential": _integers(row["residential"] for row in rows),
        "dangerous": _integers(row["dangerous"] for row in rows),
    }


def _integers(values: Iterable[Any]) -> Ints:
    return np.fromiter((int(value) for value in values), dtype=np.int64)


def condition_mask(condition: Sequence[Any], facts: ShipmentFacts) -> NDArray[np.bool_]:
    """Return for which shipments a condition holds.

    Args:
        condition: Field, comparison and value, as in `Departure`.
        facts: Of the shipments.
    Returns: (shipments,) bool.
    """
    field, compare, value = condition
    if not field:
        return np.ones(len(facts["pieces"]), dtype=np.bool_)
    known = facts[field]
    if compare == "is":
        return np.asarray(known == value)
    if compare == "not":
        return np.asarray(known != value)
    return np.asarray(known > value) if compare == "above" else np.asarray(known <= value)


def knobs(tariff: Tariff) -> dict[str, Any]:
    """Return the numbers of the calculation that departures may change."""
    bounds = {f"bound_{n}": bound for n, bound in enumerate(tariff.bounds)}
    fees: dict[str, Any] = {}
    for fee in FEES:
        fees[fee] = tariff.fees.get(fee, 0)
        fees[f"{fee}_piece"] = tariff.by_piece.get(fee, 0)
        fees[f"{fee}_permille"] = 0
        fees[f"{fee}_fuel"] = tariff.fueled.get(fee, 0)
    return {
        **{name: getattr(tariff, name) for name in _SAME},
        **bounds,
        **fees,
        **dict.fromkeys(("zone_shift", "first_plus", "kilo_plus", "girth_cm", "value_fuel"), 0),
        **dict.fromkeys(("fuel_plus", "fee_fueled", "fee_piece", "fee_plain"), 0),
        "freight_permille": 0,
        "plan_on": 1,
        "value_on": 1,
        "also_on": _NEVER,
    }


def engine_prices(
    tariff: Tariff, facts: ShipmentFacts, fuel: Ints, departures: Iterable[Departure] = ()
) -> Ints:
    """Return what the engine bills.

    Args:
        tariff: The published one.
        facts: Of the shipments.
        fuel: (shipments,) fuel percentage, in hundredths.
        departures: Rules of the engine; none: the published price.
    Returns: (shipments,) total, cents.
    """
    k = knobs(tariff)
    for rule in departures:
        holds = condition_mask(rule[4:], facts) if rule.field else None
        changed = _changed(k[rule.knob], rule)
        k[rule.knob] = changed if holds is None else np.where(holds, changed, k[rule.knob])
    return _total(tariff, facts, fuel, k)


def _changed(old: Any, rule: Departure) -> Any:
    if rule.change == "set":
        return rule.amount
    return old + rule.amount if rule.change == "add" else (old * rule.amount + 50) // 100


def _total(tariff: Tariff, s: ShipmentFacts, fuel: Ints, k: Mapping[str, Any]) -> Ints:
    rounding = tariff.rounding

    def part(amount: Any, whole: int) -> Any:
        """Divide an amount that is not negative, and round it as the tariff says."""
        if rounding == 0:
            return (2 * amount + whole) // (2 * whole)
        return -(-amount // whole) if rounding == 1 else amount // whole

    grams = _chargeable_g(s, k)
    freight = part(_freight(tariff, s, k, grams), _WHOLE_KG)
    service, plan, pieces = s["service"], s["plan"], s["pieces"]
    percent = np.where(service == 0, k["economy"], np.where(service == 1, 100, k["express"]))
    freight = part(freight * percent, 100)
    freight = freight - part(
        freight * np.where(pieces >= k["pieces_from"], k["pieces_off"], 0), 100
    )
    off = np.where(plan == 0, 0, np.where(plan == 1, k["plus"], k["prime"])) * k["plan_on"]
    freight = freight - part(freight * off, 100)
    permille = k["freight_permille"]
    freight = freight + np.sign(permille) * part(freight * np.abs(permille), 1000)
    freight = np.maximum(freight, k["minimum"] * np.where(k["minimum_piece"], pieces, 1))
    weekday = s["weekday"]
    due = {
        "remote": s["remote"],
        "residential": s["residential"],
        "oversize": np.where(
            np.asarray(k["girth_cm"]) > 0,
            s["girth_cm"] > k["girth_cm"],
            s["long_cm"] > k["side_cm"],
        ),
        "danger": s["dangerous"],
        "saturday": (weekday == _SATURDAY) | (weekday == k["also_on"]),
        "handling": grams > k["handling_g"],
        "customs": s["customs"],
    }
    fees: Any = k["fee_fueled"] + k["fee_piece"] * pieces
    total = k["fee_plain"]
    for fee in tariff.fees:
        share = k[f"{fee}_permille"]
        amount = k[fee] * np.where(k[f"{fee}_piece"], pieces, 1)
        amount = np.where(np.asarray(share) > 0, part(freight * share, 1000), amount) * due[fee]
        fees = fees + amount * k[f"{fee}_fuel"]
        total = total + amount * (1 - k[f"{fee}_fuel"])
    declared = s["declared"]
    over = np.where(k["value_whole"], declared, declared - k["value_from"])
    above = (declared > k["value_from"]) * k["value_on"]
    value = part(np.maximum(over, 0) * k["value_rate"], 10_000) * above
    base = freight + fees
    on_fuel = base + value * k["value_fuel"]
    fuel_fee = part(on_fuel * np.maximum(fuel + k["fuel_plus"], 0), 10_000)
    return np.asarray(base + total + fuel_fee + value, dtype=np.int64)


def _chargeable_g(s: ShipmentFacts, k: Mapping[str, Any]) -> Any:
    divisor = np.asarray(k["divisor"])
    volume = -(-s["volume"] * _WHOLE_KG // np.maximum(divisor, 1))
    grams = np.maximum(s["weight_g"], np.where(divisor > 0, volume, 0))
    return -(-grams // k["step_g"]) * k["step_g"]


def _freight(tariff: Tariff, s: ShipmentFacts, k: Mapping[str, Any], grams: Any) -> Any:
    """Return the freight by zone and weight, in thousandths of a cent."""
    zone = np.clip(s["zone"] + k["zone_shift"], 0, len(tariff.first) - 1)
    rates = np.array(tariff.kilo, dtype=np.int64)
    first = np.array(tariff.first, dtype=np.int64)[zone] + k["first_plus"]
    count = len(tariff.bounds)
    if tariff.sliced:
        kilos: Any = 0
        rest = grams
        for band in range(count, 0, -1):
            slice_g = np.maximum(rest - k[f"bound_{band - 1}"], 0)
            kilos = kilos + slice_g * (rates[zone, band] + k["kilo_plus"])
            rest = rest - slice_g
        kilos = kilos + rest * (rates[zone, 0] + k["kilo_plus"])
    else:
        band_of: Any = 0
        for band in range(count):
            bound = k[f"bound_{band}"]
            band_of = band_of + np.where(k["upper"], grams >= bound, grams > bound)
        kilos = grams * (rates[zone, band_of] + k["kilo_plus"])
    return first * _WHOLE_KG + kilos


def fuel_percent(
    days: Iterable[dt.date | str],
    weeks: Mapping[str, int],
    correction: tuple[str, int] | None = None,
) -> Ints:
    """Return the fuel percentage of days of pickup, in hundredths.

    Args:
        days: Dates or ISO days.
        weeks: Percentage by the ISO day of each week's Monday, in hundredths.
        correction: ISO day and percentage: it holds from that day to the end of its week.
    Returns: (days,) hundredths of a percent.
    """
    found = []
    for one in days:
        day = dt.date.fromisoformat(one) if isinstance(one, str) else one
        monday = (day - dt.timedelta(day.weekday())).isoformat()
        percent = weeks[monday]
        if correction is not None:
            first = dt.date.fromisoformat(correction[0])
            if first <= day < first + dt.timedelta(7 - first.weekday()):
                percent = correction[1]
        found.append(percent)
    return _integers(found)
