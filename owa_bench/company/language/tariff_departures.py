"""The grammar of departures from a tariff: field x comparison x value, and clause x change.

The module needs numpy and the rules of tariffs alone, so that its source also runs in a sandbox.
"""

from collections.abc import Sequence

from owa_bench.company.language.tariff_rules import FEES, PLANS, SERVICES, Departure, Tariff

RuleCondition = tuple[str, str, int | str]
RuleEffect = tuple[str, str, str, int]  # section, knob, change, amount

_ALWAYS: RuleCondition = ("", "", 0)
_WEIGHTS_G = (5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000, 60_000)
_SIDES_CM = (40, 50, 60, 80, 100, 120)
_VALUES = (0, 20_000, 40_000, 50_000, 80_000, 100_000, 150_000)
_AMOUNTS = (50, 100, 150, 200, 250, 300, 400)
# A rule that no clause is about: its condition looks at no field that a clause of this tariff
# is about, else it could not be told from a change of that clause.
_OWNERS = {
    "remote": "remote",
    "residential": "residential",
    "dangerous": "danger",
    "weekday": "saturday",
    "long_cm": "oversize",
    "weight_g": "handling",
    "declared": "value",
    "zone": "customs",
    "country": "customs",
}
_PERCENT_OWNERS = {"service": "service", "plan": "plan", "pieces": "pieces"}
# Changes of a clause by the field that the clause itself looks at make no sense, or say the same
# as another change of that clause.
_OWN_FIELDS = {
    "service": ("service",),
    "plan": ("plan",),
    "pieces": ("pieces",),
    "remote": ("remote",),
    "residential": ("residential",),
    "danger": ("dangerous",),
    "oversize": ("long_cm",),
    "value": ("declared",),
}


def conditions(tariff: Tariff) -> list[RuleCondition]:
    """Return every condition on a shipment; the first one holds for all.

    Args:
        tariff: Gives zones and countries.
    """
    zones = range(len(tariff.first))
    found: list[RuleCondition] = [_ALWAYS]
    for field, values in (("service", SERVICES), ("plan", PLANS), ("zone", zones)):
        found += [(field, compare, n) for n in range(len(values)) for compare in ("is", "not")]
    found += [("zone", "above", n) for n in zones[1:-2]]
    found += [("country", compare, code) for code in sorted(tariff.zones) for compare in ("is",)]
    found += [("weekday", "is", n) for n in range(6)]
    found += [("weekday", compare, n) for n in (1, 2, 3) for compare in ("above", "most")]
    found += [("pieces", compare, n) for n in (1, 2, 3, 4) for compare in ("above", "most")]
    for field, numbers in (("weight_g", _WEIGHTS_G), ("long_cm", _SIDES_CM), ("declared", _VALUES)):
        found += [(field, compare, n) for n in numbers for compare in ("above", "most")]
    for flag in ("remote", "residential", "dangerous"):
        found += [(flag, "is", 1), (flag, "is", 0)]
    return found


def effects(tariff: Tariff) -> list[RuleEffect]:
    """Return every change of a clause that the tariff has, and every new rule.

    Args:
        tariff: Gives the clauses and their numbers.
    """
    t = tariff
    found: list[RuleEffect] = []

    def put(section: str, knob: str, change: str, amounts: Sequence[int], known: int = -1) -> None:
        if section == "new" or section in t.sections:
            found.extend((section, knob, change, n) for n in amounts if n != known)

    put("weight", "divisor", "set", (0, 3000, 3500, 4000, 4500, 5000, 6000, 8000), t.divisor)
    put("weight", "step_g", "set", (100, 500, 1000, 2000), t.step_g)
    put("zones", "zone_shift", "add", (-1, 1))
    for band in range(len(t.bounds)):
        put("freight", f"bound_{band}", "add", (-5000, 5000))
    if not t.sliced:
        put("freight", "upper", "set", (0, 1), t.upper)
    put("freight", "kilo_plus", "add", (-8, -6, -5, -4, -3, -2, 2, 3, 4, 5, 6, 8))
    put("freight", "first_plus", "add", (-150, -100, -80, -60, -40, 40, 60, 80, 100, 150))
    for service in ("economy", "express"):
        put("service", service, "add", (-8, -6, -5, -4, -3, -2, 2, 3, 4, 5, 6, 8))
    put("pieces", "pieces_from", "set", (2, 3, 4, 5, 6), t.pieces_from)
    put("pieces", "pieces_off", "set", (0, 1, 2, 3, 4, 5, 6, 8, 10), t.pieces_off)
    put("plan", "plan_on", "set", (0,))
    put("plan", "plus", "set", (1, 2, 3, 4, 5, 6, 8), t.plus)
    put("plan", "prime", "set", (3, 4, 5, 6, 7, 8, 9, 10, 12), t.prime)
    put("minimum", "minimum", "add", (-300, -200, -150, -100, 100, 150, 200, 300, 400))
    put("minimum", "minimum", "set", (0,))
    put("minimum", "minimum_piece", "set", (0, 1), t.minimum_piece)
    for fee in FEES:
        amount = t.fees.get(fee, 0)
        put(fee, fee, "set", (0,))
        put(fee, fee, "times", (50, 200))
        put(fee, fee, "add", [n for n in _AMOUNTS if n != amount])
        put(fee, fee, "add", [-n for n in _AMOUNTS if n < amount and 2 * n != amount])
        put(fee, f"{fee}_piece", "set", (0, 1), t.by_piece.get(fee, 0))
        put(fee, f"{fee}_permille", "set", (30, 40, 50, 60, 80, 100, 120))
        if fee in t.fees:
            put("fuel", f"{fee}_fuel", "set", (0, 1), t.fueled.get(fee, 0))
    put("oversize", "side_cm", "set", (70, 80, 90, 100, 110, 120, 130, 150), t.side_cm)
    put("oversize", "girth_cm", "set", (180, 200, 220, 240, 260, 280, 300, 320))
    put("saturday", "also_on", "set", (0, 1, 2, 3, 4))
    put("handling", "handling_g", "set", range(10_000, 75_000, 5_000), t.handling_g)
    put("value", "value_whole", "set", (0, 1), t.value_whole)
    put("value", "value_on", "set", (0,))
    put("value", "value_from", "set", (0, *range(20_000, 110_000, 10_000)), t.value_from)
    put("value", "value_rate", "set", (20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 100), t.value_rate)
    if "value" in t.sections:
        put("fuel", "value_fuel", "set", (1,))
    put("fuel", "fuel_plus", "add", (-300, -200, -150, -100, -50, 50, 100, 150, 200, 300))
    put("new", "fee_fueled", "add", range(200, 1550, 50))
    put("new", "fee_plain", "add", range(200, 1550, 50))
    put("new", "fee_piece", "add", range(100, 550, 50))
    put("new", "freight_permille", "add", (-75, -60, -50, -40, -30, -25, -20, 20, 25, 30, 40, 50))
    return found


def is_form(tariff: Tariff, effect: RuleEffect, condition: RuleCondition) -> bool:
    """Return whether a change and a condition make a departure of the grammar.

    Args:
        tariff: The published one.
        effect: One of `effects`.
        condition: One of `conditions`.
    """
    section, knob, _, _ = effect
    field = condition[0]
    if section != "new":
        own = _OWN_FIELDS.get(section, ())
        return field not in own and not (knob == "also_on" and field == "weekday")
    owners = {**_OWNERS, **(_PERCENT_OWNERS if knob == "freight_permille" else {})}
    return owners.get(field, "") not in tariff.sections


def departure(effect: RuleEffect, condition: RuleCondition) -> Departure:
    """Return a change under a condition.

    Args:
        effect: The change.
        condition: For which shipments it holds.
    """
    return Departure(*effect, *condition)


def form_count(tariff: Tariff) -> int:
    """Return how many departures from a tariff the grammar has."""
    known = conditions(tariff)
    return sum(is_form(tariff, effect, one) for effect in effects(tariff) for one in known)


_FIELDS = {
    "service": "the service",
    "plan": "the plan",
    "zone": "the zone",
    "country": "the country",
    "weekday": "the day of pickup",
    "pieces": "the number of pieces",
    "weight_g": "the actual weight",
    "long_cm": "the longest side",
    "declared": "the declared value",
}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_COMPARES = {"is": "is", "not": "is not", "above": "is above", "most": "is at most"}
_CHANGES = {
    "divisor": "the volume divisor is {n}",
    "step_g": "chargeable weight is rounded up to full {n} g",
    "zone_shift": "the zone is {n:+d}",
    "upper": "a weight on a bound counts for the other band",
    "kilo_plus": "the rate per kg is {m} other",
    "first_plus": "the first amount is {m} other",
    "economy": "the factor of economy is {n:+d} points",
    "express": "the factor of express is {n:+d} points",
    "pieces_from": "the discount for several pieces begins at {n} pieces",
    "pieces_off": "the discount for several pieces is {n} percent",
    "plan_on": "there is no plan discount",
    "plus": "Plus gets {n} percent",
    "prime": "Prime gets {n} percent",
    "minimum": "the minimum of the freight is another one",
    "minimum_piece": "the minimum counts for the other unit, shipment or piece",
    "side_cm": "oversize begins above {n} cm",
    "girth_cm": "oversize begins above {n} cm of length + 2 x (width + height)",
    "also_on": "the Saturday fee is also due on {day}",
    "handling_g": "the handling fee is due above {n} g",
    "value_whole": "the other part of the declared value counts",
    "value_on": "there is no charge for declared value",
    "value_from": "declared value counts from {m} on",
    "value_rate": "the rate of declared value is {n} per 10,000",
    "value_fuel": "fuel is charged on the declared value's charge",
    "fuel_plus": "the fuel percentage is {n:+d} hundredths",
    "fee_fueled": "there is a fee of {m} a shipment, with fuel on it",
    "fee_plain": "there is a fee of {m} a shipment, without fuel on it",
    "fee_piece": "there is a fee of {m} a piece, with fuel on it",
    "freight_permille": "freight changes by {n:+d} per mille",
}


def departure_words(rule: Departure) -> str:
    """Return a departure in words, as a colleague would say it."""
    amount = f"{rule.amount / 100:.2f}"
    fee, _, what = rule.knob.partition("_")
    day = _DAYS[rule.amount] if rule.knob == "also_on" else ""
    if rule.knob.startswith("bound_"):
        text = "a bound of the bands of weight lies elsewhere"
    elif rule.knob in _CHANGES:
        text = _CHANGES[rule.knob].format(n=rule.amount, m=amount, day=day)
    elif what == "fuel":
        text = f"fuel is {'charged' if rule.amount else 'not charged'} on the {fee} fee"
    elif what == "piece":
        text = f"the {fee} fee is charged for each {'piece' if rule.amount else 'shipment'}"
    elif what == "permille":
        text = f"the {fee} fee is {rule.amount} per mille of the freight"
    elif rule.change == "times":
        text = f"the {fee} fee is {'doubled' if rule.amount > 100 else 'halved'}"
    elif rule.change == "set":
        text = f"there is no {fee} fee"
    else:
        text = f"the {fee} fee is {abs(rule.amount) / 100:.2f} {_more(rule.amount)}"
    return text + _condition_words(rule)


def _more(amount: int) -> str:
    return "higher" if amount > 0 else "lower"


def _condition_words(rule: Departure) -> str:
    if not rule.field:
        return ""
    if rule.field in {"remote", "residential", "dangerous"}:
        what = {"remote": "remote", "residential": "residential", "dangerous": "dangerous goods"}
        return f" if the shipment is {'' if rule.value else 'not '}{what[rule.field]}"
    number = int(rule.value) if rule.field != "country" else 0
    value = {
        "service": lambda: SERVICES[number],
        "plan": lambda: PLANS[number],
        "zone": lambda: "ABCDEF"[number],
        "country": lambda: str(rule.value),
        "weekday": lambda: _DAYS[number],
        "pieces": lambda: str(number),
        "weight_g": lambda: f"{number / 1000:g} kg",
        "long_cm": lambda: f"{number} cm",
        "declared": lambda: f"{number / 100:.2f}",
    }[rule.field]()
    late = {"above": "is after", "most": "is not after"} if rule.field == "weekday" else _COMPARES
    return f" if {_FIELDS[rule.field]} {late.get(rule.compare, _COMPARES[rule.compare])} {value}"
