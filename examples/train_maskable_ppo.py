"""Train MaskablePPO on the vector view of ToolQuest and compare it with random play.

    pip install "owa_bench[rl]"
    python examples/train_maskable_ppo.py

Prints the mean quality of both on seeds that training never meets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import owa_bench  # noqa: F401  (registers the ids)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides the result."""

    env_id: str = "owa_bench/ToolQuest-v3"
    tier: int = 1
    step_limit: int = 60
    seed: int = 0
    steps: int = 20_000
    envs: int = 4
    rollout: int = 256  # steps of each env between updates
    batch: int = 128
    gamma: float = 0.99
    entropy: float = 0.01
    rate: float = 1e-3
    test_episodes: int = 200
    first_test_seed: int = 1_000_000_000


Chooser = Callable[[Any, np.ndarray], int]


class Bar(BaseCallback):
    """Moves a progress bar."""

    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self._progress = progress
        self._task = progress.add_task("training", total=steps)

    def _on_step(self) -> bool:
        self._progress.update(self._task, completed=self.num_timesteps)
        return True


def mean_quality(
    config: Config, choose: Chooser, progress: Progress, title: str
) -> tuple[float, float]:
    """Return mean quality Q and mean q_state over the held-out seeds."""
    env = gymnasium.make(
        config.env_id, view="vector", tier=config.tier, step_limit=config.step_limit
    )
    masks = env.get_wrapper_attr("action_masks")
    ends = []
    for i in progress.track(range(config.test_episodes), description=title):
        observation, info = env.reset(seed=config.first_test_seed + i)
        while "quality" not in info:
            action = choose(observation, masks())
            observation, _, _, _, info = env.step(action)
        ends.append((info["quality"], info["q_state"]))
    env.close()
    quality, q_state = np.mean(ends, axis=0)
    return float(quality), float(q_state)


def train(config: Config, progress: Progress) -> MaskablePPO:
    """Return a policy trained with shaping on instances drawn from the seed."""
    envs = make_vec_env(
        config.env_id,
        n_envs=config.envs,
        seed=config.seed,
        env_kwargs={
            "view": "vector",
            "tier": config.tier,
            "step_limit": config.step_limit,
            "shaping": True,
        },
    )
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        n_steps=config.rollout,
        batch_size=config.batch,
        gamma=config.gamma,
        ent_coef=config.entropy,
        learning_rate=config.rate,
        seed=config.seed,
        device="cpu",
    )
    model.learn(config.steps, callback=Bar(progress, config.steps))
    envs.close()
    return model


def main(config: Config) -> bool:
    """Train, test, print; return whether training improved on random play."""
    rng = np.random.default_rng(config.seed)
    columns = (*Progress.get_default_columns()[:1], BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn()) as progress:
        random = mean_quality(
            config,
            lambda _, masks: int(rng.choice(np.flatnonzero(masks))),
            progress,
            "testing random",
        )
        model = train(config, progress)
        trained = mean_quality(
            config,
            lambda observation, masks: int(
                model.predict(observation, action_masks=masks, deterministic=True)[0]
            ),
            progress,
            "testing trained",
        )
    print(f"{config.test_episodes} held-out episodes, tier {config.tier}")
    print(f"{'':12}{'mean Q':>8}{'mean q_state':>14}")
    for name, (quality, q_state) in (("random", random), ("trained", trained)):
        print(f"{name:12}{quality:8.3f}{q_state:14.3f}")
    return trained[0] > random[0]


if __name__ == "__main__":
    if not main(Config()):
        raise SystemExit("training did not improve on random play")
