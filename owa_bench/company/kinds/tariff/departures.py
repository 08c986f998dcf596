"""Draws how the engine departs from the tariff, so that bills and quotes can show it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.company.kinds.contract import NoWorldError
from owa_bench.company.kinds.tariff.engine import PricedShipments
from owa_bench.company.language.tariff_departures import (
    RuleCondition,
    RuleEffect,
    conditions,
    departure,
    effects,
    is_form,
)
from owa_bench.company.language.tariff_rules import Departure, Tariff
from owa_bench.seeding import pick

_SHARE = (0.06, 0.34)  # of shipments that a departure may touch [D]
_LATE_SHARE = 0.13  # of those that no bill shows: a few quotes must meet it [D]
_ALONE, _LATE_ALONE = 0.02, 0.05  # of shipments that it touches and no other one does [D]
_ALWAYS_ODDS = 0.15
_TRIES = 60


class DepartureCounts(NamedTuple):
    """How many departures an engine has.

    Attributes:
        clauses: Clauses that it changes.
        new: Rules that no clause is about.
        late: Those of both that no bill has.
    """

    clauses: int
    new: int
    late: int


class DepartureSet(NamedTuple):
    """Departures of an engine over time.

    Attributes:
        now: For the planned pickups.
        earlier: Of the older bills.
        late: Those of `now` that no bill has.
    """

    now: tuple[Departure, ...]
    earlier: tuple[Departure, ...]
    late: tuple[Departure, ...]


class _Grammar:
    """Changes by clause (or by new rule), and conditions by field.

    Args:
        tariff: The published one.
    """

    def __init__(self, tariff: Tariff) -> None:
        self.clauses: dict[str, list[RuleEffect]] = {}
        self.new: dict[str, list[RuleEffect]] = {}
        for effect in effects(tariff):
            menu, name = (self.new, 1) if effect[0] == "new" else (self.clauses, 0)
            menu.setdefault(str(effect[name]), []).append(effect)
        self.fields: dict[str, list[RuleCondition]] = {}
        for condition in conditions(tariff):
            self.fields.setdefault(condition[0], []).append(condition)

    def draw(
        self,
        rng: np.random.Generator,
        pool: PricedShipments,
        menu: list[RuleEffect],
        others: Sequence[Departure],
        late: int,
    ) -> Departure | None:
        """Return a departure beside others, the first of which are late; None: none can be seen."""
        least = _LATE_SHARE if len(others) < late else _SHARE[0]
        knobs = sorted({effect[1] for effect in menu})
        fields = [field for field in self.fields if field]
        bare = pool.prices(others)
        for _ in range(_TRIES):
            knob = pick(knobs, rng)
            effect = pick([one for one in menu if one[1] == knob], rng)
            field = "" if rng.random() < _ALWAYS_ODDS else pick(fields, rng)
            condition = pick(self.fields[field], rng)
            rule = departure(effect, condition)
            if not is_form(pool.tariff, effect, condition) or pool.holds(rule).mean() < least:
                continue
            share = float((pool.prices((*others, rule)) != bare).mean())
            if least <= share <= _SHARE[1] and _seen_alone(pool, (*others, rule), late):
                return rule
        return None


def draw_departures(
    rng: np.random.Generator, pool: PricedShipments, counts: DepartureCounts, *, history: bool
) -> DepartureSet:
    """Return departures, each of which touches enough shipments of a pool and not too many.

    Args:
        rng: Draws them.
        pool: Shipments like the planned ones.
        counts: How many there are.
        history: Whether one departure began and another ended between the older bills and today.
    Raises: NoWorldError: The tariff has too few clauses with a departure that can be seen.
    """
    grammar = _Grammar(pool.tariff)
    clauses = _shuffled(sorted(grammar.clauses), rng)
    new = _shuffled(sorted(grammar.new), rng)
    order = [*clauses[: counts.clauses], *new[: counts.new]]
    order = [*_shuffled(order, rng), *clauses[counts.clauses :]]
    spare = new[counts.new :]
    menus = {**grammar.clauses, **grammar.new}
    count = counts.clauses + counts.new
    chosen: list[Departure] = []
    while order and len(chosen) < count + history:
        name = order.pop(0)
        rule = grammar.draw(rng, pool, menus[name], chosen[:count], counts.late)
        if rule is not None:
            chosen.append(rule)
        elif name in grammar.new:
            order[:0] = [spare.pop()] if spare else []
    if sum(rule.section == "new" for rule in chosen[:count]) != counts.new:
        raise NoWorldError("too few new rules can be seen")
    if len(chosen) < count + history:
        raise NoWorldError(f"{len(chosen)} departures can be seen, not {count + history}")
    now, gone = chosen[:count], chosen[count:]
    late = tuple(now[: counts.late])
    began = (pick(now[counts.late :], rng),) if history else ()
    stays = tuple(rule for rule in now if rule not in late and rule not in began)
    return DepartureSet(
        now=tuple(now[n] for n in rng.permutation(count).tolist()),
        earlier=(*stays, *gone),
        late=late,
    )


def _seen_alone(pool: PricedShipments, rules: Sequence[Departure], late: int) -> bool:
    """Return whether each departure is often enough the only one; the first ones are late."""
    shares = pool.moved_alone(rules).mean(axis=1)
    return all(
        share >= (_LATE_ALONE if place < late else _ALONE) for place, share in enumerate(shares)
    )


def _shuffled(names: Sequence[str], rng: np.random.Generator) -> list[str]:
    return [names[n] for n in rng.permutation(len(names)).tolist()]
