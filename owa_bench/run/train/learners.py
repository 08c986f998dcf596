"""What trains a policy: the algorithms with their settings, envs, saving, loading.

Everything of Stable-Baselines3 and torch is imported here, inside functions.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import msgspec
import numpy as np

from owa_bench.errors import FieldError, MissingPartError, UnknownNameError, UsageError
from owa_bench.registration import ENV_IDS
from owa_bench.skills.trained import (
    INSTALL,
    Normalisation,
    PolicyMetadata,
    read_metadata,
    write_metadata,
)

BATCHED = "batched"
# What SB3 and torch raise for a setting outside its range, or a space they cannot take.
_REFUSALS = (AssertionError, ArithmeticError, TypeError, ValueError)
OptionValue = str | int | float | bool | None
TrainingOptions = Mapping[str, OptionValue]
POLICY = "policy.zip"
_STATE = "state.json"
_BUFFER = "replay_buffer.pkl"


class AlgorithmRecipe(NamedTuple):
    """An algorithm: where its class is, its settings, the shape of its network."""

    module: str
    name: str
    settings: Mapping[str, Any]
    layers: tuple[int, ...]
    activation: str
    normalises: bool


# dqn: the network of the paper's baseline (two layers of 512, ReLU); SB3 explores by
# epsilon-greedy where the paper draws from a Boltzmann distribution.
RECIPES: Mapping[str, AlgorithmRecipe] = {
    "dqn": AlgorithmRecipe(
        "stable_baselines3",
        "DQN",
        {
            "learning_rate": 3e-4,
            "buffer_size": 100_000,
            "learning_starts": 5_000,
            "batch_size": 128,
            "gamma": 0.99,
            "train_freq": 4,
            "gradient_steps": 1,
            "target_update_interval": 1_000,
            "exploration_fraction": 0.2,
            "exploration_final_eps": 0.02,
        },
        (512, 512),
        "ReLU",
        normalises=True,
    ),
    "ppo": AlgorithmRecipe(
        "stable_baselines3",
        "PPO",
        {
            "learning_rate": 1e-3,
            "n_steps": 256,
            "batch_size": 1024,
            "n_epochs": 8,
            "gamma": 0.99,
            "gae_lambda": 0.95,
            "ent_coef": 0.0,
            "clip_range": 0.2,
        },
        (64, 64),
        "Tanh",
        normalises=True,
    ),
    "maskable_ppo": AlgorithmRecipe(
        "sb3_contrib",
        "MaskablePPO",
        {
            "learning_rate": 1e-3,
            "n_steps": 256,
            "batch_size": 128,
            "n_epochs": 8,
            "gamma": 0.99,
            "ent_coef": 0.01,
        },
        (64, 64),
        "Tanh",
        normalises=False,
    ),
}


class Moments(msgspec.Struct, frozen=True, kw_only=True):
    """Where the scaling of rewards stands, so that a resumed training goes on so."""

    mean: float = 0.0
    variance: float = 1.0
    count: float = 0.0


class Learner(NamedTuple):
    """A model, its vectorised envs, and the same envs' scaling (None: raw)."""

    model: Any
    envs: Any
    scaling: Any


def recipe(algorithm: str, normalise: bool | None) -> AlgorithmRecipe:
    """Return an algorithm's recipe; UnknownNameError with the nearest name."""
    if algorithm not in RECIPES:
        raise UnknownNameError("algorithm", algorithm, RECIPES)
    found = RECIPES[algorithm]
    return found if normalise is None else found._replace(normalises=normalise)


def check_machine(algorithm: str) -> None:
    """Refuse where the learning libraries are not installed. MissingPartError."""
    for module in ("torch", "stable_baselines3", RECIPES[algorithm].module):
        if importlib.util.find_spec(module) is None:
            part = f"`{module}` (for `owa-bench train`)"
            raise MissingPartError(part, INSTALL)


def settings_of(kind: AlgorithmRecipe, given: TrainingOptions) -> dict[str, Any]:
    """Return a recipe's settings with the given ones in place.

    Errors: UsageError for one that the algorithm does not take.
    """
    import inspect

    taken = inspect.signature(_class_of(kind).__init__).parameters
    reserved = {"self", "policy", "env", "seed", "device", "tensorboard_log", "verbose"}
    known = sorted(set(taken) - reserved - {"policy_kwargs", "_init_setup_model"})
    for name in given:
        if name not in known:
            raise UnknownNameError(f"setting of {kind.name}", name, known)
    return {**kind.settings, **given}


def env_kwargs(env_id: str, options: TrainingOptions) -> dict[str, Any]:
    """Return what an env is made with: tool suites in the vector view, shaped."""
    if env_id not in gymnasium.registry:
        raise UnknownNameError("env id", env_id, gymnasium.registry)
    if suite_of(env_id) is None or _is_native(env_id):
        return dict(options)
    return {"view": "vector", "shaping": True, **options}


def suite_of(env_id: str) -> str | None:
    """Return the suite behind an env id, None for an id that is not ours."""
    return ENV_IDS[env_id][1] if env_id in ENV_IDS else None


def _is_native(env_id: str) -> bool:
    from owa_bench import discovery

    return bool(discovery.get("suites", ENV_IDS[env_id][1]).card.native)


def make_envs(
    env_id: str,
    options: TrainingOptions,
    *,
    count: int,
    seed: int,
    backend: str,
    scaled: bool,
) -> tuple[Any, Any]:
    """Return vectorised envs seeded from `seed`, and their scaling or None.

    `backend`: "here" steps them in this process, "processes" each in its own,
    "batched" all at once in torch (CartPole3D).
    """
    if backend == BATCHED:
        envs = _batched(env_id, options, count=count, seed=seed)
        return _scaled(envs, scaled=scaled)
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    kinds: dict[str, Any] = {"here": DummyVecEnv, "processes": SubprocVecEnv}
    if backend not in kinds:
        names = ", ".join((*kinds, BATCHED))
        raise FieldError("--backend", backend, f"must be one of {names}")
    kwargs = env_kwargs(env_id, options)
    probe = _probe(env_id, kwargs)
    if not isinstance(probe, gymnasium.spaces.Box):
        raise UsageError(
            f"Training needs an env with a Box of numbers to see, got {probe}."
        )
    envs = make_vec_env(
        env_id if suite_of(env_id) is None else f"owa_bench:{env_id}",
        n_envs=count,
        seed=seed,
        env_kwargs=kwargs,
        vec_env_cls=kinds[backend],
    )
    return _scaled(envs, scaled=scaled)


def _scaled(envs: Any, *, scaled: bool) -> tuple[Any, Any]:
    """Return envs behind a running scale, and the scale; envs and None if raw."""
    from stable_baselines3.common.vec_env import VecNormalize

    if not scaled:
        return envs, None
    scaling = VecNormalize(envs, norm_obs=True, norm_reward=True)
    return scaling, scaling


def _batched(env_id: str, options: TrainingOptions, *, count: int, seed: int) -> Any:
    """Return CartPole3D's batched envs; UsageError for any other env."""
    if suite_of(env_id) != "cartpole3d":
        raise UsageError(
            f"--backend {BATCHED} is CartPole3D's, and the env is {env_id}."
        )
    from owa_bench.envs.cartpole3d.batched.vector_env import vec_env
    from owa_bench.envs.cartpole3d.levels import magnitude_of

    given: dict[str, Any] = dict(options)
    if "difficulty" in given:
        given["magnitude"] = magnitude_of(given.pop("difficulty"))
    try:
        return vec_env(count, seed=seed, **given)
    except TypeError as error:
        raise UsageError(
            f"The batched backend cannot be made with {given}: {error}."
        ) from error


def _probe(env_id: str, kwargs: dict[str, Any]) -> gymnasium.Space[Any]:
    """Return the observation space; what the env refuses is the user's to mend."""
    try:
        env = gymnasium.make(env_id, **kwargs)
    except TypeError as error:
        raise UsageError(f"{env_id} cannot be made with {kwargs}: {error}.") from error
    try:
        return env.observation_space
    finally:
        env.close()


def _class_of(kind: AlgorithmRecipe) -> Any:
    return getattr(importlib.import_module(kind.module), kind.name)


def new(
    kind: AlgorithmRecipe,
    envs: Any,
    scaling: Any,
    *,
    given: TrainingOptions,
    seed: int,
    layers: tuple[int, ...],
    logs: Path | None,
) -> Learner:
    """Return an untrained learner."""
    import torch

    _refuse_unmasked(kind, envs)
    settings = settings_of(kind, given)
    try:
        model = _class_of(kind)(
            "MlpPolicy",
            envs,
            seed=seed,
            device="cpu",
            tensorboard_log=None if logs is None else str(logs),
            policy_kwargs={
                "net_arch": list(layers or kind.layers),
                "activation_fn": getattr(torch.nn, kind.activation),
            },
            **settings,
        )
    except _REFUSALS as error:
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        raise UsageError(
            f"{kind.name} cannot learn here with {shown}: {error}."
        ) from error
    return Learner(model, envs, scaling)


def _refuse_unmasked(kind: AlgorithmRecipe, envs: Any) -> None:
    """Refuse an algorithm of masked actions where the env says no masks."""
    if kind.module != "sb3_contrib":
        return
    from sb3_contrib.common.maskable.utils import is_masking_supported

    if not is_masking_supported(envs):
        raise UsageError(
            f"{kind.name} needs an env with `action_masks`, as the tool suites have; "
            "take ppo or dqn for this one."
        )


def save(learner: Learner, folder: Path, notes: PolicyMetadata) -> None:
    """Write a checkpoint that is whole or not there."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    learner.model.save(part / POLICY)
    scaled = msgspec.structs.replace(notes, normalisation=_scale(learner.scaling))
    write_metadata(part / POLICY, scaled)
    (part / _STATE).write_bytes(msgspec.json.encode(_moments(learner.scaling)))
    if hasattr(learner.model, "save_replay_buffer"):
        learner.model.save_replay_buffer(part / _BUFFER)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(part, folder)


def load(
    kind: AlgorithmRecipe,
    folder: Path,
    envs: Any,
    scaling: Any,
    *,
    seed: int,
    logs: Path | None,
) -> Learner:
    """Return a learner as a checkpoint left it, its streams begun anew from `seed`."""
    model = _class_of(kind).load(folder / POLICY, env=envs, device="cpu")
    model.tensorboard_log = None if logs is None else str(logs)
    model.set_random_seed(seed)
    if (folder / _BUFFER).exists():
        model.load_replay_buffer(folder / _BUFFER)
    notes = read_metadata(folder / POLICY)
    if scaling is not None and notes.normalisation is not None:
        kept = notes.normalisation
        scaling.obs_rms.mean = np.asarray(kept.mean)
        scaling.obs_rms.var = np.asarray(kept.variance)
        scaling.obs_rms.count = kept.count
        moments = msgspec.json.decode((folder / _STATE).read_bytes(), type=Moments)
        scaling.ret_rms.mean = moments.mean
        scaling.ret_rms.var = moments.variance
        scaling.ret_rms.count = moments.count
    return Learner(model, envs, scaling)


def callback(on_step: Callable[[int], None], on_rollout: Callable[[Any], None]) -> Any:
    """Return an SB3 callback: `on_step` hears the steps, `on_rollout` the model."""
    from stable_baselines3.common.callbacks import BaseCallback

    class _Ear(BaseCallback):
        def _on_step(self) -> bool:
            on_step(self.num_timesteps)
            return True

        def _on_rollout_end(self) -> None:
            on_rollout(self.model)

    return _Ear()


def _scale(scaling: Any) -> Normalisation | None:
    if scaling is None:
        return None
    moments = scaling.obs_rms
    return Normalisation(
        mean=tuple(moments.mean.tolist()),
        variance=tuple(moments.var.tolist()),
        clip=float(scaling.clip_obs),
        epsilon=float(scaling.epsilon),
        count=float(moments.count),
    )


def _moments(scaling: Any) -> Moments:
    if scaling is None:
        return Moments()
    found = scaling.ret_rms
    return Moments(
        mean=float(found.mean), variance=float(found.var), count=float(found.count)
    )
