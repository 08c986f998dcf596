"""MultiCrew beside MPE2: agent-steps per CPU second of PettingZoo parallel envs.

Rows of MultiCrew feed the actions that reference crews took on tier 3, of every family,
so that no agent's time counts; resets count, with worlds that were drawn before.
`simple_spread` of MPE2 plays random actions with as many agents, in a process of its own.
Without transcripts the recorder writes events and no texts.
"""

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import speed  # noqa: E402

from owa_bench.bridges.pettingzoo import CrewParallelEnv  # noqa: E402
from owa_bench.envs.multicrew import generate  # noqa: E402
from owa_bench.records.events import Action  # noqa: E402
from owa_bench.records.layout import RunLayout  # noqa: E402
from owa_bench.runs.store.output import ShardFiles  # noqa: E402
from owa_bench.runs.store.recorder import Recorder  # noqa: E402
from owa_bench.shells.episode_events import NullSink  # noqa: E402
from tests.builders import crew_episodes  # noqa: E402

TIER, SEATS = 3, 4
AGENTS = ("contract_net", "fifo", "list_scheduler")
PASS = '{"tool": "pass_turn", "arguments": {}}'


class Script(NamedTuple):
    """An episode: its env, its instance and the actions of each seat."""

    env: Any
    instance: Any
    actions: dict[str, list[str]]


def scripts(families):
    """Return recorded episodes of every family and reference crew."""
    found = []
    for family in generate.FAMILIES[:families]:
        env = CrewParallelEnv(family=family, tier=TIER)
        for seed, name in enumerate(AGENTS):
            chosen = crew_episodes.instance(family, TIER, seed)
            played = crew_episodes.play(crew_episodes.reference(name), chosen)
            actions = {seat: [] for seat in env.possible_agents}
            for event in played.of(Action):
                actions[event.role].append(event.action)
            found.append(Script(env, chosen, actions))
    return found


def crew(tasks, sink):
    """Feed every script; return agent-steps per CPU second."""
    steps, begin = 0, time.process_time()
    for number, (env, chosen, actions) in enumerate(tasks):
        env.attach(sink(number))
        left = {seat: iter(own) for seat, own in actions.items()}
        _, infos = env.reset(options={"instance": chosen})
        while env.agents:
            acts = {seat: next(left[seat], PASS) for seat in left if infos[seat]["acts"]}
            steps += len(acts)
            *_, infos = env.step(acts)
    return steps / (time.process_time() - begin)


def recorded(tasks, *, transcripts):
    """Return the speed with a recorder on disk."""
    writers = []

    def sink(number):
        if writers:
            writers.pop().close("infrastructure")
        writers.append(recorder.episode(number, 0))
        return writers[0]

    with tempfile.TemporaryDirectory() as folder:
        files = ShardFiles(RunLayout(Path(folder)), 0)
        with Recorder(files, "0" * 64, b"key", transcripts) as recorder:
            return crew(tasks, sink)


def tables(given: argparse.Namespace):
    """Yield the one table."""
    tasks = scripts(1 if given.small else len(generate.FAMILIES))
    rounds, episodes = (1, 1) if given.small else (7, 20)
    peer_name = f"peer: MPE2 `simple_spread`, {SEATS} agents"
    aims = {"recorded with transcripts": [speed.Aim("x MPE2", ">=", 1.0)]}
    ways = {
        "bare": lambda: crew(tasks, lambda _: NullSink()),
        "recorded without transcripts": partial(recorded, tasks, transcripts=False),
        "recorded with transcripts": partial(recorded, tasks, transcripts=True),
    }
    with speed.peer("mpe2", "simple_spread.py") as (ask, fault):
        if not fault:
            plays = {"seats": SEATS, "cycles": 100, "episodes": episodes}
            ways[peer_name] = lambda: ask(**plays)["steps"]
        found = speed.in_turns(ways, rounds)
    rows = []
    for name, rates in found.items():
        figures = {"agent-steps/CPU s": max(rates), "CPU us a step": 1e6 / max(rates)}
        if not fault:
            figures["x MPE2"] = speed.ratio(rates, found[peer_name])
        rows.append(speed.Row(name, figures, aims.get(name, ())))
    if fault:
        rows.append(speed.Row(peer_name, note=fault))
    yield speed.Table("MultiCrew", rows)


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))
