"""Levels 0 to 16: a level, a variant and a magnitude name a world.

Level 0 is the base; levels 1 to 16 are one drift operator each, in the order of the paper's table
of novelties. An instance's family is "<spec>/<level>", its tier 1 to 3 stands for easy, medium,
hard, tiers 4 and 5 for magnitudes half way between them, which no shipped recipe trains on; drift
step 0 is the world before the novelty.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from owa_bench.discovery import get
from owa_bench.envs.cartpole3d.world import PRESETS, SPECS, PhysicsWorld, Spec, base
from owa_bench.errors import FieldError, InstanceError, UsageError, one_of
from owa_bench.interfaces import DriftEvent, Operator, World
from owa_bench.records.instance import Instance
from owa_bench.seeding import stream

SUITE = "cartpole3d"
VERSION = 2
DOMAIN = "physics"
# The operator of each level; Table 1 of the AIQ paper, in its order.
# fmt: off
OPERATORS = (
    "", "cart_mass", "balls_fixed", "balls_to_point", "ball_size", "balls_apart",
    "gravity", "pull_to_origin", "stopped_balls", "pole_length", "balls_on_rails",
    "balls_to_cart", "bounce", "balls_together", "wind", "pull_to_pole", "more_balls",
)
# fmt: on
LEVELS = tuple(range(len(OPERATORS)))
TIERS = (1, 2, 3, 4, 5)
FAMILIES = tuple(f"{spec}/{level}" for spec in SPECS for level in LEVELS)
# Entity, attribute and change of each level's novelty, for agents that are told.
_NOVELTIES = tuple(
    tuple(line.split(", "))
    for line in """none, none, none
cart, mass, increase
block, freedom, none of its own
block, direction, to one point
block, size, increase
block, force, away from each other
world, gravity, increase
block, force, to the origin
block, number, increase of resting ones
pole, length, increase
block, freedom, along an axis
block, direction, to the cart
block, bounce, increase
block, force, to each other
world, wind, increase
block, force, to the pole
block, number, increase of moving ones""".splitlines()
)
HINTS = {
    name: (f"level {level}", *_NOVELTIES[level])
    for name in FAMILIES
    for level in (int(name.partition("/")[2]),)
}
_TIER_MAGNITUDES = dict(zip(TIERS, (*PRESETS.values(), 1 / 2, 5 / 6), strict=True))


class LevelFamily(NamedTuple):
    """Variant and level of a family of instances."""

    spec: Spec
    level: int


def parse_family(name: str) -> LevelFamily:
    """Return the parts of a family's name.

    Raises: InstanceError: there is no such family.
    """
    if name not in FAMILIES:
        raise InstanceError("family", name, one_of(name, FAMILIES))
    spec, _, level = name.partition("/")
    return LevelFamily("released" if spec == "released" else "table1", int(level))


def magnitude_of(difficulty: str | float) -> float:
    """Return a magnitude from a preset's name or a number in [0, 1].

    Raises: FieldError: there is no such preset, or the number is outside [0, 1].
    """
    if isinstance(difficulty, str):
        if difficulty not in PRESETS:
            raise FieldError("difficulty", difficulty, one_of(difficulty, PRESETS))
        return PRESETS[difficulty]
    if not 0 <= difficulty <= 1:
        raise FieldError("magnitude", difficulty, "must be in [0, 1]")
    return float(difficulty)


def tier_magnitude(tier: int) -> float:
    """Return the magnitude of a tier: 1/3, 2/3, 1; held out, 1/2 and 5/6.

    Raises: InstanceError: there is no such tier.
    """
    if tier not in TIERS:
        raise InstanceError("tier", tier, one_of(tier, TIERS))
    return _TIER_MAGNITUDES[tier]


def level_list(text: int | str) -> tuple[int, ...]:
    """Return the levels of a number, or of a text: "all", or numbers with commas.

    Raises: FieldError: it names no levels.
    """
    if text == "all":
        return LEVELS
    parts = str(text).split(",")
    if not all(part.strip().isdecimal() and int(part) in LEVELS for part in parts):
        raise FieldError("level", text, "must be 0 to 16, `all`, or such as 0,7,11")
    return tuple(int(part) for part in parts)


@lru_cache(maxsize=1024)
def level(spec: Spec, level: int, magnitude: float = 1.0) -> PhysicsWorld:
    """Return the world of a level.

    Args:
        spec: the variant, "table1" or "released".
        level: 0 to 16; level 0 has no magnitude.
        magnitude: in [0, 1].
    Returns: The world after the level's operator.
    Raises: FieldError: there is no such variant, level or magnitude.
    """
    world = base(spec)
    if level not in LEVELS:
        raise FieldError("level", level, "must be in 0 to 16")
    if level == 0:
        return world
    operator = _operator(level)
    (target,) = operator.targets(world)
    unused = stream(0, "unused")  # a test checks that these operators draw nothing
    changed: PhysicsWorld = operator.apply(world, target, magnitude, rng=unused)
    return changed


def _operator(level: int) -> Operator:
    operator: Operator = get("operators", f"{DOMAIN}/{OPERATORS[level]}")
    return operator


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSequence:
    """Levels that are played when a reset names no instance.

    `levels` are (episodes, level) in order, the last one for ever; `magnitude` is that of every
    level above 0.
    """

    spec: Spec = "table1"
    levels: tuple[tuple[int, int], ...] = ((1, 0),)
    magnitude: float = 1.0

    def __post_init__(self) -> None:
        """Refuse values that name no world."""
        if self.spec not in SPECS:
            raise FieldError("spec", self.spec, one_of(self.spec, SPECS))
        magnitude_of(self.magnitude)
        if not self.levels:
            raise FieldError("levels", self.levels, "must name at least one level")
        for episodes, number in self.levels:
            if episodes < 1:
                raise FieldError("levels", episodes, "must count 1 episode or more")
            if number not in LEVELS:
                raise FieldError("level", number, "must be in 0 to 16")

    def world(self, episode: int) -> PhysicsWorld:
        """Return the world of an episode, the first being 0."""
        return level(self.spec, self.level_of(episode), self.magnitude)

    def level_of(self, episode: int) -> int:
        """Return the level of an episode, the first being 0."""
        for episodes, number in self.levels:
            episode -= episodes
            if episode < 0:
                return number
        return self.levels[-1][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSchedule:
    """The schedule that turns family and tier into one operator at one magnitude.

    Drift step 0 is the world before the novelty, any other the novelty itself. `magnitude` replaces
    the tier's; `onset_ms` is the simulated time of the drift.
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
        """Return the instance's one event, or none before the novelty."""
        return self.possible(instance, world) if instance.drift_step else ()

    def possible(self, instance: Instance, world: World) -> tuple[DriftEvent, ...]:
        """Return the event of the instance's family.

        Args:
            instance: its family and tier are read.
            world: the instance's base world.
        Returns: One event; none for level 0.
        """
        number = parse_family(instance.family).level
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
        """Return the drift step of a nominal magnitude.

        Args:
            instance: plays no part.
            world: plays no part.
            delta: nominal magnitude in [0, 1].
        Returns: 1, the novelty, for a magnitude above 0, else 0.
        Raises: FieldError: the magnitude is outside [0, 1].
        """
        if not 0 <= delta <= 1:
            raise FieldError("delta", delta, "must be in [0, 1]")
        return int(delta > 0)


def one_magnitude(difficulty: str | None, magnitude: float | None) -> float:
    """Return the magnitude that either of the two names; hard if neither does.

    Args:
        difficulty: A preset's name.
        magnitude: In [0, 1].
    Raises: UsageError: Both are given.
    """
    if difficulty is not None and magnitude is not None:
        raise UsageError(f"Give `difficulty` or `magnitude`, got {difficulty} and {magnitude}.")
    given = difficulty if magnitude is None else magnitude
    return magnitude_of("hard" if given is None else given)
