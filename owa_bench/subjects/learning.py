"""Reinforcement learning of a whole population at once: proximal policy optimisation.

Every network of the population has lanes of its own, its own critic and its own
advantages; losses are summed, and as no parameter is shared, each network learns as if
alone. Hyperparameters are those of `Recipe`, equal for all networks and all domains.
Source: the algorithm is Schulman et al. 2017; the settings are ours [D].
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from owa_bench.subjects.populations import Population


class Field(Protocol):
    """Episodes that a population acts in; rows are networks times lanes each."""

    lanes: int
    inputs: int
    outputs: int
    ticks: int

    def observe(self) -> Tensor:
        """Return what every lane sees, (lanes, inputs)."""

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Play an action a lane; return where episodes failed and where time is up."""

    def restart(self, mask: Tensor | None = None) -> None:
        """Begin episodes anew, of all lanes without a mask."""


class Recipe(NamedTuple):
    """How a population learns; `updates` rounds of `horizon` ticks in every lane.

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


class Batch(NamedTuple):
    """What one round saw: everything is (networks, ticks * lanes, ..)."""

    seen: Tensor
    actions: Tensor
    chances: Tensor
    advantages: Tensor
    returns: Tensor


class Critic:
    """One small value network per policy."""

    def __init__(
        self, count: int, inputs: int, width: int, *, generator: torch.Generator
    ) -> None:
        first = torch.randn(count, inputs + 1, width, generator=generator)
        self.first = (first / inputs**0.5).requires_grad_(True)
        self.second = torch.zeros(count, width + 1, 1).requires_grad_(True)

    def values(self, seen: Tensor) -> Tensor:
        """Return values (networks, rows)."""
        bias, weight = self.first[:, -1:], self.first[:, :-1]
        hidden = torch.baddbmm(bias, seen, weight).tanh()
        bias, weight = self.second[:, -1:], self.second[:, :-1]
        return torch.baddbmm(bias, hidden, weight).squeeze(-1)


class Best:
    """The weights with which each network did best so far, on episodes of their own."""

    def __init__(self, population: Population, trial: Field) -> None:
        self._population, self._trial = population, trial
        self._reached = torch.full((len(population.networks),), -1.0)
        self._weights = [part.detach().clone() for part in population.weights]

    @torch.no_grad()
    def look(self) -> None:
        """Try the networks as they are and keep those that never were better."""
        self.compare(performances(self._population, self._trial).mean(1))

    def compare(self, found: Tensor) -> None:
        """Keep the networks that were never better than `found`, one number each."""
        better = found >= self._reached
        self._reached = torch.where(better, found, self._reached)
        for kept, now in zip(self._weights, self._population.weights, strict=True):
            kept[better] = now.detach()[better]

    @torch.no_grad()
    def restore(self) -> None:
        """Give every network its best weights back."""
        for now, kept in zip(self._population.weights, self._weights, strict=True):
            now.copy_(kept)


def learn(
    population: Population,
    field: Field,
    recipe: Recipe,
    *,
    generator: torch.Generator,
    trial: Field | None = None,
) -> None:
    """Train every network of a population on its lanes of a field.

    With `trial`, episodes to try the networks on, each network ends as it was at its
    best: training that is halted upon convergence [S section 3.1.4] rather than at a
    round that may fall into a collapse.
    """
    count = len(population.networks)
    best = None if trial is None else Best(population, trial)
    critic = Critic(count, field.inputs, recipe.critic, generator=generator)
    numbers = [*population.weights, critic.first, critic.second]
    optimiser = torch.optim.Adam(numbers, lr=recipe.rate, eps=1e-5)
    field.restart()
    for number in range(1, recipe.updates + 1):
        batch = _play(population, critic, field, recipe, generator)
        for _ in range(recipe.epochs):
            loss = _loss(population, critic, batch, recipe)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        if best and (number % recipe.check == 0 or number == recipe.updates):
            best.look()
    if best:
        best.restore()


@torch.no_grad()
def performances(population: Population, field: Field) -> Tensor:
    """Return the share of its time that each lane lived, (networks, lanes each).

    Networks act greedily.
    """
    count = len(population.networks)
    field.restart()
    lived = torch.zeros(field.lanes)
    alive = torch.ones(field.lanes, dtype=torch.bool)
    for _ in range(field.ticks):
        scores = population.scores(field.observe().view(count, -1, field.inputs))
        failed, _ = field.step(scores.argmax(-1).view(-1))
        lived += alive
        alive &= ~failed
        if not alive.any():
            break
    return (lived / field.ticks).view(count, -1)


@torch.no_grad()
def _play(
    population: Population,
    critic: Critic,
    field: Field,
    recipe: Recipe,
    generator: torch.Generator,
) -> Batch:
    """Play a round and return it with its advantages."""
    count = len(population.networks)
    rows: list[tuple[Tensor, ...]] = []
    for _ in range(recipe.horizon):
        seen = field.observe().view(count, -1, field.inputs)
        logits = torch.log_softmax(population.scores(seen), -1)
        noise = torch.rand(logits.shape, generator=generator).clamp(1e-9, 1 - 1e-7)
        actions = (logits - (-noise.log()).log()).argmax(-1)
        failed, late = field.step(actions.view(-1))
        then = field.observe().view(count, -1, field.inputs)
        chances = logits.gather(-1, actions[..., None]).squeeze(-1)
        over = failed | late
        flags = failed.view(count, -1), over.view(count, -1)
        rows.append((seen, then, actions, chances, *flags))
        field.restart(over)
    seen, then, actions, chances, failed, over = (
        torch.stack(part, 1).flatten(1, 2) for part in zip(*rows, strict=True)
    )
    values, later = critic.values(seen), critic.values(then)
    reward = torch.where(failed, recipe.failed, recipe.alive)
    surprise = reward + recipe.discount * later * ~failed - values
    gains = _advantages(surprise, over, recipe)
    middle, spread = gains.mean(1, keepdim=True), gains.std(1, keepdim=True)
    scaled = (gains - middle) / (spread + 1e-6)
    return Batch(seen, actions, chances, scaled, gains + values)


def _advantages(surprise: Tensor, over: Tensor, recipe: Recipe) -> Tensor:
    """Return generalised advantages of (networks, ticks * lanes) surprises."""
    shape = (surprise.shape[0], recipe.horizon, -1)
    table, ends = surprise.view(shape), over.view(shape)
    running = torch.zeros_like(table[:, 0])
    found = torch.empty_like(table)
    decay = recipe.discount * recipe.trace
    for tick in reversed(range(recipe.horizon)):
        running = table[:, tick] + decay * running * ~ends[:, tick]
        found[:, tick] = running
    return found.flatten(1, 2)


def _loss(
    population: Population, critic: Critic, batch: Batch, recipe: Recipe
) -> Tensor:
    """Return the clipped loss, summed over networks."""
    logits = torch.log_softmax(population.scores(batch.seen), -1)
    chances = logits.gather(-1, batch.actions[..., None]).squeeze(-1)
    ratio = (chances - batch.chances).exp()
    bounded = ratio.clamp(1 - recipe.clip, 1 + recipe.clip)
    gain = torch.minimum(ratio * batch.advantages, bounded * batch.advantages)
    entropy = -(logits.exp() * logits).sum(-1)
    error = (critic.values(batch.seen) - batch.returns).square()
    total = -gain - recipe.entropy * entropy + 0.5 * error
    return total.mean(1).sum()
