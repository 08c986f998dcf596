"""Short projects with real code, played by hand."""

import json

import pytest

from owa_bench.discovery import get
from owa_bench.envs.projforge import generate
from owa_bench.envs.projforge.world import DAY_MS
from owa_bench.interfaces import AgentConfig, Brief
from owa_bench.records.instance import Instance, Timeline
from owa_bench.sandbox import views
from owa_bench.shells.episode_events import ListSink

SUITE = get("suites", "projforge")


class Project:
    """A project of a few days; `changes` maps a day to an operator."""

    def __init__(self, days=3, seed=1, domain="billing", changes=None, base=None):
        world = generate.draw_world(seed, domain, 1, days)
        world = base(world) if base else world
        starts, worlds = [0], [world]
        for day, change in sorted((changes or {}).items()):
            starts.append(day * DAY_MS)
            worlds.append(change(worlds[-1]))
        chosen = Instance(suite="projforge", version=2, family=domain, tier=1, seed=seed)
        self.timeline = Timeline(
            instance=chosen,
            starts=tuple(starts),
            worlds=tuple(worlds),
            changes=((),) * len(worlds),
            realised=0.0,
        )
        self.sink = ListSink()
        self.env = SUITE.env(lambda _: self.timeline).unwrapped
        self.env.attach(self.sink)
        observation, self.info = self.env.reset(options={"instance": chosen})
        self.text = observation["text"]
        self.over = False

    @property
    def state(self):
        return self.env.oracle_access().observe()[1]

    @property
    def session(self):
        return self.env._playing.session

    def step(self, action):
        observation, _, terminated, truncated, self.info = self.env.step(action)
        self.over = terminated or truncated
        return observation["text"]

    def call(self, tool, **arguments):
        return self.step(json.dumps({"tool": tool, "arguments": arguments}))

    def play(self, policy, until=lambda state: False):
        made = SUITE.policies[policy](self.env.oracle_access())
        while not self.over and not until(self.state):
            self.step(made.act({}, {}))
        return self

    def develop(self, name, memory):
        """Let a registered agent play; it is replaced when a week begins."""
        info, agent, week = self.info, None, -1
        while not self.over:
            if agent is None or info.get("session", 0) != week:
                week = info.get("session", 0)
                agent = get("agents", name).make(AgentConfig())
                task = self.session.task
                brief = Brief(text=task.text, goal=task.goal)
                agent.reset(brief, self.env.tools, memory)
            self.text = self.step(agent.act(self.text, info))
            info = self.info
        return self

    def rules(self):
        return {breach.rule for breach in self.state.breaches}


@pytest.fixture
def project():
    if fault := views.bubblewrap_fault():
        pytest.skip(f"bubblewrap: {fault}")
    made = []

    def make(**options):
        made.append(Project(**options))
        return made[-1]

    yield make
    for each in made:
        each.env.close()
