"""Thousands of CartPole3D episodes of one world, a column each, one call a tick."""

import math

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.batched import arrivals, draws, forces, pool
from owa_bench.envs.cartpole3d.batched.contacts import Shapes, meet
from owa_bench.envs.cartpole3d.batched.dynamics import (
    Body,
    Load,
    Vector,
    accelerate,
    direction,
    turned,
)
from owa_bench.envs.cartpole3d.batched.impulses import Motion
from owa_bench.envs.cartpole3d.start import State
from owa_bench.errors import FieldError
from owa_bench.worlds.physics import PhysicsWorld

STARTS = 4096  # start states that are drawn for a world; episodes begin from these


class Simulator:
    """Lanes of one world; everything is a tensor on `device`, lanes last.

    Each lane has a seed; with its count of episodes it names the start (one of `starts`
    that the shared law drew) and all that is drawn later, so a lane's episodes do not
    depend on the other lanes, their number or the device. `step` does not reset:
    `restart` does, for the lanes that its mask names.
    """

    def __init__(
        self,
        world: PhysicsWorld,
        lanes: int,
        *,
        seed: int,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        starts: int = STARTS,
    ) -> None:
        if lanes < 1 or starts < 1:
            raise FieldError("lanes, starts", (lanes, starts), "must be at least 1")
        self.world = world
        self.count = lanes
        self.device = _found(device)
        self.dtype = dtype
        self.slots = arrivals.most(world)
        self._table = arrivals.timetable(world, self.device)
        self._railed = any(law.kind == "rail" for law in world.laws)
        self._pushes = torch.tensor(rules.DIRECTIONS, dtype=dtype).T.to(self.device)
        self._pushes *= world.cart.push
        across, along = world.pole.inertia
        self._body = Body(
            world.cart.mass,
            world.pole.mass,
            world.pole.centre,
            across,
            along,
            world.damping,
        )
        self._sine, self._tangent = rules.fall_bounds(world.pole.fall)
        self._starts = self._columns(pool.drawn(world, starts, seed))
        self._hidden(self._starts)
        numbers = torch.arange(lanes, device=self.device)
        self.seeds = draws.derived(numbers, seed)
        self.episodes = torch.zeros_like(numbers)
        self.lanes = self._begun(numbers)

    @torch.no_grad()
    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Play one action a lane; return which lanes have fallen and which are late.

        A lane that has fallen goes on falling until it is restarted.
        """
        lanes = self.lanes
        self._tick(lanes, self._pushes[:, actions])
        lanes.ticks.add_(1)
        return self._fallen(lanes), lanes.ticks >= self.world.ticks

    @torch.no_grad()
    def restart(self, mask: Tensor | None = None) -> None:
        """Begin the next episode of the lanes of a mask, of all lanes without one."""
        if mask is None:
            mask = torch.ones(self.count, dtype=torch.bool, device=self.device)
        at = torch.nonzero(mask).view(-1)
        if at.numel():
            self.episodes[at] += 1
            self.lanes.put(at, self._begun(at))

    @torch.no_grad()
    def begin(self, states: list[State]) -> None:
        """Put exact states into all lanes; their hidden tick is not played."""
        if len(states) != self.count:
            raise FieldError(
                "len(states)", len(states), f"must be {self.count}, one a lane"
            )
        self.lanes = self._columns(states)
        self.lanes.seeds.copy_(self.seeds)

    def core(self) -> Tensor:
        """Return what an agent sees of cart and pole, (11, lanes)."""
        lanes = self.lanes
        cart, pole = lanes.seen(self.world.lag)
        return torch.cat((cart, lanes.cart_velocity, pole, lanes.pole_velocity))

    def full(self, slots: int = rules.SLOTS) -> Tensor:
        """Return the core and `slots` balls: presence, place, velocity each.

        Of more balls than slots the nearest to the pole's centre of mass.
        """
        there, places, speeds = self._shown(slots)
        places = torch.where(there, places, 0.0)
        parts = torch.cat((there.to(self.dtype)[None], places, speeds))
        flat = parts.transpose(0, 1).reshape(-1, self.count)
        short = slots * rules.PER_BALL - flat.shape[0]
        return torch.cat((self.core(), flat, flat.new_zeros(short, self.count)))

    def _shown(self, slots: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return presence, places and velocities of the balls that are shown."""
        lanes = self.lanes
        if self.slots <= slots:
            return lanes.there, lanes.balls, lanes.velocity
        cart, pole = lanes.seen(self.world.lag)
        centre = self.world.pole.centre * torch.stack(direction(pole))
        centre[:2] += cart
        centre[2] += self.world.cart.joint
        gaps = (lanes.balls - centre[:, None]).square().sum(0)
        at = gaps.topk(slots, dim=0, largest=False).indices
        wide = at.expand(3, slots, self.count)
        return (
            lanes.there.gather(0, at),
            lanes.balls.gather(1, wide),
            lanes.velocity.gather(1, wide),
        )

    def _fallen(self, lanes: pool.Lanes) -> Tensor:
        """Return where roll or pitch is beyond the limit, as `rules.fallen`."""
        x, y, z, w = lanes.seen(self.world.lag)[1]
        level = 1.0 - 2.0 * (x * x + y * y)
        rolled = (2.0 * (w * x + y * z)).abs() > self._tangent * level
        tilted: Tensor = rolled | ((2.0 * (w * y - z * x)).abs() > self._sine)
        return tilted

    def _columns(self, states: list[State]) -> pool.Lanes:
        return pool.lanes_of(states, self.slots, device=self.device, dtype=self.dtype)

    @torch.no_grad()
    def _hidden(self, lanes: pool.Lanes) -> None:
        """Play the hidden tick: the start's own push and no action."""
        count = lanes.ticks.numel()
        lanes.seeds.copy_(torch.arange(count, device=self.device))
        self._tick(lanes, lanes.push)
        lanes.age.add_(1)

    def _begun(self, at: Tensor) -> pool.Lanes:
        """Return fresh episodes for the lanes `at`."""
        seeds = draws.derived(self.seeds[at], self.episodes[at])
        many = self._starts.ticks.numel()
        begun = self._starts.take((seeds >> 1) % many)
        begun.seeds.copy_(seeds)
        return begun

    def _tick(self, lanes: pool.Lanes, push: Tensor) -> None:
        """Play a tick in place: let balls come, then move everything."""
        if not self.world.spawns:
            self._move(lanes, push)
            return
        arrivals.arrive(self.world, lanes, self._table)
        used = lanes.used()
        self._move(used, push)
        lanes.keep(used)

    def _move(self, lanes: pool.Lanes, push: Tensor) -> None:
        """Move everything by one tick, in place."""
        world, dt = self.world, self.world.tick
        pushed = forces.on_balls(world, lanes)
        d = direction(lanes.pole)
        self._swing(lanes, d, push)
        speed = forces.dragged(
            world, lanes.velocity, lanes.rails if self._railed else None
        )
        if pushed is not None:
            speed = speed + dt * self._free(lanes, pushed)
        lanes.velocity.copy_(speed)
        self._meet(lanes)
        if world.lag:
            lanes.seen_cart.copy_(lanes.cart)
            lanes.seen_pole.copy_(lanes.pole)
        lanes.cart.add_(lanes.cart_velocity, alpha=dt)
        w = lanes.pole_velocity
        lanes.pole.copy_(turned(lanes.pole, (w[0], w[1], w[2]), dt))
        lanes.balls.add_(lanes.velocity, alpha=dt)

    def _swing(self, lanes: pool.Lanes, d: Vector, push: Tensor) -> None:
        """Give cart and pole their accelerations."""
        dt, pole = self.world.tick, self.world.pole
        weight = torch.full_like(d[0], -pole.mass * self.world.gravity)
        blown = forces.gust(self.world, lanes, d)
        cart = (push[0], push[1])
        zero = torch.zeros_like(weight)
        load = Load(zero, zero, weight)
        if blown is not None:
            cart = (push[0] + blown.cart[0], push[1] + blown.cart[1])
            if blown.pole is not None:
                side = blown.pole
                offset = pole.foot + 0.5 * pole.length - pole.centre
                load = Load(side[0], side[1], weight, side, offset)
        v, w = lanes.cart_velocity, lanes.pole_velocity
        ax, ay, (bx, by, bz) = accelerate(
            self._body, d, (v[0], v[1]), (w[0], w[1], w[2]), cart, load
        )
        v.add_(torch.stack((ax, ay)), alpha=dt)
        w.add_(torch.stack((bx, by, bz)), alpha=dt)

    def _free(self, lanes: pool.Lanes, pushed: Tensor) -> Tensor:
        """Return accelerations of balls as far as they can follow them."""
        if self._railed:
            along = (lanes.rails * pushed).sum(0)
            bound = lanes.rails.square().sum(0)
            pushed = lanes.rails * along + (1.0 - bound) * pushed
        return pushed * lanes.moving

    def _meet(self, lanes: pool.Lanes) -> None:
        """Resolve the tick's contacts."""
        world = self.world
        cart, pole = world.cart, world.pole
        shapes = Shapes(
            radius=world.ball.radius,
            ball_mass=world.ball.mass,
            cart_radius=cart.radius,
            cart_low=cart.bottom,
            cart_high=cart.bottom + cart.height,
            joint=cart.joint,
            pole_radius=pole.radius,
            pole_low=pole.foot,
            pole_high=pole.foot + pole.length,
            lean=1.25 * math.radians(pole.fall),
            half=world.arena.half,
            floor=world.arena.floor,
            ceiling=world.arena.ceiling,
            tick=world.tick,
            bounce=lanes.bounce,
        )
        motion = Motion(
            lanes.cart,
            lanes.cart_velocity,
            lanes.pole,
            lanes.pole_velocity,
            lanes.balls.view(3, -1),
            lanes.velocity.view(3, -1),
            lanes.moving.view(-1),
            lanes.rails.view(3, -1) if self._railed else None,
        )
        meet(self._body, motion, shapes)


def _found(name: str) -> torch.device:
    """Return the device of a name. Errors: FieldError for one that torch lacks here."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise FieldError("device", name, "must be cpu, cuda or cuda:N") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise FieldError(
            "device",
            name,
            "needs a GPU that torch can see, and there is none here: take cpu",
        )
    return device
