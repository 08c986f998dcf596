"""Deep Q-learning of a population of networks: the paper's learner.

Every network has episodes, a replay buffer and a target of its own; losses are summed,
so each learns as if alone. Source: Mnih et al. 2015; AIQ paper, section 3.1.4 [S: DQN,
halted upon convergence]; the settings are ours [D].
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from owa_bench.subjects.learning import BestWeights, EpisodeBatch, Population


class QLearningSettings(NamedTuple):
    """Settings of the training; `updates` steps of the optimiser, one a tick.

    explored: share of the updates over which exploration falls from 1 to `chance`.
    stored: ticks of the buffer. started: ticks before the first update. check: updates
    between evaluations.
    """

    updates: int = 10_000
    batch: int = 64
    rate: float = 1e-3
    discount: float = 0.99
    stored: int = 5_000
    started: int = 250
    target: int = 250
    explored: float = 0.3
    chance: float = 0.02
    check: int = 500


class _ReplayBuffer:
    """The last ticks of every network's lanes."""

    def __init__(self, count: int, lanes: int, inputs: int, ticks: int) -> None:
        self._lanes, self._ticks = lanes, ticks
        self._rows = torch.zeros(count, ticks * lanes, 2 * inputs + 2)
        self._filled = 0
        self._inputs = inputs

    def add(self, now: Tensor, actions: Tensor, then: Tensor, failed: Tensor) -> None:
        """Keep one tick; all are (networks, lanes, ..)."""
        flags = torch.stack((actions.float(), failed.float()), -1)
        start = self._filled % self._ticks * self._lanes
        self._rows[:, start : start + self._lanes] = torch.cat((now, then, flags), -1)
        self._filled += 1

    def sample(
        self, batch: int, *, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return observations, actions, next ones and failures; one draw for all."""
        filled = min(self._filled, self._ticks) * self._lanes
        at = torch.randint(filled, (batch,), generator=generator)
        rows = self._rows[:, at]
        n = self._inputs
        now, then, flags = rows[..., :n], rows[..., n : 2 * n], rows[..., 2 * n :]
        return now, flags[..., 0].long(), then, flags[..., 1]


def train(
    population: Population,
    episodes: EpisodeBatch,
    settings: QLearningSettings,
    *,
    generator: torch.Generator,
    trial: EpisodeBatch | None = None,
) -> None:
    """Train every network of a population on its lanes, in place.

    Args:
        population: the networks.
        episodes: lanes that they learn from, as many for each.
        settings: of the training.
        generator: draws actions and batches.
        trial: episodes to evaluate the networks on; with them each ends as at its best.
    """
    count = len(population.networks)
    best = None if trial is None else BestWeights(population, trial)
    buffer = _ReplayBuffer(count, episodes.lanes // count, episodes.inputs, settings.stored)
    target = [part.detach().clone() for part in population.weights]
    optimiser = torch.optim.Adam(population.weights, lr=settings.rate)
    episodes.restart()
    for tick in range(settings.started + settings.updates):
        number = tick - settings.started
        share = max(number, 0) / (settings.explored * settings.updates)
        chance = max(1.0 - share, settings.chance)
        _act(population, episodes, buffer, chance, generator)
        if number < 0:
            continue
        loss = _loss(population, target, buffer, settings, generator)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if number % settings.target == 0:
            target = [part.detach().clone() for part in population.weights]
        if best and (number + 1) % settings.check == 0:
            best.evaluate()
    if best:
        best.restore()


@torch.no_grad()
def _act(
    population: Population,
    episodes: EpisodeBatch,
    buffer: _ReplayBuffer,
    chance: float,
    generator: torch.Generator,
) -> None:
    """Play one tick, at random or greedily, and store it."""
    count = len(population.networks)
    now = episodes.observe().view(count, -1, episodes.inputs)
    greedy = population.scores(now).argmax(-1)
    random = torch.randint(episodes.outputs, greedy.shape, generator=generator)
    free = torch.rand(greedy.shape, generator=generator) < chance
    actions = torch.where(free, random, greedy)
    failed, late = episodes.step(actions.view(-1))
    then = episodes.observe().view(count, -1, episodes.inputs)
    buffer.add(now, actions, then, failed.view(count, -1))
    episodes.restart(failed | late)


def _loss(
    population: Population,
    target: list[Tensor],
    buffer: _ReplayBuffer,
    settings: QLearningSettings,
    generator: torch.Generator,
) -> Tensor:
    """Return the temporal-difference loss, summed over networks; reward 1 a tick."""
    now, actions, then, failed = buffer.sample(settings.batch, generator=generator)
    with torch.no_grad():
        later = population.scores(then, target).amax(-1)
        aim = 1.0 + settings.discount * later * (1.0 - failed)
    valued = population.scores(now).gather(-1, actions[..., None]).squeeze(-1)
    return smooth_l1_loss(valued, aim, reduction="none").mean(1).sum()
