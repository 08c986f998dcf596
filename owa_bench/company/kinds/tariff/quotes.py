"""Test quotes: what the rating engine answers, within the quota."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from owa_bench.company.kinds.contract import CaseState, CaseWorld, PostResult
from owa_bench.company.kinds.tariff.engine import PricedShipments, correction_of
from owa_bench.company.kinds.tariff.matter import TariffMatter
from owa_bench.company.kinds.tariff.texts import FUEL_EVENT, RELEASE_EVENT
from owa_bench.company.language.tariff_form import tariff_of
from owa_bench.company.language.tariff_rules import PLANS, SERVICES, SHIPMENT_FIELDS, Tariff

QUOTES = "quotes"
_MOST = 10  # shipments a call
_FLAGS = ("remote", "residential", "dangerous")
_SPANS = {
    "pieces": (1, 20),
    "weight_g": (100, 500_000),
    "length_cm": (1, 300),
    "width_cm": (1, 300),
    "height_cm": (1, 300),
    "declared_cents": (0, 10_000_000),
}
_SUNDAY = 6


class QuoteRefusal(ValueError):
    """A body of which the engine makes no quote."""


def quote_reply(world: CaseWorld, state: CaseState, body: Any) -> PostResult:
    """Return the totals of test shipments.

    Args:
        world: The one that is played.
        state: Before the call.
        body: A list of 1 to 10 shipments.
    """
    matter: TariffMatter = world.matter
    tariff = tariff_of(world.policy)
    if not isinstance(body, list) or not 1 <= len(body) <= _MOST:
        return PostResult(400, {"error": f"the body is a list of 1 to {_MOST} shipments"})
    left = matter.quota - state.used.get(QUOTES, 0)
    if len(body) > left:
        return PostResult(429, {"error": f"{left} test quotes are left, {len(body)} were asked"})
    try:
        rows = [_shipment(one, tariff, matter) for one in body]
    except QuoteRefusal as refusal:
        return PostResult(400, {"error": str(refusal)})
    planned = {_cell(row, tariff): row.id for row in world.tables["planned"]}
    for row in rows:
        same = planned.get(_cell(row, tariff))
        if same is not None:
            return PostResult(403, {"error": f"the shipment is too close to {same}"})
    totals = _totals(tariff, matter, rows, state)
    return PostResult(
        200, {"quotes": [{"total_cents": cents} for cents in totals]}, used={QUOTES: len(rows)}
    )


def _totals(
    tariff: Tariff, matter: TariffMatter, rows: list[dict[str, Any]], state: CaseState
) -> list[int]:
    corrected = FUEL_EVENT in state.happened
    correction = correction_of(matter) if corrected else None
    released = not matter.release_event or RELEASE_EVENT in state.happened
    current = [rule for rule in matter.departures if rule not in matter.late]
    priced = PricedShipments(tariff, rows, matter.fuel, correction)
    engines = {
        "earlier": priced.prices(matter.earlier).tolist(),
        "current": priced.prices(current).tolist(),
        "last": priced.prices(matter.departures).tolist(),
    }
    found = []
    for place, day in enumerate(priced.days):
        name = "earlier" if day < matter.history_ends else "current"
        if released and day >= matter.late_from:
            name = "last"
        found.append(int(engines[name][place]))
    return found


def _cell(row: Any, tariff: Tariff) -> tuple[Any, ...]:
    """Return what a test shipment may not share with a planned one."""
    value = row.__getitem__ if isinstance(row, Mapping) else lambda name: getattr(row, name)
    return tariff.zones[value("country")], value("service"), value("plan"), value("pieces")


def _shipment(body: Any, tariff: Tariff, matter: TariffMatter) -> dict[str, Any]:
    """Return a shipment of a body, its fields checked.

    Raises: QuoteRefusal: A field is missing or has a value that the engine does not know.
    """
    if not isinstance(body, Mapping):
        raise QuoteRefusal(f"a shipment is an object, not {body!r:.60}")
    given = {str(name).replace("_", "").lower(): value for name, value in body.items()}
    row: dict[str, Any] = {}
    for field in SHIPMENT_FIELDS:
        key = field.replace("_", "")
        if key not in given:
            raise QuoteRefusal(f"a shipment has no {field}")
        row[field] = given[key]
    for field, names in (("service", SERVICES), ("plan", PLANS), ("country", tariff.zones)):
        if row[field] not in names:
            raise QuoteRefusal(f"{field} {row[field]!r:.40} is none of {', '.join(names)}")
    for field in _FLAGS:
        if row[field] not in (True, False):
            raise QuoteRefusal(f"{field} {row[field]!r:.40} is neither true nor false")
        row[field] = bool(row[field])
    for field, (least, most) in _SPANS.items():
        value = row[field]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise QuoteRefusal(f"{field} {value!r:.40} is no whole number from {least} to {most}")
    row["pickup"] = _pickup(row["pickup"], matter)
    return row


def _pickup(text: Any, matter: TariffMatter) -> dt.date:
    try:
        day = dt.date.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise QuoteRefusal(f"pickup {text!r:.40} is no day such as 2031-05-07") from error
    monday = (day - dt.timedelta(day.weekday())).isoformat()
    if monday not in matter.fuel or day.weekday() == _SUNDAY:
        raise QuoteRefusal(f"pickup {text} is a Sunday, or in a week without a fuel percentage")
    return day
