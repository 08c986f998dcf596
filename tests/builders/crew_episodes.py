"""Episodes of MultiCrew in one process: a player or a policy for each seat."""

from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.agents import references
from owa_bench.drift.timeline import source
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.interfaces import AgentConfig, Brief, Setting
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.episode_events import ListSink

CARDS = {card.name: card for card in references.CREW_AGENTS}


class Played(NamedTuple):
    """What an episode left: last info, events, the session's last state, texts."""

    info: dict[str, Any]
    events: list[Any]
    state: Any
    blobs: dict[str, bytes]

    @property
    def q_state(self):
        return self.info["q_state"]

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def instance(family, tier=1, seed=0, drift_step=0):
    card = SUITE.card
    return Instance(
        suite=card.name,
        version=card.version,
        family=family,
        tier=tier,
        seed=seed,
        drift_step=drift_step,
    )


def timeline(chosen, world=None):
    if world is None and chosen.drift_step:
        return source("multicrew")(chosen)
    worlds = (world or SUITE.generate(chosen),)
    return Timeline(instance=chosen, starts=(0,), worlds=worlds, changes=((),), realised=0.0)


def begun(chosen, *, cap=None, muted=False, world=None):
    """Return the shell of a fresh episode, its sink and what reset returned."""
    env = SUITE.env(lambda _: timeline(chosen, world)).unwrapped
    sink = ListSink()
    env.attach(sink)
    setting = Setting(role_cap=cap, muted=muted)
    return env, sink, env.reset(options={"instance": chosen, "setting": setting})


def play(make, chosen, *, cap=None, muted=False, world=None):
    """Play an episode; `make(seat, shell)` gives the agent of each seat."""
    env, sink, (observation, info) = begun(chosen, cap=cap, muted=muted, world=world)
    agents, over = {}, False
    while not over:
        seat = info["seat"]
        if seat not in agents:
            agents[seat] = make(seat, env)
            task = env.task_of(seat)
            brief = Brief(text=task.text, goal=task.goal, role=seat, seed=chosen.seed + len(seat))
            agents[seat].reset(brief, env.offered, Path(__file__).parent)
        action = agents[seat].act(observation, info)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    state = env.oracle_access().observe()[1]
    env.close()
    return Played(info, list(sink.events), state, sink.blobs)


def reference(name):
    """Return the maker of a reference agent's seats."""
    return lambda seat, shell: CARDS[name].make(AgentConfig())


def control(name):
    """Return the maker of a control policy's seats."""
    return lambda seat, shell: SUITE.policies[name](shell.oracle_access())
