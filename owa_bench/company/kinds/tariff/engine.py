"""Prices of shipments by the rating engine of a world, in arrays by the pure rules."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import asdict

from owa_bench.company.kinds.tariff.matter import TariffMatter
from owa_bench.company.language.tariff_rules import (
    Departure,
    Ints,
    ShipmentFacts,
    Tariff,
    condition_mask,
    engine_prices,
    fuel_percent,
    shipment_facts,
)


class PricedShipments:
    """Shipments with their facts and fuel percentages.

    Args:
        tariff: The published one.
        rows: Structs or mappings with the fields of a shipment.
        weeks: Fuel percentages by week.
        correction: Of the fuel percentage; None: without it.
    """

    def __init__(
        self,
        tariff: Tariff,
        rows: Sequence[Any],
        weeks: Mapping[str, int],
        correction: tuple[str, int] | None = None,
    ) -> None:
        self.tariff = tariff
        records = [row if isinstance(row, Mapping) else asdict(row) for row in rows]
        self.days: list[dt.date] = [row["pickup"] for row in records]
        self.facts: ShipmentFacts = shipment_facts(records, tariff)
        self.fuel: Ints = fuel_percent(self.days, weeks, correction)

    def prices(self, departures: Iterable[Departure]) -> Ints:
        """Return the totals under some departures.

        Args:
            departures: Of the engine.
        Returns: (shipments,) cents.
        """
        return engine_prices(self.tariff, self.facts, self.fuel, departures)

    def moved(self, rule: Departure, departures: Sequence[Departure]) -> np.ndarray[Any, Any]:
        """Return which totals would be others without one departure.

        Args:
            rule: One of `departures`.
            departures: Of the engine.
        Returns: (shipments,) bool.
        """
        rest = [one for one in departures if one != rule]
        return np.asarray(self.prices(departures) != self.prices(rest))

    def holds(self, rule: Departure) -> np.ndarray[Any, Any]:
        """Return for which shipments a departure's condition holds.

        Args:
            rule: Any departure.
        Returns: (shipments,) bool.
        """
        return condition_mask(rule[4:], self.facts)

    def moved_alone(self, departures: Sequence[Departure]) -> np.ndarray[Any, Any]:
        """Return which totals each departure changes while no other one does.

        Args:
            departures: Of the engine.
        Returns: (departures, shipments) bool.
        """
        full = self.prices(departures)
        rests = [[one for one in departures if one != rule] for rule in departures]
        moved = np.array([self.prices(rest) != full for rest in rests])
        return np.asarray(moved & (moved.sum(axis=0) == 1))


def correction_of(matter: TariffMatter) -> tuple[str, int] | None:
    """Return the correction of the fuel percentage; None: there is none."""
    return matter.correction if matter.correction[0] else None
