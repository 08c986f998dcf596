"""Draws and batteries: families, tiers, magnitudes and budgets of the suites."""

import itertools
import math
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.drift import calendar as calendars
from owa_bench.errors import BatteryError, FieldError, UnknownNameError, one_of
from owa_bench.interfaces import Suite, SuiteCard
from owa_bench.records.event_base import Side
from owa_bench.records.plan import MOST, PlanEntry
from owa_bench.records.protocol import Protocol
from owa_bench.records.toml import decode, in_file
from owa_bench.runs.plan.campaign_terms import CampaignTerms
from owa_bench.seeding import derive
from owa_bench.shells.standard_tools import ENDING_TOOLS

# Published magnitudes. Source: docs/suites.md#drift.
MAGNITUDES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
Budgeted = int | Literal["protocol", "unlimited"]
OPEN = "open"
_MUTED = ":muted"
_BATTERIES = "owa_bench.batteries"


class Draw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[suite]]` of a battery, or the flags of `run --suite`.

    `families` and `tiers` empty: all public ones; honeypots and held-out families are drawn where
    they are named. `episodes` are instances per family and tier, each played `repeats` times at
    every delta, intervention budget and crew. The budget "protocol" is the protocol's share of an
    instance's horizon: axis A reads it, every other axis budget 0. A suite may stand in several
    draws; equal episodes are played once. A crew is "open" (as many seats as the suite has), a
    ceiling on them such as "4", or that ceiling with no messages between seats, "4:muted":
    `mark_controls` draws which of them every axis reads. `tools_off` are taken from the tools on
    offer, whatever the instance. `calendar` is the draw's own drift calendar, such as
    "nested:Label", which gives dose-response curves and enters no axis; empty: the run's. In a
    battery with a campaign a draw is played at every day's checkpoint, or, with `once`, one time
    outside the days. The last three are of embodied suites alone: an instance is played on each of
    `sides`, on a device `repeats` times on one of `units` of the fleet, in simulation under
    `simulated` draws of its law, of which the first is its published numbers.
    """

    name: str
    families: tuple[str, ...] = ()
    tiers: tuple[int, ...] = ()
    deltas: tuple[float, ...] = MAGNITUDES
    episodes: int = 1
    repeats: int = 1
    interventions: tuple[Budgeted, ...] = (0,)
    crews: tuple[str, ...] = (OPEN,)
    tools_off: tuple[str, ...] = ()
    weight: float = 1.0
    calendar: str = ""
    once: bool = False
    sides: tuple[Side, ...] = ("sim", "surrogate")
    simulated: int = 3
    units: int = 24


class Pool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[placement]` of a battery: what its draws are a pool for.

    A draw's `episodes` are the most worlds of a family.

    Attributes:
        level: The highest level that it can decide.
        kappa_family: "suite/family" on which an improvement is tested, named before anything is
            played.
    """

    level: int
    kappa_family: str


class StageDraws(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[stage]]` of a battery with a `[placement]`: what is played whole after the pool.

    Attributes:
        name: Of the stage.
        gates: Gates of AAI-2 that are judged from it: axes by their letters, and "kappa",
            "maintenance", "cognitive".
        suite: Its draws; of a campaign those of each day's checkpoint.
        spread: Whether each world is played at one magnitude without help, as in the pool, and not
            at every one.
        references: Whether the protocol's references of its suites play it too (axis S).
        campaign: The terms of a campaign.
    """

    name: str
    gates: tuple[str, ...]
    suite: tuple[Draw, ...]
    spread: bool = False
    references: bool = False
    campaign: CampaignTerms | None = None


class Battery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A battery file: the protocol it is judged by and what is drawn from each suite.

    `gives_level` false marks one whose report tells no level. `underpowered` marks one that is too
    small to place an agent: the least number of instances a family is waived, and its level line
    says so. With `campaign` its draws are the checkpoint of every day of a campaign,
    with `placement` a pool; then `stage` is what comes after it.
    """

    name: str
    about: str = ""
    protocol: str = "default"
    gives_level: bool = True
    underpowered: bool = False
    suite: tuple[Draw, ...]
    campaign: CampaignTerms | None = None
    placement: Pool | None = None
    stage: tuple[StageDraws, ...] = ()


def usual_magnitudes(suite: str) -> tuple[float, ...]:
    """Return the magnitudes drawn by default: a native suite has its novelty or not."""
    return (1.0,) if _is_native(suite) else MAGNITUDES


def usual_budgets(suite: str) -> tuple[Budgeted, ...]:
    """Return the budgets drawn by default: axis A has no meaning in a native suite."""
    return (0,) if _is_native(suite) else (0, "protocol")


def _is_native(suite: str) -> bool:
    known = discovery.find("suites")
    return suite in known and bool(known[suite].plugin.card.native)


# --- draws ----------------------------------------------------------------------------


def check(draw: Draw, error: type[FieldError], place: str = "suite") -> Suite:
    """Return the suite of a draw whose fields obey their rules.

    Args:
        draw: The draw.
        error: The class to raise.
        place: Where the draw stands, for the message.
    Raises: FieldError: Of class `error`, naming the first field that breaks a rule.
    """
    suites = discovery.find("suites")
    if draw.name not in suites:
        raise error(f"{place}.name", draw.name, one_of(draw.name, suites))
    suite: Suite = suites[draw.name].plugin
    card = suite.card
    for field, allowed in (("families", card.drawable), ("tiers", card.tiers)):
        for value in getattr(draw, field):
            if value not in allowed:
                raise error(f"{place}.{field}", value, one_of(value, allowed))
    _check_numbers(draw, error, place)
    _check_drift(draw, suite, error, place)
    return suite


def families(draw: Draw, card: SuiteCard) -> tuple[str, ...]:
    """Return the families of a draw.

    Args: draw: no families are all. card: its suite's.
    Returns: Names of families.
    """
    return draw.families or card.families


def tiers(draw: Draw, card: SuiteCard) -> tuple[int, ...]:
    """Return the tiers of a draw.

    Args: draw: no tiers are all. card: its suite's.
    Returns: Numbers of tiers.
    """
    return draw.tiers or card.tiers


def pair_id(card: SuiteCard, family: str, tier: int, number: int) -> str:
    """Return the name of a pair, which with the master secret gives its seed.

    Args:
        card: The card of the suite.
        family: Its family.
        tier: Its tier.
        number: Which instance of family and tier, from 0.
    Returns: The name, such as "toolquest@2/restock/T1/0003".
    """
    return f"{card.name}@{card.version}/{family}/T{tier}/{number:04d}"


def entries(draw: Draw, card: SuiteCard) -> Iterator[PlanEntry]:
    """Yield the episodes of a draw, those of one pair together.

    Args:
        draw: The draw.
        card: The card of its suite.
    Yields: Plan entries without arm and index.
    """
    if card.embodied:
        yield from _body_entries(draw, card)
        return
    for number in range(draw.episodes):
        for tier, family in itertools.product(tiers(draw, card), families(draw, card)):
            yield from _pair_entries(draw, card, family, tier, number)


def _pair_entries(
    draw: Draw, card: SuiteCard, family: str, tier: int, number: int
) -> Iterator[PlanEntry]:
    whole = _pair_entry(card, family, tier, number)
    for repeat in range(draw.repeats):
        for delta, budget, crew in itertools.product(draw.deltas, draw.interventions, draw.crews):
            yield replace(
                whole,
                repeat=repeat,
                delta=float(delta),
                interventions=None if budget == "unlimited" else budget,
                role_cap=None if crew == OPEN else int(crew.removesuffix(_MUTED)),
                muted=crew.endswith(_MUTED),
                tools_off=draw.tools_off,
                # Without drift all calendars are one, and it is played once.
                calendar=draw.calendar if delta else "",
            )


def _pair_entry(card: SuiteCard, family: str, tier: int, number: int) -> PlanEntry:
    """Return an entry of a pair, its terms left open."""
    return PlanEntry(
        index=0,
        arm="",
        pair=pair_id(card, family, tier, number),
        suite=card.name,
        version=card.version,
        family=family,
        tier=tier,
    )


def _body_entries(draw: Draw, card: SuiteCard) -> Iterator[PlanEntry]:
    """Yield the episodes of an embodied suite's draw: a pair on both sides, on one unit."""
    cells = list(itertools.product(card.tiers, card.drawable))
    for number in range(draw.episodes):
        for tier, family in itertools.product(tiers(draw, card), families(draw, card)):
            whole = _pair_entry(card, family, tier, number)
            unit = (number + cells.index((tier, family))) % draw.units
            for delta, side in itertools.product(draw.deltas, draw.sides):
                for repeat in range(draw.simulated if side == "sim" else draw.repeats):
                    yield replace(
                        whole,
                        repeat=repeat,
                        delta=float(delta),
                        interventions=0,
                        calendar=draw.calendar if delta else "",
                        side=side,
                        unit=unit,
                    )


def body_lane(entry: PlanEntry, arm: str) -> str | None:
    """Return the memory lane of an entry of an arm: of an embodied suite that of the body.

    What an agent learns of a body stays with that body, as with a robot that it works at.

    Args:
        entry: An entry of a draw.
        arm: The arm that plays it.
    """
    if isinstance(entry.unit, msgspec.UnsetType):
        return entry.lane
    body = f"-{entry.repeat}" if entry.side == "sim" else ""
    return f"{arm}/{entry.side}-{entry.unit:02d}{body}"


def mark_controls(drawn: Iterable[PlanEntry]) -> list[PlanEntry]:
    """Return entries, controls marked: of one task, repeat and terms one is a base row.

    Where a task is played under the ceiling 1 and higher ones, its base row has 1 in one half of
    the repeats and the highest in the other; its pair draws which half. Else the base row is the
    one with the highest ceiling. No agent is told: one that gives up where it finds itself alone
    loses half of its base rows.

    Args:
        drawn: Entries without arm, in order.
    Returns: The entries in the same order.
    Source: docs/scoring.md#axes, axis S.
    """
    entries = list(drawn)
    played: dict[PlanEntry, set[float]] = {}
    for entry in entries:
        if not entry.muted:
            played.setdefault(_any_crew(entry), set()).add(_ceiling(entry))
    return [
        replace(entry, control=_is_control(entry, played.get(_any_crew(entry), set())))
        for entry in entries
    ]


def _is_control(entry: PlanEntry, played: set[float]) -> bool:
    alone = (derive(0, "crew", entry.pair) + entry.repeat) % 2 == 0
    base = 1 if alone and 1 in played else max(played, default=0)
    return entry.muted or _ceiling(entry) != base


def _any_crew(entry: PlanEntry) -> PlanEntry:
    return replace(entry, role_cap=None, muted=False)


def _ceiling(entry: PlanEntry) -> float:
    return math.inf if entry.role_cap is None else entry.role_cap


def _check_drift(draw: Draw, suite: Suite, error: type[FieldError], place: str) -> None:
    """Refuse a calendar that does not parse, and magnitudes without any operator."""
    card = suite.card
    try:
        parsed = calendars.parse(draw.calendar or "nested", card.domain)
    except FieldError as wrong:
        raise error(f"{place}.calendar", draw.calendar, wrong.rule) from wrong
    if card.embodied and parsed.onset_ms:
        rule = f"must change nothing within an episode: a body of `{card.name}` cannot"
        raise error(f"{place}.calendar", draw.calendar, rule)
    if not any(draw.deltas) or suite.schedule is not None:
        return
    if card.domain not in (known := discovery.domains()):
        rule = (
            f"must be 0 alone: no operator is of domain {card.domain!r}, as the card "
            f"of `{card.name}` has it, and its `domain` {one_of(card.domain, known)}"
        )
        raise error(f"{place}.deltas", draw.deltas, rule)


def _check_numbers(draw: Draw, error: type[FieldError], place: str) -> None:
    for delta in draw.deltas:
        if not 0.0 <= delta <= 1.0:
            raise error(f"{place}.deltas", delta, "must lie in [0, 1]")
    for name in ("episodes", "repeats", "simulated", "units"):
        if getattr(draw, name) < 1:
            raise error(f"{place}.{name}", getattr(draw, name), "must be at least 1")
    _check_budgets(draw, error, place)
    _check_crews(draw, error, place)
    for name in ("deltas", "interventions", "crews", "sides"):
        values: tuple[Any, ...] = getattr(draw, name)
        if not values or len(set(values)) < len(values):
            raise error(f"{place}.{name}", values, "must list at least one value, each once")
    for name in draw.tools_off:
        if name in ENDING_TOOLS:
            raise error(f"{place}.tools_off", name, "must leave a way to end")
    if not draw.weight > 0:
        raise error(f"{place}.weight", draw.weight, "must be above 0")


def _check_budgets(draw: Draw, error: type[FieldError], place: str) -> None:
    for budget in draw.interventions:
        if isinstance(budget, str):
            continue
        if budget < 0:
            rule = 'must be a count >= 0, "protocol" or "unlimited"'
            raise error(f"{place}.interventions", budget, rule)
        if budget > MOST:
            raise error(f"{place}.interventions", budget, f"must be at most {MOST}")


def _check_crews(draw: Draw, error: type[FieldError], place: str) -> None:
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


# --- batteries ------------------------------------------------------------------------


def battery_names() -> tuple[str, ...]:
    """Return the names of the batteries in the package."""
    files = (entry.name for entry in resources.files(_BATTERIES).iterdir())
    return tuple(sorted(f.removesuffix(".toml") for f in files if f.endswith(".toml")))


def load_battery(name: str) -> Battery:
    """Return the battery of a name or of a .toml file, checked.

    Raises:
        UnknownNameError: The package holds no such battery.
        BatteryError: Naming field, value and rule.
    """
    data = _battery_bytes(name)
    with in_file(name):
        return parse_battery(data)


def file_digest(name: str | None) -> str:
    """Return the SHA-256 of the file of a battery, "" without one."""
    return "" if name is None else sha256(_battery_bytes(name))


def _battery_bytes(name: str) -> bytes:
    """Return the file of a battery of a name, or of a .toml file."""
    if name in battery_names():
        return (resources.files(_BATTERIES) / f"{name}.toml").read_bytes()
    if not name.endswith(".toml"):
        raise UnknownNameError("battery", name, battery_names())
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BatteryError(
            "battery", name, f"must be a file that can be read ({error.strerror})"
        ) from error


def parse_battery(data: bytes) -> Battery:
    """Return the battery in `data`, checked against the suites it draws from."""
    battery = decode(data, Battery, BatteryError)
    if not battery.suite:
        raise BatteryError("suite", (), "must draw from at least one suite")
    for number, draw in enumerate(battery.suite):
        check(draw, BatteryError, f"suite.{number}")
    for stage in battery.stage:
        for number, draw in enumerate(stage.suite):
            check(draw, BatteryError, f"stage.{stage.name}.suite.{number}")
    if battery.stage and battery.placement is None:
        rule = "needs a [placement] to come after"
        raise BatteryError("stage", battery.stage[0].name, rule)
    once = [draw.name for draw in battery.suite if draw.once]
    if once and battery.campaign is None:
        raise BatteryError("suite.once", True, "needs a [campaign] to stand beside")
    if len(once) == len(battery.suite):
        rule = "must leave a draw to the days of the [campaign]"
        raise BatteryError("suite.once", tuple(once), rule)
    return battery


def check_admissible(battery: Battery, protocol: Protocol) -> None:
    """Refuse a battery that claims to give levels and cannot.

    Source: docs/scoring.md#admissibility, (b) and (c).
    Args:
        battery: The battery.
        protocol: The protocol it is judged by.
    Raises: BatteryError: A family has fewer instances than the protocol's m_min, the magnitudes
        that T integrates over are not all drawn, or not every task is drawn without help and under
        the protocol's budget.
    """
    if not battery.gives_level or battery.placement is not None:
        return
    instances: dict[str, set[str]] = {}
    magnitudes: dict[str, set[float]] = {}
    tasks: dict[str, dict[Any, set[PlanEntry]]] = {}
    for draw in battery.suite:
        for entry in entries(draw, check(draw, BatteryError).card):
            card = discovery.get("suites", entry.suite).card
            robbed = entry.family in card.honeypots
            if entry.calendar or entry.delta is None or robbed or card.embodied:
                continue  # enters no axis that reads drift
            family = f"{entry.suite}/{entry.family}"
            instances.setdefault(family, set()).add(entry.pair)
            magnitudes.setdefault(family, set()).add(entry.delta)
            plain = msgspec.structs.replace(entry, interventions=None)
            tasks.setdefault(family, {}).setdefault(entry.interventions, set()).add(plain)
    least = 1 if battery.underpowered else protocol.admissibility.family_min
    for family, pairs in instances.items():
        if len(pairs) < least:
            raise BatteryError(
                "suite.episodes", len(pairs), f"must draw at least {least} instances of {family}"
            )
        if not set(protocol.drift.magnitudes) <= magnitudes[family]:
            raise BatteryError(
                "suite.deltas",
                tuple(sorted(magnitudes[family])),
                f"must hold every magnitude of the protocol for {family}",
            )
        budgets = tasks[family]
        if budgets.get(0) is None or budgets[0] != budgets.get("protocol"):
            raise BatteryError(
                "suite.interventions",
                tuple(budgets),
                f'must draw 0 and "protocol" on the same tasks of {family}',
            )
