"""CartPole3D on PyBullet: steps/s, step beside the raw engine, reset, cost by level.

    step     one `env.step`, random policy, the first 20 ticks after a reset
    raw      one `stepSimulation` of the same scene from the same starts, nothing else
    reset    one `env.reset()`, the hidden tick within
    steps/s  random policy, resets within

CPU time of one process, rounds of the measures interleaved, medians: on a shared
machine read the ratios. Run: python benchmarks/cartpole3d.py [--rounds 40]
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.envs.cartpole3d.levels import LEVELS, OPERATORS
from owa_bench.seeding import stream

SEGMENT = 20  # ticks after a reset
RESETS = 10
STEPS = 600  # of a round with resets
ACTIONS = stream(0, "benchmark", "actions").integers(5, size=4096).tolist()


class Cost(NamedTuple):
    """Microseconds a step, a raw step and a reset; steps/s with resets."""

    step: float
    raw: float
    reset: float
    rate: float


def microseconds(work: Callable[[], object], count: int) -> float:
    """Return the CPU time of one call among `count`."""
    began = time.process_time_ns()
    for _ in range(count):
        work()
    return (time.process_time_ns() - began) / count / 1000


def stepped(env: CartPole3DEnv, seed: int) -> float:
    """Return microseconds a step after a reset."""
    env.reset(seed=seed)
    step, began = env.step, time.process_time_ns()
    for action in ACTIONS[seed : seed + SEGMENT]:
        step(action)
    return (time.process_time_ns() - began) / SEGMENT / 1000


def raw(env: CartPole3DEnv, seed: int) -> float:
    """Return microseconds a bare engine step after the same reset."""
    import pybullet

    env.reset(seed=seed)
    client = env.scene.client
    run = pybullet.stepSimulation
    return microseconds(lambda: run(client), SEGMENT)


def with_resets(env: CartPole3DEnv, seed: int) -> float:
    """Return microseconds a step of random play, resets within."""
    env.reset(seed=seed)
    step, reset = env.step, env.reset
    began = time.process_time_ns()
    for number in range(STEPS):
        _, _, terminated, truncated, _ = step(ACTIONS[(seed + number) % 4096])
        if terminated or truncated:
            reset()
    return (time.process_time_ns() - began) / STEPS / 1000


def cost(env: CartPole3DEnv, rounds: int) -> Cost:
    """Return the medians of interleaved rounds."""
    found = []
    for seed in range(rounds):
        env.reset(seed=seed)
        found.append(
            (
                stepped(env, seed),
                raw(env, seed),
                microseconds(env.reset, RESETS),
                with_resets(env, seed),
            )
        )
    step, bare, reset, whole = np.median(np.array(found), axis=0)
    env.close()
    return Cost(float(step), float(bare), float(reset), 1e6 / float(whole))


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    print("| CartPole3D | step us | raw us | step / raw | reset us | steps/s |")
    print("|---" * 6 + "|")
    for spec in ("table1", "released"):
        for obs in ("full", "core"):
            c = cost(CartPole3DEnv(spec=spec, obs=obs), 4 * rounds)
            print(
                f"| {spec}, {obs} | {c.step:.1f} | {c.raw:.1f} | {c.step / c.raw:.2f} "
                f"| {c.reset:.0f} | {c.rate:,.0f} |"
            )
    print()
    print("| level, table1 hard | step us | step / raw | reset us | steps/s |")
    print("|---" * 5 + "|")
    for level in LEVELS:
        c = cost(CartPole3DEnv(level=level), rounds)
        print(
            f"| {level} {OPERATORS[level]} | {c.step:.1f} | {c.step / c.raw:.2f} "
            f"| {c.reset:.0f} | {c.rate:,.0f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
