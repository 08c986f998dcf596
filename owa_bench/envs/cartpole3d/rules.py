"""CartPole3D as pure functions: actions, fall, observation, forces on balls, wind.

Everything is plain numbers: same arguments, same answer, no engine.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from owa_bench.envs.cartpole3d.start import Pair, Quaternion, Triple
from owa_bench.worlds.physics import PhysicsWorld

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


def upright(pole: Quaternion) -> Triple:
    """Return the unit vector from the pole's foot to its tip."""
    x, y, z, w = pole
    return (
        2.0 * (x * z + w * y),
        2.0 * (y * z - w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


def along(
    pole: Quaternion, cart: Sequence[float], joint: float, reach: float
) -> Triple:
    """Return the point `reach` above the joint of a pole."""
    x, y, z = upright(pole)
    return cart[0] + reach * x, cart[1] + reach * y, joint + reach * z


def towards(at: Sequence[float], goal: Sequence[float], size: float) -> Triple:
    """Return a force of `size` from a place to a goal; none where they are one."""
    x, y, z = goal[0] - at[0], goal[1] - at[1], goal[2] - at[2]
    norm = math.sqrt(x * x + y * y + z * z)
    if norm == 0.0:
        return 0.0, 0.0, 0.0
    scale = size / norm
    return x * scale, y * scale, z * scale


def centroid(places: Sequence[Sequence[float]]) -> Triple:
    """Return the mean of some places; the origin if there are none."""
    count = len(places) or 1
    return (
        sum(place[0] for place in places) / count,
        sum(place[1] for place in places) / count,
        sum(place[2] for place in places) / count,
    )


def wind_share(height: float) -> float:
    """Return the wind's share of its speed at mid-height, linear between points."""
    edge = min(height, 10.0 - height)
    if edge <= 0.0:
        return 0.0
    for (low, start), (high, end) in pairwise(PROFILE):
        if edge <= high:
            return start + (end - start) * (edge - low) / (high - low)
    return 1.0


def drag(area: float, coefficient: float, air: Pair, body: Sequence[float]) -> Triple:
    """Return the horizontal drag of moving air on a body, both in m/s."""
    x, y = air[0] - body[0], air[1] - body[1]
    scale = 0.5 * AIR * coefficient * area * math.sqrt(x * x + y * y)
    return scale * x, scale * y, 0.0


def wind_on_cart(world: PhysicsWorld, heading: Pair, cart: Sequence[float]) -> Triple:
    """Return the wind's force on a cart of a velocity."""
    wind = world.wind
    if wind is None:
        return 0.0, 0.0, 0.0
    if wind.bent:
        square = heading[0] * heading[0]
        size = 0.5 * BENT_CART * wind.speed * wind.speed * square * (1.0 + square)
        return math.copysign(size, heading[0]), 0.0, 0.0
    shape = world.cart
    speed = wind.speed * wind_share(shape.bottom + 0.5 * shape.height)
    area = 2.0 * shape.radius * shape.height
    return drag(area, DRAG_CART, (speed * heading[0], speed * heading[1]), cart)


def wind_on_pole(
    world: PhysicsWorld, heading: Pair, cart: Sequence[float], height: float
) -> Triple:
    """Return the wind's force at the pole's middle, at `height`.

    The pole is taken to move with the cart.
    """
    wind = world.wind
    if wind is None or wind.bent:
        return 0.0, 0.0, 0.0
    area = 2.0 * world.pole.radius * world.pole.length
    speed = wind.speed * wind_share(height)
    return drag(area, DRAG_POLE, (speed * heading[0], speed * heading[1]), cart)


def wind_on_ball(
    world: PhysicsWorld, heading: Pair, at: Sequence[float], velocity: Sequence[float]
) -> Triple:
    """Return the wind's force on a ball."""
    wind = world.wind
    if wind is None:
        return 0.0, 0.0, 0.0
    speed = wind.speed * wind_share(at[2])
    if wind.bent:
        size = -BENT_BALL * speed * speed
        return size * heading[0] * heading[0], size * heading[1] * heading[1], 0.0
    area = math.pi * world.ball.radius * world.ball.radius
    return drag(area, DRAG_BALL, (speed * heading[0], speed * heading[1]), velocity)
