"""CartPole3D on PyBullet: steps/s, step beside the raw engine, reset, cost by level.

    step     one `env.step`, random policy, the first 20 ticks after a reset
    raw      one `stepSimulation` of the same scene from the same starts, nothing else
    reset    one `env.reset()`, the hidden tick within
    steps/s  random policy, resets within

The second table plays panda-gym's PandaReach, another env on PyBullet, in a process of its
own; each step of it is 20 of the engine. The last takes the scene apart: a bare engine step
of three balls on the same paths with one thing changed at a time. "no waiting ball" is the
least scene that the levels can be played in. Levels that push every ball every tick cost
most: each force is a call into the engine, and what it is has to be worked out in Python.

CPU time of one process, medians of rounds in turns.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import speed

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
    """Microseconds a step, a raw step and a reset; steps by raw ones; steps/s with resets."""

    step: float
    raw: float
    ratio: float
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
    env.close()
    step, bare, reset, whole = np.median(np.array(found), axis=0).tolist()
    ratio = speed.ratio((each[0] for each in found), (each[1] for each in found))
    return Cost(step, bare, ratio, reset, 1e6 / whole)


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
        for ball, (at, moving) in zip(made[:balls], FLYING, strict=False):
            pybullet.resetBasePositionAndOrientation(ball, at, (0, 0, 0, 1), client)
            pybullet.resetBaseVelocity(ball, moving, (0, 0, 0), client)
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


STEP, RESET = "step / raw", "reset us"
PANDA = "peer: panda-gym, PandaReach"


def row(name: str, found: Cost, most: float) -> speed.Row:
    """Return the row of an env, whose step may cost so many raw ones."""
    figures = {
        "step us": found.step,
        "raw us": found.raw,
        STEP: found.ratio,
        RESET: found.reset,
        "steps/s": found.rate,
    }
    return speed.Row(name, figures, [speed.Aim(STEP, "<=", most)])


def beside_panda(rounds: int) -> speed.Table:
    """Return a step and a reset beside panda-gym's."""
    env, ways = CartPole3DEnv(obs="core"), {}
    seeds = itertools.count()

    def ours() -> dict[str, float]:
        return {"step": stepped(env, next(seeds)), "reset": microseconds(env.reset, RESETS)}

    ways["table1, core"] = ours
    with speed.peer("panda-gym", "reach.py") as (ask, fault):
        if not fault:
            ways[PANDA] = lambda: ask(steps=SEGMENT)
        found = speed.in_turns(ways, rounds)
    env.close()
    rows = []
    for name, each in found.items():
        figures = {f"{part} us": min(one[part] for one in each) for part in ("step", "reset")}
        if not fault:
            theirs = [one["step"] for one in found[PANDA]]
            figures["x panda-gym's step"] = speed.ratio((one["step"] for one in each), theirs)
        rows.append(speed.Row(name, figures))
    if fault:
        rows.append(speed.Row(PANDA, note=fault))
    return speed.Table("CartPole3D beside panda-gym", rows)


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the tables."""
    rounds = 1 if given.small else 40
    rows = []
    for spec, obs in itertools.product(("table1", "released"), ("full", "core")):
        found = cost(CartPole3DEnv(spec=spec, obs=obs), 4 * rounds)
        one = row(f"{spec}, {obs}", found, 2.0 if obs == "core" else 2.5)
        rows.append(one._replace(aims=[*one.aims, speed.Aim(RESET, "<=", 50)]))
    yield speed.Table("CartPole3D", rows)
    yield beside_panda(2 * rounds)
    levels = list(LEVELS)[: 2 if given.small else None]
    rows = [
        row(f"{level} {OPERATORS[level]}", cost(CartPole3DEnv(level=level), rounds), 2.5)
        for level in levels
    ]
    yield speed.Table("level, table1 hard", rows)
    scenes = {name: bare_scene(**parts) for name, parts in SCENES.items()}
    costs = speed.in_turns(scenes, 4 * rounds)
    rows = [speed.Row(name, {"bare step us": float(np.median(us))}) for name, us in costs.items()]
    yield speed.Table("scene", rows)


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
