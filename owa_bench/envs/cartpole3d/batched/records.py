"""Records of the compiled step: a world's numbers, lanes, their balls and contacts.

A lane is one record and a row of balls; kernels change them in place. Places in m, speeds in m/s,
rates in rad/s, quaternions x, y, z, w; the frame is the world's. Start states come from the law
that both backends share, `start.draw_start`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench import seeding
from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.start import BallState, SceneState, draw_start, is_due
from owa_bench.envs.cartpole3d.world import PhysicsWorld

Records = npt.NDArray[np.void]
TARGETS = ("centroid", "origin", "middle", "tip")  # of pulls, by number
_LAWS = 2  # pulls and arrivals that a world may have, of each
_FLOAT, _WHOLE = "f8", "i8"


def _record(**fields: tuple[str, ...]) -> np.dtype[Any]:
    """Return a record type: names of fields by their kind, "f8*3" for three numbers."""
    made: list[Any] = []
    for kind, names in fields.items():
        base, _, count = kind.partition("x")
        made += [(n, base, (int(count),)) if count else (n, base) for n in names]
    return np.dtype(made, align=True)


# What the numbers mean is said in `worlds.physics`; `wind` is 0 (none), 1, or 2 (bent).
WORLD = _record(
    f8=(
        *("tick", "gravity", "drag", "drag_rise", "half", "floor", "ceiling"),
        *("sine", "tangent", "cart_mass", "cart_radius", "cart_height", "bottom"),
        *("joint", "cart_axial", "push", "pole_mass", "pole_radius", "pole_length"),
        *("foot", "centre", "about", "pole_across", "pole_axial", "ball_mass"),
        *("ball_radius", "wind_speed", "wind_low", "start_ball", "clearance"),
        *("lowest", "highest"),
    ),
    i8=("lag", "ticks", "weighs", "wind", "railed", "pulls", "arrivals"),
    f8x2=(
        *("pull_low", "pull_high", "arrival_slowest", "arrival_fastest"),
        *("arrival_nearest", "arrival_furthest", "arrival_clearance"),
    ),
    i8x2=("pull_target", "arrival_ahead", "arrival_start", "arrival_cart"),
)
# yaw, turn: the cart's angle about z and its rate. seen_..: what a world with lag
# shows. first: the cart's first place; travel: its place when a ball last came. push:
# on the cart in the hidden tick. arrived: balls so far. age: ticks before `ticks`.
LANE = _record(
    f8=("yaw", "turn", "bounce"),
    f8x2=(
        *("cart", "velocity", "heading", "push", "first", "travel"),
        *("seen_cart", "seen_velocity"),
    ),
    f8x3=("spin",),
    f8x4=("pole", "seen_pole"),
    i8=("arrived", "ticks", "age"),
    u8=("seed",),
)
# moving: 1 for a ball that can be moved. rail: its unit axis, 0 for a free one.
BALL = _record(f8=("moving",), f8x3=("place", "speed", "rail"), i8=("there",))
# normal: from the other side to the ball, or into the box. mass: inverse of what a unit
# of impulse adds to the speed of separation. target: the speed of separation asked for.
# ball, other: numbers of balls, -1 for none. body: 0 none, 1 cart, 2 pole. arm: from
# the cart's axis, or the pole's joint, to the touched point. change: what a unit of
# impulse adds to the cart's velocity (2), the pole's spin (3) and the cart's turn.
CONTACT = _record(
    f8=("mass", "target", "impulse"),
    f8x3=("normal", "arm"),
    f8x6=("change",),
    i8=("ball", "other", "body"),
)


def world_record(world: PhysicsWorld) -> Records:
    """Return a world's numbers, one record in an array (1,)."""
    cart, pole, ball, arena = world.cart, world.pole, world.ball, world.arena
    sine, tangent = rules.fall_bounds(pole.fall)
    wind = world.wind
    middle = cart.bottom + 0.5 * cart.height
    numbers = {
        "tick": world.tick,
        "gravity": world.gravity,
        "drag": world.damping[0],
        "drag_rise": world.damping[1],
        "half": arena.half,
        "floor": arena.floor,
        "ceiling": arena.ceiling,
        "sine": sine,
        "tangent": tangent,
        "cart_mass": cart.mass,
        "cart_radius": cart.radius,
        "cart_height": cart.height,
        "bottom": cart.bottom,
        "joint": cart.joint,
        "cart_axial": cart.inertia[1],
        "push": cart.push,
        "pole_mass": pole.mass,
        "pole_radius": pole.radius,
        "pole_length": pole.length,
        "foot": pole.foot,
        "centre": pole.centre,
        "about": pole.inertia[0] + pole.mass * pole.centre * pole.centre,
        "pole_across": pole.inertia[0],
        "pole_axial": pole.inertia[1],
        "ball_mass": ball.mass,
        "ball_radius": ball.radius,
        "wind_speed": wind.speed if wind else 0.0,
        "wind_low": wind.speed * rules.wind_share(middle) if wind else 0.0,
        "start_ball": world.start.ball,
        "clearance": world.start.clearance,
        "lowest": world.start.heights[0],
        "highest": world.start.heights[1],
        "lag": world.lag,
        "ticks": world.ticks,
        "weighs": ball.weighs,
        "wind": 1 + wind.bent if wind else 0,
        "railed": any(law.kind == "rail" for law in world.laws),
        "pulls": len(world.pulls),
        "arrivals": len(world.spawns),
    }
    if max(len(world.pulls), len(world.spawns)) > _LAWS:
        raise ValueError(f"a world must have at most {_LAWS} pulls and {_LAWS} spawns")
    made = np.zeros(1, WORLD)
    for name, value in numbers.items():
        made[name] = value
    for i, pull in enumerate(world.pulls):
        made["pull_target"][0, i] = TARGETS.index(pull.target)
        made["pull_low"][0, i], made["pull_high"][0, i] = pull.size
    for i, spawn in enumerate(world.spawns):
        made["arrival_ahead"][0, i] = spawn.placement == "ahead"
        made["arrival_start"][0, i] = spawn.around == "start"
        made["arrival_cart"][0, i] = spawn.around == "cart"
        made["arrival_slowest"][0, i], made["arrival_fastest"][0, i] = spawn.speeds
        made["arrival_nearest"][0, i], made["arrival_furthest"][0, i] = spawn.distances
        made["arrival_clearance"][0, i] = spawn.clearance
    return made


def most_balls(world: PhysicsWorld) -> int:
    """Return how many balls an episode of a world can hold."""
    return world.ball.most + int(timetable(world).sum())


def timetable(world: PhysicsWorld) -> npt.NDArray[np.bool_]:
    """Return where balls arrive: flags (laws of arrivals, ticks + 2) by tick."""
    flags = np.zeros((len(world.spawns), world.ticks + 2), dtype=np.bool_)
    for i, spawn in enumerate(world.spawns):
        flags[i, 1:] = [is_due(spawn.every, t) for t in range(1, world.ticks + 2)]
    return flags


def most_contacts(balls: int) -> int:
    """Return how many contacts a lane can have: walls, pairs, cart, pole."""
    return 3 * balls + balls * (balls - 1) // 2 + 2 * balls + 4


def draw_states(world: PhysicsWorld, count: int, seed: int) -> list[SceneState]:
    """Return start states, each of its own stream.

    Args:
        world: The world that is played.
        count: Of states.
        seed: Of all of them.
    """
    return [draw_start(world, seeding.stream(seed, "batched", i)) for i in range(count)]


def lanes_of(states: Sequence[SceneState], slots: int) -> tuple[Records, Records]:
    """Return exact states as lanes and their balls.

    Args:
        states: One a lane.
        slots: Room for balls in each lane.
    Returns: Records (lanes,) and (lanes, slots), with seeds 0.
    """
    lanes, balls = np.zeros(len(states), LANE), np.zeros((len(states), slots), BALL)
    for lane, row, state in zip(lanes, balls, states, strict=True):
        yaw, turn = state.yaw
        pole = rules.turned(state.pole, yaw)
        lane["yaw"], lane["turn"], lane["bounce"] = yaw, turn, state.restitution
        lane["pole"] = lane["seen_pole"] = pole
        lane["spin"] = _in_world(pole, state.rates, turn)
        lane["velocity"] = lane["seen_velocity"] = state.velocity
        for name in ("cart", "first", "travel", "seen_cart"):
            lane[name] = state.cart
        lane["heading"], lane["push"] = state.wind, state.push
        lane["arrived"] = len(state.balls)
        for ball, known in zip(row, state.balls, strict=False):
            _put_ball(ball, known)
    return lanes, balls


def _put_ball(record: Any, ball: BallState) -> None:
    record["place"], record["speed"] = ball.position, ball.velocity
    record["rail"] = (*ball.rail, 0.0) if ball.rail else 0.0
    record["moving"], record["there"] = not ball.fixed, 1


def _in_world(q: Sequence[float], rates: Sequence[float], turn: float) -> tuple[float, ...]:
    """Return joint rates, kept in the pole's own frame, in the world's."""
    axis, w = np.array(q[:3]), q[3]
    twice = 2.0 * np.cross(axis, rates)
    x, y, z = (np.asarray(rates) + w * twice + np.cross(axis, twice)).tolist()
    return x, y, z + turn
