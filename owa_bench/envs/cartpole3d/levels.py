"""The seventeen levels: a level, a variant and a magnitude name a world.

Level 0 is the base; levels 1 to 16 are one drift operator each, in the order of the
paper's table of novelties. An instance's family is "<spec>/<level>", its tier 1 to 3
stands for easy, medium, hard; drift step 0 is the world before the novelty.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from owa_bench.discovery import get
from owa_bench.errors import FieldError, InstanceError, one_of
from owa_bench.interfaces import DriftEvent, Operator, World
from owa_bench.records.instance import Instance
from owa_bench.seeding import stream
from owa_bench.worlds.physics import PRESETS, SPECS, PhysicsWorld, Spec, base

SUITE = "cartpole3d"
VERSION = 1
DOMAIN = "physics"
# The operator of each level; Table 1 of the AIQ paper, in its order.
OPERATORS = (
    "",
    "cart_mass",
    "balls_fixed",
    "balls_to_point",
    "ball_size",
    "balls_apart",
    "gravity",
    "pull_to_origin",
    "stopped_balls",
    "pole_length",
    "balls_on_rails",
    "balls_to_cart",
    "bounce",
    "balls_together",
    "wind",
    "pull_to_pole",
    "more_balls",
)
LEVELS = tuple(range(len(OPERATORS)))
TIERS = (1, 2, 3)
FAMILIES = tuple(f"{spec}/{level}" for spec in SPECS for level in LEVELS)
_TIER_MAGNITUDES = dict(zip(TIERS, PRESETS.values(), strict=True))


class Family(NamedTuple):
    """What a family's name says."""

    spec: Spec
    level: int


def family(name: str) -> Family:
    """Return the parts of a family's name. Errors: InstanceError if there is none."""
    if name not in FAMILIES:
        raise InstanceError("family", name, one_of(name, FAMILIES))
    spec, _, level = name.partition("/")
    return Family("released" if spec == "released" else "table1", int(level))


def magnitude_of(difficulty: str | float) -> float:
    """Return a magnitude from a preset's name or a number in [0, 1]."""
    if isinstance(difficulty, str):
        if difficulty not in PRESETS:
            raise FieldError("difficulty", difficulty, one_of(difficulty, PRESETS))
        return PRESETS[difficulty]
    if not 0 <= difficulty <= 1:
        raise FieldError("magnitude", difficulty, "must be in [0, 1]")
    return float(difficulty)


def tier_magnitude(tier: int) -> float:
    """Return the magnitude of a tier: 1/3, 2/3, 1."""
    if tier not in TIERS:
        raise InstanceError("tier", tier, one_of(tier, TIERS))
    return _TIER_MAGNITUDES[tier]


@lru_cache(maxsize=1024)
def level(spec: Spec, level: int, magnitude: float = 1.0) -> PhysicsWorld:
    """Return the world of a level at a magnitude; level 0 has none.

    Errors: FieldError if there is no such variant, level or magnitude.
    """
    world = base(spec)
    if level not in LEVELS:
        raise FieldError("level", level, "must be in 0 to 16")
    if level == 0:
        return world
    operator = _operator(level)
    (target,) = operator.targets(world)
    changed: PhysicsWorld = operator.apply(world, target, magnitude, rng=_unused())
    return changed


def _operator(level: int) -> Operator:
    found: Operator = get("operators", f"{DOMAIN}/{OPERATORS[level]}")
    return found


def _unused() -> np.random.Generator:
    """Return a generator for operators that draw nothing (a test holds them to it)."""
    return stream(0, "unused")


def generate(instance: Instance) -> PhysicsWorld:
    """Return the instance's world before its novelty: level 0 of its variant."""
    tier_magnitude(instance.tier)
    return base(family(instance.family).spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSchedule:
    """The schedule that turns family and tier into one operator at one magnitude.

    Drift step 0 is the world before the novelty, any other the novelty itself.
    `magnitude` replaces the tier's; `onset_ms` is the simulated time of the strike.
    """

    magnitude: float | None = None
    onset_ms: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers outside their range."""
        if self.magnitude is not None and not 0 <= self.magnitude <= 1:
            raise FieldError("magnitude", self.magnitude, "must be in [0, 1]")
        if self.onset_ms < 0:
            raise FieldError("onset_ms", self.onset_ms, "must be at least 0")

    def __call__(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the instance's one strike, or none before the novelty."""
        return self.possible(instance, world) if instance.drift_step else ()

    def possible(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the strike that the instance's family names; none for level 0."""
        number = family(instance.family).level
        if number == 0:
            return ()
        magnitude = self.magnitude
        if magnitude is None:
            magnitude = tier_magnitude(instance.tier)
        operator = f"{DOMAIN}/{OPERATORS[number]}"
        return tuple(
            DriftEvent(self.onset_ms, operator, target, magnitude)
            for target in _operator(number).targets(world)
        )

    def steps_for(self, instance: Instance, world: World, delta: float) -> int:
        """Return 1, the novelty, for a magnitude above 0, else 0."""
        if not 0 <= delta <= 1:
            raise FieldError("delta", delta, "must be in [0, 1]")
        return int(delta > 0)
