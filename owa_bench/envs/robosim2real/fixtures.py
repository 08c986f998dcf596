"""Tasks with a fixture: a drawer that is opened by its handle, a peg that goes into a socket."""

import math
from typing import NamedTuple

import numpy as np

from owa_bench.envs.robosim2real.world import BoxTurn, GoalPlace, Obstacle, Slider, Thing, Vector

_DECIMALS = 4
OPENED = 0.12  # m, the least that a drawer is to be open
TRAVEL = 0.158  # m, where the drawer meets its stop
_OPEN_BY = 0.02  # m, the tolerance of a handle's goal
_MIDDLE = OPENED + _OPEN_BY
_HIGH = 0.09  # m, of the case
_WIDE, _DEEP, _WALL = 0.055, 0.1, 0.01  # m, half lengths of the case's inside, and of a wall
_HANDLE = (0.012, 0.012, 0.026)
_BAR, _RAIL = 0.004, 0.003  # m, half of the bar behind a handle, and of those at its sides
_FINGERS = (0.01, 0.0155)  # m, half of the shut fingers along x and y
SLACK, ASIDE = 0.01, 0.012  # m free around the shut fingers within a handle's bars
_LATCH = (0.012, 0.045, 0.02)  # across the way of the drawer it is long
_COVERS = 0.016  # m that a latch reaches beyond the middle of the handle's way
_UNLATCHED, _LATCH_TRAVEL = 0.055, 0.07  # m
_DRAGS = (4.0, 22.0, 8.0)  # N, of the drawer by tier
_LATCH_DRAG = 5.0
_PEG = (0.015, 0.015, 0.045)
CLEARANCES = (0.004, 0.002, 0.001)  # m between peg and hole, by tier
RIM = 0.03  # m, the height of the hole's walls
INSERTED = 0.015  # m, the least depth of the peg below the rim
_THICK = 0.012  # m, half of a socket's wall
_BACK, _UNDER = 0.001, 0.0005  # m that a wall is behind the funnel's lower edge, and below it
_SLIPPERY, _PEG_GRIP = 0.3, 0.4  # friction
_FUNNEL = (0.003, 0.006, 0.002)  # m: how much wider it gets, over which height, half of a plate
# What a scripted reference that knows the unit needs: s for all but the way, m/s on the way.
_PULLS, _UNLATCHES, _INSERTS, _PACE = 8.4, 4.8, 13.0, 0.2


class TaskParts(NamedTuple):
    """What is drawn of a task; `seconds` are those of a scripted reference that knows the unit."""

    goals: tuple[GoalPlace, ...]
    things: tuple[Thing, ...]
    blocks: tuple[Obstacle, ...]
    seconds: float
    sliders: tuple[Slider, ...] = ()


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number of a range, rounded as a world's numbers are.

    Args:
        rng: The instance's stream.
        low: The least.
        high: The most.
    """
    return round(low + (high - low) * float(rng.random()), _DECIMALS)


def _short_vector(vector: Vector) -> Vector:
    x, y, z = (round(value, 6) for value in vector)
    return (x, y, z)


class _Frame(NamedTuple):
    """A case's frame: where the front is, the way a drawer opens, and the way to its side."""

    front: tuple[float, float]
    ahead: tuple[int, int]
    aside: tuple[int, int]

    def place(self, ahead: float, aside: float, z: float) -> Vector:
        """Return a place in the frame, as a place on the table."""
        x, y = (self.front[k] + ahead * self.ahead[k] + aside * self.aside[k] for k in range(2))
        return (round(x, _DECIMALS), round(y, _DECIMALS), round(z, _DECIMALS))

    def size(self, ahead: float, aside: float, z: float) -> Vector:
        """Return half lengths of a box in the frame, as those of a box on the table."""
        return (ahead, aside, z) if self.ahead[0] else (aside, ahead, z)

    def box(self, place: Vector, size: Vector) -> Obstacle:
        """Return a box of the frame."""
        return Obstacle(place=self.place(*place), size=self.size(*size))


def _frame(rng: np.random.Generator) -> _Frame:
    """Return where a case stands: it opens towards the arm, or to one of its sides."""
    way = int(rng.integers(3))
    sign = 1 if rng.random() < 0.5 else -1
    if way == 0:
        return _Frame((between(rng, 0.54, 0.6), between(rng, -0.16, 0.16)), (-1, 0), (0, sign))
    ahead = 1 if way == 1 else -1
    front = (between(rng, 0.46, 0.58), -ahead * between(rng, 0.05, 0.12))
    return _Frame(front, (0, ahead), (sign, 0))


def drawer(tier: int, rng: np.random.Generator) -> TaskParts:
    """Open a drawer that is loose; one that is stiff; one behind a latch.

    Args:
        tier: 1 to 3.
        rng: The instance's stream.
    Returns: The parts of the task.
    """
    frame = _frame(rng)
    half = _HIGH / 2
    walls = [
        frame.box((-_DEEP + 0.025, side * (_WIDE + _WALL), half), (_DEEP + 0.025, _WALL, half))
        for side in (-1.0, 1.0)
    ]
    back = frame.box((-2 * _DEEP + _WALL, 0.0, half), (_WALL, _WIDE, half))
    above = round(_HIGH + 0.002, _DECIMALS)
    at = frame.place(-0.012, 0.0, above + _HANDLE[2])
    slot = 2.0 * (_FINGERS[0 if frame.ahead[0] else 1] + SLACK)
    wide = _FINGERS[1 if frame.ahead[0] else 0] + ASIDE + _RAIL
    rails = (
        frame.box((-0.024 - slot / 2, side * wide, at[2]), (slot / 2, _RAIL, _HANDLE[2]))
        for side in (-1.0, 1.0)
    )
    panels = (
        frame.box((-0.024 - slot - _BAR, 0.0, at[2]), (_BAR, wide + _RAIL, _HANDLE[2])),
        *rails,
        frame.box((-0.012, 0.0, half + 0.002), (0.012, _WIDE - 0.003, 0.041)),
        frame.box((-_DEEP + 0.01, 0.0, 0.02), (_DEEP - 0.03, _WIDE - 0.006, 0.015)),
    )
    axis = (float(frame.ahead[0]), float(frame.ahead[1]), 0.0)
    handle = Slider(
        shape="cylinder",
        size=_HANDLE,
        place=at,
        axis=axis,
        travel=TRAVEL,
        drag=_DRAGS[tier - 1],
        panels=panels,
    )
    opened = frame.place(-0.012 + _MIDDLE, 0.0, above + _HANDLE[2])
    goals = [GoalPlace(place=opened, tolerance=_OPEN_BY)]
    sliders = [handle]
    if tier == 3:
        ahead = -0.012 + _HANDLE[0] + _LATCH[0] + 0.004
        aside = _LATCH[1] - _COVERS
        latch = Slider(
            shape="box",
            size=frame.size(*_LATCH),
            place=frame.place(ahead, aside, above + _LATCH[2]),
            axis=(float(frame.aside[0]), float(frame.aside[1]), 0.0),
            travel=_LATCH_TRAVEL,
            drag=_LATCH_DRAG,
            mass=0.2,
        )
        sliders.append(latch)
        free = frame.place(ahead, aside + _UNLATCHED, above + _LATCH[2])
        goals.insert(0, GoalPlace(place=free, tolerance=_OPEN_BY))
    seconds = _PULLS + _UNLATCHES * (len(goals) - 1)
    return TaskParts(tuple(goals), (), (*walls, back), seconds, tuple(sliders))


def socket(x: float, y: float, clearance: float) -> tuple[Obstacle, ...]:
    """Return four walls around a square hole, and the funnel that leads into it.

    Args:
        x: Of the hole's middle, m.
        y: The same.
        clearance: How much wider the hole is than the peg, m.
    """
    wide = _PEG[0] + clearance / 2
    spread, high, thick = _FUNNEL
    slant = math.hypot(spread, high)
    half = math.atan2(spread, high) / 2
    # Across the wall, and up: the middle of a plate whose inner face begins at the hole's edge.
    out, up = wide + spread / 2 + thick * high / slant, RIM + high / 2 - thick * spread / slant
    low = (RIM - _UNDER) / 2
    found: list[Obstacle] = []
    for axis in range(2):
        for side in (1.0, -1.0):
            gaps = (side * (wide + _BACK + _THICK), side * out)
            # The two walls across x are longer, so that the corners are closed.
            long = wide + _BACK + 2 * _THICK * (axis == 0)
            sizes = ((_THICK, long, low), (thick, wide + spread, slant / 2))
            sine = math.sin(half) * side
            turn: BoxTurn = (math.cos(half), 0.0, sine, 0.0)
            if axis:
                turn = (math.cos(half), -sine, 0.0, 0.0)
            turns: tuple[BoxTurn, BoxTurn] = ((1.0, 0.0, 0.0, 0.0), turn)
            for gap, (across, along, z), tilt, height in zip(
                gaps, sizes, turns, (low, up), strict=True
            ):
                place = (x, y + gap, height) if axis else (x + gap, y, height)
                size = (along, across, z) if axis else (across, along, z)
                found.append(
                    Obstacle(
                        place=_short_vector(place),
                        size=_short_vector(size),
                        turn=tilt,
                        grip=_SLIPPERY,
                    )
                )
    return tuple(found)


def insert(tier: int, rng: np.random.Generator) -> TaskParts:
    """Take a peg and put it into a hole that is 4, 2 or 1 mm wider than the peg.

    Args:
        tier: 1 to 3.
        rng: The instance's stream.
    Returns: The parts of the task.
    """
    start = (between(rng, 0.42, 0.6), between(rng, -0.2, 0.2))
    while True:
        hole = (between(rng, 0.42, 0.6), between(rng, -0.2, 0.2))
        if math.dist(start, hole) >= 0.16:
            break
    peg = Thing(shape="box", size=_PEG, grip=_PEG_GRIP, place=(*start, _PEG[2]))
    # The middle of a peg that is deep enough is at most this much above that of one at the bottom.
    goal = GoalPlace(place=(*hole, _PEG[2]), tolerance=round(RIM - INSERTED, _DECIMALS))
    blocks = socket(*hole, CLEARANCES[tier - 1])
    return TaskParts(
        (goal,), (peg,), blocks, _INSERTS + 0.5 * tier + math.dist(start, hole) / _PACE
    )
