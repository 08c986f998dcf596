"""MultiCrew beside MPE2: agent-steps per CPU second of PettingZoo parallel envs.

    python benchmarks/crew.py [ROUNDS]

Rows of MultiCrew feed the actions that reference crews took on tier 3, of every family,
so that no agent's time counts; resets count, with worlds that were drawn before.
`simple_spread` of MPE2 (`pip install mpe2`) plays random actions with as many agents.
CPU time of this process, the best of some rounds that the rows take in turns: read the
ratios. Without transcripts the recorder writes events and no texts.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

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
PEER_EPISODES, PEER_CYCLES = 20, 100


class Script(NamedTuple):
    """An episode: its env, its instance and the actions of each seat."""

    env: Any
    instance: Any
    actions: dict[str, list[str]]


def scripts():
    """Return recorded episodes of every family and reference crew."""
    found = []
    for family in generate.FAMILIES:
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


def peer():
    """Return the speed of MPE2's simple_spread with random actions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mpe2 import simple_spread_v3
    env = simple_spread_v3.parallel_env(N=SEATS, max_cycles=PEER_CYCLES)
    spaces = {agent: env.action_space(agent) for agent in env.possible_agents}
    actions = [{a: s.sample() for a, s in spaces.items()} for _ in range(PEER_CYCLES)]
    steps, begin = 0, time.process_time()
    for seed in range(PEER_EPISODES):
        env.reset(seed=seed)
        for chosen in actions:
            env.step(chosen)
            steps += SEATS
    return steps / (time.process_time() - begin)


def main(rounds):
    tasks = scripts()
    ways = {
        "MPE2 `simple_spread`, 4 agents": peer,
        "MultiCrew, bare": lambda: crew(tasks, lambda _: NullSink()),
        "MultiCrew, recorded without transcripts": lambda: recorded(tasks, transcripts=False),
        "MultiCrew, recorded with transcripts": lambda: recorded(tasks, transcripts=True),
    }
    best = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        for name, way in ways.items():
            best[name] = max(best[name], way())
    base = next(iter(best.values()))
    print("| parallel env | agent-steps per CPU second | CPU us a step | x MPE2 |")
    print("|---|---|---|---|")
    for name, speed in best.items():
        print(f"| {name} | {speed:,.0f} | {1e6 / speed:.0f} | {speed / base:.2f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
