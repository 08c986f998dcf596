"""Forces and free motion of cart, pole and balls, in closed form on columns.

The cart slides in x and y; the pole hangs on it by a ball joint, so the pair has five
degrees of freedom. With v the cart's velocity, w the pole's angular velocity in the
world, d the pole's direction, l the height of its centre of mass above the joint,
r = l d, and J = J_t (1 - d d') + J_s d d' its inertia about the joint, Newton and Euler
give

    (M + m) v' + m (w' x r + w x (w x r)) = F + f            (x and y only)
    J w' + w x J w + m r x v' = r x f + t

F acts on the cart, f at the pole's centre of mass (weight and drag in it), t is a
torque. `r x f` has no part along d, so w' follows from v', and v' from two equations.
Vectors are tuples of tensors, one entry a lane: torch then works on long rows. The
numbers of forces are those of `rules`.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.batched.lanes import Lanes, child_seeds, uniform
from owa_bench.worlds.physics import PhysicsWorld, Pull, Wind

Vector = tuple[Tensor, Tensor, Tensor]

_PULLS = 1000  # first of the numbers that pulls draw in an episode


class Accelerations(NamedTuple):
    """Of the cart, (2, lanes) in m/s2, and of the pole's angle, (3, lanes) in 1/s2."""

    cart: Tensor
    pole: Tensor


class _WindForces(NamedTuple):
    """The wind's force on the cart (x, y), and on the pole at its middle."""

    cart: tuple[Tensor, Tensor]
    pole: tuple[Tensor, Tensor] | None


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b.

    Args:
        a: three tensors of one shape.
        b: three tensors of the same shape.

    Returns:
        Three tensors of that shape.
    """
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def dot(a: Vector, b: Vector) -> Tensor:
    """Return a . b.

    Args:
        a: three tensors of one shape.
        b: three tensors of the same shape.

    Returns:
        A tensor of that shape.
    """
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def direction(q: Tensor) -> Vector:
    """Return where the pole points: the z axis rotated by q = (x, y, z, w)."""
    x, y, z, w = q
    return (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))


def joint_inertia(world: PhysicsWorld) -> float:
    """Return the pole's moment of inertia across its joint, kg m2."""
    pole = world.pole
    return pole.inertia[0] + pole.mass * pole.centre * pole.centre


# --- forces ---------------------------------------------------------------------------


def ball_accelerations(world: PhysicsWorld, lanes: Lanes) -> Tensor | None:
    """Return the acceleration of every ball, drag left out.

    Args:
        world: the world that is played.
        lanes: the present state.

    Returns:
        (3, slots, lanes) in m/s2; None where nothing acts.
    """
    total: Tensor | None = None
    for place, pull in enumerate(world.pulls):
        part = _pull(world, lanes, pull, place)
        total = part if total is None else total + part
    if world.wind is not None:
        blown = _wind_on_balls(world, world.wind, lanes) / world.ball.mass
        total = blown if total is None else total + blown
    if world.ball.weighs:
        total = torch.zeros_like(lanes.balls) if total is None else total
        total[2] -= world.gravity
    return total


def damp_balls(world: PhysicsWorld, velocity: Tensor, rails: Tensor | None) -> Tensor:
    """Return velocities after a tick of drag; balls on rails have none.

    Args:
        world: the world that is played.
        velocity: (3, slots, lanes) in m/s.
        rails: (3, slots, lanes) unit axes, zero for free balls; None without rails.

    Returns:
        (3, slots, lanes) in m/s.
    """
    speeds = (velocity[0], velocity[1], velocity[2])
    loss = world.tick * _damping_rate(speeds, world.damping)
    if rails is not None:
        loss = loss * (1.0 - rails.square().sum(0))
    return velocity * (1.0 - loss)


def _wind_on_cart_pole(
    world: PhysicsWorld, wind: Wind, lanes: Lanes, d: Vector
) -> _WindForces:
    if wind.bent:
        x = lanes.heading[0]
        size = 0.5 * rules.BENT_CART * wind.speed**2 * x * x * (1.0 + x * x)
        return _WindForces((torch.copysign(size, x), torch.zeros_like(x)), None)
    cart, pole = world.cart, world.pole
    low = wind.speed * rules.wind_share(cart.bottom + 0.5 * cart.height)
    area = 2.0 * cart.radius * cart.height
    on_cart = _drag(area * rules.DRAG_CART, low * lanes.heading, lanes.cart_velocity)
    middle = cart.joint + (pole.foot + 0.5 * pole.length) * d[2]
    air = wind.speed * _wind_share(middle) * lanes.heading
    area = 2.0 * pole.radius * pole.length
    on_pole = _drag(area * rules.DRAG_POLE, air, lanes.cart_velocity)
    return _WindForces((on_cart[0], on_cart[1]), (on_pole[0], on_pole[1]))


def _wind_on_balls(world: PhysicsWorld, wind: Wind, lanes: Lanes) -> Tensor:
    """Return the wind's force on every ball."""
    speed = wind.speed * _wind_share(lanes.balls[2])
    force = torch.zeros_like(lanes.balls)
    heading = lanes.heading[:, None]
    if wind.bent:
        force[:2] = -rules.BENT_BALL * speed.square() * heading.square()
        return force
    area = math.pi * world.ball.radius**2
    force[:2] = _drag(area * rules.DRAG_BALL, speed * heading, lanes.velocity[:2])
    return force


def _drag(area: float, air: Tensor, body: Tensor) -> Tensor:
    """Return the drag of moving air on bodies; `area` times its coefficient."""
    gap = air - body
    return 0.5 * rules.AIR * area * gap.square().sum(0).sqrt() * gap


def _wind_share(height: Tensor) -> Tensor:
    """Return the wind's share of its speed, as `rules.wind_share`."""
    edge = torch.minimum(height, 10.0 - height)
    total = torch.zeros_like(height)
    for (low, start), (high, end) in zip(
        rules.PROFILE, rules.PROFILE[1:], strict=False
    ):
        width = high - low
        total = total + (edge - low).clamp(0.0, width) * ((end - start) / width)
    return total


def _pull(world: PhysicsWorld, lanes: Lanes, pull: Pull, place: int) -> Tensor:
    """Return the acceleration that a pull gives to every ball."""
    way = _pull_target(world, lanes, pull) - lanes.balls
    unit = way / way.square().sum(0).sqrt().clamp_min(1e-9)
    low, high = pull.size
    size: Tensor | float = low
    if low != high:  # drawn anew for each ball and tick
        seeds = child_seeds(lanes.seeds, lanes.ticks)
        slots = lanes.there.shape[0]
        u = uniform(seeds, _PULLS * (place + 1), slots, lanes.balls.dtype)
        size = low + (high - low) * u
    return unit * (size / world.ball.mass)


def _pull_target(world: PhysicsWorld, lanes: Lanes, pull: Pull) -> Tensor:
    """Return the point that pulls, (3, 1, lanes)."""
    if pull.target == "centroid":
        there = lanes.there.to(lanes.balls.dtype)
        sums = (lanes.balls * there).sum(1, keepdim=True)
        return sums / there.sum(0).clamp_min(1.0)
    goal = torch.zeros_like(lanes.balls[:, :1])
    if pull.target == "origin":
        return goal
    cart, pole = lanes.poses(world.lag)
    goal[:2, 0] = cart
    if pull.target == "middle":
        goal[2] = rules.MIDDLE
        return goal
    top = world.pole.foot + world.pole.length
    goal[:, 0] += top * torch.stack(direction(pole))
    goal[2] += world.cart.joint
    return goal


def _damping_rate(v: tuple[Tensor, ...], damping: tuple[float, float]) -> Tensor:
    """Return a + b |v| of a damping (a, b): the rate at which drag takes speed away."""
    square = v[0] * v[0]
    for part in v[1:]:
        square = square + part * part
    return damping[0] + damping[1] * square.sqrt()


# --- free motion ----------------------------------------------------------------------


def cart_pole_accelerations(
    world: PhysicsWorld, lanes: Lanes, push: Tensor
) -> Accelerations:
    """Return the accelerations of cart and pole: pushes, weight, wind and drag.

    Args:
        world: the world that is played.
        lanes: the present state.
        push: (2, lanes) force on the cart, N.

    Returns:
        The accelerations.
    """
    pole, damping = world.pole, world.damping
    m, reach, about = pole.mass, pole.centre, joint_inertia(world)
    d = direction(lanes.pole)
    v, spin3 = lanes.cart_velocity, lanes.pole_velocity
    w = (spin3[0], spin3[1], spin3[2])
    spin, wd = dot(w, d), cross(w, d)
    turn = _damping_rate(w, damping)
    t = _drag_torque(world, d, w, wd, spin, turn)
    weight = torch.full_like(d[0], -m * world.gravity)
    zero = torch.zeros_like(weight)
    cart, side = (push[0], push[1]), (zero, zero)
    if world.wind is not None:
        blown = _wind_on_cart_pole(world, world.wind, lanes, d)
        cart = (push[0] + blown.cart[0], push[1] + blown.cart[1])
        if blown.pole is not None:  # at the middle, not at the centre of mass
            side = blown.pole
            lever = cross(d, (side[0], side[1], zero))
            offset = pole.foot + 0.5 * pole.length - reach
            t = (
                t[0] + offset * lever[0],
                t[1] + offset * lever[1],
                t[2] + offset * lever[2],
            )
    tip = (v[0] + reach * wd[0], v[1] + reach * wd[1], reach * wd[2])
    rate = m * _damping_rate(tip, damping)
    f = (side[0] - rate * tip[0], side[1] - rate * tip[1], weight - rate * tip[2])
    lift = cross(t, d)
    along_f = dot(f, d)
    still = _damping_rate((v[0], v[1]), damping) * world.cart.mass
    square = dot(w, w)
    share = m * reach / about
    load = [
        cart[i]
        - still * v[i]
        + f[i]
        - share * (reach * (f[i] - along_f * d[i]) + lift[i])
        - m * reach * (spin * w[i] - square * d[i])
        for i in range(2)
    ]
    a = solve_cart(world, d, load)
    g = (f[0] - m * a[0], f[1] - m * a[1], f[2])
    rg = cross(d, g)
    angular = [(reach * rg[i] + t[i]) / about - turn * spin * d[i] for i in range(3)]
    return Accelerations(torch.stack(a), torch.stack(angular))


def _drag_torque(
    world: PhysicsWorld, d: Vector, w: Vector, wd: Vector, spin: Tensor, turn: Tensor
) -> Vector:
    """Return the torques across the pole: drag on its rotation, and w x J w."""
    across, along = world.pole.inertia
    gyro = (along - joint_inertia(world)) * spin
    x, y, z = (-turn * across * (w[i] - spin * d[i]) - gyro * wd[i] for i in range(3))
    return x, y, z


def solve_cart(
    world: PhysicsWorld, d: Vector, load: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Solve the two equations of the cart: (base 1 + share d d') a = load.

    Args:
        world: its masses give base and share.
        d: direction of the pole.
        load: x and y of the right-hand side, N.

    Returns:
        x and y of the acceleration, m/s2.
    """
    m, reach = world.pole.mass, world.pole.centre
    moved = m * reach / joint_inertia(world) * m * reach
    base = world.cart.mass + m - moved
    inner = (d[0] * load[0] + d[1] * load[1]) * moved
    square = d[0] * d[0] + d[1] * d[1]
    factor = inner / (base + moved * square)
    return (load[0] - factor * d[0]) / base, (load[1] - factor * d[1]) / base


def rotate(q: Tensor, w: Tensor, dt: float) -> Tensor:
    """Return orientations after a step at an angular velocity, of length 1.

    Args:
        q: (4, lanes) quaternions x, y, z, w.
        w: (3, lanes) angular velocity in the world, 1/s.
        dt: of the step, s.

    Returns:
        (4, lanes).
    """
    spin = (w[0], w[1], w[2])
    angle = dot(spin, spin).clamp_min(1e-20).sqrt()
    half = 0.5 * dt * angle
    s = torch.sin(half) / angle
    c = torch.cos(half)
    x, y, z = (part * s for part in spin)
    qx, qy, qz, qw = q
    new = torch.stack(
        (
            c * qx + x * qw + y * qz - z * qy,
            c * qy - x * qz + y * qw + z * qx,
            c * qz + x * qy - y * qx + z * qw,
            c * qw - x * qx - y * qy - z * qz,
        )
    )
    return new / new.square().sum(0).sqrt()
