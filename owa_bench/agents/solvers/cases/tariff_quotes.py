"""Chooses test quotes, and finds departures that no bill shows from their totals.

The module needs numpy and the rules alone; the parser of `tariff` runs its source in the sandbox.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from owa_bench.agents.solvers.cases.tariff_fit import (
    EngineFit,
    FormPlace,
    FormTable,
    PricedRows,
    best_form,
    without,
)
from owa_bench.company.language.tariff_rules import PLANS, SERVICES, Departure, Tariff

_POOL = 900  # shipments that a quote is chosen from
_BEAM = 24  # forms that a further departure is tried beside
_FEW = 3  # trials whose departures are exchanged
_MOST_LATE, _SWEEPS = 4, 2
_FADE = 0.35  # weight of a form after one more quote that it would change
_SHOWN = 60  # alternatives of a departure that a quote is to separate


class QuoteFit(NamedTuple):
    """What bills and quotes say together.

    Attributes:
        rules: Departures of the engine for planned shipments.
        equals: Places of the forms that explain as much, by rule.
        explained: Quotes that are explained.
    """

    rules: list[Departure]
    equals: list[list[FormPlace]]
    explained: int


def shipment_cell(row: Mapping[str, Any], tariff: Tariff) -> tuple[Any, ...]:
    """Return what a test shipment may not share with a planned one.

    Args:
        row: By canonical columns.
        tariff: Gives the zones.
    """
    return tariff.zones[row["country"]], row["service"], row["plan"], row["pieces"]


def quote_candidates(
    tariff: Tariff, planned: Sequence[Mapping[str, Any]], days: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    """Return shipments that the engine may be asked for; most are due many fees.

    Args:
        tariff: The published one.
        planned: Shipments that quotes must keep away from.
        days: Of pickup, in ISO form.
        seed: Of the draw.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    closed = {shipment_cell(row, tariff) for row in planned}
    columns: dict[str, Sequence[Any]] = {
        "country": sorted(tariff.zones),
        "remote": (True, False),
        "residential": (True, False),
        "service": SERVICES,
        "plan": PLANS,
        "pickup": days,
        "pieces": (1, 2, 2, 3, 3, 4, 4, 5, 6),
        "dangerous": (True, False),
    }
    # Forms that differ for a planned shipment differ at its numbers: these are in the pool.
    for name, others in (
        ("weight_g", _weights(tariff)),
        ("length_cm", (35, 55, 70, 85, 105, 115, 125, 140, 160)),
        ("width_cm", (15, 30, 60)),
        ("height_cm", (10, 25, 50)),
        ("declared_cents", (0, 19_900, 45_000, 62_000, 90_000, 130_000, 210_000)),
    ):
        known = sorted({row[name] for row in planned})
        columns[name] = [*known, *others, *(others if len(known) > len(others) else ())]
    found: list[dict[str, Any]] = []
    while len(found) < _POOL:
        row = {name: values[int(rng.integers(len(values)))] for name, values in columns.items()}
        if shipment_cell(row, tariff) not in closed:
            found.append(row)
    return found


def _weights(tariff: Tariff) -> list[int]:
    found = [700, 3_300, 7_400, 12_300, 17_200, 22_600, 27_900, 34_700, 44_600, 54_200, 72_300]
    found += [bound + step for bound in tariff.bounds for step in (-2_600, 0, 0, 2_400)]
    return [grams for grams in found if grams > 0]


def places_table(table: FormTable, places: Sequence[FormPlace]) -> NDArray[np.bool_]:
    """Return a table that holds at some places.

    Args:
        table: Of the forms.
        places: Of forms.
    Returns: (conditions, effects) bool.
    """
    found = np.zeros(table.legal.shape, dtype=np.bool_)
    for condition, effect in places:
        found[condition, effect] = True
    return found


def fit_quotes(quotes: PricedRows, bills: EngineFit, known: QuoteFit, *, late: bool) -> QuoteFit:
    """Return the departures that explain most quotes: those of the bills, and further ones.

    Args:
        quotes: With totals.
        bills: What the bills say; a departure of theirs may only be exchanged for its equals.
        known: What earlier quotes said; it is kept if it explains all.
        late: Whether there may be departures that no bill shows.
    """
    table = quotes.table
    menus = [places_table(table, places) for places in bills.equals]
    best = _exchange(quotes, known.rules, menus)
    if best[0] < len(quotes.rows):
        best = max((best, _exchange(quotes, bills.rules, menus)), key=lambda one: one[0])
    while late and best[0] < len(quotes.rows) and len(best[1]) < len(bills.rules) + _MOST_LATE:
        more = _further(quotes, best[1], menus)
        if more[0] == best[0]:
            break
        best = more
    count, rules = best
    equals = []
    for place in range(len(rules)):
        menu = menus[place] if place < len(menus) else None
        equals.append(best_form(quotes, without(rules, place), menu)[1])
    return QuoteFit(rules, equals, count)


def _further(
    quotes: PricedRows, rules: list[Departure], menus: list[NDArray[np.bool_]]
) -> tuple[int, list[Departure]]:
    """Return the best engine with one more departure; each candidate is tried with a second."""
    free = quotes.table.free(rules)
    exact, gains = quotes.gains(rules, free)
    order = np.argsort(-gains, axis=None, kind="stable")[:_BEAM]
    trials = []
    for flat in order.tolist():
        condition, effect = divmod(flat, gains.shape[1])
        trial = [*rules, quotes.table.form((condition, effect))]
        count, seconds = best_form(quotes, trial)
        if count > exact + int(gains[condition, effect]):
            trial.append(quotes.table.form(seconds[0]))
        else:
            count = exact + int(gains[condition, effect])
        trials.append((count, trial))
        if count == len(quotes.rows):
            break
    trials.sort(key=lambda found: -found[0])
    tried = [_exchange(quotes, trial, menus) for _, trial in trials[:_FEW]]
    return max(((exact, rules), *tried), key=lambda found: found[0])


def _exchange(
    quotes: PricedRows, rules: list[Departure], menus: list[NDArray[np.bool_]]
) -> tuple[int, list[Departure]]:
    """Exchange each departure for a better one of its menu until nothing gets better."""
    rules = list(rules)
    exact = int((quotes.prices(rules) == quotes.totals).sum())
    for _ in range(_SWEEPS):
        before = exact
        for place in range(len(rules)):
            menu = menus[place] if place < len(menus) else None
            if menu is not None and menu.sum() == 1:
                continue
            count, places = best_form(quotes, without(rules, place), menu)
            if count > exact:
                exact, rules[place] = count, quotes.table.form(places[0])
        if exact in (before, len(quotes.rows)):
            break
    return exact, rules


class QuoteChoice:
    """Chooses quotes by the forms that they separate.

    Args:
        pool: Shipments that may be asked for.
        planned: Forms that change none of them do not matter.
    """

    def __init__(self, pool: PricedRows, planned: PricedRows) -> None:
        self._pool, self._planned = pool, planned
        knobs = [effect[1] for effect in pool.table.effects]
        self._prior = np.array([1.0 / knobs.count(knob) for knob in knobs], dtype=np.float32)

    def unsettled(self, fit: QuoteFit) -> list[list[FormPlace]]:
        """Return, by departure, the equals that would change an answer.

        Args:
            fit: With the forms that explain as much as each departure.
        """
        found = []
        for place, places in enumerate(fit.equals):
            rest, rule = without(fit.rules, place), fit.rules[place]
            bare = self._planned.prices(rest)
            now = self._planned.prices(fit.rules)
            totals = self._planned.by_effect(rest, self._effects(places))
            other = []
            for condition, effect in places:
                mask = self._planned.masks[condition]
                then = np.where(mask, totals[effect], bare)
                section = self._pool.table.effects[effect][0]
                if section != rule.section or not np.array_equal(then, now):
                    other.append((condition, effect))
            found.append(other)
        return found

    def choose(
        self, fit: QuoteFit, asked: PricedRows, count: int, *, late: bool
    ) -> list[dict[str, Any]]:
        """Return the next shipments to ask for; none: no answer is unsettled.

        Args:
            fit: Of bills and quotes.
            asked: Quotes so far, with totals.
            count: At most so many.
            late: Whether there may be departures that no bill shows.
        """
        value, tables = np.zeros(len(self._pool.rows), dtype=np.float32), []
        for place, places in enumerate(self.unsettled(fit)):
            if places:
                tables.append(self._separation(fit, place, places[:_SHOWN]))
        cover = self._coverage(fit, asked) if late else None
        chosen: list[int] = []
        weights = [np.ones(len(table), dtype=np.float32) for table in tables]
        while len(chosen) < count and (tables or cover is not None):
            value = np.zeros(len(self._pool.rows), dtype=np.float32)
            for table, weight in zip(tables, weights, strict=True):
                value += 2.0 * (weight @ table) / len(table)
            if cover is not None:
                value += cover.value()
            value[chosen] = 0.0
            best = int(value.argmax())
            if value[best] <= 0.0:
                break
            chosen.append(best)
            for table, weight in zip(tables, weights, strict=True):
                weight *= np.where(table[:, best] > 0, _FADE, 1.0)
            if cover is not None:
                cover.fade(best)
        return [dict(self._pool.rows[place]) for place in chosen]

    def _separation(
        self, fit: QuoteFit, place: int, places: list[FormPlace]
    ) -> NDArray[np.float32]:
        """Return which pool shipments tell each form from the departure in its place."""
        rest = without(fit.rules, place)
        bare, now = self._pool.prices(rest), self._pool.prices(fit.rules)
        totals = self._pool.by_effect(rest, self._effects(places))
        return np.array(
            [np.where(self._pool.masks[c], totals[e], bare) != now for c, e in places],
            dtype=np.float32,
        )

    def _effects(self, places: list[FormPlace]) -> NDArray[np.bool_]:
        return np.asarray(places_table(self._pool.table, places).any(axis=0))

    def _coverage(self, fit: QuoteFit, asked: PricedRows) -> "FormCover":
        """Return the cover of forms that would change a planned total and no quote so far."""
        free = self._pool.table.free(fit.rules)
        now = self._planned.prices(fit.rules)
        moves = (self._planned.by_effect(fit.rules) != now).astype(np.float32)
        matters = self._planned.masks.astype(np.float32) @ moves.T
        weights = np.where(free, np.minimum(matters, 4.0), 0.0) * self._prior
        if asked.rows:
            seen = (asked.by_effect(fit.rules) != asked.prices(fit.rules)).astype(np.float32)
            weights = weights * (asked.masks.astype(np.float32) @ seen.T == 0)
        changes = self._pool.by_effect(fit.rules) != self._pool.prices(fit.rules)
        return FormCover(weights, self._pool.masks, changes)


class FormCover:
    """Forms that no quote has met yet, and the shipments that meet them.

    Args:
        weights: (conditions, effects) of the forms.
        masks: (conditions, shipments) for which each condition holds.
        changes: (effects, shipments) that each effect changes.
    """

    def __init__(
        self, weights: NDArray[np.float32], masks: NDArray[np.bool_], changes: NDArray[np.bool_]
    ) -> None:
        self._weights = weights / max(float(weights.sum()), 1e-9)
        self._masks, self._changes = masks.astype(np.float32), changes

    def value(self) -> NDArray[np.float32]:
        """Return the weight of the forms that each shipment meets.

        Returns: (shipments,) sums of weights.
        """
        return np.asarray(((self._weights.T @ self._masks) * self._changes).sum(axis=0))

    def fade(self, shipment: int) -> None:
        """Lower the weights of the forms that a shipment meets."""
        met = np.outer(self._masks[:, shipment], self._changes[:, shipment])
        self._weights = self._weights * np.where(met > 0, _FADE, 1.0)
