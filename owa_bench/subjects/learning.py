"""Populations of small dense networks, trained by proximal policy optimisation.

A population is one padded block of numbers per layer: one product a layer computes all networks.
Every network has lanes of its own, its own critic and its own advantages; losses are summed, and as
no parameter is shared, each network learns as if alone.

Source: the algorithm is Schulman et al. 2017; the settings are ours [D].
"""

import itertools
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

LAYERS = 3
WIDEST = 32
Architecture = tuple[int, ...]


def architectures(count: int, *, rng: np.random.Generator) -> list[Architecture]:
    """Return random architectures: 1 to 3 layers of 1 to 32 units each.

    Args:
        count: of architectures.
        rng: draws depths and widths.
    Source: AIQ paper, section 3.1.4 [S].
    """
    return [
        tuple(rng.integers(1, WIDEST + 1, rng.integers(1, LAYERS + 1)).tolist())
        for _ in range(count)
    ]


def parameter_count(architecture: Architecture, inputs: int, outputs: int) -> int:
    """Return how many parameters a network has, biases included.

    >>> parameter_count((2,), 10, 5)
    37

    Args:
        architecture: widths of the hidden layers.
        inputs: of the network.
        outputs: of the network.
    Returns: Weights and biases.
    """
    widths = (inputs, *architecture, outputs)
    return sum((a + 1) * b for a, b in itertools.pairwise(widths))


class Population:
    """Dense networks as tensors (networks, inputs + 1, outputs), one per layer.

    The networks have hidden layers of rectified units, each of its own number and width. They are
    padded to the deepest and the widest; a network with fewer layers passes through the identity,
    which changes nothing behind a rectifier. What a padded place holds never changes, so each
    network learns and counts as if it were alone.

    `weights` are what is learnt; the last row of a layer is its bias.
    """

    def __init__(
        self,
        networks: Sequence[Architecture],
        inputs: int,
        outputs: int,
        *,
        generator: torch.Generator,
    ) -> None:
        self.networks = list(networks)
        self.sizes = [parameter_count(one, inputs, outputs) for one in networks]
        wide = max(max(one) for one in networks)
        deep = max(len(one) for one in networks)
        shapes = [(inputs, wide), *[(wide, wide)] * (deep - 1), (wide, outputs)]
        count = len(self.networks)
        self.masks = [torch.zeros(count, i + 1, o) for i, o in shapes]
        self.fixed = [torch.zeros(count, i + 1, o) for i, o in shapes]
        self.weights = [torch.zeros(count, i + 1, o) for i, o in shapes]
        for k, one in enumerate(self.networks):
            self._fill(k, one, inputs, outputs, generator)
        for part in self.weights:
            part.requires_grad_(True)

    def scores(self, rows: Tensor, weights: Sequence[Tensor] | None = None) -> Tensor:
        """Return the outputs of every network.

        Args:
            rows: (networks, rows, inputs).
            weights: others than the population's own, of the same shapes.
        Returns: (networks, rows, outputs).
        """
        last = len(self.weights) - 1
        for place, mask in enumerate(self.masks):
            layer = (weights or self.weights)[place] * mask + self.fixed[place]
            rows = torch.baddbmm(layer[:, -1:], rows, layer[:, :-1])
            rows = rows if place == last else rows.relu()
        return rows

    def subset(self, at: Sequence[int]) -> "Population":
        """Return the networks `at` as they are now, as a population to act with."""
        part = copy(self)
        part.networks = [self.networks[k] for k in at]
        part.sizes = [self.sizes[k] for k in at]
        places = torch.tensor(list(at))
        part.weights = [layer.detach()[places] for layer in self.weights]
        part.masks = [layer[places] for layer in self.masks]
        part.fixed = [layer[places] for layer in self.fixed]
        return part

    def _fill(
        self, k: int, one: Architecture, inputs: int, outputs: int, generator: torch.Generator
    ) -> None:
        """Give a network its mask and its first weights."""
        before = inputs
        deep = len(self.weights) - 1
        for place in range(deep + 1):
            width = outputs if place == deep else 0
            width = one[place] if place < len(one) else width
            if not width:
                wide = self.fixed[place].shape[2]
                self.fixed[place][k, :wide] = torch.eye(wide)
                continue
            self.masks[place][k, :before, :width] = 1.0
            self.masks[place][k, -1, :width] = 1.0
            first = torch.randn(before, width, generator=generator)
            self.weights[place][k, :before, :width] = first / before**0.5
            before = width


# --- training -------------------------------------------------------------------------


class EpisodeBatch(Protocol):
    """Episodes that a population acts in; rows are networks times lanes each."""

    lanes: int
    inputs: int
    outputs: int
    ticks: int

    def observe(self) -> Tensor:
        """Return the observations, (lanes, inputs)."""

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Play an action a lane.

        Args:
            actions: (lanes,) of int64.
        Returns: Where episodes failed and where time is up, (lanes,) each.
        """

    def restart(self, mask: Tensor | None = None) -> None:
        """Begin episodes anew, of all lanes without a mask."""


class PPOSettings(NamedTuple):
    """Settings of the training; `updates` rounds of `horizon` ticks in every lane.

    check: rounds between two looks at how good the networks are, if `learn` may look.
    """

    updates: int = 60
    horizon: int = 16
    epochs: int = 4
    rate: float = 0.01
    discount: float = 0.98
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.003
    critic: int = 32
    alive: float = 0.05
    failed: float = -0.5
    check: int = 20


class _Rollout(NamedTuple):
    """One round of play: everything is (networks, ticks * lanes, ..)."""

    rows: Tensor
    actions: Tensor
    chances: Tensor
    advantages: Tensor
    returns: Tensor


class _Critic:
    """One small value network per policy."""

    def __init__(self, count: int, inputs: int, width: int, *, generator: torch.Generator) -> None:
        first = torch.randn(count, inputs + 1, width, generator=generator)
        self.first = (first / inputs**0.5).requires_grad_(True)
        self.second = torch.zeros(count, width + 1, 1).requires_grad_(True)

    def values(self, rows: Tensor) -> Tensor:
        """Return values (networks, rows)."""
        bias, weight = self.first[:, -1:], self.first[:, :-1]
        hidden = torch.baddbmm(bias, rows, weight).tanh()
        bias, weight = self.second[:, -1:], self.second[:, :-1]
        return torch.baddbmm(bias, hidden, weight).squeeze(-1)


class BestWeights:
    """The weights with which each network did best so far, on episodes of their own."""

    def __init__(self, population: Population, trial: EpisodeBatch) -> None:
        self._population, self._trial = population, trial
        self._reached = torch.full((len(population.networks),), -1.0)
        self._weights = [part.detach().clone() for part in population.weights]

    @torch.no_grad()
    def evaluate(self) -> None:
        """Evaluate the networks as they are and keep those that never were better."""
        self.compare(performances(self._population, self._trial).mean(1))

    def compare(self, performance: Tensor) -> None:
        """Keep the networks that were never better than `performance`, (networks,)."""
        better = performance >= self._reached
        self._reached = torch.where(better, performance, self._reached)
        for best, now in zip(self._weights, self._population.weights, strict=True):
            best[better] = now.detach()[better]

    @torch.no_grad()
    def restore(self) -> None:
        """Give every network its best weights back."""
        for now, best in zip(self._population.weights, self._weights, strict=True):
            now.copy_(best)


def train(
    population: Population,
    episodes: EpisodeBatch,
    settings: PPOSettings,
    *,
    generator: torch.Generator,
    trial: EpisodeBatch | None = None,
) -> None:
    """Train every network of a population on its lanes, in place.

    Args:
        population: the networks.
        episodes: lanes that they learn from, as many for each.
        settings: of the training.
        generator: draws actions and the critics' first weights.
        trial: episodes to evaluate the networks on; with them each network ends as it was at its
            best: training halted upon convergence [S section 3.1.4], not at a round that may fall
            into a collapse.
    """
    count = len(population.networks)
    best = None if trial is None else BestWeights(population, trial)
    critic = _Critic(count, episodes.inputs, settings.critic, generator=generator)
    numbers = [*population.weights, critic.first, critic.second]
    optimiser = torch.optim.Adam(numbers, lr=settings.rate, eps=1e-5)
    episodes.restart()
    for number in range(1, settings.updates + 1):
        rollout = _play(population, critic, episodes, settings, generator)
        for _ in range(settings.epochs):
            loss = _loss(population, critic, rollout, settings)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if best and (number % settings.check == 0 or number == settings.updates):
            best.evaluate()
    if best:
        best.restore()


@torch.no_grad()
def performances(population: Population, episodes: EpisodeBatch) -> Tensor:
    """Return the share of its time that each lane lasted; networks act greedily.

    Args:
        population: the networks.
        episodes: lanes that they act in, as many for each.
    Returns: (networks, lanes each) in [0, 1].
    """
    count = len(population.networks)
    episodes.restart()
    lived = torch.zeros(episodes.lanes)
    alive = torch.ones(episodes.lanes, dtype=torch.bool)
    for _ in range(episodes.ticks):
        scores = population.scores(episodes.observe().view(count, -1, episodes.inputs))
        failed, _ = episodes.step(scores.argmax(-1).view(-1))
        lived += alive
        alive &= ~failed
        if not alive.any():
            break
    return (lived / episodes.ticks).view(count, -1)


@torch.no_grad()
def _play(
    population: Population,
    critic: _Critic,
    episodes: EpisodeBatch,
    settings: PPOSettings,
    generator: torch.Generator,
) -> _Rollout:
    """Play a round and return it with its advantages."""
    count = len(population.networks)
    ticks: list[tuple[Tensor, ...]] = []
    for _ in range(settings.horizon):
        now = episodes.observe().view(count, -1, episodes.inputs)
        logits = torch.log_softmax(population.scores(now), -1)
        noise = torch.rand(logits.shape, generator=generator).clamp(1e-9, 1 - 1e-7)
        actions = (logits - (-noise.log()).log()).argmax(-1)
        failed, late = episodes.step(actions.view(-1))
        then = episodes.observe().view(count, -1, episodes.inputs)
        chances = logits.gather(-1, actions[..., None]).squeeze(-1)
        over = failed | late
        flags = failed.view(count, -1), over.view(count, -1)
        ticks.append((now, then, actions, chances, *flags))
        episodes.restart(over)
    rows, then, actions, chances, failed, over = (
        torch.stack(part, 1).flatten(1, 2) for part in zip(*ticks, strict=True)
    )
    values, later = critic.values(rows), critic.values(then)
    reward = torch.where(failed, settings.failed, settings.alive)
    error = reward + settings.discount * later * ~failed - values
    gains = _advantages(error, over, settings)
    middle, spread = gains.mean(1, keepdim=True), gains.std(1, keepdim=True)
    scaled = (gains - middle) / (spread + 1e-6)
    return _Rollout(rows, actions, chances, scaled, gains + values)


def _advantages(errors: Tensor, over: Tensor, settings: PPOSettings) -> Tensor:
    """Return generalised advantages of (networks, ticks * lanes) TD errors."""
    shape = (errors.shape[0], settings.horizon, -1)
    table, ends = errors.view(shape), over.view(shape)
    running = torch.zeros_like(table[:, 0])
    gains = torch.empty_like(table)
    decay = settings.discount * settings.trace
    for tick in reversed(range(settings.horizon)):
        running = table[:, tick] + decay * running * ~ends[:, tick]
        gains[:, tick] = running
    return gains.flatten(1, 2)


def _loss(
    population: Population, critic: _Critic, rollout: _Rollout, settings: PPOSettings
) -> Tensor:
    """Return the clipped loss, summed over networks."""
    logits = torch.log_softmax(population.scores(rollout.rows), -1)
    chances = logits.gather(-1, rollout.actions[..., None]).squeeze(-1)
    ratio = (chances - rollout.chances).exp()
    bounded = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    gain = torch.minimum(ratio * rollout.advantages, bounded * rollout.advantages)
    entropy = -(logits.exp() * logits).sum(-1)
    error = (critic.values(rollout.rows) - rollout.returns).square()
    total = -gain - settings.entropy * entropy + 0.5 * error
    return total.mean(1).sum()
