"""Control rules on the batched backend: nothing, random and the PD rule."""

from collections.abc import Callable

import torch
from torch import Tensor

from owa_bench.envs.cartpole3d.batched import draws
from owa_bench.envs.cartpole3d.batched.simulator import Simulator

Policy = Callable[[Simulator], Tensor]

# e = tilt + RATE * tilt rate + PLACE * x + SPEED * v; no push while |e| is below DEAD.
RATE, PLACE, SPEED, DEAD = 0.5, 0.02, 0.05, 0.002
_RANDOM = 1 << 40  # seeds of the random rule lie apart from those of the physics


def nothing(simulator: Simulator) -> Tensor:
    """Return action 0 for every lane."""
    return torch.zeros(simulator.count, dtype=torch.int64, device=simulator.device)


def random(simulator: Simulator) -> Tensor:
    """Return an action drawn uniformly by each lane's own seed and tick."""
    lanes = simulator.lanes
    seeds = draws.derived(lanes.seeds, lanes.ticks)
    u = draws.uniform(seeds, _RANDOM, 1, torch.float32)[0]
    return (5.0 * u).to(torch.int64)


def pd(simulator: Simulator) -> Tensor:
    """Return the push along the axis whose error is larger, towards the lean."""
    x, y, vx, vy, qx, qy, qz, qw, wx, wy, _ = simulator.core()
    pitch = torch.asin((2.0 * (qw * qy - qz * qx)).clamp(-1.0, 1.0))
    roll = torch.atan2(2.0 * (qw * qx + qy * qz), 1.0 - 2.0 * (qx * qx + qy * qy))
    ex = pitch + RATE * wy + PLACE * x + SPEED * vx
    ey = -roll - RATE * wx + PLACE * y + SPEED * vy
    along_x = torch.where(ex > 0, 1, 2)
    along_y = torch.where(ey > 0, 3, 4)
    action = torch.where(ex.abs() >= ey.abs(), along_x, along_y)
    return torch.where(torch.maximum(ex.abs(), ey.abs()) < DEAD, 0, action)


def lengths(simulator: Simulator, policy: Policy) -> Tensor:
    """Return how many steps the next episode of every lane lasts under a policy."""
    simulator.restart()
    found = torch.zeros_like(simulator.episodes)
    alive = torch.ones(simulator.count, dtype=torch.bool, device=simulator.device)
    for _ in range(simulator.world.ticks):
        fallen, _ = simulator.step(policy(simulator))
        found += alive
        alive &= ~fallen
        if not alive.any():
            break
    return found
