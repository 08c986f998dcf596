"""The batched backend as a Gymnasium vector env, and as one of Stable-Baselines3."""

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from owa_bench.envs.cartpole3d import levels, rules
from owa_bench.envs.cartpole3d.batched.simulator import STARTS, Simulator
from owa_bench.errors import FieldError, one_of
from owa_bench.worlds.physics import Spec

Numbers = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Step = tuple[Numbers, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]]

_PLACE, _SPEED = 100.0, 500.0  # bounds of the Box, as the single env's


class BatchedCartPole3D(gym.vector.VectorEnv[Numbers, npt.NDArray[np.int64], Any]):
    """Many CartPole3D episodes in one process; spaces are those of the single env.

    A lane whose episode ends begins the next one in the same step: the observation is
    its first, `info["final_obs"]` holds the last of the old episodes (rows of lanes
    that did not end are zero), `info["_final_obs"]` says where.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int,
        *,
        spec: Spec = "table1",
        level: int = 0,
        magnitude: float = 1.0,
        obs: Literal["full", "core"] = "full",
        seed: int = 0,
        device: str = "cpu",
        starts: int = STARTS,
    ) -> None:
        if obs not in ("full", "core"):
            raise FieldError("obs", obs, one_of(obs, ("full", "core")))
        self.num_envs = num_envs
        self.simulator: Simulator
        self._make = (levels.level(spec, level, magnitude), device, starts)
        self._slots = rules.SLOTS if obs == "full" else 0
        self.single_observation_space = observation_box(self._slots)
        self.single_action_space = spaces.Discrete(len(rules.DIRECTIONS))
        batch = gym.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._seeded(seed)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Numbers, dict[str, Any]]:
        """Begin an episode in every lane; a seed names all that follows."""
        if seed is not None:
            self._seeded(int(np.asarray(seed).flat[0]))
        else:
            self.simulator.restart()
        return self._observe(), {}

    def step(self, actions: npt.NDArray[np.int64]) -> Step:
        """Play one action a lane."""
        simulator = self.simulator
        chosen = torch.as_tensor(np.asarray(actions), device=simulator.device)
        fallen, late = simulator.step(chosen.long())
        over = fallen | late
        info: dict[str, Any] = {}
        if bool(over.any()):
            flags = over.cpu().numpy()
            last = np.where(flags[:, None], self._observe(), np.float32(0))
            info = {"final_obs": last, "_final_obs": flags}
            simulator.restart(over)
        reward = np.full(self.num_envs, 1.0 / simulator.world.ticks)
        terminated = fallen.cpu().numpy()
        truncated = (late & ~fallen).cpu().numpy()
        return self._observe(), reward, terminated, truncated, info

    def _seeded(self, seed: int) -> None:
        world, device, starts = self._make
        self.simulator = Simulator(
            world, self.num_envs, seed=seed, device=device, starts=starts
        )

    def _observe(self) -> Numbers:
        simulator = self.simulator
        seen = simulator.full(self._slots) if self._slots else simulator.core()
        found: Numbers = seen.T.contiguous().to(torch.float32).cpu().numpy()
        return found


def observation_box(slots: int) -> spaces.Box:
    """Return the observation space of the single env with `slots` balls."""
    core = [_PLACE] * 2 + [_SPEED] * 2 + [1.0] * 4 + [_SPEED] * 3
    ball = [1.0] + [_PLACE] * 3 + [_SPEED] * 3
    high = np.array(core + ball * slots, dtype=np.float32)
    low = -high
    low[rules.CORE :: rules.PER_BALL] = 0.0
    return spaces.Box(low, high, dtype=np.float32)
