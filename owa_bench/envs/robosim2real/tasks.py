"""Families of tasks: how an instance is drawn, and when it is done.

Success is strict and by the state alone: what is to be somewhere is there, at rest, for the goal's
`hold`, before the time is over.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np

from owa_bench.envs.robosim2real import arm, fixtures
from owa_bench.envs.robosim2real.engine import Truth
from owa_bench.envs.robosim2real.fixtures import TaskParts, between
from owa_bench.envs.robosim2real.guard import GuardLimits
from owa_bench.envs.robosim2real.world import (
    FAMILIES,
    TIERS,
    GoalPlace,
    Obstacle,
    RobotWorld,
    Thing,
    ThingShape,
    Vector,
)
from owa_bench.errors import FieldError, one_of
from owa_bench.records.observables import Floats

HALF = 0.025  # m, of a cube
_STILL_TOOL, _STILL_THING = 0.02, 0.01  # m/s
_TILT = math.cos(math.radians(15.0))
_MOVED = 0.01  # m that a thing may move which is not the task's
_CLEAR = 0.03  # m between the tool and a thing that was let go
_FORCED = GuardLimits().forces[0]  # N, above which a drawer does not count as opened
_DECIMALS = 4
# What a scripted reference that knows the unit needs, with a margin: m/s, s an errand, s a grasp.
PACE, ERRAND, _GRASP = 0.2, 1.6, 1.2
REACHED = ((0.42, 0.6), (-0.22, 0.22), (0.08, 0.35))  # m, x, y, z of a pose
HOME_PLACE = (0.415, 0.0, 0.395)  # m, of the tool at the start
_BESIDE = (0.175, 0.25)  # m from the middle to a pose beside a box: the hand has room there
LIMIT_SHARE = 1.35  # of the reference's time: who is slow throughout comes too late


def _spot(
    rng: np.random.Generator, z: float, away: tuple[Vector, ...] = (), gap: float = 0.0
) -> Vector:
    """Return a place over the table at a height, some way from others."""
    while True:
        place = (between(rng, 0.4, 0.62), between(rng, -0.2, 0.2), z)
        if all(math.dist(place[:2], other[:2]) >= gap for other in away):
            return place


def _reach(tier: int, rng: np.random.Generator) -> TaskParts:
    """Bring the tool to one pose; to two in order; to two with a box between them."""
    places: list[Vector] = []
    for number in range(1 if tier == 1 else 2):
        side = (-1.0, 1.0)[number] if tier == 3 else 0.0
        y = side * between(rng, *_BESIDE) if side else between(rng, *REACHED[1])
        z = between(rng, 0.08, 0.14) if tier == 3 else between(rng, *REACHED[2])
        places.append((between(rng, *REACHED[0]), y, z))
    blocks = (
        (Obstacle(place=(0.5, between(rng, -0.03, 0.03), 0.11), size=(0.12, 0.02, 0.11)),)
        if tier == 3
        else ()
    )
    way = sum(math.dist(a, b) for a, b in itertools.pairwise([HOME_PLACE, *places]))
    way += 0.3 * len(blocks)
    goals = tuple(GoalPlace(place=place, tolerance=0.01) for place in places)
    return TaskParts(goals, (), blocks, way / PACE + ERRAND * len(goals))


def _push(tier: int, rng: np.random.Generator) -> TaskParts:
    """Push a cube near; far; past another one that must stay where it is."""
    start = _spot(rng, HALF)
    low, high = (0.06, 0.12) if tier == 1 else (0.14, 0.24)
    while True:
        goal = _spot(rng, HALF)
        if low <= math.dist(start, goal) <= high:
            break
    things = [Thing(place=start)]
    if tier == 3:
        middle = [(a + b) / 2 for a, b in zip(start, goal, strict=True)]
        across = (start[1] - goal[1], goal[0] - start[0])
        length = math.hypot(*across)
        side = 1 if rng.random() < 0.5 else -1
        other = [
            round(m + side * 0.085 * a / length, _DECIMALS)
            for m, a in zip(middle[:2], across, strict=True)
        ]
        things.append(Thing(place=(other[0], other[1], HALF)))
    way = 0.45 + 1.5 * math.dist(start, goal)
    goals = (GoalPlace(place=goal, tolerance=0.02),)
    return TaskParts(goals, tuple(things), (), way / PACE + 2 * ERRAND)


def _pick_place(tier: int, rng: np.random.Generator) -> TaskParts:
    """Carry a cube; a cylinder or a heavy one; one among others, onto a step."""
    heavy = tier == 2 and rng.random() < 0.5
    shape: ThingShape = "cylinder" if tier == 2 and not heavy else "box"
    start = _spot(rng, HALF)
    step = 0.06 if tier == 3 else 0.0
    goal = _spot(rng, round(HALF + step, _DECIMALS), (start,), 0.16 if tier == 3 else 0.1)
    thing = Thing(shape=shape, mass=0.4 if heavy else 0.1, place=start)
    others: list[Thing] = []
    away = [start, goal]
    blocks: tuple[Obstacle, ...] = ()
    if tier == 3:
        blocks = (Obstacle(place=(goal[0], goal[1], step / 2), size=(0.05, 0.05, step / 2)),)
        for _ in range(4):
            place = _spot(rng, HALF, tuple(away), 0.1)
            away.append(place)
            others.append(Thing(place=place))
    way = 0.55 + math.dist(start, goal) + 0.2
    goals = (GoalPlace(place=goal, tolerance=0.02),)
    return TaskParts(goals, (thing, *others), blocks, way / PACE + 2 * _GRASP + 1.5 * ERRAND)


DRAWS: dict[str, Callable[[int, np.random.Generator], TaskParts]] = {
    "reach": _reach,
    "push": _push,
    "pick_place": _pick_place,
    "drawer": fixtures.drawer,
    "insert": fixtures.insert,
}


def draw(family: str, tier: int, rng: np.random.Generator) -> RobotWorld:
    """Return the world of an instance, before drift.

    Args:
        family: One of FAMILIES.
        tier: One of TIERS.
        rng: The instance's stream.
    Raises: FieldError: there is no such family or tier.
    """
    if family not in FAMILIES:
        raise FieldError("family", family, one_of(family, FAMILIES))
    if tier not in TIERS:
        raise FieldError("tier", tier, one_of(tier, TIERS))
    parts = DRAWS[family](tier, rng)
    start = [round(float(h) + between(rng, -0.03, 0.03), _DECIMALS) for h in arm.HOME]
    return RobotWorld(
        family=family,
        tier=tier,
        limit=round(LIMIT_SHARE * parts.seconds, 1),
        start=tuple(start),
        goals=parts.goals,
        things=parts.things,
        blocks=parts.blocks,
        sliders=parts.sliders,
    )


class Judge:
    """Follows one episode: which goal is next, and for how long it is held."""

    def __init__(self, world: RobotWorld, truth: Truth) -> None:
        self._world = world
        self._tool = truth.tool
        self._first = truth.things
        # Objects that the task does not move, all but what slides and the first thing.
        self._others = slice(max(1, len(world.sliders)), None)
        self._distance = max(self._gap(truth, 0), 1e-6)
        self.gap = self.nearest = self._distance
        self.done = 0
        self._held = 0
        self._forced = False

    @property
    def success(self) -> bool:
        """Whether every goal was held."""
        return self.done == len(self._world.goals)

    @property
    def goal(self) -> GoalPlace:
        """The goal that is next; the last one when all are done."""
        return self._world.goals[min(self.done, len(self._world.goals) - 1)]

    @property
    def quality(self) -> float:
        """The share of goals that were held, and half of the way to the next."""
        if self.success:
            return 1.0
        way = max(0.0, 1.0 - self.nearest / self._distance)
        return (self.done + 0.5 * way) / len(self._world.goals)

    def tick(self, truth: Truth) -> None:
        """Read the state at the end of a tick."""
        if self.success:
            return
        self._forced |= self._world.family == "drawer" and truth.table_force > _FORCED
        self.gap = gap = self._gap(truth, self.done)
        self.nearest = min(self.nearest, gap)
        self._held = self._held + 1 if self._is_there(truth, gap) else 0
        self._tool = truth.tool
        if self._held >= self.goal.hold * arm.HERTZ:
            self.done, self._held = self.done + 1, 0
            if not self.success:
                self._distance = self.nearest = max(self._gap(truth, self.done), 1e-6)

    def _gap(self, truth: Truth, goal: int) -> float:
        place = np.array(self._world.goals[goal].place)
        moved: Floats = (
            truth.tool if self._world.family == "reach" else truth.things[self._object(goal)]
        )
        return arm.length(moved - place)

    def _object(self, goal: int) -> int:
        """Return which object a goal is for: the last goal is the first one's."""
        return len(self._world.goals) - 1 - goal

    def _is_there(self, truth: Truth, gap: float) -> bool:
        if gap > self.goal.tolerance or self._forced:
            return False
        if self._world.family == "reach":
            speed = arm.length(truth.tool - self._tool) * arm.HERTZ
            return speed < _STILL_TOOL
        number = self._object(self.done)
        _, x, y, _ = truth.turns[number]
        upright = 1.0 - 2.0 * (x * x + y * y)
        still = arm.length(truth.velocities[number]) < _STILL_THING
        others = np.linalg.norm(truth.things[self._others] - self._first[self._others], axis=1)
        kept = not len(others) or float(others.max()) < _MOVED
        free = (
            self._world.family == "push" or arm.length(truth.tool - truth.things[number]) > _CLEAR
        )
        return still and upright > _TILT and kept and free


def reference_seconds(world: RobotWorld) -> float:
    """Return what the reference needs for a world: the most exposure is counted by it."""
    return world.limit / LIMIT_SHARE
