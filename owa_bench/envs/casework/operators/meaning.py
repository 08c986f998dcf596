"""Operators on meaning: units and forms of fields, as their descriptions say."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.company.language.vocabulary import DOTTED, IN_CENTS, IN_EUROS
from owa_bench.company.systems import ServedColumn
from owa_bench.drift.operator import operator
from owa_bench.envs.casework.world_edits import served_tables, with_columns
from owa_bench.seeding import pick

_MONEY = {
    "orders": ("net_cents",),
    "order_lines": ("unit_cents",),
    "invoices": ("net_cents", "vat_cents"),
    "prices": ("cents",),
    "credit_notes": ("cents",),
}
_DAYS = {
    "orders": ("day",),
    "shipments": ("promised", "shipped"),
    "invoices": ("issued", "due"),
    "prices": ("valid_from",),
    "credit_notes": ("issued",),
    "contracts": ("valid_from", "valid_to"),
}


def _with_money(world: CaseWorld) -> tuple[str, ...]:
    return served_tables(world, _MONEY)


@operator(announcement="D1", weight=0.3, targets=_with_money, group="meaning")
def unit_of_field(world: CaseWorld, target: str) -> CaseWorld:
    """Serve the amounts of a list in euros, as text with two decimals; if they are, in cents.

    Changes: Values of the amounts; the host's description says the unit.
    Leaves alone: What the amounts are, names, every other field.
    Announcement: D1 (documented, breaking). Weight: 0.3.
    Source: docs/casework.md#drift.
    """

    def other_unit(served: ServedColumn) -> ServedColumn:
        if served.form == "euros":
            return replace(served, form="", about=served.about.replace(IN_EUROS, IN_CENTS))
        return replace(served, form="euros", about=served.about.replace(IN_CENTS, IN_EUROS))

    for column in _MONEY[target]:
        world = with_columns(world, target, column, other_unit)
    return world


def _with_days(world: CaseWorld) -> tuple[str, ...]:
    return served_tables(world, _DAYS)


@operator(announcement="D2", weight=0.3, targets=_with_days, group="meaning")
def day_form(world: CaseWorld, target: str, rng: Generator) -> CaseWorld:
    """Serve a day of a list as DD.MM.YYYY; if it is, as YYYY-MM-DD.

    Changes: How one day is written, in replies and filters; the description shows the form.
    Leaves alone: The days, names, every other field.
    Announcement: D2 (seen in replies). Weight: 0.3.
    Source: docs/casework.md#drift.
    """

    def other_form(served: ServedColumn) -> ServedColumn:
        if served.form == "dotted":
            return replace(served, form="", about=served.about.removesuffix(DOTTED))
        return replace(served, form="dotted", about=served.about + DOTTED)

    return with_columns(world, target, pick(_DAYS[target], rng), other_form)
