"""Draws shipments in columns: the customers' countries and plans, sizes, values and days."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np

from owa_bench.company.language.tariff_rules import SERVICES, Tariff
from owa_bench.company.tables import Customer

_SIDES = (30, 40, 45, 60, 65, 75, 85, 95, 100, 105, 110, 115, 120, 125, 135, 145, 160)
_WIDTHS = (15, 20, 25, 30, 35, 40, 50)
_HEIGHTS = (10, 15, 20, 25, 30, 40)
_PIECES = (1, 1, 1, 1, 2, 2, 3, 3, 4, 5)
_SERVICES = (0, 0, 1, 1, 1, 2, 2)
_VALUES = (0, 0, 0, 15_000, 30_000, 45_000, 65_000, 80_000, 99_000, 120_000, 180_000, 250_000)
_WEIGHTS_HG = ((5, 80), (50, 300), (200, 900))  # spans of tenths of a kilogram
_REMOTE, _RESIDENTIAL, _DANGEROUS = 0.27, 0.32, 0.2


def draw_shipments(
    rng: np.random.Generator,
    tariff: Tariff,
    customers: Sequence[Customer],
    days: Sequence[dt.date],
    edge: float,
) -> list[dict[str, Any]]:
    """Return shipments, one for each day of pickup.

    Args:
        rng: Draws them.
        tariff: Gives the bounds of weight at which some of them lie.
        customers: Of the company.
        days: Of pickup.
        edge: Share with a weight at or near a bound.
    """
    count = len(days)
    by_country: dict[str, list[Customer]] = {}
    for customer in customers:
        if customer.country in tariff.zones:
            by_country.setdefault(customer.country, []).append(customer)
    codes = sorted(by_country)
    country = rng.integers(0, len(codes), count).tolist()
    place = rng.random(count).tolist()
    spans = np.array(_WEIGHTS_HG)[rng.integers(0, len(_WEIGHTS_HG), count)]
    weights = spans[:, 0] + (rng.random(count) * (spans[:, 1] - spans[:, 0])).astype(np.int64)
    bounds = np.array(tariff.bounds) // 100
    near = bounds[rng.integers(0, len(bounds), count)]
    near = near + np.array((0, 0, -3, 2))[rng.integers(0, 4, count)]
    weights = np.where(rng.random(count) < edge, near, weights).tolist()

    def column(values: Sequence[int]) -> list[int]:
        return [values[n] for n in rng.integers(0, len(values), count).tolist()]

    def flags(odds: float) -> list[bool]:
        return [bool(flag) for flag in rng.random(count) < odds]

    pieces, services, values = column(_PIECES), column(_SERVICES), column(_VALUES)
    sides, widths, heights = column(_SIDES), column(_WIDTHS), column(_HEIGHTS)
    remote, residential, danger = flags(_REMOTE), flags(_RESIDENTIAL), flags(_DANGEROUS)
    rows = []
    for n, day in enumerate(days):
        known = by_country[codes[country[n]]]
        customer = known[int(place[n] * len(known))]
        rows.append(
            {
                "customer": customer.id,
                "country": customer.country,
                "remote": remote[n],
                "residential": residential[n],
                "service": SERVICES[services[n]],
                "plan": customer.plan,
                "pickup": day,
                "pieces": pieces[n],
                "weight_g": 100 * int(weights[n]),
                "length_cm": sides[n],
                "width_cm": widths[n],
                "height_cm": heights[n],
                "dangerous": danger[n],
                "declared_cents": values[n],
            }
        )
    return rows
