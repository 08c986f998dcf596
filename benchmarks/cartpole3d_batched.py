"""Steps a second of the compiled step beside PyBullet's and CartPole-v1's; its episodes.

    python benchmarks/cartpole3d_batched.py [--levels 0,4,16]
    python benchmarks/cartpole3d_batched.py --episodes 200

Random policy, resets included, core observations. Single envs count the process's own
CPU time, lanes the wall clock, so that threads count; levels are at easy.
`--episodes` writes docs/tables/cartpole3d_compiled.md: lengths of episodes of every
level and variant under three control rules, both backends, two-sample tests.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import speed
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
AIMED_LANES = 1_024


def single(env: gymnasium.Env, steps: int) -> float:
    """Return steps a CPU second of one env that was played before."""
    actions = stream(0, "benchmark").integers(0, env.action_space.n, steps).tolist()
    env.reset(seed=0)
    start, seed = time.process_time(), 0
    for action in actions:
        _, _, fallen, late, _ = env.step(action)
        if fallen or late:
            seed += 1
            env.reset(seed=seed)
    return steps / (time.process_time() - start)


def batched(simulator: Simulator, drawn: np.ndarray, seconds: float) -> float:
    """Return steps a second of all lanes together."""
    rows = simulator.observe()
    ticks, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        fallen, late = simulator.step(drawn[ticks % len(drawn)])
        simulator.restart(fallen | late)
        simulator.observe(out=rows)
        ticks += 1
    return drawn.shape[1] * ticks / (time.perf_counter() - start)


def singles_table(numbers: list[int], steps: int, rounds: int) -> speed.Table:
    """Return single envs by level, and CartPole-v1."""
    envs = {"CartPole-v1": gymnasium.make("CartPole-v1")}
    for level in numbers:
        options = {"level": level, "magnitude": EASY, "obs": "core"}
        envs[f"PyBullet {level}"] = CartPole3DEnv(**options)
        envs[f"compiled {level}"] = CartPole3DFastEnv(**options)
    for env in envs.values():
        single(env, 100)  # compiles
    sizes = {name: steps if name.startswith("PyBullet") else 10 * steps for name in envs}
    found = speed.in_turns(
        {name: partial(single, env, sizes[name]) for name, env in envs.items()}, rounds
    )
    plain, rows = found["CartPole-v1"], []
    for level in numbers:
        ours, engine = found[f"compiled {level}"], found[f"PyBullet {level}"]
        figures = {
            "steps/s": max(ours),
            "PyBullet steps/s": max(engine),
            "x PyBullet": speed.ratio(ours, engine),
            "x CartPole-v1": speed.ratio(ours, plain),
        }
        aims = [speed.Aim("x CartPole-v1", ">=", 1.14)] if level == 0 else []
        rows.append(speed.Row(f"level {level}", figures, aims))
    rows.append(speed.Row("peer: CartPole-v1", {"steps/s": max(plain), "x CartPole-v1": 1.0}))
    return speed.Table("CartPole3DFast, a single env", rows)


def lanes_table(numbers: list[int], lanes: int, seconds: float, rounds: int) -> speed.Table:
    """Return the steps of so many lanes by level and threads."""
    rows = []
    drawn = stream(0, "benchmark").integers(0, 5, (50, lanes))
    for level in numbers:
        world = levels.level("table1", level, EASY if level else 1.0)
        ways = {}
        for threads in (1, 2):
            simulator = Simulator(world, lanes, seed=0, threads=threads)
            simulator.restart(np.ones(lanes, np.bool_))  # compiles, as the step does
            batched(simulator, drawn, 0.0001)
            ways[f"{threads} threads"] = partial(batched, simulator, drawn, seconds)
        found = speed.in_turns(ways, rounds)
        figures = {f"steps/s, {name}": max(rates) for name, rates in found.items()}
        aimed = level == 0 and lanes == AIMED_LANES
        aims = [speed.Aim("steps/s, 2 threads", ">=", 5_000_000)] if aimed else []
        rows.append(speed.Row(f"level {level}", figures, aims))
    return speed.Table(f"CartPole3DFast, {lanes:,} lanes", rows)


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


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the tables of speed, or write the other one."""
    if given.episodes:
        write_table(given.episodes)
        return
    chosen = [0] if given.small else [int(level) for level in given.levels.split(",")]
    yield singles_table(chosen, *((500, 1) if given.small else (20_000, 5)))
    for lanes in (64,) if given.small else (AIMED_LANES, 16_384):
        yield lanes_table(chosen, lanes, *((0.1, 1) if given.small else (2.0, 3)))


if __name__ == "__main__":
    arguments = speed.parser(__doc__)
    arguments.add_argument("--levels", default="0,4,9,16")
    arguments.add_argument("--episodes", type=int, help="write the table of lengths instead")
    speed.main(tables, arguments)
