"""Contact detection of balls, cart, pole and walls, and the sweeps that resolve them.

Balls meet walls and balls once they touch; a cylinder (cart, pole) counts from `NEAR`
on, as far as the boxes around the bodies overlap. Several contacts of a lane are
resolved by sweeps over all of them.
"""

import math

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d.batched import impulses
from owa_bench.envs.cartpole3d.batched.dynamics import Vector, direction, dot
from owa_bench.envs.cartpole3d.batched.impulses import Contacts, Motion
from owa_bench.worlds.physics import PhysicsWorld

MARGIN = 0.001  # m: PyBullet's, around cylinders
NEAR = 0.02  # m: from here on a cylinder's contact counts
SWEEPS = 5
STILL = 0.01  # m/s: a sweep that changes less is the last


def resolve_contacts(motion: Motion) -> None:
    """Change the velocities of bodies that touch, in place, before bodies move."""
    walls = _walls(motion)
    others = [
        contacts
        for contacts in (
            _pairs(motion),
            *_balls_on_cart_pole(motion),
            *_cart_pole_on_walls(motion),
        )
        if contacts is not None
    ]
    groups = others if walls is None else [walls, *others]
    for contacts in groups:
        impulses.sweep(motion, contacts)
    if not others:
        return  # walls at right angles do not disturb one another
    groups = _coupled(groups, others, motion.lanes)
    for _ in range(SWEEPS if groups else 0):
        if max(impulses.sweep(motion, contacts) for contacts in groups) < STILL:
            return


def _coupled(
    groups: list[Contacts], others: list[Contacts], lanes: int
) -> list[Contacts]:
    """Return the contacts of lanes where one may disturb another."""
    each = torch.bincount(torch.cat([group.lanes_of(lanes) for group in groups]))
    free = torch.bincount(torch.cat([group.lanes_of(lanes) for group in others]))
    both = each[: free.numel()] > 1
    both &= free > 0
    both = torch.cat((both, both.new_zeros(lanes - both.numel())))
    if not both.any():
        return []
    masks = [(group, both[group.lanes_of(lanes)]) for group in groups]
    return [group.select(mask) for group, mask in masks if mask.any()]


def _lean(world: PhysicsWorld) -> float:
    """Return the sine of a tilt that no pole of a living episode exceeds by much."""
    return 1.25 * math.radians(world.pole.fall)


def _walls(motion: Motion) -> Contacts | None:
    """Return the contacts of balls with the six walls."""
    world = motion.world
    arena, radius = world.arena, world.ball.radius
    middle = (arena.floor + arena.ceiling) / 2.0
    x, y, z = motion.balls
    reach = arena.half - radius
    high = (arena.ceiling - arena.floor) / 2.0 - radius
    z = z - middle
    hit = torch.stack((x.abs() >= reach, y.abs() >= reach, z.abs() >= high))
    hit &= motion.moving > 0
    if motion.rails is not None:  # rails may lie outside the box
        side, top = arena.half, high + radius
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
    mass = impulses.inverse(impulses.ball_softness(motion, ball, normal))
    contacts = Contacts(normal, mass, gap, zero.clone(), ball=ball)
    bounce = motion.bounce[ball % motion.lanes]
    return impulses.with_target_speed(motion, contacts, gap, bounce * bounce)


def _pairs(motion: Motion) -> Contacts | None:
    """Return the contacts of balls with balls of their lane."""
    lanes, radius = motion.lanes, motion.world.ball.radius
    count = motion.moving.numel() // lanes
    table = motion.balls.view(3, count, lanes)
    least = 4.0 * radius * radius
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
    a, b = impulses.columns(motion.balls, first), impulses.columns(motion.balls, second)
    x, y, z = (p - q for p, q in zip(a, b, strict=True))
    length = (x * x + y * y + z * z).sqrt().clamp_min(1e-9)
    normal = (x / length, y / length, z / length)
    softness = impulses.ball_softness(motion, first, normal)
    softness = softness + impulses.ball_softness(motion, second, normal)
    # A ball in several pairs gets their pushes at once: each gives its share.
    crowd = torch.bincount(torch.cat((first, second)), minlength=motion.moving.numel())
    share = torch.maximum(crowd[first], crowd[second]).to(length.dtype)
    gap = length - 2.0 * radius
    mass = impulses.inverse(softness) / share
    zero = torch.zeros_like(gap)
    contacts = Contacts(normal, mass, gap, zero, ball=first, other=second)
    bounce = motion.bounce[first % lanes]
    return impulses.with_target_speed(motion, contacts, gap, bounce * bounce)


def _balls_on_cart_pole(motion: Motion) -> tuple[Contacts | None, Contacts | None]:
    """Return the contacts of balls with carts and with poles."""
    world, lanes = motion.world, motion.lanes
    cart, pole, radius = world.cart, world.pole, world.ball.radius
    count = motion.moving.numel() // lanes
    x, y, z = motion.balls.view(3, count, lanes)
    dx, dy = x - motion.cart[0], y - motion.cart[1]
    end = pole.foot + pole.length
    reach = radius + NEAR + _lean(world) * end + pole.radius
    reach = max(reach, radius + cart.radius + NEAR)
    top = cart.joint + end + radius + NEAR
    near = (dx * dx + dy * dy < reach * reach) & (z < top)
    ball = torch.nonzero(near.view(-1)).view(-1)
    if not ball.numel():
        return None, None
    lane = ball % lanes
    at = (dx.reshape(-1)[ball], dy.reshape(-1)[ball], motion.balls[2][ball])
    return (
        _balls_on_cart(motion, ball, lane, at),
        _balls_on_pole(motion, ball, lane, at),
    )


def _balls_on_cart(
    motion: Motion, ball: Tensor, lane: Tensor, at: Vector
) -> Contacts | None:
    """Return the contacts of these balls with the cart of their lane."""
    cart, radius = motion.world.cart, motion.world.ball.radius
    x, y, z = at
    top = cart.bottom + cart.height
    gap, (out, up) = _cylinder(torch.hypot(x, y), z, cart.radius, cart.bottom, top)
    gap = gap - radius - MARGIN
    box = cart.radius + radius + 3 * MARGIN
    touching = (gap < NEAR) & (x.abs() <= box) & (y.abs() <= box)
    if not touching.any():
        return None
    flat = torch.hypot(x, y).clamp_min(1e-9)
    normal = _masked((out * x / flat, out * y / flat, up), touching)
    ball, lane, gap = ball[touching], lane[touching], gap[touching]
    return _on_body(motion, ball, lane, normal, None, gap)


def _balls_on_pole(
    motion: Motion, ball: Tensor, lane: Tensor, at: Vector
) -> Contacts | None:
    """Return the contacts of these balls with the pole of their lane."""
    world, pole = motion.world, motion.world.pole
    low, high = pole.foot, pole.foot + pole.length
    d = direction(motion.pole[:, lane])
    r = (at[0], at[1], at[2] - world.cart.joint)
    along = dot(r, d)
    side = (r[0] - along * d[0], r[1] - along * d[1], r[2] - along * d[2])
    flat = dot(side, side).sqrt()
    gap, (out, up) = _cylinder(flat, along, pole.radius, low, high)
    gap = gap - world.ball.radius - MARGIN
    touching = gap < torch.where(_boxes_overlap(world, d, r), NEAR, 0.0)
    if not touching.any():
        return None
    flat = flat.clamp_min(1e-9)
    nx, ny, nz = (out * side[i] / flat + up * d[i] for i in range(3))
    height = along.clamp(low, high)
    arm = _masked((height * d[0], height * d[1], height * d[2]), touching)
    ball, lane, gap = ball[touching], lane[touching], gap[touching]
    normal = _masked((nx, ny, nz), touching)
    return _on_body(motion, ball, lane, normal, arm, gap)


def _masked(vector: Vector, mask: Tensor) -> Vector:
    return vector[0][mask], vector[1][mask], vector[2][mask]


def _boxes_overlap(world: PhysicsWorld, d: Vector, r: Vector) -> Tensor:
    """Return where the boxes that the engine draws around ball and pole overlap."""
    pole = world.pole
    low, high = pole.foot, pole.foot + pole.length
    half, centre = (high - low) / 2.0, (high + low) / 2.0
    inside = torch.ones_like(r[0], dtype=torch.bool)
    for i in range(3):
        width = half * d[i].abs() + pole.radius + world.ball.radius + 3 * MARGIN
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


def _on_body(
    motion: Motion,
    ball: Tensor,
    lane: Tensor,
    normal: Vector,
    arm: Vector | None,
    gap: Tensor,
) -> Contacts:
    """Return the contacts of balls with cart or pole; they do not bounce."""
    back = (-normal[0], -normal[1], -normal[2])
    response = impulses.cart_response(motion, lane, back, arm)
    softness = impulses.ball_softness(motion, ball, normal)
    mass, zero = impulses.inverse(response.softness + softness), torch.zeros_like(gap)
    contacts = Contacts(
        normal,
        mass,
        gap,
        zero,
        ball=ball,
        lane=lane,
        arm=arm,
        response=response.changes,
    )
    return impulses.with_target_speed(motion, contacts, gap, 0.0)


def _cart_pole_on_walls(motion: Motion) -> tuple[Contacts | None, Contacts | None]:
    """Return contacts of the cart, and of a long pole's end, with the side walls."""
    world, pole = motion.world, motion.world.pole
    half = world.arena.half
    gaps = half - world.cart.radius - motion.cart.abs()
    cart = _point_on_walls(motion, gaps, motion.cart, None)
    end = pole.foot + pole.length
    if _lean(world) * end < world.cart.radius:
        return cart, None
    d = direction(motion.pole)
    tip = motion.cart + end * torch.stack(d[:2])
    gaps = half - pole.radius - tip.abs()
    arm = (end * d[0], end * d[1], end * d[2])
    return cart, _point_on_walls(motion, gaps, tip, arm)


def _point_on_walls(
    motion: Motion, gaps: Tensor, places: Tensor, arm: Vector | None
) -> Contacts | None:
    """Return the contacts of one point of cart or pole a lane with the side walls."""
    axis, lane = torch.nonzero(gaps <= 0.0, as_tuple=True)
    if not lane.numel():
        return None
    inward = -torch.sign(places[axis, lane])
    zero = torch.zeros_like(inward)
    x, y = (torch.where(axis == i, inward, zero) for i in range(2))
    normal = (x, y, zero)
    at = None if arm is None else _masked(arm, lane)
    response = impulses.cart_response(motion, lane, normal, at)
    gap = gaps[axis, lane]
    mass, still = impulses.inverse(response.softness), torch.zeros_like(gap)
    contacts = Contacts(
        normal, mass, gap, still, lane=lane, arm=at, response=response.changes
    )
    return impulses.with_target_speed(motion, contacts, gap, 0.0)
