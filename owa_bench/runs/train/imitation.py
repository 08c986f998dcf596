"""Imitation of CartPole3D's planner: what a policy may begin from.

The planner plays ahead on the compiled step with the true dynamics. It says what it
would do in the states that the policy itself comes to (DAgger: Ross, Gordon and Bagnell
2011); all that was said so far is fitted after each round. The critic is fitted to the
returns of the last round.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from owa_bench.errors import UsageError
from owa_bench.runs.train.algorithms import Training
from owa_bench.runs.train.vector_envs import BATCHED

_ROUNDS = 4
_EPOCHS = 12  # over all that was said, after each round
_BATCH = 1024
_RATE = 2e-3
_THREATENED = 4.0  # weight of a state in which the PD rule alone would fail


def check_imitation(training: Training) -> None:
    """Refuse a training that cannot imitate.

    Raises: UsageError: it has no planner, no policy to fit, or a scale that moves.
    """
    given = (training.algorithm, training.backend, training.actions, training.trial)
    if given != ("ppo", BATCHED, "leans", 0):
        raise UsageError(
            "`imitation` is for ppo on the batched backend with actions leans and no "
            f"trial, got {', '.join(str(part) for part in given)}."
        )
    if training.normalise is not False:
        raise UsageError("`imitation` needs `normalise: false`: a scale moves.")


def imitate(model: Any, training: Training, *, seed: int, on_step: Callable[[int], None]) -> None:
    """Fit policy and critic of a new model to the planner.

    Args:
        model: of Stable-Baselines3, with its envs.
        training: what is trained and how.
        seed: of the order of batches.
        on_step: called with the steps so far.
    """
    import torch

    envs, lanes = model.get_env(), training.envs
    rows = envs.reset()
    (plan,) = envs.get_attr("plan_actions", [0])
    ticks = max(training.imitation // (_ROUNDS * lanes), 1)
    seen: list[Any] = []
    labels: list[Any] = []
    weights: list[Any] = []
    order = torch.Generator().manual_seed(seed)
    for number in range(_ROUNDS):
        rewards, fallen, cut = (np.zeros((ticks, lanes)) for _ in range(3))
        for tick in range(ticks):
            leans = plan().leans
            seen.append(rows)
            labels.append(leans)
            weights.append(np.where(leans > 0, _THREATENED, 1.0))
            if number:
                leans, _ = model.predict(rows, deterministic=True)
            rows, rewards[tick], over, infos = envs.step(leans)
            for i in np.flatnonzero(over).tolist():
                late = infos[i].get("TimeLimit.truncated", False)
                (cut if late else fallen)[tick, i] = 1.0
            on_step((number * ticks + tick + 1) * lanes)
        _fit(model, seen, labels, weights, order)
    _fit_critic(model, seen[-ticks:], _returns(rewards, fallen, cut, model.gamma), order)


def _returns(rewards: Any, fallen: Any, cut: Any, gamma: float) -> Any:
    """Return discounted returns (steps, lanes); where time is up all goes on well."""
    made = np.empty_like(rewards)
    best = rewards.max() / (1.0 - gamma)
    after = np.full(rewards.shape[1], best)
    for tick in reversed(range(len(rewards))):
        after = np.where(cut[tick] > 0, best, after) * (1.0 - fallen[tick])
        after = made[tick] = rewards[tick] + gamma * after
    return made


def _fit(model: Any, seen: Any, labels: Any, weights: Any, order: Any) -> None:
    """Raise the likelihood of what the planner said."""
    import torch

    x, y, w = (torch.as_tensor(np.concatenate(part)) for part in (seen, labels, weights))

    def loss(at: Any) -> Any:
        likely = model.policy.get_distribution(x[at]).log_prob(y[at])
        return -(w[at] * likely).sum() / w[at].sum()

    _descend(model, loss, len(x), _EPOCHS, order)


def _fit_critic(model: Any, seen: Any, returns: Any, order: Any) -> None:
    """Fit the critic to the returns of the last round."""
    import torch

    x = torch.as_tensor(np.concatenate(seen))
    y = torch.as_tensor(returns.reshape(-1, 1), dtype=torch.float32)

    def loss(at: Any) -> Any:
        return torch.nn.functional.mse_loss(model.policy.predict_values(x[at]), y[at])

    _descend(model, loss, len(x), _EPOCHS, order)


def _descend(model: Any, loss: Callable[[Any], Any], count: int, epochs: int, order: Any) -> None:
    """Lower a loss of rows by Adam, its rate falling to a tenth."""
    import torch

    descent = torch.optim.Adam(model.policy.parameters(), lr=_RATE)
    steps = max(epochs * count // _BATCH, 1)
    falling = torch.optim.lr_scheduler.LinearLR(descent, 1.0, 0.1, steps)
    for _ in range(steps):
        at = torch.randint(count, (min(_BATCH, count),), generator=order)
        descent.zero_grad()
        loss(at).backward()
        descent.step()
        falling.step()
