"""The exact start of an episode: a world's start laws and one stream of draws.

Both physics backends begin from what `draw_start` returns. Draws come in fixed blocks,
so that worlds which differ in one law share all the others (paired comparisons).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.seeding import reseat, stream
from owa_bench.worlds.physics import DECIMALS, BallLaw, PhysicsWorld, Start

Pair = tuple[float, float]
Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

_HEAD = 16  # draws of an episode before those of its balls
_EACH = 14  # draws of each ball
_STILL: Triple = (0.0, 0.0, 0.0)
# Of the released rails, whose defect is known by its results alone: the angle written
# as an un-normalised quaternion's third part, how far along its axis a place lies, and
# of rails that do not pass within 1 m the share above the box, at a height. Chosen so
# that the measured shares come out: in the nominal band, within 1 m, above the box.
_BENT_ANGLE = (0.0, 2.0 * math.pi)
_BENT_REACH = 5.0
_BENT_ABOVE = 0.64
_BENT_HEIGHT = 12.0
_BENT_STEPS = (4.0, -4.0, 3.0, -3.0, 2.0, -2.0, 1.5, -1.5)  # m from its nearest point
_BENT_EDGE = 4.4


class Ball(NamedTuple):
    """A ball's state; `fixed` cannot move, `rail` is the unit axis it is bound to."""

    position: Triple
    velocity: Triple = _STILL
    fixed: bool = False
    rail: Pair | None = None


class State(NamedTuple):
    """A whole state of the scene.

    `pole` is its quaternion (x, y, z, w) in the world, `rates` the velocity of its
    spherical joint as the engine keeps it. `push` acts on the cart during the hidden
    tick alone; `restitution` and the unit heading `wind` hold for the episode.
    """

    cart: Pair
    velocity: Pair = (0.0, 0.0)
    pole: Quaternion = (0.0, 0.0, 0.0, 1.0)
    rates: Triple = _STILL
    balls: tuple[Ball, ...] = ()
    push: Pair = (0.0, 0.0)
    restitution: float = 1.0
    wind: Pair = (0.0, 0.0)


def draw_start(world: PhysicsWorld, rng: np.random.Generator) -> State:
    """Return the start of an episode of `world`, before its hidden first tick.

    Units: m, m/s, rad/s, N. `rng` is the stream of the instance.
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
    aim = _aim(world, head) if world.laws else _STILL
    balls = []
    for first in range(_HEAD, _HEAD + count * _EACH, _EACH):
        draws = head[first : first + _EACH]
        if world.laws:
            draws.append(head[_HEAD + 10])  # what balls of one speed share
            balls.append(_ruled(world, cart, aim, draws, rng))
        else:
            balls.append(free_ball(law, cart, law.speeds, draws, rng))
    return State(
        cart,
        (0.0, 0.0),
        (a / norm, b / norm, c / norm, 1.0 / norm),
        (rate * (2.0 * head[7] - 1.0), rate * (2.0 * head[8] - 1.0), 0.0),
        tuple(balls),
        (push * (2.0 * head[2] - 1.0), push * (2.0 * head[3] - 1.0)),
        low + (high - low) * head[10],
        _heading(head[11], head[12], rng) if world.wind else (0.0, 0.0),
    )


class Starts:
    """The starts of instances by their seed: what both backends begin from.

    One generator is put back for each, which costs a fifth of making one.
    """

    def __init__(self) -> None:
        self._rng = stream(0, "start")

    def __call__(self, world: PhysicsWorld, seed: int) -> State:
        """Return the start of the instance of `seed` in a world."""
        return draw_start(world, reseat(self._rng, seed, "base", "start"))


def free_ball(
    law: Start,
    off: Pair,
    speeds: Pair,
    draws: Sequence[float],
    rng: np.random.Generator,
) -> Ball:
    """Return a ball that flies: place by three draws, velocity by six.

    It is clear of the axis through `off`; the components of its velocity have a size in
    `speeds`, three coins give their signs.
    """
    least, span = speeds[0], speeds[1] - speeds[0]
    x, y, z = least + span * draws[3], least + span * draws[4], least + span * draws[5]
    return Ball(
        place(law, off, draws, rng),
        (
            x if draws[6] < 0.5 else -x,
            y if draws[7] < 0.5 else -y,
            z if draws[8] < 0.5 else -z,
        ),
    )


def place(
    law: Start, off: Pair, draws: Sequence[float], rng: np.random.Generator
) -> Triple:
    """Return where a ball starts: in the box, clear of the axis through `off`."""
    reach, clearance = law.ball, law.clearance
    x, y = reach * (2.0 * draws[0] - 1.0), reach * (2.0 * draws[1] - 1.0)
    while (x - off[0]) ** 2 + (y - off[1]) ** 2 < clearance * clearance:
        x, y = (reach * (2.0 * u - 1.0) for u in rng.random(2).tolist())
    low, high = law.heights
    return x, y, low + (high - low) * draws[2]


def _ruled(
    world: PhysicsWorld,
    cart: Pair,
    aim: Triple,
    draws: Sequence[float],
    rng: np.random.Generator,
) -> Ball:
    """Return a ball under the laws.

    Draws: place 3, velocity 6, share 1, speed 1, rail 3, and a speed for all balls.
    """
    holding = None
    for law in world.laws:
        if draws[9] < law.share:
            holding = law
    if holding is None:
        return free_ball(world.start, cart, world.start.speeds, draws, rng)
    at = place(world.start, cart, draws, rng)
    speed = _between(draws[_EACH if holding.alike else 10], holding.speeds)
    if holding.kind == "fixed":
        return Ball((at[0], at[1], _between(draws[2], holding.heights)), fixed=True)
    if holding.kind == "rail":
        return _on_rail(world, holding, cart, draws, rng)
    goal = aim if holding.kind == "point" else (cart[0], cart[1], holding.aim)
    return Ball(at, _towards(at, goal, speed))


def _on_rail(
    world: PhysicsWorld,
    law: BallLaw,
    cart: Pair,
    draws: Sequence[float],
    rng: np.random.Generator,
) -> Ball:
    """Return a ball on an axis that passes the cart at a distance of the law's."""
    offset = _between(draws[11], law.distances)
    speed = _between(draws[10], law.speeds) * (1.0 if draws[6] < 0.5 else -1.0)
    if law.bent:
        at, axis = _bent(law, cart, offset, draws)
    else:
        height = _between(draws[2], law.heights)
        at, axis = _straight(world, cart, offset, height, draws, rng)
    return Ball(at, (axis[0] * speed, axis[1] * speed, 0.0), rail=axis)


def _straight(
    world: PhysicsWorld,
    cart: Pair,
    offset: float,
    height: float,
    draws: Sequence[float],
    rng: np.random.Generator,
) -> tuple[Triple, Pair]:
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


def _bent(
    law: BallLaw, cart: Pair, offset: float, draws: Sequence[float]
) -> tuple[Triple, Pair]:
    """Return place and direction as the released generator's rails turn out.

    The place is turned by an angle a about the cart, the axis by 2 atan(a): that is
    what a quaternion (0, 0, a, 1) stands for. More than half sit above the box.
    """
    a = _between(draws[12], _BENT_ANGLE)
    cosine, sine = round(math.cos(a), DECIMALS), round(math.sin(a), DECIMALS)
    along = _about(draws[13], _BENT_REACH)
    x = cart[0] + along * cosine - offset * sine
    y = cart[1] + along * sine + offset * cosine
    square = 1.0 + a * a
    axis = ((1.0 - a * a) / square, 2.0 * a / square)
    passes = abs((cart[0] - x) * axis[1] - (cart[1] - y) * axis[0])
    x, y = _slid((x, y), axis, cart)
    above = 0.0 if passes < 1.0 else _BENT_ABOVE
    if draws[2] < above:
        return (x, y, _BENT_HEIGHT), axis
    share = (draws[2] - above) / (1.0 - above)
    return (x, y, _between(share, law.heights)), axis


def _slid(at: Pair, axis: Pair, cart: Pair) -> Pair:
    """Return a place on an axis that is in the box and not on the cart, if any is."""
    reach = (cart[0] - at[0]) * axis[0] + (cart[1] - at[1]) * axis[1]
    for step in _BENT_STEPS:
        x, y = at[0] + (reach + step) * axis[0], at[1] + (reach + step) * axis[1]
        if abs(x) <= _BENT_EDGE and abs(y) <= _BENT_EDGE:
            return x, y
    return at


def _aim(world: PhysicsWorld, head: Sequence[float]) -> Triple:
    """Return the episode's common point."""
    law = world.start
    return (
        _about(head[13], law.ball),
        _about(head[14], law.ball),
        _between(head[15], law.heights),
    )


def _heading(u: float, v: float, rng: np.random.Generator) -> Pair:
    """Return a unit vector of uniform direction, without a transcendental function."""
    x, y = 2.0 * u - 1.0, 2.0 * v - 1.0
    square = x * x + y * y
    while not 1e-6 < square <= 1.0:
        x, y = (2.0 * w - 1.0 for w in rng.random(2).tolist())
        square = x * x + y * y
    norm = math.sqrt(square)
    return x / norm, y / norm


def _towards(at: Triple, goal: Triple, speed: float) -> Triple:
    x, y, z = goal[0] - at[0], goal[1] - at[1], goal[2] - at[2]
    norm = math.sqrt(x * x + y * y + z * z)
    if norm == 0.0:
        return _STILL
    return x / norm * speed, y / norm * speed, z / norm * speed


def _about(u: float, half: float) -> float:
    return half * (2.0 * u - 1.0)


def _between(u: float, band: Pair) -> float:
    return band[0] + (band[1] - band[0]) * u
