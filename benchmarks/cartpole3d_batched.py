"""Steps a second of the compiled step beside PyBullet, in one run; and its episodes.

    python benchmarks/cartpole3d_batched.py [--levels 0,4,16] [--lanes 1024,16384]
    python benchmarks/cartpole3d_batched.py --episodes 200

Random policy, resets included, core observations. Single envs count the process's own
CPU time, batches the wall clock, so that threads count; levels are at easy.
`--episodes` writes docs/tables/cartpole3d_compiled.md: lengths of episodes of every
level and variant under three control rules, both backends, two-sample tests.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
from scipy import stats

from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.batched import kernels
from owa_bench.envs.cartpole3d.batched.simulator import CONTROLS, Simulator, episode_lengths
from owa_bench.envs.cartpole3d.batched.single_env import CartPole3DFastEnv
from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.seeding import stream

EASY = 1 / 3
MANY = 4000  # episodes of the compiled step in the table
TABLE = Path(__file__).parents[1] / "docs" / "tables" / "cartpole3d_compiled.md"
LIMIT = 0.05


def single(env: CartPole3DEnv | CartPole3DFastEnv, steps: int) -> float:
    """Return steps a second of one env."""
    actions = stream(0, "benchmark").integers(0, 5, steps).tolist()
    for count in (100, steps):  # the first ones compile
        env.reset(seed=0)
        start, seed = time.process_time(), 0
        for action in actions[:count]:
            _, _, fallen, late, _ = env.step(action)
            if fallen or late:
                seed += 1
                env.reset(seed=seed)
        rate = count / (time.process_time() - start)
    env.close()
    return rate


def batched(level: int, lanes: int, threads: int, seconds: float = 2.0) -> float:
    """Return steps a second of all lanes together."""
    world = levels.level("table1", level, EASY if level else 1.0)
    simulator = Simulator(world, lanes, seed=0, threads=threads)
    rows = simulator.observe()
    drawn = stream(0, "benchmark").integers(0, 5, (50, lanes))
    ticks, start = -10, time.perf_counter()
    while ticks < 0 or time.perf_counter() - start < seconds:
        if ticks == 0:
            start = time.perf_counter()
        fallen, late = simulator.step(drawn[ticks % 50])
        simulator.restart(fallen | late)
        simulator.observe(out=rows)
        ticks += 1
    return lanes * ticks / (time.perf_counter() - start)


def engine_lengths(level: int, spec: str, rule: str, count: int) -> list[int]:
    """Return the lengths of episodes on PyBullet under a control rule.

    Args:
        level: 0 to 16.
        spec: the variant.
        rule: name of a control rule.
        count: of episodes.

    Returns:
        Steps of each.
    """
    env = CartPole3DEnv(spec=spec, level=level, magnitude=EASY, obs="core")
    rng, action, found = stream(11, rule), np.zeros(1, np.int64), []
    for seed in range(count):
        row, _ = env.reset(seed=seed)
        steps, over = 0, False
        while not over:
            action[0] = rng.integers(5) if rule == "random" else 0
            if rule == "pd":
                kernels.pd_actions(row[None].astype(np.float64), action)
            row, _, fallen, late, _ = env.step(int(action[0]))
            steps, over = steps + 1, fallen or late
        found.append(steps)
    env.close()
    return found


def write_table(count: int) -> None:
    """Compare the lengths of episodes and write the table."""
    rows, values = [], []
    for spec, level in itertools.product(("table1", "released"), levels.LEVELS):
        world = levels.level(spec, level, EASY if level else 1.0)
        simulator = Simulator(world, MANY, seed=5, starts=MANY)
        cells = []
        for name, rule in CONTROLS.items():
            ours = episode_lengths(simulator, rule)
            theirs = engine_lengths(level, spec, name, count)
            value = float(stats.ks_2samp(ours, theirs).pvalue)
            values.append(value)
            cells += [f"{np.mean(theirs):.1f}", f"{ours.mean():.1f}", f"{value:.3f}"]
        rows.append(f"| {spec} {level} | " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    ordered = np.sort(values)
    bounds = LIMIT / np.arange(len(values), 0, -1)
    failing = int((ordered <= bounds).cumprod().sum())
    heads = " | ".join(f"{rule}: PyBullet | compiled | p" for rule in CONTROLS)
    TABLE.write_text(
        "\n".join(
            (
                "# CartPole3D: episodes of the compiled step beside PyBullet's",
                "",
                "Made by `python benchmarks/cartpole3d_batched.py --episodes "
                f"{count}`: mean steps of {count} episodes on PyBullet and {MANY:,} on "
                "the compiled step, level at easy; p of the two-sample "
                "Kolmogorov-Smirnov test.",
                "",
                f"By Holm's rule {failing} of {len(values)} comparisons differ at "
                f"{LIMIT}; {sum(v < LIMIT for v in values)} have a p below {LIMIT}, "
                f"{LIMIT * len(values):.0f} are expected of equal laws.",
                "",
                f"| level | {heads} |",
                "|---" * 10 + "|",
                *rows,
                "",
            )
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", default="0,4,9,16")
    parser.add_argument("--lanes", default="1024,16384")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--steps", type=int, default=20_000, help="of single envs")
    parser.add_argument("--episodes", type=int, help="write the table instead")
    given = parser.parse_args()
    if given.episodes:
        write_table(given.episodes)
        return
    lanes, threads = ([int(n) for n in text.split(",")] for text in (given.lanes, given.threads))
    print("steps a second, random policy, resets included, level at easy")
    heads = [f"{n} x {k} threads" for n in lanes for k in threads]
    print("level", "PyBullet", "compiled", *heads, sep="\t")
    for level in map(int, given.levels.split(",")):
        options = {"level": level, "magnitude": EASY, "obs": "core"}
        rates = [
            single(CartPole3DEnv(**options), given.steps),
            single(CartPole3DFastEnv(**options), 10 * given.steps),
            *(batched(level, n, k) for n in lanes for k in threads),
        ]
        print(level, *(f"{rate:,.0f}" for rate in rates), sep="\t", flush=True)


if __name__ == "__main__":
    main()
