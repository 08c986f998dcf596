"""The arm: ticks beside the bare engine and panda-gym, compiled lanes, what a record takes.

A tick is a command of 1/20 s with controller, sensors, guard and judge, and what is shown; the bare
engine steps the same cell as often. All figures are CPU time of one process.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np
import speed

from owa_bench.discovery import get
from owa_bench.envs.robosim2real import tasks, units
from owa_bench.envs.robosim2real.engine import Cell, load_engine
from owa_bench.envs.robosim2real.episode import RobotEpisode
from owa_bench.envs.robosim2real.kinematic import ReachLanes
from owa_bench.envs.robosim2real.world import Body
from owa_bench.interfaces import Setting
from owa_bench.records.events import ENCODER
from owa_bench.records.instance import Instance
from owa_bench.runs.assembly import source
from owa_bench.seeding import stream
from owa_bench.shells.embodied_env import EmbodiedEnv
from owa_bench.shells.episode_events import ListSink

FLEET, TICKS = 53, 200
PANDA = "peer: panda-gym, PandaPush"


def command(tick: int) -> np.ndarray:
    """Return a command that moves the tool to and fro above the table."""
    turn = 1.0 if tick // 10 % 2 else -1.0
    return np.array([0.2 * turn, 0.0, 0.2 * turn, 0.0, 1.0, 0.0])


def microseconds(step: Callable[[int], object], count: int) -> float:
    """Return CPU microseconds of a call."""
    began = time.process_time()
    for number in range(count):
        step(number)
    return 1e6 * (time.process_time() - began) / count


def bare(*, device: bool, family: str = "push", tier: int = 1) -> float:
    """Return microseconds of a tick of the engine alone."""
    mujoco = load_engine()
    body = units.unit(FLEET, 0) if device else Body()
    cell = Cell(tasks.draw(family, tier, stream(1, "base")), body, coarse=device)
    return microseconds(lambda _: mujoco.mj_step(cell.model, cell.data, nstep=cell.steps), TICKS)


def whole(*, device: bool) -> float:
    """Return microseconds of a tick of an episode and of what it shows."""
    world = tasks.draw("push", 1, stream(1, "base"))
    body = units.unit(FLEET, 0) if device else Body()
    episode = RobotEpisode(world, body, 1, side="surrogate" if device else "sim")

    def step(tick: int) -> None:
        episode.tick(command(tick))
        episode.observation()

    return microseconds(step, TICKS)


def recorded() -> tuple[float, float]:
    """Return microseconds of a tick that is recorded, and bytes of an episode's events."""
    env, sink = EmbodiedEnv(get("suites", "robosim2real"), source("robosim2real")), ListSink()
    env.attach(sink)
    instance = Instance(suite="robosim2real", version=1, family="pick_place", tier=3, seed=1)
    setting = Setting(side="surrogate", unit=0, fleet=FLEET)
    env.reset(options={"instance": instance, "setting": setting})
    began, ticks = time.process_time(), itertools.count()
    while env.ending is None:
        env.step(command(next(ticks)))
    spent = 1e6 * (time.process_time() - began) / env.steps
    return spent, float(sum(len(ENCODER.encode(event)) + 1 for event in sink.events))


def ticks(rounds: int) -> speed.Table:
    """Return ticks beside the engine and the peer."""
    ways: dict[str, Callable[[], object]] = {}
    for side, device in (("simulation", False), ("device", True)):
        ways[side] = lambda device=device: (whole(device=device), bare(device=device))
    with speed.peer("panda-gym", "reach.py") as (ask, fault):
        if not fault:
            ways[PANDA] = lambda: ask(steps=TICKS, env="PandaPush-v3")
        found = speed.in_turns(ways, rounds)
    rows = []
    for side, least in (("simulation", 0.6), ("device", 0.5)):
        ours, raw = zip(*found[side], strict=True)
        figures = {"tick us": min(ours), "raw us": min(raw), "of raw": speed.ratio(raw, ours)}
        aims = [speed.Aim("of raw", ">=", least)]
        if not fault:
            theirs = [one["step"] for one in found[PANDA]]
            figures["x panda-gym"] = speed.ratio(theirs, ours)
            aims += [speed.Aim("x panda-gym", ">=", 3.0)] if side == "simulation" else []
        rows.append(speed.Row(side, figures, aims))
    note = fault or ""
    theirs = {} if fault else {"tick us": min(one["step"] for one in found[PANDA])}
    rows.append(speed.Row(PANDA, theirs, note=note))
    return speed.Table("a tick of the arm", rows)


def lanes(count: int, rounds: int) -> float:
    """Return lane steps a second of CPU time of the compiled simulator."""
    env = ReachLanes(count, randomised=1.0, seed=0)
    env.reset()
    actions = np.zeros((count, 3), dtype=np.float32)
    env.step(actions)
    steps = max(50, 20_000 // count)
    best = min(microseconds(lambda _: env.step(actions), steps) for _ in range(rounds))
    return 1e6 * count / best


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the tables."""
    rounds = 1 if given.small else 8
    yield ticks(rounds)
    rows = []
    for count, least in ((1, 200_000), (64, 2_000_000)):
        figures = {"lane steps/s": lanes(count, rounds)}
        rows.append(speed.Row(f"{count} lanes", figures, [speed.Aim("lane steps/s", ">=", least)]))
    yield speed.Table("compiled reaching", rows)
    raw_of = {"device": True, "family": "pick_place", "tier": 3}
    pairs = [(*recorded(), bare(**raw_of)) for _ in range(rounds)]
    ours, sizes, raw = zip(*pairs, strict=True)
    figures = {"tick us": min(ours), "of raw": speed.ratio(raw, ours), "bytes": max(sizes)}
    aims = [speed.Aim("of raw", ">=", 0.35), speed.Aim("bytes", "<=", 8192)]
    yield speed.Table(
        "a recorded episode on the device", [speed.Row("pick_place, tier 3", figures, aims)]
    )


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
