"""Recipes of the algorithms: class, settings and network; settings that fall."""

import ast
from collections.abc import Mapping
from typing import Any, NamedTuple

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
