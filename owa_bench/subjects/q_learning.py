"""Deep Q-learning of a whole population at once: the seed's learner.

Every network has episodes, a replay store and a target of its own; losses are summed,
so each learns as if alone. Source: Mnih et al. 2015; AIQ seed, section 3.1.4 [S: DQN,
halted upon convergence]; the settings are ours [D].
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from owa_bench.subjects.learning import Best, Field
from owa_bench.subjects.populations import Population


class Recipe(NamedTuple):
    """How a population learns; `updates` steps of the optimiser, one a tick.

    explored: share of the updates over which chance falls from 1 to `chance`. stored:
    ticks kept. started: ticks before the first update. check: updates between looks.
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


class Store:
    """The last ticks of every network's lanes."""

    def __init__(self, count: int, lanes: int, inputs: int, ticks: int) -> None:
        self._lanes, self._ticks = lanes, ticks
        self._rows = torch.zeros(count, ticks * lanes, 2 * inputs + 2)
        self._filled = 0
        self._inputs = inputs

    def add(self, seen: Tensor, actions: Tensor, then: Tensor, failed: Tensor) -> None:
        """Keep one tick; all are (networks, lanes, ..)."""
        flags = torch.stack((actions.float(), failed.float()), -1)
        start = self._filled % self._ticks * self._lanes
        self._rows[:, start : start + self._lanes] = torch.cat((seen, then, flags), -1)
        self._filled += 1

    def drawn(
        self, batch: int, *, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return seen, actions, then and failed of a batch; one draw for all."""
        whole = min(self._filled, self._ticks) * self._lanes
        at = torch.randint(whole, (batch,), generator=generator)
        rows = self._rows[:, at]
        n = self._inputs
        seen, then, flags = rows[..., :n], rows[..., n : 2 * n], rows[..., 2 * n :]
        return seen, flags[..., 0].long(), then, flags[..., 1]


def learn(
    population: Population,
    field: Field,
    recipe: Recipe,
    *,
    generator: torch.Generator,
    trial: Field | None = None,
) -> None:
    """Train every network on its lanes; with `trial` each ends as at its best."""
    count = len(population.networks)
    best = None if trial is None else Best(population, trial)
    store = Store(count, field.lanes // count, field.inputs, recipe.stored)
    target = [part.detach().clone() for part in population.weights]
    optimiser = torch.optim.Adam(population.weights, lr=recipe.rate)
    field.restart()
    for tick in range(recipe.started + recipe.updates):
        number = tick - recipe.started
        share = max(number, 0) / (recipe.explored * recipe.updates)
        chance = max(1.0 - share, recipe.chance)
        _act(population, field, store, chance, generator)
        if number < 0:
            continue
        loss = _loss(population, target, store, recipe, generator)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if number % recipe.target == 0:
            target = [part.detach().clone() for part in population.weights]
        if best and (number + 1) % recipe.check == 0:
            best.look()
    if best:
        best.restore()


@torch.no_grad()
def _act(
    population: Population,
    field: Field,
    store: Store,
    chance: float,
    generator: torch.Generator,
) -> None:
    """Play one tick, by chance or greedily, and store it."""
    count = len(population.networks)
    seen = field.observe().view(count, -1, field.inputs)
    greedy = population.scores(seen).argmax(-1)
    random = torch.randint(field.outputs, greedy.shape, generator=generator)
    free = torch.rand(greedy.shape, generator=generator) < chance
    actions = torch.where(free, random, greedy)
    failed, late = field.step(actions.view(-1))
    then = field.observe().view(count, -1, field.inputs)
    store.add(seen, actions, then, failed.view(count, -1))
    field.restart(failed | late)


def _loss(
    population: Population,
    target: list[Tensor],
    store: Store,
    recipe: Recipe,
    generator: torch.Generator,
) -> Tensor:
    """Return the temporal-difference loss, summed over networks; reward 1 a tick."""
    seen, actions, then, failed = store.drawn(recipe.batch, generator=generator)
    with torch.no_grad():
        later = population.scores(then, target).amax(-1)
        aim = 1.0 + recipe.discount * later * (1.0 - failed)
    valued = population.scores(seen).gather(-1, actions[..., None]).squeeze(-1)
    return smooth_l1_loss(valued, aim, reduction="none").mean(1).sum()
