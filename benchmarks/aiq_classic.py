"""Complexity against force or gravity of the classic task, under other trainings.

    python benchmarks/aiq_classic.py gravity --learner dqn --updates 8000 --seed 1
    python benchmarks/aiq_classic.py force --learner ppo --updates 180 --unhalted
    python benchmarks/aiq_classic.py gravity --learner search

The AIQ paper (section 3.1.4) trains by DQN to convergence and finds MCCP rising with
both. `search` asks what the measure would be in the limit: it looks for the weights of
a network of one unit (9 parameters) by the cross-entropy method and prints how well the
best one balances at each value.
"""

import argparse

import numpy as np
import q_learning
import torch
from scipy import stats
from torch import Tensor

from owa_bench import seeding
from owa_bench.measures.aiq import complexity
from owa_bench.subjects import cartpole, learning
from owa_bench.subjects.learning import Population, architectures

CANDIDATES, ELITE, ROUNDS, EPISODES = 64, 8, 8, 12


def field(
    what: str, values: tuple[float, ...], lanes: int, seed: int, *, raw: bool = False
) -> cartpole.CartPoleBatch:
    """Return `lanes` lanes at each value; raw: what networks see is not scaled."""
    each = torch.tensor(values).repeat_interleave(lanes)
    same = torch.full_like(each, cartpole.GRAVITY if what == "force" else cartpole.FORCE)
    numbers = (each, same) if what == "force" else (same, each)
    generator = torch.Generator().manual_seed(seed)
    scale = (1.0,) * 4 if raw else cartpole.SCALE
    return cartpole.CartPoleBatch(*numbers, generator=generator, scale=scale)


def trained(given: argparse.Namespace, values: tuple[float, ...]) -> tuple[Population, Tensor]:
    """Return the pool at every value and what its networks reach."""
    rng = seeding.stream(given.seed, "aiq", "classic pool")
    networks = architectures(given.pool, rng=rng) * len(values)
    key = seeding.derive(given.seed, "aiq", given.check, given.learner)
    generator = torch.Generator().manual_seed(key)
    population = Population(networks, 4, 2, generator=generator)
    many = given.pool

    def lanes(count: int, place: int) -> cartpole.CartPoleBatch:
        return field(given.check, values, many * count, key + place, raw=given.raw)

    trial = None if given.unhalted else lanes(16, 1)
    if given.learner == "dqn":
        recipe = q_learning.QLearningSettings(updates=given.updates, check=1000)
        q_learning.train(population, lanes(4, 0), recipe, generator=generator, trial=trial)
    else:
        plain = learning.PPOSettings(updates=given.updates)
        learning.train(population, lanes(16, 0), plain, generator=generator, trial=trial)
    return population, learning.performances(population, lanes(64, 2)).mean(1)


def print_pool(given: argparse.Namespace, values: tuple[float, ...]) -> None:
    """Print complexity at each value, and its correlation with the value."""
    population, found = trained(given, values)
    sizes = np.array(population.sizes).reshape(len(values), -1)
    good = found.numpy().reshape(len(values), -1).astype(np.float64)
    heights = []
    print("value", "complexity", "mean V", "least V", "most V", "above", sep="\t")
    for value, size, own in zip(values, sizes, good, strict=True):
        one = complexity.complexity(size, own)
        heights.append(one.value)
        above = one.how.count(complexity.EXTRAPOLATED)
        shown = (f"{x:.2f}" for x in (own.mean(), own.min(), own.max()))
        print(f"{value:g}", f"{one.value:.1f}", *shown, above, sep="\t")
    fit = stats.linregress(values, heights)
    print(f"r = {fit.rvalue:.2f} (p {fit.pvalue:.3g}), above: bins extrapolated")


@torch.no_grad()
def print_search(given: argparse.Namespace, values: tuple[float, ...]) -> None:
    """Print how well the best network of one unit balances at each value."""
    generator = torch.Generator().manual_seed(given.seed)
    count = len(values)
    middle = torch.zeros(count, 1, 5)
    spread = torch.ones(count, 1, 5)
    for number in range(ROUNDS):
        drawn = middle + spread * torch.randn(count, CANDIDATES, 5, generator=generator)
        scene = field(given.check, values, CANDIDATES * EPISODES, number)
        reached = lived(scene, drawn.repeat_interleave(EPISODES, 1))
        ranked = reached.view(count, CANDIDATES, EPISODES).mean(2).argsort(1)
        best = ranked[:, -ELITE:, None].expand(-1, -1, 5)
        elite = drawn.gather(1, best)
        middle, spread = elite.mean(1, keepdim=True), elite.std(1, keepdim=True) + 0.02
    scene = field(given.check, values, 200, ROUNDS)
    final = lived(scene, middle.expand(-1, 200, -1)).mean(1)
    print("value", "V of 9 parameters", sep="\t")
    for value, reached_there in zip(values, final.tolist(), strict=True):
        print(f"{value:g}", f"{reached_there:.3f}", sep="\t")


def lived(scene: cartpole.CartPoleBatch, rules: Tensor) -> Tensor:
    """Return the share of time that each lane lives under its rule.

    A rule is four weights and a bias; above 0 it pushes right. A network of one
    rectified unit and two outputs can hold any such rule within the range it meets.
    """
    scene.restart()
    alive = torch.ones(scene.lanes, dtype=torch.bool)
    total = torch.zeros(scene.lanes)
    weights = rules.reshape(-1, 5)
    for _ in range(scene.ticks):
        push = (scene.observe() * weights[:, :4]).sum(1) + 0.1 * weights[:, 4]
        failed, _ = scene.step((push > 0).long())
        total += alive
        alive &= ~failed
        if not alive.any():
            break
    return (total / scene.ticks).view(rules.shape[0], -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", choices=("force", "gravity"))
    parser.add_argument("--learner", choices=("ppo", "dqn", "search"), default="ppo")
    parser.add_argument("--pool", type=int, default=15)
    parser.add_argument("--updates", type=int, default=180)
    parser.add_argument("--every", type=int, default=1, help="take every n-th value")
    parser.add_argument("--unhalted", action="store_true", help="the last weights")
    parser.add_argument("--raw", action="store_true", help="numbers not scaled")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    whole = cartpole.FORCES if given.check == "force" else cartpole.GRAVITIES
    values = whole[:: given.every]
    (print_search if given.learner == "search" else print_pool)(given, values)


if __name__ == "__main__":
    main()
