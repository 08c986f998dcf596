"""The queue of credit cases: steps a CPU second, bare and behind a recorder.

Random open actions, masks and resets included, on cases that were played before and on fresh ones,
which are drawn at their first reset. No run records this env for training; the row "recorded" puts
it behind the shell of native suites and a recorder that writes to disk.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import speed

from owa_bench.envs.casework.queue.case import queue_case
from owa_bench.envs.casework.queue.env import HAND_IN, CaseQueueEnv
from owa_bench.records.instance import Instance, Timeline
from owa_bench.records.layout import RunLayout
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder
from owa_bench.seeding import stream
from owa_bench.shells.native_env import NativeEnv

CASES, AIM = 8, 10_000.0


class CaseOfInstance(CaseQueueEnv):
    """The queue, its case named by an instance, as native suites' envs are begun."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Begin the case of the options' instance."""
        return super().reset(seed=seed, options={"case": options["instance"].seed})


def timeline(instance: Instance) -> Timeline:
    """Return the timeline of an instance: one world, no drift."""
    world = queue_case(instance.tier, instance.seed).world
    return Timeline(instance=instance, starts=(0,), worlds=(world,), changes=((),), realised=0.0)


def choose(env: CaseQueueEnv, rng: np.random.Generator) -> int:
    """Return an open action at random; the hand-in only at the end of the day."""
    masks = env.action_masks()
    masks[HAND_IN] &= env.minutes_left < 9
    found = np.flatnonzero(masks)
    return int(found[int(rng.integers(len(found)))]) if len(found) else HAND_IN - 2


def bare(level: int, cases: range, episodes: int) -> float:
    """Return steps a CPU second."""
    env, rng, steps = CaseQueueEnv(level=level), stream(0, "speed"), 0
    began = time.process_time()
    for number in range(episodes):
        env.reset(options={"case": cases[number % len(cases)]})
        over = False
        while not over:
            over = env.step(choose(env, rng))[2]
            steps += 1
    return steps / (time.process_time() - began)


def recorded(level: int, cases: range, episodes: int) -> float:
    """Return steps a CPU second behind the shell of native suites and a recorder."""
    queue = CaseOfInstance(level=level)
    card = SimpleNamespace(name="casework", about="A queue of cases.", theta=0.95, step_limit=2_000)
    env = NativeEnv(SimpleNamespace(card=card, env=lambda source: queue), timeline)
    rng, steps = stream(0, "speed"), 0
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder(ShardFiles(RunLayout(Path(folder)), 0), "0" * 64, b"key", True) as recorder,
    ):
        began = time.process_time()
        for number in range(episodes):
            writer = recorder.episode(number, 0)
            env.attach(writer)
            seed = cases[number % len(cases)]
            instance = Instance(
                suite="casework", version=1, family="credits", tier=level, seed=seed
            )
            env.reset(options={"instance": instance})
            while env.ending is None:
                env.step(choose(queue, rng))
            steps += env.steps
            writer.close("infrastructure")  # no verdict follows
        spent = time.process_time() - began
    return steps / spent


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the table."""
    levels, episodes, rounds = ((1,), 4, 1) if given.small else ((1, 2, 3), 60, 3)
    rows = []
    for level in levels:
        fresh = bare(level, range(500, 500 + CASES), CASES)
        ways = {
            name: partial(way, level, range(500, 500 + CASES), episodes)
            for name, way in (("bare", bare), ("recorded", recorded))
        }
        for way in ways.values():
            way()  # answers that were met are kept
        found = speed.in_turns(ways, rounds)
        figures = {
            "steps/s, recorded": max(found["recorded"]),
            "steps/s, bare": max(found["bare"]),
            "steps/s, fresh cases": fresh,
        }
        rows.append(
            speed.Row(f"level {level}", figures, [speed.Aim("steps/s, recorded", ">=", AIM)])
        )
    yield speed.Table("CaseQueueFast, one env", rows)


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
