"""Knobs of the orchestrator outside of ToolQuest: seats that work, days that fade."""

import json

from owa_bench.discovery import get
from owa_bench.interfaces import AgentConfig
from tests.builders import crew_episodes, recall_episodes


def orchestrator(**options):
    return get("agents", "orchestrator").make(AgentConfig(options=options))


class Watched:
    """An agent whose Moves are played as texts, and noted."""

    def __init__(self, agent, said):
        self._agent, self._said = agent, said

    def __getattr__(self, name):
        return getattr(self._agent, name)

    def act(self, observation, info):
        action = self._agent.act(observation, info).action
        self._said.append(json.loads(action)["tool"])
        return action


def crew(**options):
    said = {}

    def make(seat, env):
        return Watched(orchestrator(**options), said.setdefault(seat, []))

    played = crew_episodes.play(make, crew_episodes.instance("contract"))
    return played.q_state, [set(tools) for tools in said.values()]


def test_of_a_crew_of_one_the_other_seats_wait():
    whole, tools = crew()
    assert all(len(named) > 1 for named in tools)
    alone, (first, *others) = crew(crew="1")
    assert len(first) > 1
    assert others
    assert all(named == {"pass_turn"} for named in others)
    assert alone <= whole


def test_a_half_life_loses_what_was_told_days_ago(tmp_path):
    def quality(name, **options):
        made = lambda: Watched(orchestrator(**options), [])  # noqa: E731
        return recall_episodes.play(made, tmp_path / name, "learning", seed=3).q_state

    kept = quality("kept")
    assert quality("long", half_life="100000") == kept
    assert quality("short", half_life="1") < kept
