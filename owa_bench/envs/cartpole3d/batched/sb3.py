"""The way in for Stable-Baselines3: `vec_env(lanes, level=.., obs=..)`."""

from typing import Any

from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D
from owa_bench.errors import MissingPartError


def vec_env(num_envs: int, **arguments: Any) -> Any:
    """Return the batched env as Stable-Baselines3 takes it (a VecEnv).

    Errors: MissingPartError without Stable-Baselines3.
    """
    try:
        from owa_bench.envs.cartpole3d.batched.sb3_env import BatchedVecEnv
    except ImportError as error:
        install = "pip install 'owa_bench[rl]'"
        raise MissingPartError("stable-baselines3", install) from error
    return BatchedVecEnv(BatchedCartPole3D(num_envs, **arguments))
