"""Form of published tariffs, and the sentences of the pages and mails around them."""

from collections.abc import Mapping
from typing import Any

from owa_bench.company.language.policy import ListSlot, Policy, PolicyForm, PolicySection
from owa_bench.company.language.tariff_rules import FEES, ROUNDINGS, Tariff
from owa_bench.company.language.tariff_slots import (
    FactorSlot,
    FinePercentSlot,
    KiloListSlot,
    KiloSlot,
    RateListSlot,
)
from owa_bench.company.language.text import COUNT, DAY, MONEY, PERCENT, NameSlot, Sentence

ZONE_LETTERS = "ABCDEF"
_COUNTRY_CODES = ("CA", "DE", "FR", "GB", "IT", "NL", "PL", "SE", "US")
UNITS = ("shipment", "piece")


_KILO, _KILOS, _RATES, _FINE = KiloSlot(), KiloListSlot(), RateListSlot(), FinePercentSlot()
_FACTOR, _DIGITS = FactorSlot(), NameSlot(r"\d+")
_UNIT = NameSlot("|".join(UNITS))
_TIME = NameSlot(r"\d\d:\d\d")
_VERSION = NameSlot(r"\d+\.\d+")
_LETTERS = ListSlot(tuple(ZONE_LETTERS))
_CODES = ListSlot(_COUNTRY_CODES)
_FEE_NAMES = {
    "remote": "remote-area fee",
    "residential": "residential fee",
    "oversize": "oversize fee",
    "danger": "dangerous-goods fee",
    "saturday": "Saturday fee",
    "handling": "handling fee",
    "customs": "customs fee",
}


def _zone(letter: str) -> Sentence:
    return Sentence(
        f"zone_{letter}",
        (
            f"Zone {letter} is {{countries}}.",
            f"{{countries}} belong to zone {letter}.",
            f"To zone {letter} we count {{countries}}.",
        ),
        {"countries": _CODES},
    )


def _rate(letter: str) -> Sentence:
    return Sentence(
        f"rate_{letter}",
        (
            f"In zone {letter} the first amount is {{first}} and a kilogram costs {{rates}}.",
            f"Zone {letter} pays a first amount of {{first}}, then {{rates}} per kilogram.",
            f"For zone {letter}: first amount {{first}}, rates per kilogram {{rates}}.",
        ),
        {"first": MONEY, "rates": _RATES},
    )


def _fee(name: str, when: str, slots: Mapping[str, Any] | None = None) -> Sentence:
    return Sentence(
        name,
        (
            f"{when}, a fee of {{amount}} per {{unit}} is due.",
            f"{when}, we charge {{amount}} per {{unit}}.",
            f"{when}, {{amount}} per {{unit}} is added.",
        ),
        {"amount": MONEY, "unit": _UNIT, **(slots or {})},
    )


_WEIGHT = (
    Sentence(
        "volume",
        (
            "The volume weight in kg is length x width x height x pieces / {divisor}, sides in cm; "
            "the chargeable weight is the greater of actual weight and volume weight.",
            "The chargeable weight is the actual weight, or length x width x height x pieces / "
            "{divisor} (sides in cm, result in kg) if that is more.",
            "{divisor} cubic cm count as one kg of volume weight, for all pieces together; what is "
            "more, actual weight or volume weight, is chargeable.",
        ),
        {"divisor": _DIGITS},
    ),
    Sentence(
        "no_volume",
        (
            "The chargeable weight is the actual weight; volume does not count.",
            "Volume is not measured: the actual weight is chargeable.",
            "We charge by actual weight alone, whatever the volume.",
        ),
        {},
    ),
    Sentence(
        "step",
        (
            "The chargeable weight is rounded up to the next multiple of {step}.",
            "Chargeable weight is counted in steps of {step}, and a begun step counts in full.",
            "We round chargeable weight up to a multiple of {step}.",
        ),
        {"step": _KILO},
    ),
    Sentence(
        "whole_weight",
        (
            "The actual weight is the weight of the whole shipment; sides are the sides of one "
            "piece.",
            "Weights are for the whole shipment and sides for one piece.",
            "Sides are measured on one piece, the actual weight on the whole shipment.",
        ),
        {},
    ),
)
_FREIGHT = (
    Sentence(
        "bands",
        (
            "Bands of chargeable weight end at {bounds}; the last band has no end.",
            "The bands of chargeable weight have the bounds {bounds}; above the last bound is one "
            "more band.",
            "Rates change at a chargeable weight of {bounds}, which are the bounds of the bands.",
        ),
        {"bounds": _KILOS},
    ),
    Sentence(
        "whole_band",
        (
            "Freight is the first amount plus the whole chargeable weight at the rate of its band; "
            "a weight equal to a bound belongs to the {side} band.",
            "To the first amount we add the chargeable weight x the rate of the band in which the "
            "whole weight lies (a weight on a bound lies in the {side} band).",
            "All kilograms cost the rate of the band of the whole chargeable weight, and the first "
            "amount is added; on a bound the {side} band counts.",
        ),
        {"side": NameSlot("lower|upper")},
    ),
    Sentence(
        "sliced_band",
        (
            "Freight is the first amount plus each part of the chargeable weight at the rate of "
            "the band in which that part lies.",
            "The weight up to the first bound costs the first rate, the weight between two bounds "
            "the rate between them, and so on; the first amount is added.",
            "Each band's rate applies only to the kilograms within that band; the first amount is "
            "added once.",
        ),
        {},
    ),
    *(_rate(letter) for letter in ZONE_LETTERS),
)
_VALUE = tuple(
    Sentence(
        name,
        (
            f"If the declared value is above {{start}}, {{rate}} of {part} is charged.",
            f"Above a declared value of {{start}} we charge {{rate}} of {part}.",
            f"If a value of more than {{start}} is declared, we charge {{rate}} of {part}.",
        ),
        {"start": MONEY, "rate": _FINE},
    )
    for name, part in (
        ("value_excess", "the part of the value above that amount"),
        ("value_whole", "the whole value"),
    )
)
FORM = PolicyForm(
    "Freight tariff",
    (
        PolicySection("weight", ("Chargeable weight", "Weight", "What is weighed"), _WEIGHT),
        PolicySection(
            "zones",
            ("Zones", "Countries", "Zones by country"),
            tuple(_zone(letter) for letter in ZONE_LETTERS),
        ),
        PolicySection("freight", ("Freight", "Freight rates", "Rates"), _FREIGHT),
        PolicySection(
            "service",
            ("Services", "Service levels", "Speed"),
            (
                Sentence(
                    "service",
                    (
                        "Freight is multiplied by {economy} for economy and by {express} for "
                        "express; standard is as it is.",
                        "Economy pays {economy} times the freight, express {express} times, "
                        "standard once.",
                        "The factor on freight is {economy} (economy), 1 (standard) or {express} "
                        "(express).",
                    ),
                    {"economy": _FACTOR, "express": _FACTOR},
                ),
            ),
        ),
        PolicySection(
            "pieces",
            ("Several pieces", "Consolidation", "Number of pieces"),
            (
                Sentence(
                    "pieces",
                    (
                        "From {first} pieces on, {off} of the freight is taken off.",
                        "Shipments of {first} or more pieces get {off} off the freight.",
                        "There are {off} off the freight for at least {first} pieces.",
                    ),
                    {"first": COUNT, "off": PERCENT},
                ),
            ),
        ),
        PolicySection(
            "plan",
            ("Customer plans", "Plans", "Plan discount"),
            (
                Sentence(
                    "plan",
                    (
                        "Customers with Plus get {plus} off the freight, with Prime {prime}, with "
                        "Basic nothing.",
                        "The plan takes {plus} (Plus) or {prime} (Prime) off the freight.",
                        "Off the freight go {plus} for Plus customers and {prime} for Prime "
                        "customers.",
                    ),
                    {"plus": PERCENT, "prime": PERCENT},
                ),
            ),
        ),
        PolicySection(
            "minimum",
            ("Minimum", "Least freight", "Minimum charge"),
            (
                Sentence(
                    "minimum",
                    (
                        "Freight after all discounts is at least {amount} per {unit}.",
                        "The least freight, after discounts, is {amount} per {unit}.",
                        "If freight after discounts is less than {amount} per {unit}, that amount "
                        "takes its place.",
                    ),
                    {"amount": MONEY, "unit": _UNIT},
                ),
            ),
        ),
        PolicySection(
            "remote",
            ("Remote areas", "Outlying addresses", "Remote addresses"),
            (_fee("remote", "If the address is in a remote area"),),
        ),
        PolicySection(
            "residential",
            ("Residential", "Private addresses", "Home delivery"),
            (_fee("residential", "If the address is residential"),),
        ),
        PolicySection(
            "oversize",
            ("Oversize", "Long pieces", "Large pieces"),
            (_fee("oversize", "If the longest side is above {side} cm", {"side": _DIGITS}),),
        ),
        PolicySection(
            "danger",
            ("Dangerous goods", "Hazardous contents", "Dangerous contents"),
            (_fee("danger", "If the shipment holds dangerous goods"),),
        ),
        PolicySection(
            "saturday",
            ("Saturday", "Weekend pickup", "Saturday pickup"),
            (_fee("saturday", "If the pickup is on a Saturday"),),
        ),
        PolicySection(
            "handling",
            ("Handling", "Heavy shipments", "Heavy handling"),
            (_fee("handling", "If the chargeable weight is above {weight}", {"weight": _KILO}),),
        ),
        PolicySection(
            "customs",
            ("Customs", "Clearance", "Customs clearance"),
            (_fee("customs", "If the address is in zone {zones}", {"zones": _LETTERS}),),
        ),
        PolicySection("value", ("Declared value", "Value", "Liability"), _VALUE),
        PolicySection(
            "fuel",
            ("Fuel", "Fuel surcharge", "Energy"),
            (
                Sentence(
                    "fuel",
                    (
                        "The fuel percentage of the week of pickup is charged on freight and on "
                        "the {fees}, and on nothing else.",
                        "On the sum of freight and the {fees} we charge the fuel percentage of the "
                        "week of pickup; everything else is free of it.",
                        "Fuel is charged on freight plus the {fees} by the percentage of the week "
                        "of pickup, on no other amount.",
                    ),
                    {"fees": ListSlot(tuple(_FEE_NAMES.values()))},
                ),
                Sentence(
                    "fuel_freight",
                    (
                        "The fuel percentage of the week of pickup is charged on freight alone.",
                        "On freight, and on nothing else, we charge the fuel percentage of the "
                        "week of pickup.",
                        "Fuel is charged on freight only, by the percentage of the week of pickup.",
                    ),
                    {},
                ),
            ),
        ),
        PolicySection(
            "rounding",
            ("Calculation", "Order and rounding", "Rounding"),
            (
                Sentence(
                    "order",
                    (
                        "The steps are: freight by zone and weight, service, several pieces, plan, "
                        "minimum, fees, fuel, declared value; the total is their sum.",
                        "We calculate freight by zone and weight, then service, several pieces, "
                        "plan and minimum, then fees, fuel and declared value, and add up.",
                        "Order: freight by zone and weight; service; several pieces; plan; "
                        "minimum; fees; fuel; declared value; sum.",
                    ),
                    {},
                ),
                Sentence(
                    "rounding",
                    (
                        "Each amount, and each discount, is rounded to the cent: {mode}.",
                        "After every step the amount or discount is rounded to the cent ({mode}).",
                        "Every amount and every discount is brought to whole cents, {mode}.",
                        "Fractions of a cent are rounded at each amount and each discount: {mode}.",
                        "All amounts and discounts are whole cents; fractions go {mode}.",
                    ),
                    {"mode": NameSlot("|".join(ROUNDINGS))},
                ),
            ),
        ),
    ),
)

FUEL_WEEK = Sentence(
    "fuel_week",
    (
        "Week from {monday} on: {percent}.",
        "From {monday} for a week: {percent}.",
        "{percent} in the week that begins on {monday}.",
    ),
    {"monday": DAY, "percent": _FINE},
)
FUEL_UNTIL = Sentence(
    "fuel_until",
    (
        "The carrier may correct the percentage of a week by mail, today until {time}.",
        "Until {time} today the carrier may still correct a percentage; it does so by mail.",
        "A correction of a percentage, if there is one today, comes by mail before {time}.",
    ),
    {"time": _TIME},
)
FUEL_CORRECTION = Sentence(
    "fuel_correction",
    (
        "For pickups from {first} to the end of that week the fuel percentage is {percent}.",
        "The fuel percentage is {percent} for pickups on or after {first}, until that week ends.",
        "From {first} to the end of its week, pickups have a fuel percentage of {percent}.",
        "We correct the fuel percentage to {percent}, for pickups from {first} until the week is "
        "over.",
        "Pickups on {first} and on the later days of that week pay {percent} for fuel.",
    ),
    {"first": DAY, "percent": _FINE},
)
RELEASE = Sentence(
    "release",
    (
        "Version {version} rates pickups from {first} on.",
        "Pickups on or after {first} are rated by version {version}.",
        "From {first} on pickups are rated by version {version}.",
    ),
    {"version": _VERSION, "first": DAY},
)
RELEASE_TODAY = Sentence(
    "release_today",
    (
        "Version {version} goes live today at {time}, for pickups from {first} on; test quotes "
        "made earlier do not show it.",
        "Today at {time} version {version} is switched on for pickups from {first} on; earlier "
        "test quotes do not have it.",
        "At {time} today we switch on version {version}, which rates pickups from {first} on; "
        "before that time test quotes lack it.",
    ),
    {"version": _VERSION, "time": _TIME, "first": DAY},
)


def tariff_of(policy: Policy) -> Tariff:
    """Return the numbers of a tariff that a policy states.

    Args:
        policy: Of `FORM`.
    """
    terms = policy.terms
    letters = [letter for letter in ZONE_LETTERS if f"rate_{letter}" in terms]
    value = terms.get("value_excess") or terms.get("value_whole") or {"start": 0, "rate": 0}
    pieces = terms.get("pieces", {"first": 2, "off": 0})
    plan = terms.get("plan", {"plus": 0, "prime": 0})
    minimum = terms.get("minimum", {"amount": 0, "unit": UNITS[0]})
    fees = [fee for fee in FEES if fee in terms]
    with_fuel = set(terms.get("fuel", {"fees": ()})["fees"])
    return Tariff(
        zones={
            code: place
            for place, letter in enumerate(letters)
            for code in terms[f"zone_{letter}"]["countries"]
        },
        divisor=int(terms["volume"]["divisor"]) if "volume" in terms else 0,
        step_g=terms["step"]["step"],
        bounds=tuple(terms["bands"]["bounds"]),
        upper=int(terms.get("whole_band", {"side": "lower"})["side"] == "upper"),
        sliced=int("sliced_band" in terms),
        first=tuple(terms[f"rate_{letter}"]["first"] for letter in letters),
        kilo=tuple(tuple(terms[f"rate_{letter}"]["rates"]) for letter in letters),
        economy=terms["service"]["economy"],
        express=terms["service"]["express"],
        pieces_from=pieces["first"],
        pieces_off=pieces["off"],
        plus=plan["plus"],
        prime=plan["prime"],
        minimum=minimum["amount"],
        minimum_piece=int(minimum["unit"] == UNITS[1]),
        fees={fee: terms[fee]["amount"] for fee in fees},
        by_piece={fee: int(terms[fee]["unit"] == UNITS[1]) for fee in fees},
        side_cm=int(terms["oversize"]["side"]) if "oversize" in terms else 0,
        handling_g=terms["handling"]["weight"] if "handling" in terms else 0,
        customs=tuple(
            ZONE_LETTERS.index(letter) for letter in terms.get("customs", {"zones": ()})["zones"]
        ),
        value_from=value["start"],
        value_rate=value["rate"],
        value_whole=int("value_whole" in terms),
        fueled={fee: int(_FEE_NAMES[fee] in with_fuel) for fee in fees},
        rounding=ROUNDINGS.index(terms["rounding"]["mode"]),
        sections=tuple(policy.sections),
    )


def fuel_names(fees: tuple[str, ...]) -> tuple[str, ...]:
    """Return how the tariff calls fees.

    Args:
        fees: Out of `FEES`.
    """
    return tuple(_FEE_NAMES[fee] for fee in fees)
