"""Train MaskablePPO on one goal family of ChangeSurf, in real browsers.

    pip install "owa_bench[rl,browser]"
    python examples/train_on_changesurf.py

The vector view shows the controls as rows of numbers; a macro clicks a row or puts one
of the goal's texts into it. Prints the learning curve, and success on sites that
training never met, before and after.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

from owa_bench.envs.changesurf import spaces
from owa_bench.shells.views import SHELL_FEATURES

ENV = "owa_bench:owa_bench/ChangeSurf-v3"
PAY = 0.1
EPISODES_A_LINE = 40
ON_SITE = np.asarray([name.startswith(("click_", "fill_")) for name in spaces.MACROS])
ON_PAGE = spaces.MACROS[: ON_SITE.sum()]  # clicks, then fills
TEXT = (spaces.FEATURES - spaces.ELEMENTS * spaces.WIDTH - spaces.PAGE) // (spaces.ARGUMENTS)
PARTS = (spaces.ELEMENTS * spaces.WIDTH, spaces.ARGUMENTS * TEXT, spaces.PAGE + SHELL_FEATURES)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides the result."""

    family: str = "depot/return"
    step_limit: int = 12
    seed: int = 0
    steps: int = 3_840
    envs: int = 2  # one browser and one core each
    rollout: int = 64  # steps of each env between updates
    batch: int = 32
    epochs: int = 10
    gamma: float = 0.9
    entropy: float = 0.01
    rate: float = 2e-3
    test_episodes: int = 20
    first_test_seed: int = 1_000_000_000


DEFAULT = Config()


class OnlyTheSite(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Leaves the macros that touch the site; the episode ends by its step limit.

    To end at once with a low p is worth a tenth, and a learner finds that first.
    """

    def action_masks(self) -> np.ndarray:
        """Return the macros that click or fill and make sense now."""
        masks = self.env.get_wrapper_attr("action_masks")()
        own = np.zeros_like(masks)
        own[: len(ON_SITE)] = masks[: len(ON_SITE)] & ON_SITE
        return own if own.any() else masks


class Progress(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays a tenth for each step that gains what the goal needs, in training alone.

    That is a page on the way reached for the first time, a control that holds what the
    goal names, a subgoal. Success alone is too rare for a few thousand steps.
    """

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in which nothing is gained yet."""
        self._gained: frozenset[str] = frozenset()
        return self.env.reset(**how)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one macro and add its pay."""
        privilege = self.env.unwrapped.oracle_access()
        _, before = privilege.observe()
        observation, reward, ended, cut, info = self.env.step(action)
        _, after = privilege.observe()
        new = privilege.oracle.gained(before, {}, after) - self._gained
        self._gained |= new
        reward = float(reward) + PAY * bool(new)
        return observation, reward, ended, cut, info


def in_training(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return an env as training sees it."""
    return OnlyTheSite(Progress(env))


class TableRows(torch.nn.Module):
    """Scores macros row by row with the same weights, wherever a control stands.

    "Click a row" looks at the row and the page, "put text v into a row" at the text
    too. Plain layers would have to learn each of the forty rows for itself.
    """

    def __init__(self, macros: int, width: int = 64) -> None:
        super().__init__()
        self._row = torch.nn.Linear(spaces.WIDTH, width)
        self._text = torch.nn.Linear(TEXT, width)
        self._page = torch.nn.Linear(spaces.PAGE + SHELL_FEATURES, width)
        self._click = torch.nn.Linear(width, 1)
        self._fill = torch.nn.Linear(width, 1)
        self._rest = torch.nn.Linear(width, macros - len(ON_PAGE))

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """Return a score for each macro."""
        rows, texts, page = torch.split(seen, PARTS, dim=1)
        about = self._page(page)
        row = self._row(rows.unflatten(1, (spaces.ELEMENTS, -1))) + about[:, None]
        text = self._text(texts.unflatten(1, (spaces.ARGUMENTS, -1)))
        click = self._click(torch.relu(row)).flatten(1)
        fill = self._fill(torch.relu(row[:, :, None] + text[:, None])).flatten(1)
        return torch.cat((click, fill, self._rest(torch.relu(about))), dim=1)


class RowPolicy(MaskableActorCriticPolicy):
    """MaskablePPO's policy with `Rows` to act and plain layers to value."""

    def _build(self, lr_schedule: Callable[[float], float]) -> None:
        super()._build(lr_schedule)
        self.action_net = TableRows(int(self.action_space.n))
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )


class Curve(BaseCallback):
    """Prints how training episodes ended, a line for some forty of them."""

    def __init__(self) -> None:
        super().__init__()
        self._ends: list[float] = []

    def _on_step(self) -> bool:
        self._ends += [i["q_state"] for i in self.locals["infos"] if "q_state" in i]
        return True

    def _on_rollout_end(self) -> None:
        if len(self._ends) < EPISODES_A_LINE:
            return
        done = [float(q >= 0.95) for q in self._ends]
        print(
            f"{self.num_timesteps:8} steps  {len(done):4} episodes  "
            f"q_state {np.mean(self._ends):.3f}  success {np.mean(done):.3f}",
            flush=True,
        )
        self._ends = []


def env_kwargs(config: Config) -> dict[str, Any]:
    """Return what the env is made with."""
    return {"view": "vector", "family": config.family, "step_limit": config.step_limit}


def success(config: Config, choose: Callable[[Any, np.ndarray], int]) -> float:
    """Return the share of unmet sites on which the goal was reached."""
    env = OnlyTheSite(gymnasium.make(ENV, **env_kwargs(config)))
    done = 0
    for i in range(config.test_episodes):
        observation, info = env.reset(seed=config.first_test_seed + i)
        while "success" not in info:
            action = choose(observation, env.action_masks())
            observation, _, _, _, info = env.step(action)
        done += info["success"]
    env.close()
    return done / config.test_episodes


def train(config: Config) -> MaskablePPO:
    """Return a policy trained on sites drawn from the seed, paid for progress."""
    envs = make_vec_env(
        ENV,
        n_envs=config.envs,
        seed=config.seed,
        env_kwargs=env_kwargs(config),
        wrapper_class=in_training,
        vec_env_cls=SubprocVecEnv,
        vec_env_kwargs={"start_method": "spawn"},
    )
    model = MaskablePPO(
        RowPolicy,
        envs,
        n_steps=config.rollout,
        batch_size=config.batch,
        n_epochs=config.epochs,
        gamma=config.gamma,
        ent_coef=config.entropy,
        learning_rate=config.rate,
        seed=config.seed,
        device="cpu",
        policy_kwargs={"net_arch": {"pi": [], "vf": [64]}},  # `Rows` sees it all
    )
    try:
        model.learn(config.steps, callback=Curve())
    finally:
        envs.close()
    return model


def main(config: Config) -> bool:
    """Train, test, print; return whether training improved on random play."""
    rng = np.random.default_rng(config.seed)
    before = success(config, lambda _, masks: int(rng.choice(np.flatnonzero(masks))))
    model = train(config)
    after = success(
        config,
        lambda seen, masks: int(model.predict(seen, action_masks=masks, deterministic=True)[0]),
    )
    print(f"{config.family}, {config.test_episodes} sites that training never met")
    print(f"success of random macros {before:.3f}, after {config.steps} steps {after:.3f}")
    return after > before


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default=DEFAULT.family)
    parser.add_argument("--steps", type=int, default=DEFAULT.steps)
    given = parser.parse_args()
    sys.exit(0 if main(Config(family=given.family, steps=given.steps)) else 1)
