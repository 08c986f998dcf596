"""Plan of a validation: which handicapped agents play which battery."""

import hashlib
from collections import defaultdict
from collections.abc import Collection

import msgspec

from owa_bench import discovery
from owa_bench.errors import FieldError, one_of
from owa_bench.records.validation import ValidationArm, ValidationDesign, crossed_arms, knob_arms
from owa_bench.runs.plan.draws import Draw, families, load_battery

BATTERY = "validate"
PRICES = "price_card_validate"  # calls dear enough for scripts to be below the ceiling
_FAMILIES = "families_off"  # the knob whose dose is a share of the families


def validation_draws(
    battery: str, suites: Collection[str] = (), episodes: int = 1
) -> tuple[Draw, ...]:
    """Return the draws of a validation.

    Args:
        battery: Name or TOML file.
        suites: Those of the battery that are played; empty: all.
        episodes: Factor on the battery's instances per family and tier.
    Raises: FieldError: The battery has no such suite, or the factor is below 1.
    """
    if episodes < 1:
        raise FieldError("--episodes", episodes, "must be at least 1")
    draws = load_battery(battery).suite
    known = {draw.name for draw in draws}
    for name in suites:
        if name not in known:
            raise FieldError("--suite", name, one_of(name, known))
    return tuple(
        msgspec.structs.replace(draw, episodes=draw.episodes * episodes)
        for draw in draws
        if not suites or draw.name in suites
    )


def validation_arms(
    design: ValidationDesign, knobs: Collection[str] = (), *, ends: bool = False, whole: bool = True
) -> tuple[ValidationArm, ...]:
    """Return the arms that a validation plays, each once.

    Args:
        design: The sign file.
        knobs: Names of the knobs that are played; empty: all.
        ends: Whether only the first and the last dose of a knob are played.
        whole: Whether the crossed design and the unhandicapped agents play too.
    Raises: FieldError: There is no such knob.
    """
    known = {knob.name for knob in design.knobs}
    for name in knobs:
        if name not in known:
            raise FieldError("--knob", name, one_of(name, known))
    arms: list[ValidationArm] = []
    for knob in design.knobs:
        if not knobs or knob.name in knobs:
            own = knob_arms(knob)
            arms += (own[0], own[-1]) if ends else own
    if whole:
        arms += [arm for row in crossed_arms(design.crossed) for arm in row]
        arms += [ValidationArm(name, name, ()) for name in design.agents.names]
    return tuple(dict.fromkeys(arms))


def agent_spec(arm: ValidationArm, draws: Collection[Draw]) -> str:
    """Return the spec by which an arm's agent is loaded.

    Args:
        arm: The arm.
        draws: What is drawn; a share of families is turned into their names.
    Returns: The text of `--agent`.
    """
    if not arm.turned:
        return arm.agent
    options = [f"name={arm.name}"]
    for knob, dose in arm.turned:
        value = ",".join(_switched_off(float(dose), draws)) if knob == _FAMILIES else dose
        options.append(f"{knob}={value}")
    return f"{arm.agent}:{','.join(options)}"


def _switched_off(share: float, draws: Collection[Draw]) -> list[str]:
    """Return a share of each suite's families, the same first whatever the share."""
    families_of: defaultdict[str, set[str]] = defaultdict(set)
    for draw in draws:
        card = discovery.get("suites", draw.name).card
        families_of[draw.name].update(families(draw, card))
    off: list[str] = []
    for names in families_of.values():
        order = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
        off += order[: round(share * len(order))]
    return sorted(off)
