"""What is drawn from one suite: families, tiers, magnitudes, budgets, how many."""

import itertools
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from owa_bench import calendars, discovery
from owa_bench.errors import FieldError, one_of
from owa_bench.interfaces import Suite, SuiteCard
from owa_bench.records.plan import MOST

# The published magnitudes; `suites.md` section 0.
MAGNITUDES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
Budgeted = int | Literal["unlimited"]
OPEN = "open"
_MUTED = ":muted"


class Draw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[suite]]` of a battery, or the flags of `run --suite`.

    `families` and `tiers` empty: all of them. `episodes` are instances per family and
    tier, each played `repeats` times at every delta, intervention budget and crew. A
    suite may stand in several draws; equal episodes are played once. A crew is "open"
    (as many roles as the agent likes), a ceiling on its roles such as "4", or that
    ceiling with no messages between roles, "4:muted". `calendar` is the draw's own
    drift calendar, such as "nested:Label", which gives dose-response curves and enters
    no axis; empty: the run's.
    """

    name: str
    families: tuple[str, ...] = ()
    tiers: tuple[int, ...] = ()
    deltas: tuple[float, ...] = MAGNITUDES
    episodes: int = 1
    repeats: int = 1
    interventions: tuple[Budgeted, ...] = ("unlimited",)
    crews: tuple[str, ...] = (OPEN,)
    weight: float = 1.0
    calendar: str = ""


class DrawCell(NamedTuple):
    """One episode's place in a draw, before arms are put to it."""

    pair: str
    suite: str
    version: int
    family: str
    tier: int
    repeat: int
    delta: float
    interventions: int | None
    role_cap: int | None = None
    muted: bool = False
    calendar: str = ""


def check(draw: Draw, error: type[FieldError], place: str = "suite") -> Suite:
    """Return the suite of a draw; `error` names the first field that breaks a rule."""
    known = discovery.find("suites")
    if draw.name not in known:
        raise error(f"{place}.name", draw.name, one_of(draw.name, known))
    suite: Suite = known[draw.name].plugin
    card = suite.card
    for family in draw.families:
        if family not in card.families:
            raise error(f"{place}.families", family, one_of(family, card.families))
    for tier in draw.tiers:
        if tier not in card.tiers:
            raise error(f"{place}.tiers", tier, one_of(tier, card.tiers))
    _check_numbers(draw, error, place)
    _check_calendar(draw, card, error, place)
    return suite


def families(draw: Draw, card: SuiteCard) -> tuple[str, ...]:
    """Return the families a draw means."""
    return draw.families or card.families


def tiers(draw: Draw, card: SuiteCard) -> tuple[int, ...]:
    """Return the tiers a draw means."""
    return draw.tiers or card.tiers


def pair_id(card: SuiteCard, family: str, tier: int, number: int) -> str:
    """Return the name of a pair, which with the master gives its seed."""
    return f"{card.name}@{card.version}/{family}/T{tier}/{number:04d}"


def cells(draw: Draw, card: SuiteCard) -> Iterator[DrawCell]:
    """Yield the episodes of a draw; those of one pair stand together."""
    for number in range(draw.episodes):
        for tier in tiers(draw, card):
            for family in families(draw, card):
                yield from _of_pair(draw, card, family, tier, number)


def _of_pair(
    draw: Draw, card: SuiteCard, family: str, tier: int, number: int
) -> Iterator[DrawCell]:
    for repeat in range(draw.repeats):
        for delta in draw.deltas:
            for budget, crew in itertools.product(draw.interventions, draw.crews):
                yield DrawCell(
                    pair=pair_id(card, family, tier, number),
                    suite=card.name,
                    version=card.version,
                    family=family,
                    tier=tier,
                    repeat=repeat,
                    delta=float(delta),
                    interventions=None if budget == "unlimited" else budget,
                    role_cap=_ceiling(crew),
                    muted=crew.endswith(_MUTED),
                    # Without drift all calendars are one, and it is played once.
                    calendar=draw.calendar if delta else "",
                )


def _ceiling(crew: str) -> int | None:
    """Return how many roles a crew may hold apart, None for any number."""
    return None if crew == OPEN else int(crew.removesuffix(_MUTED))


def _check_numbers(draw: Draw, error: type[FieldError], place: str) -> None:
    for delta in draw.deltas:
        if not 0.0 <= delta <= 1.0:
            raise error(f"{place}.deltas", delta, "must lie in [0, 1]")
    for name in ("episodes", "repeats"):
        if getattr(draw, name) < 1:
            raise error(f"{place}.{name}", getattr(draw, name), "must be at least 1")
    _check_terms(draw, error, place)
    for name in ("deltas", "interventions", "crews"):
        values: tuple[Any, ...] = getattr(draw, name)
        if not values or len(set(values)) < len(values):
            raise error(
                f"{place}.{name}", values, "must list at least one value, each once"
            )
    if not draw.weight > 0:
        raise error(f"{place}.weight", draw.weight, "must be above 0")


def _check_calendar(
    draw: Draw, card: SuiteCard, error: type[FieldError], place: str
) -> None:
    try:
        calendars.parse(draw.calendar or "nested", card.domain)
    except FieldError as wrong:
        raise error(f"{place}.calendar", draw.calendar, wrong.rule) from wrong


def _check_terms(draw: Draw, error: type[FieldError], place: str) -> None:
    for budget in draw.interventions:
        if budget != "unlimited" and budget < 0:
            raise error(
                f"{place}.interventions", budget, 'must be a count >= 0 or "unlimited"'
            )
        if budget != "unlimited" and budget > MOST:
            raise error(f"{place}.interventions", budget, f"must be at most {MOST}")
    for crew in draw.crews:
        size = crew.removesuffix(_MUTED)
        if crew != OPEN and not (size.isdecimal() and int(size) >= 1):
            raise error(
                f"{place}.crews",
                crew,
                'must be "open", a count of roles >= 1, or such a count and ":muted"',
            )
        if crew != OPEN and int(size) > MOST:
            raise error(f"{place}.crews", crew, f"must be at most {MOST}")
