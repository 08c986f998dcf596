"""Trainings: an env, an algorithm with its settings and network, and a length."""

import ast
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import gymnasium
import msgspec

from owa_bench import discovery
from owa_bench.errors import FieldError, UnknownNameError, UsageError
from owa_bench.registration import ENV_IDS

_FALLING = "lin_"  # such as lin_1e-3: from there to 0 at the last step


class AlgorithmRecipe(NamedTuple):
    """An algorithm: its class, settings and network; `masked`: it needs masks."""

    module: str
    name: str
    settings: Mapping[str, Any]
    layers: tuple[int, ...]
    activation: str
    normalises: bool = False
    masked: bool = False
    policy: str = "MlpPolicy"


def _settings(text: str) -> dict[str, Any]:
    """Return the settings of a text of NAME=VALUE."""
    pairs = (pair.partition("=") for pair in text.split())
    return {name: ast.literal_eval(value) for name, _, value in pairs}


_DQN = _settings(
    "learning_rate=3e-4 buffer_size=100_000 learning_starts=5_000 batch_size=128 "
    "gamma=0.99 train_freq=4 gradient_steps=1 target_update_interval=1_000 "
    "exploration_fraction=0.2 exploration_final_eps=0.02"
)
_PPO = _settings(
    "learning_rate=1e-3 n_steps=256 batch_size=1024 n_epochs=8 gamma=0.99 "
    "gae_lambda=0.95 ent_coef=0.0 clip_range=0.2"
)
_MASKABLE_PPO = {**_PPO, "batch_size": 128, "ent_coef": 0.01}
_RECURRENT_PPO = {**_PPO, "n_steps": 128, "batch_size": 256, "gamma": 0.9}
SB3, _CONTRIB = "stable_baselines3", "sb3_contrib"
# dqn: the network of the paper's baseline (two layers of 512, ReLU); SB3 explores by
# epsilon-greedy where the paper draws from a Boltzmann distribution.
RECIPES: Mapping[str, AlgorithmRecipe] = {
    "dqn": AlgorithmRecipe(SB3, "DQN", _DQN, (512, 512), "ReLU", normalises=True),
    "ppo": AlgorithmRecipe(SB3, "PPO", _PPO, (64, 64), "Tanh", normalises=True),
    "maskable_ppo": AlgorithmRecipe(
        _CONTRIB, "MaskablePPO", _MASKABLE_PPO, (64, 64), "Tanh", masked=True
    ),
    "recurrent_ppo": AlgorithmRecipe(
        _CONTRIB, "RecurrentPPO", _RECURRENT_PPO, (64,), "Tanh", policy="MlpLstmPolicy"
    ),
}


def setting_of(value: Any) -> Any:
    """Return a setting as Stable-Baselines3 takes it: `lin_X` falls from X to 0."""
    if not isinstance(value, str) or not value.startswith(_FALLING):
        return value
    from stable_baselines3.common.utils import LinearSchedule

    try:
        return LinearSchedule(float(value.removeprefix(_FALLING)), 0.0, 1.0)
    except ValueError:
        return value


# --- a training ---------------------------------------------------------------------


OptionValue = str | int | float | bool | None
TrainingOptions = Mapping[str, OptionValue]


class Training(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides the result of a training.

    `options` go to the env, `settings` to the algorithm; `layers` and `normalise` left out take the
    algorithm's own. `features` name what a network reads in place of the observation
    (`skills.trained`), `actions` "leans" what it chooses in place of pushes
    (`skills.balancing.leaning`). 0 for `evaluate_every`: at the end alone.

    With `trial`, so many episodes in a row are one to the algorithm, which sees where each begins
    and what it did last; one that is terminated costs `penalty`. With `imitation`, so many steps
    are played first to imitate CartPole3D's planner. `memory` is the size of a recurrent network's
    state, 0 the algorithm's own. `start` is the folder of another training, whose last policy this
    one begins with.
    """

    env_id: str = "owa_bench/CartPole3D-v2"
    algorithm: str = "ppo"
    steps: int = 1_000_000
    seed: int = 0
    envs: int = 8
    options: TrainingOptions = {}
    settings: TrainingOptions = {}
    layers: tuple[int, ...] = ()
    normalise: bool | None = None
    features: str = ""
    actions: Literal["", "leans"] = ""
    trial: int = 0
    penalty: float = 0.0
    imitation: int = 0
    memory: int = 0
    start: str = ""
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
        for name in ("evaluate_every", "trial", "penalty", "imitation", "memory"):
            if getattr(self, name) < 0:
                flag = f"--{name.replace('_', '-')}"
                raise FieldError(flag, getattr(self, name), "must be >= 0")


def recipe_of(training: Training) -> AlgorithmRecipe:
    """Return the recipe of a training; UnknownNameError with the nearest name."""
    if training.algorithm not in RECIPES:
        raise UnknownNameError("algorithm", training.algorithm, RECIPES)
    recipe, normalise = RECIPES[training.algorithm], training.normalise
    return recipe if normalise is None else recipe._replace(normalises=normalise)


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


def refuse_start(training: Training, before: Training) -> None:
    """Refuse to begin with a policy where what comes with it is asked to differ.

    Args:
        training: Begins with the policy.
        before: The policy's own; another algorithm is refused as the policy is read.
    Raises: UsageError: Something that the policy brings differs.
    """
    kept = ("features", "actions", "trial", "layers", "memory", "settings")
    other = [name for name in kept if getattr(training, name) != getattr(before, name)]
    if recipe_of(training).normalises != recipe_of(before).normalises:
        other.append("normalise")
    if other and training.algorithm == before.algorithm:
        raise UsageError(
            "--start takes a policy with its network, settings and scale, and these "
            f"differ from those of {training.start}: {', '.join(other)}."
        )


def refuse_other(training: Training, before: Training) -> None:
    """Refuse to go on with what decides the result changed; more steps are fine.

    Args:
        training: What is asked for.
        before: What was begun.
    Raises: UsageError: They differ.
    """
    free = {"steps", "checkpoint_every", "evaluate_every", "episodes"}
    other = [
        name
        for name in training.__struct_fields__
        if name not in free and getattr(training, name) != getattr(before, name)
    ]
    if other:
        raise UsageError(f"--resume goes on as before, and these differ: {', '.join(other)}.")
