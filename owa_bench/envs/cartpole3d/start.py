"""Start states and balls that arrive later: a world's laws and a stream of draws.

Both physics backends begin from what `draw_start` returns. Draws come in fixed blocks, so that
worlds which differ in one law share all the others (paired comparisons). Units: m, m/s, rad/s, N.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.envs.cartpole3d.world import DECIMALS, BallLaw, PhysicsWorld, Spawn, Start
from owa_bench.seeding import reseat, stream

Vector2 = tuple[float, float]
Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

_HEAD = 16  # draws of an episode before those of its balls
_EACH = 14  # draws of each ball
_STILL: Vector3 = (0.0, 0.0, 0.0)
# The released rails, whose defect is known by its results alone: the angle written
# as an un-normalised quaternion's third part, how far along its axis a place lies, and
# of rails that do not pass within 1 m the share above the box, at a height. Chosen so
# that the measured shares come out: in the nominal band, within 1 m, above the box.
_BENT_ANGLE = (0.0, 2.0 * math.pi)
_BENT_REACH = 5.0
_BENT_ABOVE = 0.64
_BENT_HEIGHT = 12.0
_BENT_STEPS = (4.0, -4.0, 3.0, -3.0, 2.0, -2.0, 1.5, -1.5)  # m from its nearest point
_BENT_EDGE = 4.4
_TRIES = 100  # places that are tried for a ball ahead of the cart
HEIGHT = 1.0  # m, of balls that come to rest ahead of the cart
REACH = 4.5  # m, |x| and |y| of such balls at the most
APART = 0.75  # m, least distance of such a ball from others
_TOLERANCE = 1e-9


class BallState(NamedTuple):
    """A ball's state; `fixed` cannot move, `rail` is the unit axis it is bound to."""

    position: Vector3
    velocity: Vector3 = _STILL
    fixed: bool = False
    rail: Vector2 | None = None


class SceneState(NamedTuple):
    """The complete state of the scene.

    `yaw` is the cart's angle about z and its rate, `pole` the pole's quaternion (x, y, z, w) as the
    cart sees it, `rates` the velocity of its spherical joint as the engine keeps it. `push` acts on
    the cart during the hidden tick alone; `restitution` and the unit heading `wind` hold for the
    episode.
    """

    cart: Vector2
    velocity: Vector2 = (0.0, 0.0)
    pole: Quaternion = (0.0, 0.0, 0.0, 1.0)
    rates: Vector3 = _STILL
    balls: tuple[BallState, ...] = ()
    push: Vector2 = (0.0, 0.0)
    restitution: float = 1.0
    wind: Vector2 = (0.0, 0.0)
    yaw: Vector2 = (0.0, 0.0)


def draw_start(world: PhysicsWorld, rng: np.random.Generator) -> SceneState:
    """Return the start of an episode, before its hidden first tick.

    Args:
        world: the world that is played.
        rng: the stream of the instance.
    """
    law, ball = world.start, world.ball
    head = rng.random(_HEAD + _EACH * ball.most).tolist()
    cart = (law.cart * (2.0 * head[0] - 1.0), law.cart * (2.0 * head[1] - 1.0))
    tilt, rate, push = law.tilt, law.rate, law.push
    a = tilt * (2.0 * head[4] - 1.0)
    b = tilt * (2.0 * head[5] - 1.0)
    c = tilt * (2.0 * head[6] - 1.0)
    norm = math.sqrt(a * a + b * b + c * c + 1.0)
    count = ball.fewest + int(head[9] * (ball.most - ball.fewest + 1))
    low, high = ball.restitution
    aim = _common_point(world, head) if world.laws else _STILL
    balls = []
    for first in range(_HEAD, _HEAD + count * _EACH, _EACH):
        draws = head[first : first + _EACH]
        if world.laws:
            draws.append(head[_HEAD + 10])  # what balls of one speed share
            balls.append(_ball_by_law(world, cart, aim, draws, rng))
        else:
            balls.append(free_ball(law, cart, law.speeds, draws, rng))
    return SceneState(
        cart,
        (0.0, 0.0),
        (a / norm, b / norm, c / norm, 1.0 / norm),
        (rate * (2.0 * head[7] - 1.0), rate * (2.0 * head[8] - 1.0), 0.0),
        tuple(balls),
        (push * (2.0 * head[2] - 1.0), push * (2.0 * head[3] - 1.0)),
        low + (high - low) * head[10],
        _heading(head[11], head[12], rng) if world.wind else (0.0, 0.0),
    )


class StartSampler:
    """Start states by seed of the instance, for both backends.

    One generator is put back for each, which costs a fifth of making one.
    """

    def __init__(self) -> None:
        self._rng = stream(0, "start")

    def __call__(self, world: PhysicsWorld, seed: int) -> SceneState:
        """Return the start of an instance.

        Args:
            world: the world that is played.
            seed: of the instance.
        """
        return draw_start(world, reseat(self._rng, seed, "base", "start"))


def free_ball(
    law: Start, off: Vector2, speeds: Vector2, draws: Sequence[float], rng: np.random.Generator
) -> BallState:
    """Return a ball that flies.

    Args:
        law: the world's start law.
        off: foot of the vertical axis that the ball keeps clear of.
        speeds: range of the size of each velocity component.
        draws: nine uniform numbers: place 3, speeds 3, signs 3.
        rng: further draws where a place is not clear.
    """
    least, span = speeds[0], speeds[1] - speeds[0]
    x, y, z = least + span * draws[3], least + span * draws[4], least + span * draws[5]
    return BallState(
        _place(law, off, draws, rng),
        (x if draws[6] < 0.5 else -x, y if draws[7] < 0.5 else -y, z if draws[8] < 0.5 else -z),
    )


def _place(law: Start, off: Vector2, draws: Sequence[float], rng: np.random.Generator) -> Vector3:
    """Return where a ball starts: in the box, clear of the axis through `off`."""
    reach, clearance = law.ball, law.clearance
    x, y = reach * (2.0 * draws[0] - 1.0), reach * (2.0 * draws[1] - 1.0)
    while (x - off[0]) ** 2 + (y - off[1]) ** 2 < clearance * clearance:
        x, y = (reach * (2.0 * u - 1.0) for u in rng.random(2).tolist())
    low, high = law.heights
    return x, y, low + (high - low) * draws[2]


def _ball_by_law(
    world: PhysicsWorld,
    cart: Vector2,
    aim: Vector3,
    draws: Sequence[float],
    rng: np.random.Generator,
) -> BallState:
    """Return a ball under the laws.

    Draws: place 3, velocity 6, share 1, speed 1, rail 3, and a speed for all balls.
    """
    chosen = None
    for law in world.laws:
        if draws[9] < law.share:
            chosen = law
    if chosen is None:
        return free_ball(world.start, cart, world.start.speeds, draws, rng)
    at = _place(world.start, cart, draws, rng)
    speed = _between(draws[_EACH if chosen.alike else 10], chosen.speeds)
    if chosen.kind == "fixed":
        return BallState((at[0], at[1], _between(draws[2], chosen.heights)), fixed=True)
    if chosen.kind == "rail":
        return _on_rail(world, chosen, cart, draws, rng)
    goal = aim if chosen.kind == "point" else (cart[0], cart[1], chosen.aim)
    return BallState(at, _towards(at, goal, speed))


def _on_rail(
    world: PhysicsWorld,
    law: BallLaw,
    cart: Vector2,
    draws: Sequence[float],
    rng: np.random.Generator,
) -> BallState:
    """Return a ball on an axis that passes the cart at a distance of the law's."""
    offset = _between(draws[11], law.distances)
    speed = _between(draws[10], law.speeds) * (1.0 if draws[6] < 0.5 else -1.0)
    if law.bent:
        at, axis = _bent_rail(law, cart, offset, draws)
    else:
        height = _between(draws[2], law.heights)
        at, axis = _straight_rail(world, cart, offset, height, draws, rng)
    return BallState(at, (axis[0] * speed, axis[1] * speed, 0.0), rail=axis)


def _straight_rail(
    world: PhysicsWorld,
    cart: Vector2,
    offset: float,
    height: float,
    draws: Sequence[float],
    rng: np.random.Generator,
) -> tuple[Vector3, Vector2]:
    """Return a place on a line at distance `offset` of the cart, and its direction.

    The line is turned until its point nearest to the cart lies where balls may start.
    """
    reach = world.start.ball
    normal = _heading(draws[12], draws[13], rng)
    while True:
        x, y = cart[0] + offset * normal[0], cart[1] + offset * normal[1]
        if abs(x) <= reach and abs(y) <= reach:
            return (x, y, height), (-normal[1], normal[0])
        u, v = rng.random(2).tolist()
        normal = _heading(u, v, rng)


def _bent_rail(
    law: BallLaw, cart: Vector2, offset: float, draws: Sequence[float]
) -> tuple[Vector3, Vector2]:
    """Return place and direction as the released generator's rails turn out.

    The place is turned by an angle a about the cart, the axis by 2 atan(a): that is what a
    quaternion (0, 0, a, 1) stands for. More than half sit above the box.
    """
    a = _between(draws[12], _BENT_ANGLE)
    cosine, sine = round(math.cos(a), DECIMALS), round(math.sin(a), DECIMALS)
    along = _about(draws[13], _BENT_REACH)
    x = cart[0] + along * cosine - offset * sine
    y = cart[1] + along * sine + offset * cosine
    square = 1.0 + a * a
    axis = ((1.0 - a * a) / square, 2.0 * a / square)
    passes = abs((cart[0] - x) * axis[1] - (cart[1] - y) * axis[0])
    x, y = _inside((x, y), axis, cart)
    above = 0.0 if passes < 1.0 else _BENT_ABOVE
    if draws[2] < above:
        return (x, y, _BENT_HEIGHT), axis
    share = (draws[2] - above) / (1.0 - above)
    return (x, y, _between(share, law.heights)), axis


def _inside(at: Vector2, axis: Vector2, cart: Vector2) -> Vector2:
    """Return a place on an axis that is in the box and not on the cart, if any is."""
    reach = (cart[0] - at[0]) * axis[0] + (cart[1] - at[1]) * axis[1]
    for step in _BENT_STEPS:
        x, y = at[0] + (reach + step) * axis[0], at[1] + (reach + step) * axis[1]
        if abs(x) <= _BENT_EDGE and abs(y) <= _BENT_EDGE:
            return x, y
    return at


def _common_point(world: PhysicsWorld, head: Sequence[float]) -> Vector3:
    """Return the episode's common point."""
    law = world.start
    return (_about(head[13], law.ball), _about(head[14], law.ball), _between(head[15], law.heights))


def _heading(u: float, v: float, rng: np.random.Generator) -> Vector2:
    """Return a unit vector of uniform direction, without a transcendental function."""
    x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
    square = x * x + y * y
    while not 1e-6 < square <= 1.0:
        x, y = (2.0 * w - 1.0 for w in rng.random(2).tolist())
        square = x * x + y * y
    norm = math.sqrt(square)
    return x / norm, y / norm


def _towards(at: Vector3, goal: Vector3, speed: float) -> Vector3:
    x, y, z = goal[0] - at[0], goal[1] - at[1], goal[2] - at[2]
    norm = math.sqrt(x * x + y * y + z * z)
    if norm == 0.0:
        return _STILL
    return x / norm * speed, y / norm * speed, z / norm * speed


def _about(u: float, half: float) -> float:
    return half * (2.0 * u - 1.0)


def _between(u: float, band: Vector2) -> float:
    return band[0] + (band[1] - band[0]) * u


# --- balls that arrive during an episode ----------------------------------------------


def is_due(every: float, tick: int) -> bool:
    """Return whether a ball arrives at a tick.

    >>> [tick for tick in range(1, 10) if is_due(2.5, tick)]
    [3, 5, 8]

    Args:
        every: ticks between two balls, the first one coming after as many.
        tick: number of the tick, the first 1.
    Returns: True where a multiple of `every` lies within the tick.
    """
    now = math.floor(tick / every + _TOLERANCE)
    return now > math.floor((tick - 1) / every + _TOLERANCE)


def spawn_ball(
    world: PhysicsWorld,
    spawn: Spawn,
    *,
    cart: Vector2,
    first: Vector2,
    travel: Vector2,
    others: Sequence[Sequence[float]],
    rng: np.random.Generator,
) -> BallState | None:
    """Return the ball that arrives.

    Args:
        world: the world that is played.
        spawn: the law of arrivals.
        cart: position of the cart.
        first: its position at the start.
        travel: its way since the last ball arrived.
        others: centres of the balls there are.
        rng: the noise stream of the episode.
    Returns: The ball, None where there is no place for it.
    """
    if spawn.placement == "ahead":
        return _ball_ahead(spawn, cart, first, travel, others, rng)
    draws = rng.random(9).tolist()
    off = first if spawn.around == "start" else cart
    return free_ball(world.start, off, spawn.speeds, draws, rng)


def _ball_ahead(
    spawn: Spawn,
    cart: Vector2,
    first: Vector2,
    travel: Vector2,
    others: Sequence[Sequence[float]],
    rng: np.random.Generator,
) -> BallState | None:
    """Return a ball at rest along the cart's travel."""
    norm = math.sqrt(travel[0] * travel[0] + travel[1] * travel[1])
    if norm == 0.0:
        return None
    near = cart if spawn.around == "cart" else first
    base = cart if spawn.around == "cart" else (0.0, 0.0)
    low, high = spawn.distances
    for share in rng.random(_TRIES).tolist():
        reach = (low + (high - low) * share) / norm
        x, y = base[0] + reach * travel[0], base[1] + reach * travel[1]
        if _is_free(x, y, near, spawn.clearance, others):
            return BallState((x, y, HEIGHT))
    return None


def _is_free(
    x: float, y: float, near: Vector2, clearance: float, others: Sequence[Sequence[float]]
) -> bool:
    if abs(x) > REACH or abs(y) > REACH:
        return False
    if math.dist((x, y), near) < clearance:
        return False
    return all(math.dist((x, y, HEIGHT), other) >= APART for other in others)
