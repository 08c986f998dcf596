"""Steps a second of the batched backend beside PyBullet, in one run.

    python benchmarks/cartpole3d_batched.py [--levels 0,4,16] [--lanes 1024,16384]

Random policy, resets included, one thread. On a CPU both count the process's own CPU
time, so that a busy machine does not blur the ratio; on a GPU it is the wall clock.
Where torch finds a GPU, it is also compared with the CPU, and with itself.
"""

import argparse
import time

import numpy as np
import torch

from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.batched import simulator as torch_backend
from owa_bench.envs.cartpole3d.batched.simulator import Simulator
from owa_bench.seeding import stream

EASY = 1 / 3


def pybullet(level: int, steps: int) -> float:
    """Return steps a second of the single env with the core observation."""
    from owa_bench.envs.cartpole3d.env import CartPole3DEnv

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


def same_falls(level: int, lanes: int = 512, ticks: int = 60) -> tuple[float, bool]:
    """Return the share of lanes that fall alike on GPU and CPU, and if a GPU repeats.

    Args:
        level: of Table 1, easy.
        lanes: played on each device.
        ticks: of each lane, restarts included.

    Returns:
        Share of lanes with equal ends of episodes, and whether two plays on the GPU
        end in equal observations.
    """

    def play(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        world = levels.level("table1", level, EASY if level else 1.0)
        simulator, ends = Simulator(world, lanes, seed=0, device=device), []
        for _ in range(ticks):
            fallen, late = simulator.step(torch_backend.random(simulator))
            ends.append((fallen | late).cpu())
            simulator.restart(fallen | late)
        return torch.stack(ends), simulator.core().cpu()

    (here, _), (there, seen), (again, twice) = play("cpu"), play("cuda"), play("cuda")
    alike = float((here == there).all(0).float().mean())
    return alike, torch.equal(there, again) and torch.equal(seen, twice)


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", default="0,4,9,16")
    parser.add_argument("--lanes", default="1024,16384")
    parser.add_argument("--steps", type=int, default=20_000, help="of PyBullet")
    parser.add_argument("--ticks", type=int, default=60, help="of the batched backend")
    parser.add_argument(
        "--no-pybullet", action="store_true", help="leave PyBullet's column out"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    lanes = [int(n) for n in given.lanes.split(",")]
    print("steps a second, random policy, resets included, level at easy")
    heads = [f"{device} x{n}" for device in devices for n in lanes]
    print("level", "PyBullet", *heads, "ratio", sep="\t")
    chosen = [int(n) for n in given.levels.split(",")]
    for level in chosen:
        single = np.nan if given.no_pybullet else pybullet(level, given.steps)
        many = [batched(level, n, given.ticks, d) for d in devices for n in lanes]
        shown = [f"{rate:,.0f}" for rate in (single, *many)]
        print(level, *shown, f"{np.max(many) / single:.1f}", sep="\t", flush=True)
    for level in chosen if "cuda" in devices else ():
        alike, repeats = same_falls(level)
        words = f"{alike:.3f} of 512 lanes end alike on CPU and GPU"
        print(f"level {level}: {words}; the GPU repeats itself: {repeats}")


if __name__ == "__main__":
    main()
