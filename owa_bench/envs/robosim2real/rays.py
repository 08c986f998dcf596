"""Pictures of the cell, as a camera beside the table sees it.

The shapes are those that the engine steps: the arm's capsules and boxes, table, blocks, fixtures
and things. A pedestal, a floor, the goals and a person are only drawn.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numba
import numpy as np

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.engine import TABLE, TABLE_HALF, Truth
from owa_bench.envs.robosim2real.guard import PERSON
from owa_bench.envs.robosim2real.ray_kernels import (
    BALL,
    BOX,
    CAPSULE,
    CYLINDER,
    FLOOR,
    NUMBERS,
    RING,
    SIZE,
    TURN,
    CellPixels,
    ShapeKinds,
    cross,
    draw,
    unit,
)
from owa_bench.envs.robosim2real.world import GoalPlace, Obstacle, RobotWorld, Slider, Thing, Vector
from owa_bench.records.observables import Floats

_ARM_ROWS = arm.JOINTS + 3  # links, hand, fingers
_HAND = 0.107  # m from the last hinge to the hand's frame
_FAR = 1e3  # m, beyond which nothing is drawn
_BALL, _RING = 0.024, 0.055  # m, radii of the marks at a goal
_WOOD, _BLOCK, _PANEL = (0.86, 0.74, 0.56), (0.52, 0.52, 0.54), (0.74, 0.60, 0.40)
_STEEL, _JOINT, _DARK = (0.95, 0.95, 0.97), (0.98, 0.62, 0.20), (0.22, 0.24, 0.28)
_FIRST, _OTHER = (0.90, 0.15, 0.13), (0.28, 0.44, 0.72)  # the task's thing, and others
_BODY, _HEAD = (0.42, 0.30, 0.60), (0.93, 0.75, 0.62)
_GOALS = ((0.05, 0.62, 0.25), (0.10, 0.50, 0.70))  # the first, and those after it


def _shape(place: Vector, size: Vector, colour: Vector) -> tuple[float, ...]:
    """Return a row of a shape that stands upright."""
    return (*place, 1, 0, 0, 0, 1, 0, 0, 0, 1, *size, *colour)


def _box_row(block: Obstacle, colour: Vector) -> tuple[float, ...]:
    """Return the row of a fixed box, which may be turned."""
    rows = np.array([_shape(block.place, block.size, colour)])
    _put_things(rows, np.array([block.place]), np.array([block.turn]))
    return tuple(rows[0].tolist())


def _link_rows() -> Floats:
    """Return the arm's shapes in the frames of their hinges and of the hand."""
    rows = []
    for number, link in enumerate(arm.LINKS):
        (a, b, c), (d, e, f) = link.start, link.end
        axis = unit((d - a, e - b, f - c))
        half = math.dist(link.start, link.end) / 2
        side = unit(cross(axis, (1.0, 0.0, 0.0) if abs(axis[0]) < 0.9 else (0.0, 1.0, 0.0)))
        turn = np.array([side, cross(axis, side), axis]).T
        middle = ((a + d) / 2, (b + e) / 2, (c + f) / 2)
        colour = _JOINT if number % 2 else _STEEL
        size = (link.radius, link.radius, half)
        rows.append([*middle, *turn.ravel(), *size, *colour])
    rows.append([*_shape((0.0, 0.0, 0.03), (0.03, 0.1, 0.03), _STEEL)])
    for side_of in (1.0, -1.0):
        rows.append([*_shape((0.0, side_of * 0.008, 0.0934), (0.01, 0.0075, 0.02), _DARK)])
    return np.array(rows)


_LINKS = _link_rows()


@numba.njit(cache=True)
def _put(row, model, place, turn):  # pragma: no cover
    """Fill a row with a shape of a frame."""
    for r in range(3):
        row[r] = place[r] + turn[r, 0] * model[0] + turn[r, 1] * model[1] + turn[r, 2] * model[2]
        for c in range(3):
            row[TURN + 3 * r + c] = (
                turn[r, 0] * model[TURN + c]
                + turn[r, 1] * model[TURN + 3 + c]
                + turn[r, 2] * model[TURN + 6 + c]
            )
    for c in range(SIZE, NUMBERS):
        row[c] = model[c]


@numba.njit(cache=True)
def _put_arm(rows, joints, tool, rotation, width):  # pragma: no cover
    """Fill the rows of the arm: links by the drawing, the hand where it is."""
    turn, place = np.eye(3), np.zeros(3)
    for number in range(arm.JOINTS):
        arm.next_hinge(number, joints[number], place, turn)
        _put(rows[number], _LINKS[number], place, turn)
    for r in range(3):
        place[r] = tool[r] - rotation[r, 2] * (arm.TOOL - _HAND)
    _put(rows[arm.JOINTS], _LINKS[arm.JOINTS], place, rotation)
    for finger in range(2):
        side = 0.5 - finger
        for r in range(3):
            place[r] += rotation[r, 1] * side * width
        _put(rows[arm.JOINTS + 1 + finger], _LINKS[arm.JOINTS + 1 + finger], place, rotation)
        for r in range(3):
            place[r] -= rotation[r, 1] * side * width


@numba.njit(cache=True)
def _put_things(rows, places, turns):  # pragma: no cover
    """Fill place and rotation of the things; `turns` are quaternions w, x, y, z."""
    for i in range(len(places)):
        w, x, y, z = turns[i, 0], turns[i, 1], turns[i, 2], turns[i, 3]
        row = rows[i]
        for r in range(3):
            row[r] = places[i, r]
        row[3], row[4], row[5] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
        row[6], row[7], row[8] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
        row[9], row[10], row[11] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


class PictureShapes(NamedTuple):
    """Shapes of a world: those of the arm come first and are filled in a picture, as are objects.

    The last rows are panels: `slides` says with which slider each one moves.
    """

    kinds: ShapeKinds
    rows: Floats
    mark_kinds: ShapeKinds
    marks: Floats
    slides: tuple[int, ...]


def _below(place: Vector, blocks: tuple[Obstacle, ...]) -> float:
    """Return the height of the table, or of a block, below a place."""
    tops = [
        block.place[2] + block.size[2]
        for block in blocks
        if block.turn[0] == 1.0
        and all(abs(place[k] - block.place[k]) < block.size[k] for k in (0, 1))
    ]
    return max(tops, default=0.0)


@lru_cache(maxsize=64)
def _shapes(
    objects: tuple[Slider | Thing, ...], blocks: tuple[Obstacle, ...], goals: tuple[GoalPlace, ...]
) -> PictureShapes:
    """Return the shapes of a world; places of the arm, the objects and panels are open."""
    kinds = [CAPSULE] * arm.JOINTS + [BOX] * 3
    rows = [(0.0,) * NUMBERS] * _ARM_ROWS
    for number, thing in enumerate(objects):
        kinds.append(BOX if thing.shape == "box" else CYLINDER)
        rows.append(_shape(thing.place, thing.size, _OTHER if number else _FIRST))
    kinds += [BOX, CYLINDER] + [BOX] * len(blocks)
    rows.append(_shape((*TABLE, -TABLE_HALF[2]), TABLE_HALF, _WOOD))
    rows.append(_shape((0.0, 0.0, (FLOOR + 0.16) / 2), (0.09, 0.09, (0.16 - FLOOR) / 2), _DARK))
    rows += [_box_row(block, _BLOCK) for block in blocks]
    slides: list[int] = []
    for number, thing in enumerate(objects):
        for panel in thing.panels if isinstance(thing, Slider) else ():
            kinds.append(BOX)
            rows.append(_box_row(panel, _PANEL))
            slides.append(number)
    marks = []
    for number, goal in enumerate(goals):
        colour, (x, y, z) = _GOALS[min(1, number)], goal.place
        ring = _shape((x, y, _below(goal.place, blocks)), (_RING, _RING, 0.0), colour)
        marks.append((RING, ring))
        if not objects:
            ball = _shape((x, y, z), (_BALL, _BALL, 0.0), colour)
            marks.append((BALL, ball))
    mark_kinds, mark_rows = zip(*marks, strict=True)
    return PictureShapes(
        np.array(kinds), np.array(rows), np.array(mark_kinds), np.array(mark_rows), tuple(slides)
    )


def shapes_of(world: RobotWorld, truth: Truth) -> PictureShapes:
    """Return the shapes of a world in a state; goals are marks.

    Args:
        world: Objects, blocks and goals.
        truth: The state.
    """
    found = _shapes((*world.sliders, *world.things), world.blocks, world.goals)
    rows = found.rows.copy()  # the cached ones stay as they are
    _put_arm(rows, truth.joints, truth.tool, truth.rotation, truth.width)
    _put_things(rows[_ARM_ROWS:], truth.things, truth.turns)
    for row, number in zip(rows[len(rows) - len(found.slides) :], found.slides, strict=True):
        row[:3] += truth.things[number] - np.array(world.sliders[number].place)
    return found._replace(rows=rows)


def _person_rows(person: tuple[float, float]) -> Floats:
    """Return a body and a head."""
    top = 1.0
    body = _shape((*person, (FLOOR + top) / 2), (PERSON, PERSON, (top - FLOOR) / 2), _BODY)
    head = _shape((*person, top + 0.13), (0.11, 0.11, 0.0), _HEAD)
    return np.array([body, head])


def picture(
    world: RobotWorld,
    truth: Truth,
    *,
    size: tuple[int, int] = (64, 64),
    person: tuple[float, float] | None = None,
) -> CellPixels:
    """Return the cell as a camera beside the table sees it.

    The links are drawn by nominal kinematics of the true joints; hand and things are where they
    are. A goal is a ring on what is below it; where the tool is to be there, a translucent ball
    is over the ring.

    Args:
        world: Objects, blocks and goals.
        truth: The state.
        size: Height and width, pixels.
        person: Where somebody stands, m; None: nobody does.
    Returns: (height, width, 3) uint8.
    """
    kinds, rows, mark_kinds, marks, _ = shapes_of(world, truth)
    if person is not None:
        kinds = np.append(kinds, [CYLINDER, CAPSULE])
        rows = np.concatenate([rows, _person_rows(person)])
    pixels = np.zeros((*size, 3), np.uint8)
    near = (np.abs(rows) < _FAR).all(axis=1)
    if not near.all():  # an engine that lost its state has no numbers, or any
        kinds, rows = kinds[near], rows[near]
    draw(kinds, rows, mark_kinds, marks, pixels)
    return pixels
