"""Finds departures from a tariff: a search of the whole grammar by exact totals.

The module needs numpy and the rules alone; the parser of `tariff` runs its source in the sandbox.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owa_bench.company.language.tariff_departures import conditions, departure, effects, is_form
from owa_bench.company.language.tariff_rules import (
    Departure,
    Ints,
    ShipmentFacts,
    Tariff,
    condition_mask,
    engine_prices,
    shipment_facts,
)

FormPlace = tuple[int, int]  # of a form: condition, effect
_LEAST_GAIN = 5  # bills that a further departure must explain
_SWEEPS = 4
_PAIRS, _BEAM = 5, 8  # pairs that are exchanged, and first forms that are tried
_NEW = "new"


class FormTable:
    """All departures from a tariff, as a table of conditions by effects.

    Args:
        tariff: The published one.
        without: Clauses and numbers of the calculation that no departure may change.
    """

    def __init__(self, tariff: Tariff, without: Iterable[str] = ()) -> None:
        self.tariff, left_out = tariff, frozenset(without)
        self.conditions = conditions(tariff)
        self.effects = effects(tariff)
        self.legal: NDArray[np.bool_] = np.array(
            [[is_form(tariff, effect, one) for effect in self.effects] for one in self.conditions]
        )
        for place, effect in enumerate(self.effects):
            if left_out.intersection(effect[:2]):
                self.legal[:, place] = False
        self._sections = np.array([effect[0] for effect in self.effects])

    def form(self, place: FormPlace) -> Departure:
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
        self.facts: ShipmentFacts = shipment_facts(rows, table.tariff)
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

    def by_effect(
        self, others: Sequence[Departure], wanted: NDArray[np.bool_] | None = None
    ) -> Ints:
        """Return totals if one more effect holds for all shipments.

        Args:
            others: Departures beside it.
            wanted: (effects,) those to calculate; the others change nothing. None: all.
        Returns: (effects, shipments) cents.
        """
        always, known = self.table.conditions[0], self.table.effects
        found = np.tile(self.prices(others), (len(known), 1))
        for place in range(len(known)) if wanted is None else np.flatnonzero(wanted).tolist():
            found[place] = self.prices([*others, departure(known[place], always)])
        return found

    def gains(
        self, others: Sequence[Departure], menu: NDArray[np.bool_]
    ) -> tuple[int, NDArray[np.float32]]:
        """Return how many totals are exact, and how many more with each further form.

        Args:
            others: Departures beside it.
            menu: (conditions, effects) forms that may be taken.
        Returns: Exact totals, and (conditions, effects) further ones; far below 0 outside the menu.
        """
        exact = self.prices(others) == self.totals
        wanted = np.asarray(menu.any(axis=0))
        found = np.full(menu.shape, -np.float32(len(self.rows) + 1), dtype=np.float32)
        change = (self.by_effect(others, wanted)[wanted] == self.totals).astype(np.float32)
        found[:, wanted] = self.masks.astype(np.float32) @ (change - exact).T
        return int(exact.sum()), np.where(menu, found, found.min(initial=-len(self.rows) - 1))


class EngineFit(NamedTuple):
    """Departures that explain totals.

    Attributes:
        rules: One of each set of equals.
        equals: Places of the forms that explain as much in its stead, by rule.
        exact: Totals that are explained.
    """

    rules: list[Departure]
    equals: list[list[FormPlace]]
    exact: int


def best_form(
    rows: PricedRows, others: Sequence[Departure], menu: NDArray[np.bool_] | None = None
) -> tuple[int, list[FormPlace]]:
    """Return how many totals the best further form explains, and the forms that do.

    Args:
        rows: With totals.
        others: Departures beside it.
        menu: (conditions, effects) forms that may be taken; None: all.
    Returns: Exact totals with one of the forms, and their places in order.
    """
    free = rows.table.free(others)
    exact, gains = rows.gains(others, free if menu is None else menu & free)
    top = gains.max()
    places = [(int(c), int(e)) for c, e in np.argwhere(gains == top)]
    return exact + int(top), places


def fit_engine(rows: PricedRows, noise: float, least: int = _LEAST_GAIN) -> EngineFit:
    """Return the departures that explain most totals.

    They are added greedily, then each one is chosen again; as long as too much is unexplained, two
    at a time are exchanged.

    Args:
        rows: With totals.
        noise: Share of totals that may stay unexplained.
        least: Totals that a further departure must explain.
    """
    fit = _climb(rows, [], least)
    for _ in range(_SWEEPS):
        if len(rows.rows) - fit.exact <= noise * len(rows.rows):
            break
        pair = _better_pair(rows, fit)
        if pair is None:
            break
        fit = _climb(rows, pair, least)
    return fit


def _climb(rows: PricedRows, rules: list[Departure], least: int) -> EngineFit:
    """Add departures greedily and choose each one again until nothing explains more."""
    equals: list[list[FormPlace]] = []
    exact = int((rows.prices(rules) == rows.totals).sum())
    for _ in range(_SWEEPS):
        while True:
            count, places = best_form(rows, rules)
            if count < exact + least:
                break
            exact = count
            rules.append(rows.table.form(places[0]))
        before, equals = exact, []
        for place in range(len(rules)):
            count, places = best_form(rows, without(rules, place))
            equals.append(places)
            if count > exact:
                exact, rules[place] = count, rows.table.form(places[0])
        if exact == before:
            break
    return EngineFit(rules, equals, exact)


def _better_pair(rows: PricedRows, fit: EngineFit) -> list[Departure] | None:
    """Return the departures with two exchanged, so that more is explained; None: no two do it.

    Pairs that touch the most unexplained totals come first.
    """
    now = rows.prices(fit.rules)
    open_rows = now != rows.totals
    weight = [
        int(((rows.prices(without(fit.rules, n)) != now) & open_rows).sum())
        for n in range(len(fit.rules))
    ]
    pairs = list(itertools.combinations(range(len(fit.rules)), 2))
    pairs.sort(key=lambda pair: -weight[pair[0]] - weight[pair[1]])
    for first, second in pairs[:_PAIRS]:
        rest = without(without(fit.rules, second), first)
        _, gains = rows.gains(rest, rows.table.free(rest))
        for flat in np.argsort(-gains, axis=None, kind="stable")[:_BEAM].tolist():
            one = rows.table.form(divmod(flat, gains.shape[1]))
            count, places = best_form(rows, [*rest, one])
            if count > fit.exact:
                return [*rest, one, rows.table.form(places[0])]
    return None


def without(rules: Sequence[Departure], place: int) -> list[Departure]:
    """Return all departures but one.

    Args:
        rules: All of them.
        place: Of the one that is left out.
    """
    return [rule for n, rule in enumerate(rules) if n != place]
