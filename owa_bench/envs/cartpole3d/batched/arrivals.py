"""Balls that come during episodes: the law of `spawning`, on columns."""

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d import spawning
from owa_bench.envs.cartpole3d.batched import draws
from owa_bench.envs.cartpole3d.batched.pool import Lanes
from owa_bench.worlds.physics import PhysicsWorld, Spawn

_SPAWNS = 100  # first of the numbers that arrivals draw at a tick
_PLACES = 16  # places tried for a ball that flies; two thirds are free at worst
_TRIES = 100  # places tried for one that rests


def most(world: PhysicsWorld) -> int:
    """Return how many balls an episode of a world can hold."""
    ticks = range(1, world.ticks + 2)
    return world.ball.most + sum(
        sum(spawning.due(spawn.every, tick) for tick in ticks) for spawn in world.spawns
    )


def timetable(world: PhysicsWorld, device: torch.device) -> list[Tensor]:
    """Return for each source the ticks at which a ball comes, as flags."""
    ticks = range(world.ticks + 2)
    return [
        torch.tensor([t > 0 and spawning.due(spawn.every, t) for t in ticks]).to(device)
        for spawn in world.spawns
    ]


def arrive(world: PhysicsWorld, lanes: Lanes, table: list[Tensor]) -> None:
    """Let balls come where one is due at the next tick; an episode's first is 1."""
    ticks = (lanes.ticks + lanes.age + 1).clamp_max(world.ticks + 1)
    for number, (spawn, flags) in enumerate(zip(world.spawns, table, strict=True)):
        at = torch.nonzero(flags[ticks]).view(-1)
        if at.numel():
            seeds = draws.derived(draws.derived(lanes.seeds[at], ticks[at]), number)
            _come(world, spawn, lanes, at, seeds)


def _come(
    world: PhysicsWorld, spawn: Spawn, lanes: Lanes, at: Tensor, seeds: Tensor
) -> None:
    """Put one ball into each of these lanes that has a place for it."""
    if spawn.placement == "ahead":
        place, found = _ahead(world, spawn, lanes, at, seeds)
        speed = torch.zeros_like(place)
        lanes.travel[:, at] = lanes.seen(world.lag)[0][:, at]
    else:
        place, found = _anywhere(world, spawn, lanes, at, seeds)
        speed = _speed(spawn, seeds, place)
    at, place, speed = at[found], place[:, found], speed[:, found]
    slot = lanes.came[at].clamp_max(lanes.there.shape[0] - 1)
    lanes.balls[:, slot, at] = place
    lanes.velocity[:, slot, at] = speed
    lanes.there[slot, at] = True
    lanes.moving[slot, at] = 1.0
    lanes.came[at] += 1


def _anywhere(
    world: PhysicsWorld, spawn: Spawn, lanes: Lanes, at: Tensor, seeds: Tensor
) -> tuple[Tensor, Tensor]:
    """Return a place as at reset, clear of the cart's axis."""
    law = world.start
    dtype = lanes.balls.dtype
    u = draws.uniform(seeds, _SPAWNS, 2 * _PLACES + 1, dtype)
    x, y = (law.ball * (2.0 * part - 1.0) for part in (u[:_PLACES], u[_PLACES:-1]))
    cart = lanes.seen(world.lag)[0]
    off = (lanes.began if spawn.around == "start" else cart)[:, at]
    clear = (x - off[0]).square() + (y - off[1]).square() >= law.clearance**2
    first = clear.to(torch.int8).argmax(0, keepdim=True)
    low, high = law.heights
    z = low + (high - low) * u[-1:]
    place = torch.cat((x.gather(0, first), y.gather(0, first), z))
    return place, torch.ones_like(at, dtype=torch.bool)


def _speed(spawn: Spawn, seeds: Tensor, place: Tensor) -> Tensor:
    low, high = spawn.speeds
    u = draws.uniform(seeds, _SPAWNS + 3 * _TRIES, 6, place.dtype)
    sign = torch.where(u[3:] < 0.5, 1.0, -1.0)
    return (low + (high - low) * u[:3]) * sign


def _ahead(
    world: PhysicsWorld, spawn: Spawn, lanes: Lanes, at: Tensor, seeds: Tensor
) -> tuple[Tensor, Tensor]:
    """Return a place along the cart's travel since the last ball, and where one is."""
    cart, began = lanes.seen(world.lag)[0][:, at], lanes.began[:, at]
    way = cart - lanes.travel[:, at]
    norm = way.square().sum(0).sqrt()
    near = cart if spawn.around == "cart" else began
    base = cart if spawn.around == "cart" else torch.zeros_like(cart)
    low, high = spawn.distances
    share = draws.uniform(seeds, _SPAWNS, _TRIES, cart.dtype)
    reach = (low + (high - low) * share) / norm.clamp_min(1e-12)
    x, y = base[0] + reach * way[0], base[1] + reach * way[1]
    limit = spawning.REACH
    free = (x.abs() <= limit) & (y.abs() <= limit) & (norm > 0)
    free &= torch.hypot(x - near[0], y - near[1]) >= spawn.clearance
    for i in range(int(lanes.came[at].max())):
        a, b, c = lanes.balls[:, i][:, at]
        gap = (x - a).square() + (y - b).square() + (spawning.HEIGHT - c).square()
        free &= gap >= spawning.APART**2
    first = free.to(torch.int8).argmax(0, keepdim=True)
    z = torch.full_like(x[:1], spawning.HEIGHT)
    place = torch.cat((x.gather(0, first), y.gather(0, first), z))
    return place, free.any(0)
