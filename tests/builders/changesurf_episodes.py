"""Plays whole episodes of ChangeSurf in tests."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.canonical import sha256
from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.interfaces import Brief
from owa_bench.records.events import Violation
from owa_bench.records.instance import Instance
from owa_bench.records.trace import replay_line
from owa_bench.shells.episode_events import ListSink


class Episode(NamedTuple):
    """How an episode went."""

    q_state: float
    outcome: str
    steps: int
    digest: str
    events: tuple[Any, ...]
    blobs: dict[str, bytes]

    @property
    def rules(self):
        """The rules that were broken."""
        return {e.rule for e in self.events if isinstance(e, Violation)}


def instance_of(family, seed=1, *, tier=1, delta=0.0, repeat=0, schedule=None):
    plain = Instance(
        suite="changesurf",
        version=SUITE.card.version,
        family=family,
        tier=tier,
        seed=seed,
        repeat=repeat,
    )
    step = timelines.drift_step("changesurf", plain, delta, schedule)
    return msgspec.structs.replace(plain, drift_step=step)


def make(schedule=None, **options):
    return SUITE.env(timelines.source("changesurf", schedule), **options).unwrapped


def play(env, agent, instance, *, sink=None, memory=None):
    """Play one episode; `agent` is a policy's name, class or an agent."""
    sink = sink or ListSink()
    env.attach(sink)
    observation, info = env.reset(options={"instance": instance})
    if isinstance(agent, str):
        agent = SUITE.policies[agent]
    if isinstance(agent, type):
        agent = agent(env.oracle_access())
    task = env.task
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions)
    agent.reset(brief, env.tools, memory or Path())
    over = False
    while not over:
        move = agent.act(observation, info)
        action = getattr(move, "action", move)
        observation, _, ended, cut, info = env.step(action)
        over = ended or cut
    agent.close()
    lines = [x for event in sink.events if (x := replay_line(event)) is not None]
    return Episode(
        info["q_state"],
        info["outcome"],
        info["step"],
        sha256(b"\n".join(lines)),
        tuple(sink.events),
        sink.blobs,
    )
