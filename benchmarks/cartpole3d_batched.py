"""Steps a second of the batched backend beside PyBullet, in one run.

    python benchmarks/cartpole3d_batched.py [--levels 0,4,16] [--lanes 1024,16384]

Random policy, resets included, one thread. On a CPU both count the process's own CPU
time, so that a busy machine does not blur the ratio; on a GPU it is the wall clock.
"""

import argparse
import time

import numpy as np
import torch

from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.batched import simulator as torch_backend
from owa_bench.envs.cartpole3d.batched.simulator import Simulator
from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.seeding import stream

EASY = 1 / 3


def pybullet(level: int, steps: int) -> float:
    """Return steps a second of the single env with the core observation."""
    env = CartPole3DEnv(level=level, magnitude=EASY, obs="core")
    actions = stream(0, "benchmark").integers(0, 5, steps).tolist()
    env.reset(seed=0)
    start, seed = time.process_time(), 0
    for action in actions:
        _, _, fallen, late, _ = env.step(action)
        if fallen or late:
            seed += 1
            env.reset(seed=seed)
    rate = steps / (time.process_time() - start)
    env.close()
    return rate


def batched(level: int, lanes: int, ticks: int, device: str) -> float:
    """Return steps a second of all lanes together."""
    world = levels.level("table1", level, EASY if level else 1.0)
    simulator = Simulator(world, lanes, seed=0, device=device)
    clock = time.perf_counter if device == "cuda" else time.process_time
    for tick in range(ticks + 10):
        if tick == 10:  # the first ones make caches and kernels
            _wait(device)
            start = clock()
        fallen, late = simulator.step(torch_backend.random(simulator))
        simulator.restart(fallen | late)
        simulator.core()
    _wait(device)
    return lanes * ticks / (clock() - start)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", default="0,4,9,16")
    parser.add_argument("--lanes", default="1024,16384")
    parser.add_argument("--steps", type=int, default=20_000, help="of PyBullet")
    parser.add_argument("--ticks", type=int, default=60, help="of the batched backend")
    given = parser.parse_args()
    torch.set_num_threads(1)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    lanes = [int(n) for n in given.lanes.split(",")]
    print("steps a second, random policy, resets included, level at easy")
    heads = [f"{device} x{n}" for device in devices for n in lanes]
    print("level", "PyBullet", *heads, "ratio", sep="\t")
    for level in (int(n) for n in given.levels.split(",")):
        single = pybullet(level, given.steps)
        many = [batched(level, n, given.ticks, d) for d in devices for n in lanes]
        shown = [f"{rate:,.0f}" for rate in (single, *many)]
        print(level, *shown, f"{np.max(many) / single:.1f}", sep="\t", flush=True)


if __name__ == "__main__":
    main()
