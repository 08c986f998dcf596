"""Train the arm to reach on the compiled simulator, with and without its randomised law.

    python examples/train_an_arm.py runs/arm [--minutes 1.5] [--units 12]

Needs `pip install "owa_bench[robot,rl]"`. Two policies are trained by PPO, on the drawing's numbers
and with the law ramped up over the first 40 percent, and play the same held-out tasks in MuJoCo
simulation and on the guarded surrogate device, an episode a unit and tier. Writes both models and
`results.json`. **Surrogate device, not hardware.**
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t as student
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from owa_bench.envs.robosim2real.env import RobotEnv
from owa_bench.envs.robosim2real.kinematic import ReachLanes, ToolView

LANES, ROLLOUT = 64, 128
RAMP = 0.4  # of the training, over which the law widens
TIERS = (1, 2)  # the third has a box, which the compiled simulator does not
HELD_OUT = 1 << 30  # first seed of the tests


class Lanes(VecEnv):
    """`ReachLanes` as Stable-Baselines3 takes it."""

    def __init__(self, lanes: ReachLanes) -> None:
        self.lanes = lanes
        space = (lanes.single_observation_space, lanes.single_action_space)
        super().__init__(lanes.num_envs, *space)
        self._actions = np.zeros((lanes.num_envs, 3), dtype=np.float32)

    def reset(self) -> Any:
        """Begin an episode in every lane."""
        return self.lanes.reset()[0]

    def step_async(self, actions: Any) -> None:
        """Take the actions of a step."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Play them."""
        views, rewards, done, late, info = self.lanes.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for lane in np.flatnonzero(done | late):
            infos[lane]["terminal_observation"] = info["final_obs"][lane]
            infos[lane]["TimeLimit.truncated"] = bool(late[lane])
        return views, rewards.astype(np.float32), done | late, infos

    def close(self) -> None:
        """Hold nothing."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, the same for each lane."""
        return [getattr(self.lanes, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all lanes."""
        setattr(self.lanes, attr_name, value)

    def env_method(self, *_: Any, **__: Any) -> list[Any]:
        """Call nothing: lanes are no envs of their own."""
        raise NotImplementedError

    def env_is_wrapped(self, *_: Any, **__: Any) -> list[bool]:
        """Return that nothing is wrapped."""
        return [False] * self.num_envs


class Clock(BaseCallback):
    """Ends a training after some seconds, and widens the law over its first part."""

    def __init__(self, seconds: float, lanes: ReachLanes, most: float) -> None:
        super().__init__()
        self._seconds, self._lanes, self._most = seconds, lanes, most

    def _on_training_start(self) -> None:
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        share = (time.monotonic() - self._began) / self._seconds
        self._lanes.randomised = self._most * min(1.0, share / RAMP)
        return share < 1.0


def train(randomised: float, minutes: float, seed: int = 0) -> PPO:
    """Return a policy that was trained for some minutes.

    Args:
        randomised: How much of the simulation's law is drawn in the end.
        minutes: Of wall time.
        seed: Of everything drawn; the number of updates is the clock's.
    """
    torch.set_num_threads(1)  # small networks: a second thread waits more than it works
    lanes = ReachLanes(LANES, randomised=0.0, seed=seed)
    model = PPO(
        "MlpPolicy",
        Lanes(lanes),
        n_steps=ROLLOUT,
        batch_size=1024,
        n_epochs=6,
        learning_rate=1e-3,
        gamma=0.97,
        gae_lambda=0.9,
        ent_coef=0.0,
        policy_kwargs={"net_arch": [64, 64], "log_std_init": -0.5},
        seed=seed,
        device="cpu",
    )
    model.learn(10**9, callback=Clock(60.0 * minutes, lanes, randomised))
    return model


def evaluate(model: PPO, side: str, units: Sequence[int]) -> list[bool]:
    """Return which held-out tasks a policy solves, a tier and a unit each."""
    won = []
    for tier in TIERS:
        for number, unit in enumerate(units):
            chosen: dict[str, Any] = {"side": side, "tier": tier}
            env = ToolView(RobotEnv(**chosen, unit=unit if side == "surrogate" else None))
            view, _ = env.reset(seed=HELD_OUT + number)
            over = False
            while not over:
                action, _ = model.predict(view, deterministic=True)
                view, _, terminated, truncated, info = env.step(action)
                over = terminated or truncated
            won.append(bool(info["is_success"]))
            env.close()
    return won


def interval(won: Sequence[bool], units: int) -> tuple[float, float, float]:
    """Return a share with 95 percent by Student's t over units."""
    rates = np.reshape(np.array(won, dtype=float), (len(TIERS), units)).mean(axis=0)
    half = student.ppf(0.975, units - 1) * rates.std(ddof=1) / units**0.5
    mean = float(rates.mean())
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def main() -> None:
    """Train, test, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="gets the models and results.json")
    parser.add_argument("--minutes", type=float, default=1.5, help="of each training (1.5)")
    parser.add_argument("--units", type=int, default=12, help="of the device, 2 to 24 (12)")
    given = parser.parse_args()
    if given.minutes <= 0:
        parser.error(f"--minutes must be above 0, got {given.minutes:g}")
    if not 2 <= given.units <= 24:
        parser.error(f"--units must be 2 to 24, got {given.units}")
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, randomised in (("drawing", 0.0), ("randomised", 1.0)):
        model = train(randomised, given.minutes)
        model.save(given.folder / name)
        row: dict[str, Any] = {"trained on": name, "steps": model.num_timesteps}
        for side in ("sim", "surrogate"):
            row[side] = interval(evaluate(model, side, range(given.units)), given.units)
        rows.append(row)
        print(json.dumps(row), flush=True)
    (given.folder / "results.json").write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
