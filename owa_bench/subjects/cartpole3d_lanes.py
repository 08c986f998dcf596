"""Batches of CartPole3D episodes in which networks learn mixtures of levels.

Policies observe ten numbers and no balls [S]. They are trained from tilts and rates wider than the
episode's own, where doing nothing soon fails, and scored from those of the levels. Source: AIQ
paper, sections 2.4.3 and 3.4; the training starts [D].
"""

from collections.abc import Mapping, Sequence

import torch
from msgspec.structs import replace
from torch import Tensor

from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.batched.simulator import Simulator
from owa_bench.envs.cartpole3d.world import PhysicsWorld, Spec

INPUTS, OUTPUTS = 10, 5
STARTS = 2048  # start states that are drawn for a world
_TILT, _RATE = 0.05, 0.3  # of the starts that policies learn from
# One row a number that policies see: cart x, y, vx, vy, roll, pitch, yaw and rates.
_SCALE = (0.2, 0.2, 0.5, 0.5, 8.0, 8.0, 1.0, 1.5, 1.5, 1.0)


class LevelsBatch:
    """Lanes of several levels; see `learning.EpisodeBatch`.

    `worlds` pairs each world with the numbers of its lanes, (n,) of int64.
    """

    inputs = INPUTS
    outputs = OUTPUTS

    def __init__(self, worlds: Sequence[tuple[PhysicsWorld, Tensor]], *, seed: int) -> None:
        self._parts = [
            (Simulator(world, at.numel(), seed=seed + k, starts=STARTS), at)
            for k, (world, at) in enumerate(worlds)
            if at.numel()
        ]
        self.lanes = sum(at.numel() for _, at in self._parts)
        self.ticks = self._parts[0][0].world.ticks

    def observe(self) -> Tensor:
        """Return the policies' inputs, (lanes, 10)."""
        rows = torch.empty(self.lanes, INPUTS)
        for simulator, at in self._parts:
            rows[at] = policy_inputs(torch.from_numpy(simulator.observe()))
        return rows

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Play one action a lane.

        Args:
            actions: (lanes,) of int64, 0 to 4.
        Returns: Where episodes failed and where time is up, (lanes,) each.
        """
        failed = torch.empty(self.lanes, dtype=torch.bool)
        late = torch.empty_like(failed)
        for simulator, at in self._parts:
            ended = simulator.step(actions[at].numpy())
            failed[at] = torch.from_numpy(ended.fallen)
            late[at] = torch.from_numpy(ended.late)
        return failed, late

    def restart(self, mask: Tensor | None = None) -> None:
        """Begin episodes, of all lanes without a mask (lanes,)."""
        for simulator, at in self._parts:
            simulator.restart(None if mask is None else mask[at].numpy())


def policy_inputs(core: Tensor) -> Tensor:
    """Return a policy's scaled inputs (lanes, 10) from observations (lanes, 11)."""
    x, y, z, w = core[:, 4:8].unbind(1)
    roll = torch.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = torch.asin((2.0 * (w * y - z * x)).clamp(-1.0, 1.0))
    yaw = torch.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    turned = torch.stack((roll, pitch, yaw), 1)
    return torch.cat((core[:, :4], turned, core[:, 8:]), 1) * torch.tensor(_SCALE)


def level_world(spec: Spec, level: int, magnitude: float, *, learning: bool) -> PhysicsWorld:
    """Return the world of a level.

    Args:
        spec: the variant, "table1" or "released".
        level: 0 to 16.
        magnitude: of levels above 0, in [0, 1].
        learning: whether episodes start from the wider tilts and rates.
    """
    world = levels.level(spec, level, magnitude if level else 1.0)
    if not learning:
        return world
    return replace(world, start=replace(world.start, tilt=_TILT, rate=_RATE))


def mixture_batch(
    mixtures: Sequence[Mapping[int, float]],
    lanes: int,
    *,
    spec: Spec,
    magnitude: float,
    seed: int,
    learning: bool,
) -> LevelsBatch:
    """Return the lanes of all networks, each split over the levels of its mixture.

    Args:
        mixtures: a network's levels and their shares, one mapping a network.
        lanes: of each network.
        spec: the variant of the worlds.
        magnitude: of levels above 0.
        seed: of the first world; the others follow.
        learning: whether episodes start from the wider tilts and rates.
    Returns: The batch of all lanes.
    """
    places: dict[int, list[int]] = {}
    for k, mixture in enumerate(mixtures):
        start = k * lanes
        names = list(mixture)
        for name in names:
            last = name == names[-1]
            end = (k + 1) * lanes if last else start + round(mixture[name] * lanes)
            places.setdefault(name, []).extend(range(start, end))
            start = end
    worlds = [
        (level_world(spec, level, magnitude, learning=learning), torch.tensor(at))
        for level, at in places.items()
    ]
    return LevelsBatch(worlds, seed=seed)
