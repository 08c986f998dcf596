"""Batched simulator of CartPole3D and its control rules: nothing, random and PD."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.batched import dynamics
from owa_bench.envs.cartpole3d.batched import lanes as lane_draws
from owa_bench.envs.cartpole3d.batched.contacts import resolve_contacts
from owa_bench.envs.cartpole3d.batched.impulses import Motion
from owa_bench.envs.cartpole3d.batched.lanes import Lanes
from owa_bench.envs.cartpole3d.start import SceneState
from owa_bench.errors import FieldError
from owa_bench.worlds.physics import PhysicsWorld

STARTS = 4096  # start states that are drawn for a world; episodes begin from these
# PD rule: e = tilt + RATE * tilt rate + PLACE * x + SPEED * v; none below DEAD.
RATE, PLACE, SPEED, DEAD = 0.5, 0.02, 0.05, 0.002
_RANDOM = 1 << 40  # seeds of the random rule lie apart from those of the physics


class TickEnd(NamedTuple):
    """Flags (lanes,): where the pole has fallen, and where the ticks are used up."""

    fallen: Tensor
    late: Tensor


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
        self.device = _device(device)
        self.dtype = dtype
        self.slots = lane_draws.most_balls(world)
        self._timetable = lane_draws.arrival_timetable(world, self.device)
        self._railed = any(law.kind == "rail" for law in world.laws)
        self._pushes = torch.tensor(rules.DIRECTIONS, dtype=dtype).T.to(self.device)
        self._pushes *= world.cart.push
        self._sine, self._tangent = rules.fall_bounds(world.pole.fall)
        self._starts = self._columns(lane_draws.draw_states(world, starts, seed))
        self._play_hidden_tick(self._starts)
        numbers = torch.arange(lanes, device=self.device)
        self.seeds = lane_draws.child_seeds(numbers, seed)
        self.episodes = torch.zeros_like(numbers)
        self.lanes = self._new_episodes(numbers)

    @torch.no_grad()
    def step(self, actions: Tensor) -> TickEnd:
        """Play one action a lane.

        A lane that has fallen goes on falling until it is restarted.

        Args:
            actions: (lanes,) of int64, 0 to 4.

        Returns:
            Which lanes have fallen, and which are late.
        """
        lanes = self.lanes
        self._tick(lanes, self._pushes[:, actions])
        lanes.ticks.add_(1)
        return TickEnd(self._has_fallen(lanes), lanes.ticks >= self.world.ticks)

    @torch.no_grad()
    def restart(self, mask: Tensor | None = None) -> None:
        """Begin the next episode of the lanes of a mask, of all lanes without one."""
        if mask is None:
            mask = torch.ones(self.count, dtype=torch.bool, device=self.device)
        at = torch.nonzero(mask).view(-1)
        if at.numel():
            self.episodes[at] += 1
            self.lanes.put(at, self._new_episodes(at))

    @torch.no_grad()
    def set_states(self, states: list[SceneState]) -> None:
        """Put exact states into all lanes; their hidden tick is not played.

        Raises:
            FieldError: there is not one state a lane.
        """
        if len(states) != self.count:
            raise FieldError(
                "len(states)", len(states), f"must be {self.count}, one a lane"
            )
        self.lanes = self._columns(states)
        self.lanes.seeds.copy_(self.seeds)

    def core(self) -> Tensor:
        """Return the observation of cart and pole, (11, lanes)."""
        lanes = self.lanes
        cart, pole = lanes.poses(self.world.lag)
        return torch.cat((cart, lanes.cart_velocity, pole, lanes.pole_velocity))

    def full(self, slots: int = rules.SLOTS) -> Tensor:
        """Return the core and `slots` balls, (11 + 7 slots, lanes).

        A ball is presence, place and velocity; of more balls than slots the nearest to
        the pole's centre of mass.
        """
        there, places, speeds = self._visible_balls(slots)
        places = torch.where(there, places, 0.0)
        parts = torch.cat((there.to(self.dtype)[None], places, speeds))
        flat = parts.transpose(0, 1).reshape(-1, self.count)
        short = slots * rules.PER_BALL - flat.shape[0]
        return torch.cat((self.core(), flat, flat.new_zeros(short, self.count)))

    def _visible_balls(self, slots: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return presence, places and velocities of the balls that are shown."""
        lanes = self.lanes
        if self.slots <= slots:
            return lanes.there, lanes.balls, lanes.velocity
        cart, pole = lanes.poses(self.world.lag)
        centre = self.world.pole.centre * torch.stack(dynamics.direction(pole))
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

    def _has_fallen(self, lanes: Lanes) -> Tensor:
        """Return where roll or pitch is beyond the limit, as `rules.has_fallen`."""
        x, y, z, w = lanes.poses(self.world.lag)[1]
        level = 1.0 - 2.0 * (x * x + y * y)
        rolled = (2.0 * (w * x + y * z)).abs() > self._tangent * level
        tilted: Tensor = rolled | ((2.0 * (w * y - z * x)).abs() > self._sine)
        return tilted

    def _columns(self, states: list[SceneState]) -> Lanes:
        return lane_draws.lanes_of(
            states, self.slots, device=self.device, dtype=self.dtype
        )

    @torch.no_grad()
    def _play_hidden_tick(self, lanes: Lanes) -> None:
        """Play the tick before an episode: the start's own push and no action."""
        count = lanes.ticks.numel()
        lanes.seeds.copy_(torch.arange(count, device=self.device))
        self._tick(lanes, lanes.push)
        lanes.age.add_(1)

    def _new_episodes(self, at: Tensor) -> Lanes:
        """Return the first states of the next episodes of the lanes `at`."""
        seeds = lane_draws.child_seeds(self.seeds[at], self.episodes[at])
        many = self._starts.ticks.numel()
        lanes = self._starts.take((seeds >> 1) % many)
        lanes.seeds.copy_(seeds)
        return lanes

    def _tick(self, lanes: Lanes, push: Tensor) -> None:
        """Play a tick in place: let balls come, then move everything."""
        if not self.world.spawns:
            self._move(lanes, push)
            return
        lane_draws.spawn_due_balls(self.world, lanes, self._timetable)
        occupied = lanes.occupied()
        self._move(occupied, push)
        lanes.write_back(occupied)

    def _move(self, lanes: Lanes, push: Tensor) -> None:
        """Move everything by one tick, in place."""
        world, dt = self.world, self.world.tick
        rails = lanes.rails if self._railed else None
        pushed = dynamics.ball_accelerations(world, lanes)
        change = dynamics.cart_pole_accelerations(world, lanes, push)
        lanes.cart_velocity.add_(change.cart, alpha=dt)
        lanes.pole_velocity.add_(change.pole, alpha=dt)
        speed = dynamics.damp_balls(world, lanes.velocity, rails)
        if pushed is not None:
            if rails is not None:
                along = (rails * pushed).sum(0)
                bound = rails.square().sum(0)
                pushed = rails * along + (1.0 - bound) * pushed
            speed = speed + dt * (pushed * lanes.moving)
        lanes.velocity.copy_(speed)
        motion = Motion(
            world,
            lanes.cart,
            lanes.cart_velocity,
            lanes.pole,
            lanes.pole_velocity,
            lanes.balls.view(3, -1),
            lanes.velocity.view(3, -1),
            lanes.moving.view(-1),
            lanes.bounce,
            None if rails is None else rails.view(3, -1),
        )
        resolve_contacts(motion)
        if world.lag:
            lanes.shown_cart.copy_(lanes.cart)
            lanes.shown_pole.copy_(lanes.pole)
        lanes.cart.add_(lanes.cart_velocity, alpha=dt)
        lanes.pole.copy_(dynamics.rotate(lanes.pole, lanes.pole_velocity, dt))
        lanes.balls.add_(lanes.velocity, alpha=dt)


def _device(name: str) -> torch.device:
    """Return the device of a name; FieldError for one that torch lacks here."""
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


# --- control rules --------------------------------------------------------------------


ControlRule = Callable[[Simulator], Tensor]


def nothing(simulator: Simulator) -> Tensor:
    """Return action 0 for every lane, (lanes,) of int64."""
    return torch.zeros(simulator.count, dtype=torch.int64, device=simulator.device)


def random(simulator: Simulator) -> Tensor:
    """Return an action drawn uniformly by each lane's own seed and tick, (lanes,)."""
    lanes = simulator.lanes
    seeds = lane_draws.child_seeds(lanes.seeds, lanes.ticks)
    u = lane_draws.uniform(seeds, _RANDOM, 1, torch.float32)[0]
    return (5.0 * u).to(torch.int64)


def pd(simulator: Simulator) -> Tensor:
    """Return (lanes,) pushes along the axis with the larger error, towards the lean."""
    x, y, vx, vy, qx, qy, qz, qw, wx, wy, _ = simulator.core()
    pitch = torch.asin((2.0 * (qw * qy - qz * qx)).clamp(-1.0, 1.0))
    roll = torch.atan2(2.0 * (qw * qx + qy * qz), 1.0 - 2.0 * (qx * qx + qy * qy))
    ex = pitch + RATE * wy + PLACE * x + SPEED * vx
    ey = -roll - RATE * wx + PLACE * y + SPEED * vy
    along_x = torch.where(ex > 0, 1, 2)
    along_y = torch.where(ey > 0, 3, 4)
    action = torch.where(ex.abs() >= ey.abs(), along_x, along_y)
    return torch.where(torch.maximum(ex.abs(), ey.abs()) < DEAD, 0, action)


CONTROLS: dict[str, ControlRule] = {"nothing": nothing, "random": random, "pd": pd}


def episode_lengths(simulator: Simulator, rule: ControlRule) -> Tensor:
    """Return how many steps the next episode of every lane lasts.

    Args:
        simulator: its lanes are restarted.
        rule: chooses the actions.

    Returns:
        (lanes,) of int64.
    """
    simulator.restart()
    steps = torch.zeros_like(simulator.episodes)
    alive = torch.ones(simulator.count, dtype=torch.bool, device=simulator.device)
    for _ in range(simulator.world.ticks):
        fallen, _ = simulator.step(rule(simulator))
        steps += alive
        alive &= ~fallen
        if not alive.any():
            break
    return steps
