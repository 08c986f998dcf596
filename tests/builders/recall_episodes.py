"""Episodes of Recall in one process: an agent is made anew at each sitting.

What it keeps goes through the same folder rules as in a run.
"""

from typing import Any, NamedTuple

import msgspec

from owa_bench.agents import references
from owa_bench.envs.recall.suite import SUITE
from owa_bench.interfaces import AgentConfig, Brief
from owa_bench.records.events import Probe
from owa_bench.records.instance import Instance, Timeline
from owa_bench.runs.store.memory_folder import carry_over
from owa_bench.shells.episode_events import ListSink

CARDS = {card.name: card for card in references.RECALL_AGENTS}


class Played(NamedTuple):
    """What an episode left: its last info, its events and its probes."""

    info: dict[str, Any]
    events: list[Any]

    @property
    def probes(self):
        return [event for event in self.events if isinstance(event, Probe)]

    @property
    def q_state(self):
        return self.info["q_state"]


def instance(family, tier=1, seed=0):
    card = SUITE.card
    return Instance(suite=card.name, version=card.version, family=family, tier=tier, seed=seed)


def timeline(chosen, world=None):
    worlds = (world or SUITE.generate(chosen),)
    return Timeline(instance=chosen, starts=(0,), worlds=worlds, changes=((),), realised=0.0)


def play(make, folder, family, tier=1, seed=0, *, world=None, lane_seed=None, guarded=True):
    """Play an episode; `make()` gives the agent of each sitting.

    Not `guarded`, the folder is neither measured nor written anew between sittings.
    """
    chosen = instance(family, tier, seed)
    env = SUITE.env(lambda _: timeline(chosen, world))
    shell, sink = env.unwrapped, ListSink()
    shell.attach(sink)
    observation, info = env.reset(options={"instance": chosen})
    folder.mkdir(parents=True, exist_ok=True)
    agent, sitting, over = None, None, False
    while not over:
        if info["sitting"] != sitting:
            if agent is not None:
                agent.close()
                if guarded:
                    carry_over(folder, shell.memory_bytes)
            sitting, agent = info["sitting"], make()
            brief = Brief(
                text=shell.task.text,
                goal=shell.task.goal,
                propositions=shell.task.propositions,
                budgets={"memory_bytes": shell.memory_bytes},
                session=sitting,
                seed=seed if lane_seed is None else lane_seed,
            )
            agent.reset(brief, shell.offered, folder)
        action = agent.act(observation, info)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    env.close()
    return Played(info, [msgspec.structs.replace(e) for e in sink.events])


def reference(name, **options):
    """Return the maker of a reference agent."""
    texts = {key: str(value) for key, value in options.items()}
    return lambda: CARDS[name].make(AgentConfig(options=texts))
