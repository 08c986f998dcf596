"""Finds departures from a tariff: a search of the whole grammar by exact totals.

The module needs numpy and the rules alone; the parser of `tariff` runs its source in the sandbox.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owa_bench.company.language.tariff_departures import (
    conditions,
    departure,
    effects,
    is_form,
)
from owa_bench.company.language.tariff_rules import (
    Departure,
    Facts,
    Ints,
    Tariff,
    condition_mask,
    engine_prices,
    shipment_facts,
)

Place = tuple[int, int]  # of a form: condition, effect
_LEAST_GAIN = 5  # bills that a further departure must explain
_SWEEPS = 4
_NEW = "new"


class FormTable:
    """All departures from a tariff, as a table of conditions by effects.

    Args:
        tariff: The published one.
    """

    def __init__(self, tariff: Tariff) -> None:
        self.tariff = tariff
        self.conditions = conditions(tariff)
        self.effects = effects(tariff)
        self.legal: NDArray[np.bool_] = np.array(
            [[is_form(tariff, effect, one) for effect in self.effects] for one in self.conditions]
        )
        self._sections = np.array([effect[0] for effect in self.effects])

    def form(self, place: Place) -> Departure:
        """Return the departure at a place of the table."""
        return departure(self.effects[place[1]], self.conditions[place[0]])

    def free(self, others: Iterable[Departure]) -> NDArray[np.bool_]:
        """Return the forms that may stand beside others: no clause has two departures.

        Args:
            others: Departures of the engine.
        Returns: (conditions, effects) bool.
        """
        taken = {rule.section for rule in others} - {_NEW}
        return self.legal & ~np.isin(self._sections, sorted(taken))


class PricedRows:
    """Shipments, with what the engine made of them if that is known.

    Args:
        table: Of the forms.
        rows: Of shipments, by canonical columns.
        fuel: Of the days of pickup, in hundredths.
        totals: What the engine made of them, cents.
    """

    def __init__(
        self, table: FormTable, rows: Sequence[Mapping[str, Any]], fuel: Ints, totals: Any = ()
    ) -> None:
        self.table, self.rows, self.fuel = table, rows, fuel
        self.facts: Facts = shipment_facts(rows, table.tariff)
        self.totals = np.array(totals, dtype=np.int64)
        self.masks: NDArray[np.bool_] = np.array(
            [condition_mask(one, self.facts) for one in table.conditions]
        ).reshape(len(table.conditions), len(rows))

    def prices(self, rules: Sequence[Departure]) -> Ints:
        """Return totals under some departures.

        Args:
            rules: Of the engine.
        Returns: (shipments,) cents.
        """
        return engine_prices(self.table.tariff, self.facts, self.fuel, rules)

    def by_effect(self, others: Sequence[Departure]) -> Ints:
        """Return totals if one more effect holds for all shipments.

        Args:
            others: Departures beside it.
        Returns: (effects, shipments) cents.
        """
        always = self.table.conditions[0]
        return np.array(
            [self.prices([*others, departure(one, always)]) for one in self.table.effects]
        )

    def gains(self, others: Sequence[Departure]) -> tuple[int, Ints]:
        """Return how many totals are exact, and how many more with each further form.

        Args:
            others: Departures beside it.
        Returns: Exact totals, and (conditions, effects) further ones.
        """
        exact = self.prices(others) == self.totals
        change = (self.by_effect(others) == self.totals).astype(np.float32) - exact
        found = self.masks.astype(np.float32) @ change.T
        return int(exact.sum()), np.rint(found).astype(np.int64)


class EngineFit(NamedTuple):
    """Departures that explain totals.

    Attributes:
        rules: One of each set of equals.
        equals: Places of the forms that explain as much in its stead, by rule.
        exact: Totals that are explained.
    """

    rules: list[Departure]
    equals: list[list[Place]]
    exact: int


def best_form(
    rows: PricedRows, others: Sequence[Departure], menu: NDArray[np.bool_] | None = None
) -> tuple[int, list[Place]]:
    """Return how many totals the best further form explains, and the forms that do.

    Args:
        rows: With totals.
        others: Departures beside it.
        menu: (conditions, effects) forms that may be taken; None: all.
    Returns: Exact totals with one of the forms, and their places in order.
    """
    exact, gains = rows.gains(others)
    free = rows.table.free(others)
    gains = np.where(free if menu is None else menu & free, gains, -len(rows.rows) - 1)
    top = int(gains.max())
    places = [(int(c), int(e)) for c, e in np.argwhere(gains == top)]
    return exact + top, places


def fit_engine(rows: PricedRows, least: int = _LEAST_GAIN) -> EngineFit:
    """Return the departures that explain most totals: greedily, then each one again.

    Args:
        rows: With totals.
        least: Totals that a further departure must explain.
    """
    rules: list[Departure] = []
    exact = int((rows.prices(rules) == rows.totals).sum())
    while True:
        count, places = best_form(rows, rules)
        if count < exact + least:
            break
        rules.append(rows.table.form(places[0]))
        exact = polish(rows, rules, count)
    equals = [best_form(rows, without(rules, n))[1] for n in range(len(rules))]
    return EngineFit(rules, equals, exact)


def polish(rows: PricedRows, rules: list[Departure], exact: int) -> int:
    """Choose each departure again beside the others until no choice explains more.

    Args:
        rows: With totals.
        rules: Changed in place.
        exact: Totals that they explain.
    Returns: Totals that are explained in the end.
    """
    for _ in range(_SWEEPS if len(rules) > 1 else 0):
        before = exact
        for place in range(len(rules) - 1):
            count, places = best_form(rows, without(rules, place))
            if count > exact:
                exact, rules[place] = count, rows.table.form(places[0])
        if exact == before:
            break
    return exact


def without(rules: Sequence[Departure], place: int) -> list[Departure]:
    """Return all departures but one.

    Args:
        rules: All of them.
        place: Of the one that is left out.
    """
    return [rule for n, rule in enumerate(rules) if n != place]
