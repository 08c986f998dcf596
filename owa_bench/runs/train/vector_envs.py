"""Vectorised envs of a training: made, batched, read through features, in trials.

Everything of Stable-Baselines3 is imported here, inside functions.
"""

from typing import Any

import gymnasium
import numpy as np

from owa_bench.agents.solvers.trained import FeatureMap, features_of, trial_inputs
from owa_bench.errors import FieldError, UsageError
from owa_bench.runs.train.algorithms import Training, env_kwargs, suite_of

BATCHED = "batched"


def make_envs(training: Training, seed: int, *, scaled: bool) -> tuple[Any, Any]:
    """Return vectorised envs, and their scaling or None.

    Args:
        training: What is trained and how. Backends: "here" steps envs in this process, "processes"
            each in its own, "batched" all at once (CartPole3D).
        seed: Of the envs.
        scaled: Whether observations and rewards are scaled by what was met.
    Returns: The envs as Stable-Baselines3 takes them, and the same as their scaling.
    Raises: UsageError: The env cannot be made so.
    """
    from stable_baselines3.common.vec_env import VecNormalize

    batched = training.backend == BATCHED
    envs = (_batched_envs if batched else _stepped_envs)(training, seed)
    if training.actions:
        envs = _with_leans(envs)
    if training.features:
        envs = _with_features(envs, features_of(training.features))
    if training.trial:
        envs = _with_trials(envs, training.trial, training.penalty)
    if not scaled:
        return envs, None
    scaling = VecNormalize(envs, norm_obs=True, norm_reward=True)
    return scaling, scaling


def _with_features(envs: Any, features: FeatureMap) -> Any:
    """Return envs whose observations are features of those of `envs`."""
    from stable_baselines3.common.vec_env import VecEnvWrapper

    try:
        shape = features(np.zeros((1, *envs.observation_space.shape), np.float32))[0]
    except (IndexError, ValueError) as error:
        space = envs.observation_space
        raise UsageError(f"These features cannot be read off {space}: {error}.") from (error)

    class _Features(VecEnvWrapper):
        def reset(self) -> Any:
            return features(np.asarray(self.venv.reset()))

        def step_wait(self) -> Any:
            rows, rewards, ended, infos = self.venv.step_wait()
            for i in np.flatnonzero(ended).tolist():
                last = infos[i]["terminal_observation"]
                infos[i]["terminal_observation"] = features(last[None])[0]
            return features(np.asarray(rows)), rewards, ended, infos

    return _Features(envs, gymnasium.spaces.Box(-np.inf, np.inf, shape.shape, np.float32))


def _with_leans(envs: Any) -> Any:
    """Return envs of CartPole3D whose actions are leans, each held for some ticks.

    A step ends early where an episode does; the plain rule plays the rest of it.
    """
    from stable_baselines3.common.vec_env import VecEnvWrapper

    from owa_bench.agents.solvers.balancing.leaning import HOLD, LEANS, lean_actions

    class _Leans(VecEnvWrapper):
        def reset(self) -> Any:
            self._rows = np.asarray(self.venv.reset())
            return self._rows

        def step_async(self, actions: Any) -> None:
            self._leans = np.array(actions)

        def step_wait(self) -> Any:
            total = np.zeros(self.num_envs, np.float32)
            over = np.zeros(self.num_envs, np.bool_)
            infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            for _ in range(HOLD):
                actions = lean_actions(self._rows, self._leans)
                rows, rewards, ended, told = self.venv.step(actions)
                self._rows = np.asarray(rows)
                total += np.where(over, 0.0, rewards)
                for i in np.flatnonzero(ended & ~over).tolist():
                    infos[i] = told[i]
                over |= ended
                self._leans[ended] = 0
            return self._rows, total, over, infos

    return _Leans(envs, action_space=gymnasium.spaces.Discrete(len(LEANS)))


def _with_trials(envs: Any, episodes: int, penalty: float) -> Any:
    """Return envs whose episodes are trials of so many episodes of `envs`.

    An observation begins with what `skills.trained.trial_inputs` adds. A trial ends with its last
    episode; each episode that is terminated costs `penalty`.
    """
    from stable_baselines3.common.vec_env import VecEnvWrapper

    class _Trials(VecEnvWrapper):
        def reset(self) -> Any:
            self._played = np.zeros(self.num_envs, np.int64)
            self._actions = np.full(self.num_envs, -1)
            return self._rows(self.venv.reset())

        def step_async(self, actions: Any) -> None:
            self._actions = np.asarray(actions).copy()
            self.venv.step_async(actions)

        def step_wait(self) -> Any:
            rows, rewards, ended, infos = self.venv.step_wait()
            self._played += ended
            over = self._played >= episodes
            cut = np.array([i.get("TimeLimit.truncated", False) for i in infos])
            rewards = rewards - penalty * (ended & ~cut)
            for i in np.flatnonzero(over).tolist():
                last = infos[i]["terminal_observation"]
                added = trial_inputs(self._actions[i : i + 1], count)
                infos[i]["terminal_observation"] = np.concatenate((added[0], last))
            self._played[over] = 0
            self._actions[ended] = -1
            return self._rows(rows), rewards, over, infos

        def _rows(self, rows: Any) -> Any:
            return np.concatenate((trial_inputs(self._actions, count), rows), axis=1)

    count = int(envs.action_space.n)
    size = count + 1 + envs.observation_space.shape[0]
    return _Trials(envs, gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32))


def _stepped_envs(training: Training, seed: int) -> Any:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    kinds: dict[str, Any] = {"here": DummyVecEnv, "processes": SubprocVecEnv}
    if training.backend not in kinds:
        names = ", ".join((*kinds, BATCHED))
        raise FieldError("--backend", training.backend, f"must be one of {names}")
    env_id, kwargs = training.env_id, env_kwargs(training)
    try:
        probe = gymnasium.make(env_id, **kwargs)
    except TypeError as error:
        raise UsageError(f"{env_id} cannot be made with {kwargs}: {error}.") from error
    space = probe.observation_space
    probe.close()
    if not isinstance(space, gymnasium.spaces.Box):
        raise UsageError(f"Training needs an env with a Box of numbers to see, got {space}.")
    return make_vec_env(
        env_id if suite_of(env_id) is None else f"owa_bench:{env_id}",
        n_envs=training.envs,
        seed=seed,
        env_kwargs=kwargs,
        vec_env_cls=kinds[training.backend],
    )


def _batched_envs(training: Training, seed: int) -> Any:
    """Return CartPole3D's batched envs; UsageError for any other env."""
    if suite_of(training.env_id) != "cartpole3d":
        raise UsageError(f"--backend {BATCHED} is CartPole3D's, and the env is {training.env_id}.")
    from owa_bench.envs.cartpole3d.batched.vector_env import vec_env
    from owa_bench.envs.cartpole3d.levels import magnitude_of

    options: dict[str, Any] = {**training.options, "trial": training.trial}
    if "difficulty" in options:
        options["magnitude"] = magnitude_of(options.pop("difficulty"))
    try:
        return vec_env(training.envs, seed=seed, **options)
    except TypeError as error:
        raise UsageError(f"The batched backend cannot be made with {options}: {error}.") from error
