"""State of many lanes as tensors, its random numbers, and balls that arrive.

A lane draws the same numbers whatever the other lanes do, on any device: number k of a
lane is a hash of (seed, k). The hash is the finaliser of SplitMix64 applied twice.
Start states come from the law that both backends share, `start.draw_start`.
"""

from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from owa_bench import seeding
from owa_bench.envs.cartpole3d import start
from owa_bench.envs.cartpole3d.start import SceneState, draw_start, is_due
from owa_bench.worlds.physics import PhysicsWorld, Spawn

AWAY = 1000.0  # m: where balls that are not there are kept, far from one another
_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed number
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB
_BITS = 24  # of a uniform number: exact in float32
_SPAWNS = 100  # first of the numbers that arrivals draw at a tick
_PLACES = 16  # places tried for a ball that flies; two thirds are free at worst
_TRIES = 100  # places tried for one that rests


# --- random numbers -------------------------------------------------------------------


def hash64(x: Tensor) -> Tensor:
    """Return a hash of 64-bit integers (..), bit by bit unlike its input."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        x = (x ^ _shift_right(x, shift)) * factor
    return x ^ _shift_right(x, 31)


def uniform(seeds: Tensor, first: int, count: int, dtype: torch.dtype) -> Tensor:
    """Return numbers `first` to `first + count` of each seed.

    Args:
        seeds: (lanes,) of int64.
        first: number of the first draw.
        count: of draws.
        dtype: of the result.

    Returns:
        (count, lanes), uniform in [0, 1).
    """
    counters = torch.arange(first, first + count, device=seeds.device)[:, None]
    hashed = hash64(hash64(seeds)[None] + counters * _GOLDEN)
    return _shift_right(hashed, 64 - _BITS).to(dtype) * 2.0**-_BITS


def child_seeds(seeds: Tensor, path: int | Tensor) -> Tensor:
    """Return each lane's child seed at a path.

    Args:
        seeds: (lanes,) of int64.
        path: one for all, or (lanes,).

    Returns:
        (lanes,) of int64.
    """
    return hash64(seeds + hash64(torch.as_tensor(path, device=seeds.device) * _GOLDEN))


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Return x shifted right without its sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


# --- the state ------------------------------------------------------------------------


class Lanes(NamedTuple):
    """The state of many lanes, a column each; `step` changes it in place.

    cart, cart_velocity: (2, lanes). pole: quaternions (4, lanes). pole_velocity:
    (3, lanes) in the world. balls, velocity, rails: (3, slots, lanes); there, moving:
    (slots, lanes). bounce: restitution of a ball. heading: of the wind (2, lanes).
    first: the cart's first place; travel: its place when a ball last came. shown_cart,
    shown_pole: poses before the last tick, which a world with lag shows. arrived: balls
    so far; ticks: agent's steps; age: ticks before them; seeds: of the episode.
    """

    cart: Tensor
    cart_velocity: Tensor
    pole: Tensor
    pole_velocity: Tensor
    balls: Tensor
    velocity: Tensor
    rails: Tensor
    there: Tensor
    moving: Tensor
    bounce: Tensor
    heading: Tensor
    push: Tensor
    first: Tensor
    travel: Tensor
    shown_cart: Tensor
    shown_pole: Tensor
    arrived: Tensor
    ticks: Tensor
    age: Tensor
    seeds: Tensor

    def take(self, at: Tensor) -> Self:
        """Return a copy of the columns `at`, (n,) of int64."""
        return type(self)(*(part.index_select(-1, at) for part in self))

    def put(self, at: Tensor, other: Self) -> None:
        """Replace columns.

        Args:
            at: (n,) numbers of the columns.
            other: n lanes that take their place.
        """
        for mine, part in zip(self, other, strict=True):
            mine.index_copy_(-1, at, part)

    def poses(self, lag: bool) -> tuple[Tensor, Tensor]:
        """Return the poses of cart and pole that a world with or without lag shows."""
        return (self.shown_cart, self.shown_pole) if lag else (self.cart, self.pole)

    def occupied(self) -> Self:
        """Return these lanes without the slots that no ball has taken yet."""
        count = max(int(self.arrived.max()), 1)
        parts = {
            name: getattr(self, name)[..., :count, :].contiguous() for name in _BY_SLOT
        }
        return self._replace(**parts)

    def write_back(self, occupied: Self) -> None:
        """Copy what a tick changed in the result of `occupied`."""
        count = occupied.there.shape[0]
        self.balls[:, :count] = occupied.balls
        self.velocity[:, :count] = occupied.velocity


_BY_SLOT = ("balls", "velocity", "rails", "there", "moving")


def draw_states(world: PhysicsWorld, count: int, seed: int) -> list[SceneState]:
    """Return start states, each of its own stream.

    Args:
        world: the world that is played.
        count: of states.
        seed: of all of them.

    Returns:
        The drawn states.
    """
    return [draw_start(world, seeding.stream(seed, "batched", i)) for i in range(count)]


def lanes_of(
    states: list[SceneState], slots: int, *, device: torch.device, dtype: torch.dtype
) -> Lanes:
    """Return exact states as columns.

    Args:
        states: one a lane.
        slots: room for balls in each lane.
        device: of all tensors.
        dtype: of those that are no integers or flags.

    Returns:
        The lanes, with seeds 0.
    """

    def column(rows: list[tuple[float, ...]]) -> Tensor:
        table = np.asarray(rows, dtype=np.float64).T
        return torch.as_tensor(table, dtype=dtype, device=device).contiguous()

    def balls(part: str) -> Tensor:
        rows = [[_ball_part(state, i, part) for state in states] for i in range(slots)]
        table = torch.as_tensor(np.asarray(rows), dtype=dtype, device=device)
        return table.permute(2, 0, 1).contiguous()

    cart = column([state.cart for state in states])
    pole = column([state.pole for state in states])
    rates = column([state.rates for state in states])
    flags = balls("flags")
    zeros = torch.zeros(len(states), dtype=torch.int64, device=device)
    return Lanes(
        cart=cart,
        cart_velocity=column([state.velocity for state in states]),
        pole=pole,
        pole_velocity=_in_world(pole, rates),
        balls=balls("position"),
        velocity=balls("velocity"),
        rails=balls("rail"),
        there=flags[0] > 0,
        moving=flags[1].contiguous(),
        bounce=column([(state.restitution,) for state in states])[0].contiguous(),
        heading=column([state.wind for state in states]),
        push=column([state.push for state in states]),
        first=cart.clone(),
        travel=cart.clone(),
        shown_cart=cart.clone(),
        shown_pole=pole.clone(),
        arrived=(flags[0] > 0).sum(0),
        ticks=zeros.clone(),
        age=zeros.clone(),
        seeds=zeros,
    )


def _ball_part(state: SceneState, i: int, part: str) -> tuple[float, ...]:
    """Return one ball's part of a state; an empty slot's is far away and at rest."""
    ball = state.balls[i] if i < len(state.balls) else None
    if part == "flags":
        return (float(ball is not None), float(ball is not None and not ball.fixed), 0)
    if ball is None:
        return (AWAY + 100.0 * i, AWAY, AWAY) if part == "position" else (0.0, 0.0, 0.0)
    if part == "rail":
        return (*ball.rail, 0.0) if ball.rail else (0.0, 0.0, 0.0)
    return ball.position if part == "position" else ball.velocity


def _in_world(q: Tensor, rates: Tensor) -> Tensor:
    """Return joint rates, kept in the pole's own frame, in the world's frame."""
    axis, w = q[:3], q[3]
    twice = 2.0 * torch.linalg.cross(axis, rates, dim=0)
    rotated: Tensor = rates + w * twice + torch.linalg.cross(axis, twice, dim=0)
    return rotated


# --- balls that arrive: the law of `start.spawn_ball`, on columns ---------------------


def most_balls(world: PhysicsWorld) -> int:
    """Return how many balls an episode of a world can hold."""
    ticks = range(1, world.ticks + 2)
    return world.ball.most + sum(
        sum(is_due(spawn.every, tick) for tick in ticks) for spawn in world.spawns
    )


def arrival_timetable(world: PhysicsWorld, device: torch.device) -> list[Tensor]:
    """Return the ticks at which balls arrive.

    Args:
        world: the world that is played.
        device: of the result.

    Returns:
        For each law of arrivals (ticks,) flags.
    """
    ticks = range(world.ticks + 2)
    return [
        torch.tensor([t > 0 and is_due(spawn.every, t) for t in ticks]).to(device)
        for spawn in world.spawns
    ]


def spawn_due_balls(world: PhysicsWorld, lanes: Lanes, timetable: list[Tensor]) -> None:
    """Add, in place, the balls that are due at the next tick; an episode's first is 1.

    Args:
        world: the world that is played.
        lanes: changed in place.
        timetable: of `arrival_timetable`.
    """
    ticks = (lanes.ticks + lanes.age + 1).clamp_max(world.ticks + 1)
    for number, (spawn, flags) in enumerate(zip(world.spawns, timetable, strict=True)):
        at = torch.nonzero(flags[ticks]).view(-1)
        if at.numel():
            seeds = child_seeds(child_seeds(lanes.seeds[at], ticks[at]), number)
            _spawn(world, spawn, lanes, at, seeds)


def _spawn(
    world: PhysicsWorld, spawn: Spawn, lanes: Lanes, at: Tensor, seeds: Tensor
) -> None:
    """Put one ball into each of these lanes that has a place for it."""
    if spawn.placement == "ahead":
        place, free = _places_ahead(world, spawn, lanes, at, seeds)
        speed = torch.zeros_like(place)
        lanes.travel[:, at] = lanes.poses(world.lag)[0][:, at]
    else:
        place = _places_in_box(world, spawn, lanes, at, seeds)
        free = torch.ones_like(at, dtype=torch.bool)
        low, high = spawn.speeds
        u = uniform(seeds, _SPAWNS + 3 * _TRIES, 6, place.dtype)
        speed = (low + (high - low) * u[:3]) * torch.where(u[3:] < 0.5, 1.0, -1.0)
    at, place, speed = at[free], place[:, free], speed[:, free]
    slot = lanes.arrived[at].clamp_max(lanes.there.shape[0] - 1)
    lanes.balls[:, slot, at] = place
    lanes.velocity[:, slot, at] = speed
    lanes.there[slot, at] = True
    lanes.moving[slot, at] = 1.0
    lanes.arrived[at] += 1


def _places_in_box(
    world: PhysicsWorld, spawn: Spawn, lanes: Lanes, at: Tensor, seeds: Tensor
) -> Tensor:
    """Return places (3, n) as at reset, clear of the cart's axis."""
    law = world.start
    u = uniform(seeds, _SPAWNS, 2 * _PLACES + 1, lanes.balls.dtype)
    x, y = (law.ball * (2.0 * part - 1.0) for part in (u[:_PLACES], u[_PLACES:-1]))
    cart = lanes.poses(world.lag)[0]
    off = (lanes.first if spawn.around == "start" else cart)[:, at]
    clear = (x - off[0]).square() + (y - off[1]).square() >= law.clearance**2
    choice = clear.to(torch.int8).argmax(0, keepdim=True)
    low, high = law.heights
    z = low + (high - low) * u[-1:]
    return torch.cat((x.gather(0, choice), y.gather(0, choice), z))


def _places_ahead(
    world: PhysicsWorld, spawn: Spawn, lanes: Lanes, at: Tensor, seeds: Tensor
) -> tuple[Tensor, Tensor]:
    """Return places (3, n) along the cart's travel, and which of them are free (n,)."""
    cart, first = lanes.poses(world.lag)[0][:, at], lanes.first[:, at]
    way = cart - lanes.travel[:, at]
    norm = way.square().sum(0).sqrt()
    near = cart if spawn.around == "cart" else first
    base = cart if spawn.around == "cart" else torch.zeros_like(cart)
    low, high = spawn.distances
    share = uniform(seeds, _SPAWNS, _TRIES, cart.dtype)
    reach = (low + (high - low) * share) / norm.clamp_min(1e-12)
    x, y = base[0] + reach * way[0], base[1] + reach * way[1]
    free = (x.abs() <= start.REACH) & (y.abs() <= start.REACH) & (norm > 0)
    free &= torch.hypot(x - near[0], y - near[1]) >= spawn.clearance
    for i in range(int(lanes.arrived[at].max())):
        a, b, c = lanes.balls[:, i][:, at]
        gap = (x - a).square() + (y - b).square() + (start.HEIGHT - c).square()
        free &= gap >= start.APART**2
    choice = free.to(torch.int8).argmax(0, keepdim=True)
    z = torch.full_like(x[:1], start.HEIGHT)
    place = torch.cat((x.gather(0, choice), y.gather(0, choice), z))
    return place, free.any(0)
