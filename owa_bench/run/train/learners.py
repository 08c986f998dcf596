"""Learners: algorithms with their settings, vectorised envs, and checkpoints.

Everything of Stable-Baselines3 and torch is imported here, inside functions.
"""

import importlib.util
import inspect
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import msgspec
import numpy as np
from msgspec.structs import replace

from owa_bench import discovery
from owa_bench.errors import FieldError, MissingPartError, UnknownNameError, UsageError
from owa_bench.registration import ENV_IDS
from owa_bench.run.train.recipes import RECIPES, SB3, AlgorithmRecipe, setting_of
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
# Arguments of an algorithm that are no settings.
_RESERVED = {"self", "policy", "env", "seed", "device", "tensorboard_log", "verbose"}
_RESERVED |= {"policy_kwargs", "_init_setup_model"}
OptionValue = str | int | float | bool | None
TrainingOptions = Mapping[str, OptionValue]
POLICY = "policy.zip"
_STATE = "state.json"
_BUFFER = "replay_buffer.pkl"


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides the result of a training.

    `options` go to the env, `settings` to the algorithm; `layers` and `normalise` left
    out take the algorithm's own. 0 for `evaluate_every`: at the end alone.
    """

    env_id: str
    algorithm: str = "ppo"
    steps: int = 1_000_000
    seed: int = 0
    envs: int = 8
    options: TrainingOptions = {}
    settings: TrainingOptions = {}
    layers: tuple[int, ...] = ()
    normalise: bool | None = None
    checkpoint_every: int = 100_000
    evaluate_every: int = 0
    episodes: int = 20
    threads: int = 1
    backend: str = "here"

    def __post_init__(self) -> None:
        """Refuse numbers outside their range."""
        for name in ("steps", "envs", "checkpoint_every", "episodes", "threads"):
            if getattr(self, name) < 1:
                flag = f"--{name.replace('_', '-')}"
                raise FieldError(flag, getattr(self, name), "must be at least 1")
        if self.evaluate_every < 0:
            raise FieldError("--evaluate-every", self.evaluate_every, "must be >= 0")


class RewardMoments(msgspec.Struct, frozen=True, kw_only=True):
    """Moments of the reward scaling, with which a resumed training goes on."""

    mean: float = 0.0
    variance: float = 1.0
    count: float = 0.0


class Learner(NamedTuple):
    """A model, its vectorised envs, and the same envs' scaling (None: raw)."""

    model: Any
    envs: Any
    scaling: Any


def recipe_of(training: Training) -> AlgorithmRecipe:
    """Return the recipe of a training; UnknownNameError with the nearest name."""
    if training.algorithm not in RECIPES:
        raise UnknownNameError("algorithm", training.algorithm, RECIPES)
    recipe, normalise = RECIPES[training.algorithm], training.normalise
    return recipe if normalise is None else recipe._replace(normalises=normalise)


def check_machine(recipe: AlgorithmRecipe) -> None:
    """Refuse where the learning libraries are not installed. MissingPartError."""
    for module in ("torch", SB3, recipe.module):
        if importlib.util.find_spec(module) is None:
            part = f"`{module}` (for `owa-bench train`)"
            raise MissingPartError(part, INSTALL)


def suite_of(env_id: str) -> str | None:
    """Return the suite behind an env id, None for an id of another package."""
    return ENV_IDS[env_id][1] if env_id in ENV_IDS else None


def env_kwargs(training: Training) -> dict[str, Any]:
    """Return what the env is made with: tool suites in the vector view, shaped."""
    env_id, options = training.env_id, training.options
    if env_id not in gymnasium.registry:
        raise UnknownNameError("env id", env_id, gymnasium.registry)
    suite = suite_of(env_id)
    if suite is None or discovery.get("suites", suite).card.native:
        return dict(options)
    return {"view": "vector", "shaping": True, **options}


# --- learners -------------------------------------------------------------------------


def new_learner(training: Training, *, seed: int, logs: Path | None) -> Learner:
    """Return an untrained learner.

    Args:
        training: What is trained and how.
        seed: Of the envs and of the network.
        logs: Folder of TensorBoard's logs; None for none.

    Returns:
        The learner.

    Raises:
        UsageError: The algorithm cannot learn so.
    """
    import torch

    recipe = recipe_of(training)
    envs, scaling = _make_envs(training, seed, scaled=recipe.normalises)
    kind = _class_of(recipe)
    _refuse_unmasked(recipe, envs)
    settings = _checked_settings(recipe, kind, training.settings)
    try:
        model = kind(
            recipe.policy,
            envs,
            seed=seed,
            device="cpu",
            tensorboard_log=None if logs is None else str(logs),
            policy_kwargs={
                "net_arch": list(training.layers or recipe.layers),
                "activation_fn": getattr(torch.nn, recipe.activation),
            },
            **settings,
        )
    except _REFUSALS as error:
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        raise UsageError(
            f"{recipe.name} cannot learn here with {shown}: {error}."
        ) from error
    return Learner(model, envs, scaling)


def load_learner(
    training: Training, folder: Path, *, seed: int, logs: Path | None
) -> Learner:
    """Return a learner as a checkpoint left it, its streams begun anew.

    Args:
        training: What is trained and how.
        folder: The checkpoint.
        seed: Of the envs and of the new streams.
        logs: Folder of TensorBoard's logs; None for none.

    Returns:
        The learner.
    """
    recipe = recipe_of(training)
    envs, scaling = _make_envs(training, seed, scaled=recipe.normalises)
    model = _class_of(recipe).load(folder / POLICY, env=envs, device="cpu")
    model.tensorboard_log = None if logs is None else str(logs)
    model.set_random_seed(seed)
    if (folder / _BUFFER).exists():
        model.load_replay_buffer(folder / _BUFFER)
    scale = read_metadata(folder / POLICY).normalisation
    if scaling is not None and scale is not None:
        scaling.obs_rms.mean = np.asarray(scale.mean)
        scaling.obs_rms.var = np.asarray(scale.variance)
        scaling.obs_rms.count = scale.count
        moments = msgspec.json.decode(
            (folder / _STATE).read_bytes(), type=RewardMoments
        )
        scaling.ret_rms.mean = moments.mean
        scaling.ret_rms.var = moments.variance
        scaling.ret_rms.count = moments.count
    return Learner(model, envs, scaling)


def save_learner(learner: Learner, folder: Path, metadata: PolicyMetadata) -> None:
    """Write a checkpoint that is whole or not there.

    Args:
        learner: The learner.
        folder: The checkpoint.
        metadata: Of the policy; the scale of its input is added.
    """
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    learner.model.save(part / POLICY)
    scale, moments = None, RewardMoments()
    if learner.scaling is not None:
        seen, rewards = learner.scaling.obs_rms, learner.scaling.ret_rms
        scale = Normalisation(
            mean=tuple(seen.mean.tolist()),
            variance=tuple(seen.var.tolist()),
            clip=float(learner.scaling.clip_obs),
            epsilon=float(learner.scaling.epsilon),
            count=float(seen.count),
        )
        moments = RewardMoments(
            mean=float(rewards.mean),
            variance=float(rewards.var),
            count=float(rewards.count),
        )
    write_metadata(part / POLICY, replace(metadata, normalisation=scale))
    (part / _STATE).write_bytes(msgspec.json.encode(moments))
    if hasattr(learner.model, "save_replay_buffer"):
        learner.model.save_replay_buffer(part / _BUFFER)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(part, folder)


def callback(on_step: Callable[[int], None], on_rollout: Callable[[Any], None]) -> Any:
    """Return an SB3 callback.

    Args:
        on_step: Called with the steps so far.
        on_rollout: Called with the model after every rollout.

    Returns:
        The callback.
    """
    from stable_baselines3.common.callbacks import BaseCallback

    class _Callback(BaseCallback):
        def _on_step(self) -> bool:
            on_step(self.num_timesteps)
            return True

        def _on_rollout_end(self) -> None:
            on_rollout(self.model)

    return _Callback()


def _class_of(recipe: AlgorithmRecipe) -> Any:
    return getattr(importlib.import_module(recipe.module), recipe.name)


def _checked_settings(
    recipe: AlgorithmRecipe, kind: Any, given: TrainingOptions
) -> dict[str, Any]:
    """Return a recipe's settings with the given ones in place."""
    names = sorted(set(inspect.signature(kind.__init__).parameters) - _RESERVED)
    for name in given:
        if name not in names:
            raise UnknownNameError(f"setting of {recipe.name}", name, names)
    return {**recipe.settings, **{name: setting_of(v) for name, v in given.items()}}


def _refuse_unmasked(recipe: AlgorithmRecipe, envs: Any) -> None:
    """Refuse an algorithm of masked actions where the env says no masks."""
    if not recipe.masked:
        return
    from sb3_contrib.common.maskable.utils import is_masking_supported

    if not is_masking_supported(envs):
        raise UsageError(
            f"{recipe.name} needs an env with `action_masks`, as the tool suites have; "
            "take ppo or dqn for this one."
        )


# --- envs -----------------------------------------------------------------------------


def _make_envs(training: Training, seed: int, *, scaled: bool) -> tuple[Any, Any]:
    """Return vectorised envs seeded from `seed`, and their scaling or None.

    Backends: "here" steps them in this process, "processes" each in its own, "batched"
    all at once in torch (CartPole3D).
    """
    from stable_baselines3.common.vec_env import VecNormalize

    batched = training.backend == BATCHED
    envs = (_batched_envs if batched else _stepped_envs)(training, seed)
    if not scaled:
        return envs, None
    scaling = VecNormalize(envs, norm_obs=True, norm_reward=True)
    return scaling, scaling


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
        raise UsageError(
            f"Training needs an env with a Box of numbers to see, got {space}."
        )
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
        raise UsageError(
            f"--backend {BATCHED} is CartPole3D's, and the env is {training.env_id}."
        )
    from owa_bench.envs.cartpole3d.batched.vector_env import vec_env
    from owa_bench.envs.cartpole3d.levels import magnitude_of

    options: dict[str, Any] = dict(training.options)
    if "difficulty" in options:
        options["magnitude"] = magnitude_of(options.pop("difficulty"))
    try:
        return vec_env(training.envs, seed=seed, **options)
    except TypeError as error:
        raise UsageError(
            f"The batched backend cannot be made with {options}: {error}."
        ) from error
