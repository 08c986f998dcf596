"""CartPole3D on PyBullet: steps/s, step beside the raw engine, reset, cost by level.

    step     one `env.step`, random policy, the first 20 ticks after a reset
    raw      one `stepSimulation` of the same scene from the same starts, nothing else
    reset    one `env.reset()`, the hidden tick within
    steps/s  random policy, resets within

A third table takes the scene apart: a bare engine step of three balls on the same paths
with one thing changed at a time. "no waiting ball" is the least scene that the levels
can be played in.

CPU time of one process, rounds of the measures interleaved, medians: on a shared
machine read the ratios. Run: python benchmarks/cartpole3d.py [--rounds 40]
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from owa_bench.envs.cartpole3d import bodies
from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.envs.cartpole3d.levels import LEVELS, OPERATORS
from owa_bench.envs.cartpole3d.world import PhysicsWorld, base
from owa_bench.seeding import stream

SEGMENT = 20  # ticks after a reset
RESETS = 10
STEPS = 600  # of a round with resets
TILTED = (0.005, 0.0, 0.0, 1.0)  # the pole of the third table
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


FLYING = (
    ((2.5, 3.0, 3.0), (3.0, 2.0, 1.0)),
    ((-2.5, 3.0, 5.0), (3.0, 2.0, 1.0)),
    ((2.5, -3.0, 7.0), (3.0, 2.0, 1.0)),
)


def connect(world: PhysicsWorld, settings: Mapping[str, int]) -> bodies.Client:
    """Return a client of the engine with our settings, some of them replaced."""
    client = bodies.Client(window=False)
    ours = {"numSolverIterations": 50, "deterministicOverlappingPairs": 1}
    client.setPhysicsEngineParameter(
        fixedTimeStep=world.tick, numSubSteps=0, **ours | dict(settings)
    )
    return client


def cart_pole(world: PhysicsWorld, client: bodies.Client, *, motors: bool) -> int:
    """Return the cart with its pole, motors as the engine has them or off."""
    stop = bodies._stop_motors  # noqa: SLF001  what a scene costs that forgets it
    if motors:
        bodies._stop_motors = lambda *_: None  # noqa: SLF001
    body = bodies.build_cart_pole(client, world.cart, world.pole)
    bodies._stop_motors = stop  # noqa: SLF001
    return body


def bare_scene(
    *,
    balls: int = 3,
    waiting: int = 1,
    walls: bool = True,
    cart: bool = True,
    motors: bool = False,
    settings: Mapping[str, int] | None = None,
) -> Callable[[], float]:
    """Return a function that says microseconds a bare step of a scene built so."""
    import pybullet

    world = base("table1")
    engine = connect(world, settings or {})
    client = engine.id
    if walls:
        bodies.build_arena(engine, world.arena)
    body = cart_pole(world, engine, motors=motors) if cart else -1
    homes = [at for at, _ in FLYING[:balls]] + [*map(bodies.parking_place, range(waiting))]
    made = [bodies.build_ball(engine, world.ball, bodies.FREE, at) for at in homes]

    def once() -> float:
        if cart:
            where = [(0.0,), (0.0,), (0.0,), TILTED]
            rates = [(0.0,), (0.0,), (0.0,), (0.0, 0.0, 0.0)]
            pybullet.resetJointStatesMultiDof(body, range(4), where, rates, client)
        for ball, (at, speed) in zip(made[:balls], FLYING, strict=False):
            pybullet.resetBasePositionAndOrientation(ball, at, (0, 0, 0, 1), client)
            pybullet.resetBaseVelocity(ball, speed, (0, 0, 0), client)
        return microseconds(lambda: pybullet.stepSimulation(client), SEGMENT)

    return once


SCENES: dict[str, dict[str, Any]] = {
    "as built, one ball waiting": {},
    "no waiting ball": {"waiting": 0},
    "one solver iteration": {"settings": {"numSolverIterations": 1}},
    "pairs in any order": {"settings": {"deterministicOverlappingPairs": 0}},
    "motors left on": {"motors": True},
    "no walls": {"walls": False},
    "no cart and pole": {"cart": False},
    "no balls": {"balls": 0, "waiting": 0},
    "nothing at all": {"balls": 0, "waiting": 0, "walls": False, "cart": False},
}


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
    print()
    print("| scene | bare step us |")
    print("|---" * 2 + "|")
    scenes = {name: bare_scene(**parts) for name, parts in SCENES.items()}
    found = [[once() for once in scenes.values()] for _ in range(4 * rounds)]
    for name, median in zip(scenes, np.median(np.array(found), axis=0), strict=True):
        print(f"| {name} | {median:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
