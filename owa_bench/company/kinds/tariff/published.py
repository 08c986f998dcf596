"""Draws a published tariff: which clauses it has, in which order, with which numbers."""

import datetime as dt
import itertools
from typing import Any

import numpy as np

from owa_bench.company.language.policy import Policy
from owa_bench.company.language.tariff_form import FORM, UNITS, ZONE_LETTERS, fuel_names
from owa_bench.company.language.tariff_rules import FEES, ROUNDINGS
from owa_bench.seeding import pick

# By distance from home; the draw swaps neighbours.
_BY_DISTANCE = ("DE", "NL", "PL", "FR", "IT", "GB", "SE", "US", "CA")
_BOUNDS_KG = ((10, 30, 70), (5, 25, 60), (10, 40, 80), (15, 50), (20, 60), (8, 20, 45))
_ODDS = {  # of sections that a tariff may lack
    "pieces": 0.8,
    "plan": 0.8,
    "minimum": 0.7,
    "remote": 0.8,
    "residential": 0.8,
    "oversize": 0.8,
    "danger": 0.75,
    "saturday": 0.75,
    "handling": 0.6,
    "customs": 0.5,
    "value": 0.8,
}
_AMOUNTS = {
    "remote": (650, 750, 890, 980),
    "residential": (390, 420, 460, 540),
    "oversize": (1600, 1800, 2250, 2600),
    "danger": (2900, 3500, 3850),
    "saturday": (1200, 1450, 1700),
    "handling": (900, 1100, 1350),
    "customs": (850, 1250, 1900),
}
_PIECE_ODDS = {"remote": 0.3, "residential": 0.3, "oversize": 0.6, "handling": 0.3, "customs": 0.3}
_FUEL_ODDS = 0.7


def draw_published(rng: np.random.Generator, since: dt.date) -> Policy:
    """Return a tariff.

    Args:
        rng: Draws it.
        since: The day from which it is in force.
    """
    present = [name for name in FORM.sections if name not in _ODDS or rng.random() < _ODDS[name]]
    terms: dict[str, dict[str, Any]] = {}
    zones = _zones(rng)
    _weights(terms, rng, len(zones))
    for letter, codes in zip(ZONE_LETTERS, zones, strict=False):
        terms[f"zone_{letter}"] = {"countries": codes}
    terms["service"] = {
        "economy": pick((82, 85, 88, 90), rng),
        "express": pick((135, 140, 145, 155), rng),
    }
    fees = tuple(fee for fee in FEES if fee in present)
    _discounts(terms, rng, present)
    _fees(terms, rng, fees, len(zones))
    odds = _FUEL_ODDS if rng.random() < 0.9 else 0.0
    fueled = tuple(fee for fee in fees if rng.random() < odds)
    if fueled:
        terms["fuel"] = {"fees": fuel_names(fueled)}
    else:
        terms["fuel_freight"] = {}
    terms["order"] = {}
    terms["rounding"] = {"mode": pick(ROUNDINGS, rng)}
    order = [present[n] for n in rng.permutation(len(present)).tolist()]
    return Policy(
        title=f"FT-{int(rng.integers(11, 99))}", since=since, sections=tuple(order), terms=terms
    )


def _zones(rng: np.random.Generator) -> list[tuple[str, ...]]:
    codes = list(_BY_DISTANCE)
    for place in range(len(codes) - 1):
        if rng.random() < 0.4:
            codes[place], codes[place + 1] = codes[place + 1], codes[place]
    count = int(rng.integers(3, len(ZONE_LETTERS) + 1))
    cuts = sorted((1 + rng.permutation(len(codes) - 1)[: count - 1]).tolist())
    ends = [0, *cuts, len(codes)]
    return [tuple(sorted(codes[first:last])) for first, last in itertools.pairwise(ends)]


def _weights(terms: dict[str, dict[str, Any]], rng: np.random.Generator, zones: int) -> None:
    """Draw how weight is measured, the bands, and the rates of each zone."""
    if rng.random() < 0.8:
        terms["volume"] = {"divisor": str(pick((4000, 5000, 6000), rng))}
    else:
        terms["no_volume"] = {}
    terms["step"] = {"step": pick((500, 500, 1000), rng)}
    terms["whole_weight"] = {}
    bounds = pick(_BOUNDS_KG, rng)
    terms["bands"] = {"bounds": tuple(1000 * bound for bound in bounds)}
    if rng.random() < 0.35:
        terms["sliced_band"] = {}
    else:
        terms["whole_band"] = {"side": pick(("lower", "upper"), rng)}
    for zone in range(zones):
        base = 60 + 21 * zone + int(rng.integers(8))
        steps = sorted(rng.permutation(np.arange(2, 24))[: len(bounds)].tolist(), reverse=True)
        terms[f"rate_{ZONE_LETTERS[zone]}"] = {
            "first": 380 + 110 * zone + 5 * int(rng.integers(12)),
            "rates": tuple(base + step for step in (*steps, 0)),
        }


def _discounts(
    terms: dict[str, dict[str, Any]], rng: np.random.Generator, present: list[str]
) -> None:
    """Draw discounts, the minimum and the charge on declared value, as far as present."""
    if "pieces" in present:
        terms["pieces"] = {"first": pick((3, 4), rng), "off": pick((4, 5, 7), rng)}
    if "plan" in present:
        terms["plan"] = {"plus": pick((2, 3, 4, 5), rng), "prime": pick((6, 7, 8, 9), rng)}
    if "minimum" in present:
        unit = UNITS[int(rng.random() < 0.3)]
        cents = (590, 690, 750) if unit == UNITS[1] else (990, 1150, 1290)
        terms["minimum"] = {"amount": pick(cents, rng), "unit": unit}
    if "value" in present:
        terms[pick(("value_excess", "value_whole"), rng)] = {
            "start": pick((30_000, 50_000, 60_000, 75_000), rng),
            "rate": pick((40, 45, 60, 75), rng),
        }


def _fees(
    terms: dict[str, dict[str, Any]], rng: np.random.Generator, fees: tuple[str, ...], zones: int
) -> None:
    for fee in fees:
        unit = UNITS[int(rng.random() < _PIECE_ODDS.get(fee, 0.0))]
        terms[fee] = {"amount": pick(_AMOUNTS[fee], rng), "unit": unit}
    if "oversize" in fees:
        terms["oversize"]["side"] = str(pick((90, 100, 110, 120), rng))
    if "handling" in fees:
        terms["handling"]["weight"] = pick((30_000, 40_000, 50_000), rng)
    if "customs" in fees:
        last = zones - 1
        far = (last,) if rng.random() < 0.5 else (last - 1, last)
        terms["customs"]["zones"] = tuple(ZONE_LETTERS[zone] for zone in far)
