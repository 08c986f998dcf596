"""Contacts of balls, cart, pole and walls: where they are; all met in sweeps.

Balls meet walls and balls once they touch; a cylinder (cart, pole) counts from `NEAR`
on, as far as the boxes around the bodies overlap. Several contacts of a lane are met
by sweeps over all of them.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d.batched.dynamics import Body, Vector, direction, dot
from owa_bench.envs.cartpole3d.batched.impulses import (
    Motion,
    Touch,
    answer,
    columns,
    finished,
    inverse,
    softness,
    sweep,
)

MARGIN = 0.001  # m: PyBullet's, around cylinders
NEAR = 0.02  # m: from here on a cylinder's contact counts
SWEEPS = 5
STILL = 0.01  # m/s: a sweep that changes less is the last


class Shapes(NamedTuple):
    """Sizes that contacts need; `bounce` is the restitution of a ball per lane.

    lean: sine of a tilt that no pole of a living episode exceeds by much.
    """

    radius: float
    ball_mass: float
    cart_radius: float
    cart_low: float
    cart_high: float
    joint: float
    pole_radius: float
    pole_low: float
    pole_high: float
    lean: float
    half: float
    floor: float
    ceiling: float
    tick: float
    bounce: Tensor


def meet(body: Body, motion: Motion, shapes: Shapes) -> None:
    """Change the velocities of what touches."""
    walls = _walls(motion, shapes)
    others = [
        touch
        for touch in (
            _pairs(motion, shapes),
            *_cart_and_pole(body, motion, shapes),
            *_sides(body, motion, shapes),
        )
        if touch is not None
    ]
    touches = others if walls is None else [walls, *others]
    for touch in touches:
        sweep(motion, touch, shapes.ball_mass)
    if not others:
        return  # walls at right angles do not disturb one another
    touches = _coupled(touches, others, shapes.bounce.numel())
    for _ in range(SWEEPS if touches else 0):
        if max(sweep(motion, touch, shapes.ball_mass) for touch in touches) < STILL:
            return


def _coupled(touches: list[Touch], others: list[Touch], lanes: int) -> list[Touch]:
    """Return the contacts of lanes where one may disturb another."""
    each = torch.bincount(torch.cat([_lane(t, lanes) for t in touches]))
    free = torch.bincount(torch.cat([_lane(t, lanes) for t in others]))
    both = each[: free.numel()] > 1
    both &= free > 0
    both = torch.cat((both, both.new_zeros(lanes - both.numel())))
    if not both.any():
        return []
    chosen = [(touch, both[_lane(touch, lanes)]) for touch in touches]
    return [touch.only(mask) for touch, mask in chosen if mask.any()]


def _lane(touch: Touch, lanes: int) -> Tensor:
    """Return the lane of each contact of a list."""
    if touch.ball is not None:
        return touch.ball % lanes
    if touch.lane is None:
        raise ValueError("a contact must have a ball or a lane")
    return touch.lane


def _walls(motion: Motion, shapes: Shapes) -> Touch | None:
    """Return the contacts of balls with the six walls."""
    middle = (shapes.floor + shapes.ceiling) / 2.0
    x, y, z = motion.balls
    reach = shapes.half - shapes.radius
    high = (shapes.ceiling - shapes.floor) / 2.0 - shapes.radius
    z = z - middle
    hit = torch.stack((x.abs() >= reach, y.abs() >= reach, z.abs() >= high))
    hit &= motion.moving > 0
    if motion.rails is not None:  # rails may lie outside the box
        side, top = shapes.half, high + shapes.radius
        hit &= (x.abs() < side) & (y.abs() < side) & (z.abs() < top)
    axis, ball = torch.nonzero(hit, as_tuple=True)
    if not ball.numel():
        return None
    place = torch.where(axis == 0, x[ball], torch.where(axis == 1, y[ball], z[ball]))
    sign = -torch.sign(place)
    gap = torch.where(axis == 2, high, reach) - place.abs()
    zero = torch.zeros_like(gap)
    nx, ny, nz = (torch.where(axis == i, sign, zero) for i in range(3))
    normal = (nx, ny, nz)
    soft = softness(motion, ball, normal, shapes.ball_mass)
    touch = Touch(ball, None, None, None, normal, (), inverse(soft), gap, zero.clone())
    bounce = shapes.bounce[ball % shapes.bounce.numel()]
    return finished(motion, touch, bounce * bounce, shapes.tick)


def _pairs(motion: Motion, shapes: Shapes) -> Touch | None:
    """Return the contacts of balls with balls of their lane."""
    lanes = shapes.bounce.numel()
    count = motion.moving.numel() // lanes
    table = motion.balls.view(3, count, lanes)
    least = 4.0 * shapes.radius * shapes.radius
    firsts, seconds = [], []
    for i in range(1, count):  # slot i against all below it
        gaps = table[:, :i] - table[:, i : i + 1]
        close = gaps.square().sum(0) <= least
        slot, lane = torch.nonzero(close, as_tuple=True)
        if lane.numel():
            firsts.append(slot * lanes + lane)
            seconds.append(i * lanes + lane)
    if not firsts:
        return None
    first, second = torch.cat(firsts), torch.cat(seconds)
    return _pair(motion, shapes, first, second)


def _pair(
    motion: Motion, shapes: Shapes, first: Tensor, second: Tensor
) -> Touch | None:
    """Return the contacts of given pairs of balls."""
    a, b = columns(motion.balls, first), columns(motion.balls, second)
    x, y, z = (p - q for p, q in zip(a, b, strict=True))
    length = (x * x + y * y + z * z).sqrt().clamp_min(1e-9)
    normal = (x / length, y / length, z / length)
    soft = softness(motion, first, normal, shapes.ball_mass)
    soft = soft + softness(motion, second, normal, shapes.ball_mass)
    # A ball in several pairs gets their pushes at once: each gives its share.
    crowd = torch.bincount(torch.cat((first, second)), minlength=motion.moving.numel())
    share = torch.maximum(crowd[first], crowd[second]).to(length.dtype)
    gap = length - 2.0 * shapes.radius
    touch = Touch(
        first,
        second,
        None,
        None,
        normal,
        (),
        inverse(soft) / share,
        gap,
        torch.zeros_like(gap),
    )
    bounce = shapes.bounce[first % shapes.bounce.numel()]
    return finished(motion, touch, bounce * bounce, shapes.tick)


def _cart_and_pole(
    body: Body, motion: Motion, shapes: Shapes
) -> tuple[Touch | None, Touch | None]:
    """Return the contacts of balls with carts and with poles."""
    lanes = shapes.bounce.numel()
    count = motion.moving.numel() // lanes
    x, y, z = motion.balls.view(3, count, lanes)
    dx, dy = x - motion.cart[0], y - motion.cart[1]
    reach = shapes.radius + NEAR + shapes.lean * shapes.pole_high + shapes.pole_radius
    reach = max(reach, shapes.radius + shapes.cart_radius + NEAR)
    top = shapes.joint + shapes.pole_high + shapes.radius + NEAR
    near = (dx * dx + dy * dy < reach * reach) & (z < top)
    ball = torch.nonzero(near.view(-1)).view(-1)
    if not ball.numel():
        return None, None
    lane = ball % lanes
    at = (dx.reshape(-1)[ball], dy.reshape(-1)[ball], motion.balls[2][ball])
    return (
        _with_cart(body, motion, shapes, ball, lane, at),
        _with_pole(body, motion, shapes, ball, lane, at),
    )


def _with_cart(
    body: Body, motion: Motion, shapes: Shapes, ball: Tensor, lane: Tensor, at: Vector
) -> Touch | None:
    """Return the contacts of these balls with the cart of their lane."""
    x, y, z = at
    gap, normal = _cylinder(
        torch.hypot(x, y), z, shapes.cart_radius, shapes.cart_low, shapes.cart_high
    )
    gap = gap - shapes.radius - MARGIN
    box = shapes.cart_radius + shapes.radius + 3 * MARGIN
    touching = (gap < NEAR) & (x.abs() <= box) & (y.abs() <= box)
    if not touching.any():
        return None
    out, up = normal
    flat = torch.hypot(x, y).clamp_min(1e-9)
    n = tuple(part[touching] for part in (out * x / flat, out * y / flat, up))
    return _struck(
        body,
        motion,
        shapes,
        (ball[touching], lane[touching]),
        (n[0], n[1], n[2]),
        None,
        gap[touching],
    )


def _with_pole(
    body: Body, motion: Motion, shapes: Shapes, ball: Tensor, lane: Tensor, at: Vector
) -> Touch | None:
    """Return the contacts of these balls with the pole of their lane."""
    d = direction(motion.pole[:, lane])
    r = (at[0], at[1], at[2] - shapes.joint)
    along = dot(r, d)
    side = tuple(r[i] - along * d[i] for i in range(3))
    flat = dot((side[0], side[1], side[2]), (side[0], side[1], side[2])).sqrt()
    gap, (out, up) = _cylinder(
        flat, along, shapes.pole_radius, shapes.pole_low, shapes.pole_high
    )
    gap = gap - shapes.radius - MARGIN
    touching = gap < torch.where(_boxed(shapes, d, r), NEAR, 0.0)
    if not touching.any():
        return None
    flat = flat.clamp_min(1e-9)
    n = tuple((out * side[i] / flat + up * d[i])[touching] for i in range(3))
    height = along.clamp(shapes.pole_low, shapes.pole_high)
    arm = tuple((height * d[i])[touching] for i in range(3))
    return _struck(
        body,
        motion,
        shapes,
        (ball[touching], lane[touching]),
        (n[0], n[1], n[2]),
        (arm[0], arm[1], arm[2]),
        gap[touching],
    )


def _boxed(shapes: Shapes, d: Vector, r: Vector) -> Tensor:
    """Return where the boxes that the engine draws around ball and pole overlap."""
    half = (shapes.pole_high - shapes.pole_low) / 2.0
    centre = (shapes.pole_high + shapes.pole_low) / 2.0
    inside = torch.ones_like(r[0], dtype=torch.bool)
    for i in range(3):
        width = half * d[i].abs() + shapes.pole_radius + shapes.radius + 3 * MARGIN
        inside &= (r[i] - centre * d[i]).abs() <= width
    return inside


def _cylinder(
    out: Tensor, up: Tensor, radius: float, low: float, high: float
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return distance and direction (outward, upward) of a point from a cylinder.

    A point inside is pushed out where the wall is nearest.
    """
    dx = (out - radius).clamp_min(0.0)
    dz = up - up.clamp(low, high)
    length = torch.hypot(dx, dz)
    depth_side, depth_top, depth_foot = radius - out, high - up, up - low
    depth = torch.minimum(depth_side, torch.minimum(depth_top, depth_foot))
    inside = length <= 0.0
    ends = torch.where(depth_top < depth_foot, 1.0, -1.0)
    by_side = depth_side <= torch.minimum(depth_top, depth_foot)
    safe = length.clamp_min(1e-12)
    nx = torch.where(inside, by_side.to(out.dtype), dx / safe)
    nz = torch.where(inside, torch.where(by_side, 0.0, ends), dz / safe)
    return torch.where(inside, -depth, length), (nx, nz)


def _struck(
    body: Body,
    motion: Motion,
    shapes: Shapes,
    who: tuple[Tensor, Tensor],
    n: Vector,
    arm: Vector | None,
    gap: Tensor,
) -> Touch:
    """Return the contacts of balls with cart or pole; they do not bounce."""
    ball, lane = who
    back = (-n[0], -n[1], -n[2])
    gains, soft = answer(body, motion, lane, back, arm)
    soft = soft + softness(motion, ball, n, shapes.ball_mass)
    touch = Touch(
        ball, None, lane, arm, n, gains, inverse(soft), gap, torch.zeros_like(gap)
    )
    return finished(motion, touch, 0.0, shapes.tick)


def _sides(
    body: Body, motion: Motion, shapes: Shapes
) -> tuple[Touch | None, Touch | None]:
    """Return contacts of the cart, and of a long pole's end, with the side walls."""
    reach = shapes.half - shapes.cart_radius
    gaps = reach - motion.cart.abs()
    cart = _side(body, motion, shapes, gaps, motion.cart, None)
    if shapes.lean * shapes.pole_high < shapes.cart_radius:
        return cart, None
    d = direction(motion.pole)
    tip = motion.cart + shapes.pole_high * torch.stack(d[:2])
    gaps = shapes.half - shapes.pole_radius - tip.abs()
    top = tuple(shapes.pole_high * part for part in d)
    arm = (top[0], top[1], top[2])
    return cart, _side(body, motion, shapes, gaps, tip, arm)


def _side(
    body: Body,
    motion: Motion,
    shapes: Shapes,
    gaps: Tensor,
    places: Tensor,
    arm: Vector | None,
) -> Touch | None:
    """Return the contacts of one point of cart or pole a lane with the side walls."""
    axis, lane = torch.nonzero(gaps <= 0.0, as_tuple=True)
    if not lane.numel():
        return None
    inward = -torch.sign(places[axis, lane])
    zero = torch.zeros_like(inward)
    n = (
        torch.where(axis == 0, inward, zero),
        torch.where(axis == 1, inward, zero),
        zero,
    )
    at = None if arm is None else (arm[0][lane], arm[1][lane], arm[2][lane])
    gains, soft = answer(body, motion, lane, n, at)
    gap = gaps[axis, lane]
    touch = Touch(
        None, None, lane, at, n, gains, inverse(soft), gap, torch.zeros_like(gap)
    )
    return finished(motion, touch, 0.0, shapes.tick)
