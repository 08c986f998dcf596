"""Rules of CartPole3D as pure functions: actions, fall, forces of pulls and wind.

Everything is plain numbers in SI units: same arguments, same result, no engine.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from owa_bench.envs.cartpole3d.start import Quaternion, Vector2, Vector3
from owa_bench.envs.cartpole3d.world import PhysicsWorld, Wind

# Directions of the five actions: nothing, right, left, forward, backward.
# fmt: off
DIRECTIONS: tuple[Vector2, ...] = (
    (0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0),
)
CORE = 11  # numbers of an observation without balls
PER_BALL = 7  # presence, position, velocity
SLOTS = 4  # balls that an observation shows
MIDDLE = 0.5  # m above the cart, where the released level 15 pulls

AIR = 1.225  # kg/m3
DRAG_CART, DRAG_POLE, DRAG_BALL = 1.0, 1.0, 0.5  # drag coefficients
# Share of the wind's speed by height above the floor or below the ceiling, in metres.
PROFILE = (
    (0.0, 0.0), (0.05, 0.29), (0.10, 0.41), (0.15, 0.47),
    (0.5, 0.64), (1.0, 0.74), (2.5, 0.90), (5.0, 1.0),
)
# fmt: on
_EDGES = [edge for edge, _ in PROFILE]
_PIECES = [(low, high - low, start, end - start) for (low, start), (high, end) in pairwise(PROFILE)]
# The released wind, fitted to its measured forces: N per (m/s)^2.
BENT_CART = 0.029
BENT_BALL = 1.275


@lru_cache(maxsize=64)
def fall_bounds(degrees: float) -> Vector2:
    """Return (sine, tangent) of the tilt at which an episode ends."""
    angle = math.radians(degrees)
    return math.sin(angle), math.tan(angle)


def has_fallen(pole: Quaternion, sine: float, tangent: float) -> bool:
    """Return whether roll or pitch of the pole exceeds the limit.

    Roll is atan2(s, c) with s = 2 (w x + y z) and c = 1 - 2 (x^2 + y^2), pitch is asin(2 (w y - z
    x)): no angle need be taken to compare them.

    Args:
        pole: orientation of the pole in the world.
        sine: sine of the limit, of `fall_bounds`.
        tangent: tangent of the limit, of `fall_bounds`.
    Returns: True beyond the limit.
    """
    x, y, z, w = pole
    level = 1.0 - 2.0 * (x * x + y * y)
    if abs(2.0 * (w * x + y * z)) > tangent * level:
        return True
    return abs(2.0 * (w * y - z * x)) > sine


def point_on_pole(pole: Quaternion, cart: Sequence[float], joint: float, reach: float) -> Vector3:
    """Return a point on the axis of a pole that stands on a cart.

    Args:
        pole: orientation of the pole in the world.
        cart: position of the cart; x and y are read.
        joint: height of the joint, m.
        reach: distance of the point from the joint, m.
    Returns: The point in the world, m.
    """
    x, y, z, w = pole
    return (
        cart[0] + reach * (2.0 * (x * z + w * y)),
        cart[1] + reach * (2.0 * (y * z - w * x)),
        joint + reach * (1.0 - 2.0 * (x * x + y * y)),
    )


def pull_forces(
    lows: Iterable[Vector3], radius: float, goal: Vector3, sizes: Iterable[float]
) -> list[Vector3]:
    """Return the force on each ball towards a goal; none at the goal.

    Args:
        lows: low corners of the balls' bounding boxes, as the engine gives them, m.
        radius: of every ball, m.
        goal: the point that pulls, m.
        sizes: of each ball's force, N; a negative one pushes away.
    Returns: Forces in the world, N.
    """
    a, b, c = goal
    forces = []
    for (x, y, z), size in zip(lows, sizes):  # noqa: B905 (each check costs 0.1 us)
        x, y, z = a - (x + radius), b - (y + radius), c - (z + radius)
        norm = math.sqrt(x * x + y * y + z * z)
        scale = size / norm if norm else 0.0
        forces.append((x * scale, y * scale, z * scale))
    return forces


def centroid(lows: Sequence[Vector3], radius: float) -> Vector3:
    """Return the mean position of balls; the origin if there are none.

    Args:
        lows: low corners of the balls' bounding boxes, m.
        radius: of every ball, m.
    Returns: The mean of their centres, m.
    """
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


class WindDrag:
    """Drag of air that moves along a heading at a speed that depends on height.

    `bent` winds are those of the released generator: fitted to its measured forces.
    """

    def __init__(self, world: PhysicsWorld, wind: Wind, heading: Vector2) -> None:
        cart, pole, ball = world.cart, world.pole, world.ball
        self._bent, self._speed, self._heading = wind.bent, wind.speed, heading
        at_cart = wind.speed * wind_share(cart.bottom + 0.5 * cart.height)
        self._at_cart = (at_cart * heading[0], at_cart * heading[1])
        self._cart = 0.5 * AIR * DRAG_CART * (2.0 * cart.radius * cart.height)
        self._pole = 0.5 * AIR * DRAG_POLE * (2.0 * pole.radius * pole.length)
        self._radius = ball.radius
        self._ball = 0.5 * AIR * DRAG_BALL * (math.pi * ball.radius * ball.radius)

    def on_cart(self, velocity: Vector3) -> Vector3:
        """Return the force on a cart.

        Args:
            velocity: of the cart, m/s.
        Returns: The force, N.
        """
        if self._bent:
            x = self._heading[0]
            square = x * x
            size = 0.5 * BENT_CART * self._speed * self._speed * square * (1.0 + square)
            return math.copysign(size, x), 0.0, 0.0
        u, v = self._at_cart[0] - velocity[0], self._at_cart[1] - velocity[1]
        scale = self._cart * math.sqrt(u * u + v * v)
        return scale * u, scale * v, 0.0

    def on_pole(self, velocity: Vector3, height: float) -> Vector3:
        """Return the force at the pole's middle, taken to move with the cart.

        Args:
            velocity: of the cart, m/s.
            height: of the pole's middle above the floor, m.
        Returns: The force, N.
        """
        if self._bent:
            return 0.0, 0.0, 0.0
        speed = self._speed * wind_share(height)
        x, y = self._heading
        u, v = speed * x - velocity[0], speed * y - velocity[1]
        scale = self._pole * math.sqrt(u * u + v * v)
        return scale * u, scale * v, 0.0

    def on_balls(
        self, lows: Iterable[Vector3], before: Iterable[Vector3], rate: float
    ) -> list[Vector3]:
        """Return the forces on balls.

        Args:
            lows: low corners of the balls' bounding boxes, m.
            before: the same one tick earlier, m.
            rate: ticks a second.
        Returns: The force on each ball, N.
        """
        radius, full, drag = self._radius, self._speed, self._ball
        hx, hy = self._heading
        if self._bent:
            return [self._bent_ball(low[2] + radius) for low in lows]
        forces = []
        for (x, y, z), (a, b, _) in zip(lows, before):  # noqa: B905 (costs 0.1 us)
            speed = full * wind_share(z + radius)
            u, v = speed * hx - (x - a) * rate, speed * hy - (y - b) * rate
            scale = drag * math.sqrt(u * u + v * v)
            forces.append((scale * u, scale * v, 0.0))
        return forces

    def _bent_ball(self, height: float) -> Vector3:
        """Return the released force on a ball: into one corner by any heading."""
        speed = self._speed * wind_share(height)
        size = -BENT_BALL * speed * speed
        x, y = self._heading
        return size * x * x, size * y * y, 0.0


def turned(pole: Quaternion, yaw: float) -> Quaternion:
    """Return a quaternion x, y, z, w seen from the cart as the world sees it.

    Args:
        pole: quaternion in the cart's frame.
        yaw: angle of the cart about z, rad.
    """
    if yaw == 0.0:
        return pole
    x, y, z, w = pole
    s, c = math.sin(0.5 * yaw), math.cos(0.5 * yaw)
    return c * x - s * y, c * y + s * x, c * z + s * w, c * w - s * z


def rotated(x: float, y: float, angle: float) -> Vector2:
    """Return a vector of the plane after a turn.

    Args:
        x: its first part.
        y: its second part.
        angle: of the turn, rad.
    """
    s, c = math.sin(angle), math.cos(angle)
    return c * x - s * y, s * x + c * y


def rotation_to(axis: Vector2) -> Quaternion:
    """Return the rotation about z that takes the x axis to a direction.

    Args:
        axis: x and y of a unit vector.
    Returns: The quaternion x, y, z, w.
    """
    half = math.sqrt(max(0.0, 0.5 * (1.0 + axis[0])))
    if half < 1e-9:
        return 0.0, 0.0, 1.0, 0.0
    return 0.0, 0.0, 0.5 * axis[1] / half, half
