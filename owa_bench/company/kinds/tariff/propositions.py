"""Statements on a world of the kind `tariff`; the coin of each is tossed last."""

from collections.abc import Mapping

import numpy as np

from owa_bench.company.kinds.contract import CaseProposition, CaseWorld
from owa_bench.company.kinds.tariff.engine import PricedShipments, correction_of
from owa_bench.company.kinds.tariff.matter import TariffMatter
from owa_bench.company.language.tariff_form import tariff_of
from owa_bench.seeding import pick, stream

KINDS = ("total_over", "clause_followed", "total_touched")
_TOTALS, _TOUCHED = 4, 2
_GAP = 8  # cents; a smaller difference from the published price is no base for a threshold


def tariff_propositions(world: CaseWorld) -> tuple[CaseProposition, ...]:
    """Return statements on totals, clauses and shipments.

    Args:
        world: The one that is played; its events are taken as happened.
    """
    rng = stream(world.text_seed, "propositions")
    matter: TariffMatter = world.matter
    tariff = tariff_of(world.policy)
    rows = world.tables["planned"]
    priced = PricedShipments(tariff, rows, matter.fuel, correction_of(matter))
    true, published = priced.prices(matter.departures), priced.prices(())
    ids = [row.id for row in rows]
    gap = np.abs(true - published)
    moved = np.flatnonzero(gap > _GAP)
    order = rng.permutation(moved).tolist()
    found = [_total(ids[n], int(true[n]), int(published[n]), rng) for n in order[:_TOTALS]]
    found += _clauses(world, rng)
    rest = {True: order[_TOTALS:] or order, False: np.flatnonzero(gap == 0).tolist()}
    for number in range(_TOUCHED):
        found.append(_touched(number, ids, rest, rng))
    return tuple(found)


def _euros(cents: int) -> str:
    return f"EUR {cents // 100:,}.{cents % 100:02d}"


def _total(key: str, true: int, published: int, rng: np.random.Generator) -> CaseProposition:
    """Return a statement with a threshold between true and published price, or beyond both."""
    between, above = rng.random() < 0.5, rng.random() < 0.5
    low, high = sorted((true, published))
    half = (high - low) // 2
    threshold = low + half if between else (high + half if above else max(0, low - half - 1))
    says = rng.random() < 0.5  # the statement is "more than"
    truth = (true > threshold) == says
    # The coin of the truth comes last: the wording follows it.
    coin = rng.random() < 0.5
    if truth != coin:
        says, truth = not says, coin
    words = "more than" if says else "at most"
    return CaseProposition(
        name=f"total-{key}",
        kind=KINDS[0],
        text=f"The carrier will bill {words} {_euros(threshold)} for {key}.",
        truth=truth,
        careless=(published > threshold) == says,
    )


def _clauses(world: CaseWorld, rng: np.random.Generator) -> list[CaseProposition]:
    matter: TariffMatter = world.matter
    sections = world.policy.sections
    departed = sorted({rule.section for rule in matter.departures} - {"new"})
    menu = {True: [s for s in sections if s not in departed], False: departed}
    found = []
    for number in range(2):
        follows = rng.random() < 0.5
        names = menu[follows]
        section = names[int(rng.integers(len(names)))]
        menu[follows] = [name for name in names if name != section] or names
        coin = rng.random() < 0.5
        says_follows = follows == coin
        words = "follows" if says_follows else "departs from"
        clause = sections.index(section) + 1
        found.append(
            CaseProposition(
                name=f"clause-{clause}-{number}",
                kind=KINDS[1],
                text=f"For pickups of next week the rating engine {words} section {clause} of "
                f"{world.policy.title}.",
                truth=coin,
                careless=says_follows,
            )
        )
    return found


def _touched(
    number: int, ids: list[str], places: Mapping[bool, list[int]], rng: np.random.Generator
) -> CaseProposition:
    touched = rng.random() < 0.5
    key = ids[pick(places[touched] or places[not touched], rng)]
    touched = bool(places[touched]) == touched
    coin = rng.random() < 0.5
    says = touched == coin
    words = "another total than" if says else "the total of"
    return CaseProposition(
        name=f"touched-{key}-{number}",
        kind=KINDS[2],
        text=f"The bill for {key} will have {words} the published tariff (by the final fuel "
        "percentage).",
        truth=coin,
        careless=not says,
    )
