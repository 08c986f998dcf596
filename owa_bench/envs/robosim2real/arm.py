"""The arm as a table, and its nominal kinematics, compiled.

Seven hinges, a hand and two fingers, of primitives: `engine` makes a model of the table. Lengths
are metres, angles radians, masses kilograms, z points up and the base stands at the origin.
Joint offsets and limits are those that the maker of the Panda arm publishes; the shapes are ours.

The kernels use additions, products, sine, cosine and square root in a fixed order, no library for
linear algebra: equal inputs give equal bytes in every process.
"""

import math
from typing import NamedTuple

import numpy as np

from owa_bench.errors import extra, needs
from owa_bench.records.observables import Floats

with needs("numba", extra("robot")):
    import numba

JOINTS = 7
TOOL = 0.212  # from the last hinge to between the finger tips
OPEN = 0.08  # between the fingers, at most
HERTZ = 20  # commands a second
SPEED = 0.25  # m/s of the tool at full command
TURN = 1.0  # rad/s of the tool about the vertical


class Capsule(NamedTuple):
    """A link's shape in its own frame."""

    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    mass: float


OFFSETS = np.array(
    [
        [0.0, 0.0, 0.333],
        [0.0, 0.0, 0.0],
        [0.0, -0.316, 0.0],
        [0.0825, 0.0, 0.0],
        [-0.0825, 0.384, 0.0],
        [0.0, 0.0, 0.0],
        [0.088, 0.0, 0.0],
    ]
)
# Quarter turns about x from one hinge's frame to the next.
QUARTERS = np.array([0.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
LOW = np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973])
HIGH = np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973])
FASTEST = np.array([2.175] * 4 + [2.61] * 3)
TORQUE = np.array([87.0] * 4 + [12.0] * 3)
HOME = np.array([0.0, -0.45, 0.0, -2.35, 0.0, 1.9, 0.785])
LINKS = (
    Capsule((0.0, 0.0, -0.16), (0.0, 0.0, -0.02), 0.060, 3.0),
    Capsule((0.0, -0.12, 0.0), (0.0, 0.0, 0.0), 0.060, 2.9),
    Capsule((0.0, 0.0, -0.14), (0.04, 0.0, -0.03), 0.055, 2.9),
    Capsule((-0.05, 0.05, 0.0), (-0.04, 0.10, 0.0), 0.055, 2.4),
    Capsule((0.0, 0.0, -0.24), (0.0, 0.05, -0.05), 0.050, 2.5),
    Capsule((0.0, 0.0, -0.02), (0.06, 0.0, 0.0), 0.050, 1.5),
    Capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.06), 0.045, 0.7),
)
_TURNS = 3  # steps of the inverse a tick
_DAMPING = 0.05
_POSTURE = 0.05  # share of the way home a step, where it moves no tool
_STEP = 0.2  # rad a step


@numba.njit(cache=True)
def next_hinge(number: int, angle: float, place: Floats, turn: Floats) -> None:  # pragma: no cover
    """Move a frame from a hinge to the next one, compiled.

    Args:
        number: Of the next hinge.
        angle: Of it, rad.
        place: (3,) m, changed.
        turn: (3, 3), changed.
    """
    for r in range(3):
        place[r] += (
            turn[r, 0] * OFFSETS[number, 0]
            + turn[r, 1] * OFFSETS[number, 1]
            + turn[r, 2] * OFFSETS[number, 2]
        )
    sign = QUARTERS[number]
    if sign != 0.0:
        for r in range(3):
            second, third = turn[r, 1], turn[r, 2]
            turn[r, 1], turn[r, 2] = sign * third, -sign * second
    cosine, sine = math.cos(angle), math.sin(angle)
    for r in range(3):
        first, second = turn[r, 0], turn[r, 1]
        turn[r, 0] = first * cosine + second * sine
        turn[r, 1] = second * cosine - first * sine


@numba.njit(cache=True)
def _forward(q: Floats, axes: Floats, places: Floats) -> tuple[Floats, Floats]:  # pragma: no cover
    """Return the tool's position and rotation; fill the hinges' axes and places."""
    turn = np.eye(3)
    place = np.zeros(3)
    for i in range(JOINTS):
        next_hinge(i, q[i], place, turn)
        for r in range(3):
            axes[i, r], places[i, r] = turn[r, 2], place[r]
    for r in range(3):
        place[r] += turn[r, 2] * TOOL
    return place, turn


@numba.njit(cache=True)
def _solve(matrix: Floats, right: Floats) -> Floats:  # pragma: no cover
    """Return the solution of a symmetric positive system, by Cholesky."""
    size = len(right)
    low = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= low[i, k] * low[j, k]
            low[i, j] = math.sqrt(total) if i == j else total / low[j, j]
    found = right.copy()
    for i in range(size):
        for k in range(i):
            found[i] -= low[i, k] * found[k]
        found[i] /= low[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            found[i] -= low[k, i] * found[k]
        found[i] /= low[i, i]
    return found


@numba.njit(cache=True)
def _error(  # pragma: no cover
    place: Floats, turn: Floats, target: Floats, cosine: float, sine: float
) -> Floats:
    """Return what is missing to a pose that points down: a way and a turn."""
    error = np.zeros(6)
    for r in range(3):
        error[r] = target[r] - place[r]
    # The columns of the wanted rotation.
    wanted = ((cosine, sine, 0.0), (sine, -cosine, 0.0), (0.0, 0.0, -1.0))
    for k in range(3):
        u = wanted[k]
        error[3] += 0.5 * (turn[1, k] * u[2] - turn[2, k] * u[1])
        error[4] += 0.5 * (turn[2, k] * u[0] - turn[0, k] * u[2])
        error[5] += 0.5 * (turn[0, k] * u[1] - turn[1, k] * u[0])
    return error


@numba.njit(cache=True)
def _change(jacobian: Floats, error: Floats, home: Floats) -> Floats:  # pragma: no cover
    """Return the damped step to an error that goes home as far as it moves no tool."""
    square, right = np.zeros((6, 6)), error.copy()
    for r in range(6):
        for s in range(6):
            for i in range(JOINTS):
                square[r, s] += jacobian[r, i] * jacobian[s, i]
        square[r, r] += _DAMPING * _DAMPING
        for i in range(JOINTS):
            right[r] -= jacobian[r, i] * home[i]
    weights, found = _solve(square, right), home.copy()
    for i in range(JOINTS):
        for r in range(6):
            found[i] += jacobian[r, i] * weights[r]
    return found


@numba.njit(cache=True)
def _inverse(start: Floats, target: Floats, yaw: float) -> Floats:  # pragma: no cover
    """Return joints that bring the tool nearer to a place, pointing down, turned by `yaw`."""
    q = start.copy()
    axes, places = np.zeros((JOINTS, 3)), np.zeros((JOINTS, 3))
    jacobian = np.zeros((6, JOINTS))
    cosine, sine = math.cos(yaw - math.pi / 4), math.sin(yaw - math.pi / 4)
    for _ in range(_TURNS):
        place, turn = _forward(q, axes, places)
        for i in range(JOINTS):
            x, y, z = place[0] - places[i, 0], place[1] - places[i, 1], place[2] - places[i, 2]
            a, b, c = axes[i, 0], axes[i, 1], axes[i, 2]
            jacobian[0, i] = b * z - c * y
            jacobian[1, i] = c * x - a * z
            jacobian[2, i] = a * y - b * x
            jacobian[3, i], jacobian[4, i], jacobian[5, i] = a, b, c
        error = _error(place, turn, target, cosine, sine)
        step = _change(jacobian, error, _POSTURE * (HOME - q))
        for i in range(JOINTS):
            moved = q[i] + min(_STEP, max(-_STEP, step[i]))
            q[i] = min(HIGH[i], max(LOW[i], moved))
    return q


def forward(joints: Floats) -> tuple[Floats, Floats]:
    """Return where the tool is by nominal kinematics.

    Args:
        joints: (7,) rad.
    Returns: Position (3,) m, and rotation (3, 3).
    """
    spare = np.empty((2, JOINTS, 3))
    found: tuple[Floats, Floats] = _forward(joints, spare[0], spare[1])
    return found


def inverse(joints: Floats, target: Floats, yaw: float) -> Floats:
    """Return joints nearer to a pose of the tool, which points down.

    Args:
        joints: (7,) rad, from which three steps are taken.
        target: (3,) m.
        yaw: About the vertical, rad; 0: the fingers open along y.
    Returns: (7,) rad.
    """
    found: Floats = _inverse(joints, target, yaw)
    return found


def length(vector: Floats) -> float:
    """Return the length of a vector.

    Args:
        vector: (n,).
    """
    return math.sqrt(float(vector @ vector))


def yaw_of(rotation: Floats) -> float:
    """Return the turn about the vertical of a tool that points down.

    Args:
        rotation: (3, 3).
    Returns: The turn, rad.
    """
    return math.atan2(rotation[1, 0], rotation[0, 0]) + math.pi / 4
