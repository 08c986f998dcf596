"""What acts on balls, cart and pole: drag, weight, pulls and wind.

The numbers are those of `rules`, the formulas its own on columns.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.batched import draws
from owa_bench.envs.cartpole3d.batched.dynamics import Vector, direction, slow
from owa_bench.envs.cartpole3d.batched.pool import Lanes
from owa_bench.worlds.physics import PhysicsWorld, Pull, Wind

_PULLS = 1000  # first of the numbers that pulls draw in an episode


class Gust(NamedTuple):
    """The wind's force on the cart (x, y), and on the pole at its middle."""

    cart: tuple[Tensor, Tensor]
    pole: tuple[Tensor, Tensor] | None


def on_balls(world: PhysicsWorld, lanes: Lanes) -> Tensor | None:
    """Return the acceleration of every ball but for drag, None where there is none."""
    total: Tensor | None = None
    for place, pull in enumerate(world.pulls):
        part = _pulled(world, lanes, pull, place)
        total = part if total is None else total + part
    if world.wind is not None:
        blown = _blown(world, world.wind, lanes) / world.ball.mass
        total = blown if total is None else total + blown
    if world.ball.weighs:
        total = torch.zeros_like(lanes.balls) if total is None else total
        total[2] -= world.gravity
    return total


def gust(world: PhysicsWorld, lanes: Lanes, d: Vector) -> Gust | None:
    """Return what the wind does to cart and pole, None where there is none."""
    wind = world.wind
    if wind is None:
        return None
    if wind.bent:
        x = lanes.heading[0]
        size = 0.5 * rules.BENT_CART * wind.speed**2 * x * x * (1.0 + x * x)
        return Gust((torch.copysign(size, x), torch.zeros_like(x)), None)
    cart, pole = world.cart, world.pole
    low = wind.speed * rules.wind_share(cart.bottom + 0.5 * cart.height)
    area = 2.0 * cart.radius * cart.height
    on_cart = _drag(area * rules.DRAG_CART, low * lanes.heading, lanes.cart_velocity)
    middle = cart.joint + (pole.foot + 0.5 * pole.length) * d[2]
    air = wind.speed * _share(middle) * lanes.heading
    area = 2.0 * pole.radius * pole.length
    on_pole = _drag(area * rules.DRAG_POLE, air, lanes.cart_velocity)
    return Gust((on_cart[0], on_cart[1]), (on_pole[0], on_pole[1]))


def dragged(world: PhysicsWorld, velocity: Tensor, rails: Tensor | None) -> Tensor:
    """Return velocities after a tick of drag; balls on rails have none."""
    speeds = (velocity[0], velocity[1], velocity[2])
    loss = world.tick * slow(speeds, world.damping)
    if rails is not None:
        loss = loss * (1.0 - rails.square().sum(0))
    return velocity * (1.0 - loss)


def _blown(world: PhysicsWorld, wind: Wind, lanes: Lanes) -> Tensor:
    """Return the wind's force on every ball."""
    speed = wind.speed * _share(lanes.balls[2])
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


def _share(height: Tensor) -> Tensor:
    """Return the wind's share of its speed, as `rules.wind_share`."""
    edge = torch.minimum(height, 10.0 - height)
    total = torch.zeros_like(height)
    for (low, start), (high, end) in zip(
        rules.PROFILE, rules.PROFILE[1:], strict=False
    ):
        width = high - low
        total = total + (edge - low).clamp(0.0, width) * ((end - start) / width)
    return total


def _pulled(world: PhysicsWorld, lanes: Lanes, pull: Pull, place: int) -> Tensor:
    """Return the acceleration that a pull gives to every ball."""
    way = _target(world, lanes, pull) - lanes.balls
    unit = way / way.square().sum(0).sqrt().clamp_min(1e-9)
    return unit * (_size(lanes, pull, place) / world.ball.mass)


def _target(world: PhysicsWorld, lanes: Lanes, pull: Pull) -> Tensor:
    """Return where a pull leads, (3, 1, lanes)."""
    if pull.target == "centroid":
        there = lanes.there.to(lanes.balls.dtype)
        sums = (lanes.balls * there).sum(1, keepdim=True)
        return sums / there.sum(0).clamp_min(1.0)
    goal = torch.zeros_like(lanes.balls[:, :1])
    if pull.target == "origin":
        return goal
    cart, pole = lanes.seen(world.lag)
    goal[:2, 0] = cart
    if pull.target == "middle":
        goal[2] = rules.MIDDLE
        return goal
    top = world.pole.foot + world.pole.length
    goal[:, 0] += top * torch.stack(direction(pole))
    goal[2] += world.cart.joint
    return goal


def _size(lanes: Lanes, pull: Pull, place: int) -> Tensor | float:
    """Return the pull's size, drawn anew for each ball and tick if it is a range."""
    low, high = pull.size
    if low == high:
        return low
    seeds = draws.derived(lanes.seeds, lanes.ticks)
    slots = lanes.there.shape[0]
    u = draws.uniform(seeds, _PULLS * (place + 1), slots, lanes.balls.dtype)
    return low + (high - low) * u
