"""Learners: algorithms with their settings, vectorised envs, and checkpoints.

Everything of Stable-Baselines3 and torch is imported here, inside functions.
"""

import importlib.util
import inspect
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from owa_bench.agents.solvers.trained import (
    RECHOSEN,
    Normalisation,
    PolicyMetadata,
    read_metadata,
    write_metadata,
)
from owa_bench.errors import MissingPartError, UnknownNameError, UsageError, extra
from owa_bench.runs.train.algorithms import (
    SB3,
    AlgorithmRecipe,
    Training,
    TrainingOptions,
    recipe_of,
    setting_of,
)
from owa_bench.runs.train.vector_envs import make_envs

# What SB3 and torch raise for a setting outside its range, or a space they cannot take.
_REFUSALS = (AssertionError, ArithmeticError, TypeError, ValueError)
# Arguments of an algorithm that are no settings.
_RESERVED = {"self", "policy", "env", "seed", "device", "tensorboard_log", "verbose"}
_RESERVED |= {"policy_kwargs", "_init_setup_model"}
POLICY = "policy.zip"
_STATE = "state.json"
_BUFFER = "replay_buffer.pkl"


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


def check_machine(recipe: AlgorithmRecipe) -> None:
    """Refuse where the learning libraries are not installed. MissingPartError."""
    for module in ("torch", SB3, recipe.module):
        if importlib.util.find_spec(module) is None:
            part = f"`{module}` (for `owa-bench train`)"
            raise MissingPartError(part, extra("rl"))


# --- learners -------------------------------------------------------------------------


def new_learner(training: Training, *, seed: int, logs: Path | None) -> Learner:
    """Return an untrained learner.

    Args:
        training: What is trained and how.
        seed: Of the envs and of the network.
        logs: Folder of TensorBoard's logs; None for none.
    Raises: UsageError: The algorithm cannot learn so.
    """
    import torch

    recipe = recipe_of(training)
    envs, scaling = make_envs(training, seed, scaled=recipe.normalises)
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
                **({"lstm_hidden_size": training.memory} if training.memory else {}),
            },
            **settings,
        )
    except _REFUSALS as error:
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        raise UsageError(f"{recipe.name} cannot learn here with {shown}: {error}.") from error
    return Learner(model, envs, scaling)


def load_learner(
    training: Training, folder: Path, *, seed: int, logs: Path | None = None, replayed: bool = True
) -> Learner:
    """Return a learner as a checkpoint left it, its streams begun anew.

    Args:
        training: What is trained and how.
        folder: The checkpoint.
        seed: Of the envs and of the new streams.
        logs: Folder of TensorBoard's logs; None for none.
        replayed: Whether the steps that its replay buffer holds are kept.
    Raises: UsageError: The checkpoint's policy has another algorithm, or reads or does something
        else than these envs have.
    """
    recipe = recipe_of(training)
    other = read_metadata(folder / POLICY).algorithm
    if other != training.algorithm:
        raise UsageError(f"The policy of {folder} is of {other}: --algorithm {other}.")
    envs, scaling = make_envs(training, seed, scaled=recipe.normalises)
    try:
        model = _class_of(recipe).load(
            folder / POLICY, env=envs, device="cpu", custom_objects=RECHOSEN
        )
    except ValueError as error:
        raise UsageError(f"The policy of {folder} cannot go on here: {error}.") from (error)
    model.tensorboard_log = None if logs is None else str(logs)
    model.set_random_seed(seed)
    if replayed and (folder / _BUFFER).exists():
        model.load_replay_buffer(folder / _BUFFER)
    scale = read_metadata(folder / POLICY).normalisation
    if scaling is not None and scale is not None:
        scaling.obs_rms.mean = np.asarray(scale.mean)
        scaling.obs_rms.var = np.asarray(scale.variance)
        scaling.obs_rms.count = scale.count
        moments = msgspec.json.decode((folder / _STATE).read_bytes(), type=RewardMoments)
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
            mean=float(rewards.mean), variance=float(rewards.var), count=float(rewards.count)
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


def _checked_settings(recipe: AlgorithmRecipe, kind: Any, given: TrainingOptions) -> dict[str, Any]:
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
