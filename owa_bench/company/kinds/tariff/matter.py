"""Rows and matter of the kind `tariff`."""

import datetime as dt

import msgspec

from owa_bench.company.language.tariff_rules import Departure
from owa_bench.company.tables import Row


class PlannedShipment(Row, frozen=True, kw_only=True):
    """A shipment that the carrier will take; sides are sides of one piece."""

    customer: str
    country: str
    remote: bool
    residential: bool
    service: str
    plan: str
    pickup: dt.date
    pieces: int
    weight_g: int
    length_cm: int
    width_cm: int
    height_cm: int
    dangerous: bool
    declared_cents: int


class FreightBill(PlannedShipment, frozen=True, kw_only=True):
    """What the carrier billed for a shipment; `made_by` is empty if nobody recorded it."""

    billed_cents: int
    made_by: str


class TariffMatter(msgspec.Struct, frozen=True, kw_only=True):
    """The engine of a world.

    Attributes:
        departures: Of the engine for pickups of the planned week.
        earlier: Of the engine that made the older bills.
        late: Those of `departures` that no bill has; they come with the last release.
        history_ends: Bills of earlier pickups were made by the earlier engine.
        late_from: First day of pickup with the late departures.
        release_event: Whether the last release goes live while the case runs.
        fuel: Percentage by the ISO day of each week's Monday, in hundredths.
        correction: ISO day and percentage of a correction, in force to the end of its week;
            ("", 0): there is none.
        shown_by: Keys of the bills that show a departure, by its class.
        quota: Test quotes in all.
        released: Whether there was a release within the days of the bills.
    """

    departures: tuple[Departure, ...]
    earlier: tuple[Departure, ...]
    late: tuple[Departure, ...]
    history_ends: dt.date
    late_from: dt.date
    release_event: bool
    fuel: dict[str, int]
    correction: tuple[str, int]
    shown_by: dict[str, tuple[str, ...]]
    quota: int
    released: bool

    @property
    def has_history(self) -> bool:
        """Whether another engine made the older bills."""
        return set(self.earlier) != set(self.departures) - set(self.late)
