"""Batched CartPole3D as a Gymnasium vector env and as a VecEnv of Stable-Baselines3."""

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from owa_bench.envs.cartpole3d import levels, rules
from owa_bench.envs.cartpole3d.batched.simulator import STARTS, Simulator
from owa_bench.envs.cartpole3d.env import ObservationMode, observation_space
from owa_bench.errors import FieldError, MissingPartError, UsageError, one_of
from owa_bench.worlds.physics import Spec

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:  # the extra [rl] holds it; `vec_env` says so
    VecEnv = object  # type: ignore[assignment, misc]

_Numbers = npt.NDArray[np.float32]
_Mask = npt.NDArray[np.bool_]
_Step = tuple[_Numbers, npt.NDArray[np.float64], _Mask, _Mask, dict[str, Any]]


class BatchedCartPole3D(gym.vector.VectorEnv[_Numbers, npt.NDArray[np.int64], Any]):
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
        obs: ObservationMode = "full",
        seed: int = 0,
        starts: int = STARTS,
        threads: int = 1,
    ) -> None:
        if obs not in ("full", "core"):
            raise FieldError("obs", obs, one_of(obs, ("full", "core")))
        self.num_envs = num_envs
        self.simulator: Simulator
        self._make = (levels.level(spec, level, magnitude), starts, threads)
        self._slots = rules.SLOTS if obs == "full" else 0
        self.single_observation_space = observation_space(self._slots)
        self.single_action_space = spaces.Discrete(len(rules.DIRECTIONS))
        batch = gym.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._build(seed)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[_Numbers, dict[str, Any]]:
        """Begin an episode in every lane.

        Args:
            seed: names all that follows; without one the next episodes begin.
            options: play no part.

        Returns:
            Observations (num_envs, n) and an empty info.
        """
        if seed is not None:
            self._build(int(np.asarray(seed).flat[0]))
        else:
            self.simulator.restart()
        return self._observe(), {}

    def step(self, actions: npt.NDArray[np.int64]) -> _Step:
        """Play one action a lane.

        Args:
            actions: (num_envs,), 0 to 4.

        Returns:
            Gymnasium's five, each (num_envs, ..), and info.
        """
        simulator = self.simulator
        ended = simulator.step(actions)
        fallen, late = ended.fallen.copy(), ended.late & ~ended.fallen
        over = fallen | late
        info: dict[str, Any] = {}
        if over.any():
            last = np.where(over[:, None], self._observe(), np.float32(0))
            info = {"final_obs": last, "_final_obs": over}
            simulator.restart(over)
        reward = np.full(self.num_envs, 1.0 / simulator.world.ticks)
        return self._observe(), reward, fallen, late, info

    def _build(self, seed: int) -> None:
        world, starts, threads = self._make
        self.simulator = Simulator(
            world, self.num_envs, seed=seed, starts=starts, threads=threads
        )

    def _observe(self) -> _Numbers:
        rows: _Numbers = self.simulator.observe(self._slots)
        return rows


class _BatchedVecEnv(VecEnv):
    """VecEnv of Stable-Baselines3 over `BatchedCartPole3D`.

    Infos hold what its algorithms read: `terminal_observation` and
    `TimeLimit.truncated` where an episode ended, and `episode` (return and length).
    """

    def __init__(self, env: BatchedCartPole3D) -> None:
        self.env = env
        self._actions = np.zeros(env.num_envs, dtype=np.int64)
        self._ticks = np.zeros(env.num_envs, dtype=np.int64)
        super().__init__(
            env.num_envs, env.single_observation_space, env.single_action_space
        )

    def reset(self) -> Any:
        """Begin an episode in every lane."""
        self._ticks[:] = 0
        return self.env.reset(seed=self._seeds[0])[0]

    def step_async(self, actions: Any) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Play them."""
        rows, reward, terminated, truncated, info = self.env.step(self._actions)
        over = terminated | truncated
        self._ticks += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over).tolist():
            length = int(self._ticks[i])
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i]),
                "episode": {"r": float(length * reward[i]), "l": length, "t": 0.0},
            }
        self._ticks[over] = 0
        return rows, reward.astype(np.float32), over, infos

    def close(self) -> None:
        """Release nothing: everything is an array."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the shared env, once a lane."""
        value = getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: lanes have no attributes of their own."""
        raise UsageError(
            f"A lane has no attribute `{attr_name}`: make another env instead."
        )

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: Any = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Refuse: lanes have no methods of their own."""
        raise UsageError(
            f"A lane has no method `{method_name}`: call the simulator instead."
        )

    def env_is_wrapped(
        self, wrapper_class: type, indices: Iterable[int] | int | None = None
    ) -> list[bool]:
        """Return that no lane is wrapped."""
        return [False for _ in self._get_indices(indices)]


def vec_env(num_envs: int, **arguments: Any) -> Any:
    """Return the batched env as Stable-Baselines3 takes it.

    Args:
        num_envs: lanes.
        arguments: of `BatchedCartPole3D`.

    Returns:
        A VecEnv.

    Raises:
        MissingPartError: Stable-Baselines3 is not installed.
    """
    if not hasattr(VecEnv, "step_wait"):
        raise MissingPartError("stable-baselines3", "pip install 'owa_bench[rl]'")
    return _BatchedVecEnv(BatchedCartPole3D(num_envs, **arguments))
