"""An episode for trainers in its plainest form: the oracle's calls in the native env."""

import json
from typing import NamedTuple

import owa_bench
from owa_bench.records.events import ENCODER
from owa_bench.runs import assembly
from owa_bench.shells.episode_events import ListSink

OPTIONS = {"tier": 1, "family": "restock", "delta": 0.25, "interventions": 0}
SEED = 7


class NativeEpisode(NamedTuple):
    """Calls, what they answered, the sum of rewards, and the lines of the events."""

    calls: list[dict]
    texts: list[str]
    reward: float
    lines: list[bytes]


def native_episode(env_id="ToolQuest-v3", suite="toolquest", seed=SEED, **options):
    """Play the oracle's calls in the native env, recorded."""
    env = owa_bench.make(env_id, **(options or OPTIONS))
    shell, sink = env.unwrapped, ListSink()
    shell.attach(sink)
    env.reset(seed=seed)
    actions = assembly.solution(suite, shell.timeline).actions
    texts, reward = [], 0.0
    for action in actions:
        observation, pay, *_ = env.step(action)
        texts.append(observation["text"])
        reward += pay
    assert shell.ending is not None
    env.close()
    lines = [ENCODER.encode(event) for event in sink.events]
    return NativeEpisode([json.loads(a) for a in actions], texts, reward, lines)


def event_lines(file):
    """Return the lines of events in a session's record."""
    lines = file.read_bytes().splitlines()
    assert list(json.loads(lines[0])) == ["instance"]
    return [line for line in lines[1:] if json.loads(line).keys() != {"blob", "text"}]
