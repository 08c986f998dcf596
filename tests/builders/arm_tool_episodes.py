"""Episodes of the arm's language view in one process."""

import json
from typing import Any

from msgspec.structs import replace

from owa_bench.discovery import get
from owa_bench.interfaces import AgentConfig, Brief
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink

SUITE = get("suites", "armtools")


def instance(family, tier=1, seed=0):
    return Instance(suite="armtools", version=1, family=family, tier=tier, seed=seed)


def timeline(chosen, world=None):
    worlds = (world or SUITE.generate(chosen),)
    return Timeline(instance=chosen, starts=(0,), worlds=worlds, changes=((),), realised=0.0)


class ArmTable:
    """One episode, call by call; replies are read as JSON."""

    def __init__(self, family="reach", tier=1, seed=0, *, world=None, body=None, **changes):
        chosen = instance(family, tier, seed)
        world = world or SUITE.generate(chosen)
        if body:
            world = world.with_body(**body)
        self.timeline = timeline(chosen, replace(world, **changes))
        self.episode = Episode(SUITE, self.timeline, sink=NullSink(), terms=EpisodeTerms())
        self.brief = self.episode.begin()
        self.texts = [self.episode.task.text]

    @property
    def world(self):
        return self.timeline.worlds[0]

    @property
    def state(self):
        return self.episode.session.state

    def call(self, tool, **arguments) -> dict[str, Any]:
        step = self.episode.step(json.dumps({"tool": tool, "arguments": arguments}))
        self.texts.append(step.text)
        try:
            return json.loads(step.text)
        except ValueError:
            return {"text": step.text, "error": step.error}

    def hint(self):
        return SUITE.oracle.hint(self.timeline, self.state)

    def prepare(self):
        """Measure and set everything, as the oracle does."""
        while (hint := self.hint())["tool"] in ("calibrate", "set_correction"):
            self.call(hint["tool"], **hint["arguments"])


def play(make, folder, family, tier=1, seed=0, *, world=None):
    """Return the last info of an episode and the actions; `make` gets the env."""
    chosen = instance(family, tier, seed)
    env = SUITE.env(lambda _: timeline(chosen, world))
    observation, info = env.reset(options={"instance": chosen})
    shell = env.unwrapped
    agent = make(shell)
    task = shell.task
    brief = Brief(text=task.text, goal=task.goal, propositions=task.propositions, seed=3)
    agent.reset(brief, shell.tools, folder)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation, info))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    return info, actions


def control(name):
    return lambda shell: SUITE.policies[name](shell.oracle_access())


def reference(_shell):
    return get("agents", "agentic").make(AgentConfig())
