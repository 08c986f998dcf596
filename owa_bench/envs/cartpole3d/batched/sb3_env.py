"""The batched backend as Stable-Baselines3's VecEnv: train on it as on any other."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D
from owa_bench.errors import UsageError


class BatchedVecEnv(VecEnv):
    """Stable-Baselines3's face of `BatchedCartPole3D`.

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
        seen, reward, terminated, truncated, info = self.env.step(self._actions)
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
        return seen, reward.astype(np.float32), over, infos

    def close(self) -> None:
        """Release nothing: everything is a tensor."""

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
