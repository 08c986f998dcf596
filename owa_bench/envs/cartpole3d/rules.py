"""CartPole3D as pure functions: actions, fall, pulls on balls, profile of the wind.

Everything is plain numbers: same arguments, same answer, no engine.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from owa_bench.envs.cartpole3d.start import Pair, Quaternion, Triple

# Directions of the five actions: nothing, right, left, forward, backward.
DIRECTIONS: tuple[Pair, ...] = (
    (0.0, 0.0),
    (1.0, 0.0),
    (-1.0, 0.0),
    (0.0, 1.0),
    (0.0, -1.0),
)
ACTIONS = ("nothing", "right", "left", "forward", "backward")
CORE = 11  # numbers of an observation without balls
PER_BALL = 7  # presence, position, velocity
SLOTS = 4  # balls that an observation shows
MIDDLE = 0.5  # m above the cart, where the released level 15 pulls

AIR = 1.225  # kg/m3
DRAG_CART, DRAG_POLE, DRAG_BALL = 1.0, 1.0, 0.5  # drag coefficients
# Share of the wind's speed by height above the floor or below the ceiling, in metres.
PROFILE = (
    (0.0, 0.0),
    (0.05, 0.29),
    (0.10, 0.41),
    (0.15, 0.47),
    (0.5, 0.64),
    (1.0, 0.74),
    (2.5, 0.90),
    (5.0, 1.0),
)
_EDGES = [edge for edge, _ in PROFILE]
_PIECES = [
    (low, high - low, start, end - start)
    for (low, start), (high, end) in pairwise(PROFILE)
]
# The released wind, fitted to its measured forces: N per (m/s)^2.
BENT_CART = 0.029
BENT_BALL = 1.275


@lru_cache(maxsize=64)
def fall_bounds(degrees: float) -> Pair:
    """Return (sine, tangent) of the tilt at which an episode ends."""
    angle = math.radians(degrees)
    return math.sin(angle), math.tan(angle)


def fallen(pole: Quaternion, sine: float, tangent: float) -> bool:
    """Return whether roll or pitch of the pole exceeds the limit of `fall_bounds`.

    Roll is atan2(s, c) with s = 2 (w x + y z) and c = 1 - 2 (x^2 + y^2), pitch is
    asin(2 (w y - z x)): no angle need be taken to compare them.
    """
    x, y, z, w = pole
    level = 1.0 - 2.0 * (x * x + y * y)
    if abs(2.0 * (w * x + y * z)) > tangent * level:
        return True
    return abs(2.0 * (w * y - z * x)) > sine


def along(
    pole: Quaternion, cart: Sequence[float], joint: float, reach: float
) -> Triple:
    """Return the point `reach` above the joint of a pole on a cart."""
    x, y, z, w = pole
    return (
        cart[0] + reach * (2.0 * (x * z + w * y)),
        cart[1] + reach * (2.0 * (y * z - w * x)),
        joint + reach * (1.0 - 2.0 * (x * x + y * y)),
    )


def pulls(
    lows: Iterable[Triple], radius: float, goal: Triple, sizes: Iterable[float]
) -> list[Triple]:
    """Return a force of its size on each ball towards a goal; none at the goal.

    Balls are given by the low corners of their boxes, as the engine tells them.
    """
    a, b, c = goal
    found = []
    for (x, y, z), size in zip(lows, sizes):  # noqa: B905 (each check costs 0.1 us)
        x, y, z = a - (x + radius), b - (y + radius), c - (z + radius)
        norm = math.sqrt(x * x + y * y + z * z)
        scale = size / norm if norm else 0.0
        found.append((x * scale, y * scale, z * scale))
    return found


def centroid(lows: Sequence[Triple], radius: float) -> Triple:
    """Return the mean place of balls; the origin if there are none."""
    # one after the other: `sum` of floats rounds otherwise from Python 3.12 on
    a = b = c = 0.0
    for x, y, z in lows:
        a, b, c = a + (x + radius), b + (y + radius), c + (z + radius)
    count = len(lows) or 1
    return a / count, b / count, c / count


def wind_share(height: float) -> float:
    """Return the wind's share of its speed at mid-height, linear between points."""
    edge = min(height, 10.0 - height)
    if edge <= 0.0:
        return 0.0
    piece = bisect_left(_EDGES, edge) - 1
    if piece == len(_PIECES):
        return 1.0
    low, width, start, rise = _PIECES[piece]
    return start + rise * (edge - low) / width
