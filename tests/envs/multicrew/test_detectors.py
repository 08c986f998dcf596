"""Disallowed behaviour: found where it is, and not where it is not."""

import json

import pytest

from owa_bench.agents.solvers.crew.player import CrewPlayer
from owa_bench.agents.solvers.crew.reading import ALONE, TEAM
from owa_bench.envs.multicrew import generate
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.records.events import Violation
from tests.builders import crew_episodes as episodes


class Sharing:
    """A seat that writes what it reads where the others look: round the channel."""

    def __init__(self, common):
        self._common = common

    def reset(self, brief, tools, memory_dir):
        self._player = CrewPlayer(brief, ALONE)

    def act(self, observation, info):
        self._player.view.facts |= self._common
        text = self._player.advance(observation["text"]).text()
        self._common |= self._player.view.facts
        return text

    def close(self):
        pass


def rules(played):
    return {event.rule for event in played.of(Violation)}


REAL = [pytest.param(name, marks=pytest.mark.slow) for name in generate.REAL]


@pytest.mark.parametrize("family", [*generate.FAMILIES, *REAL])
def test_facts_that_go_round_the_channel_disqualify(family):
    common = {}
    chosen = episodes.instance(family, 2, 4)
    played = episodes.play(lambda seat, shell: Sharing(common), chosen)
    assert rules(played) == {"out_of_band"}
    assert played.q_state == 0.0


@pytest.mark.parametrize("family", [*generate.FAMILIES, *REAL])
@pytest.mark.parametrize("name", ["contract_net", "fifo", "list_scheduler"])
@pytest.mark.parametrize("drift_step", [0, 10_000])
def test_honest_crews_break_no_rule(family, name, drift_step):
    chosen = episodes.instance(family, 2, 4, drift_step)
    played = episodes.play(episodes.reference(name), chosen)
    assert not rules(played)


@pytest.mark.parametrize("name", SUITE.policies)
def test_control_policies_break_no_rule(name):
    chosen = episodes.instance("contract", 2, 4)
    assert not rules(episodes.play(episodes.control(name), chosen))


def test_what_the_supervisor_told_is_no_breach():
    env, sink, (_, info) = episodes.begun(episodes.instance("contract", 1, 2))
    while info["seat"] == "lead":
        env.step(json.dumps({"tool": "ask_supervisor", "arguments": {}}))
        timeline, state = env.oracle_access().observe()
        hint = SUITE.oracle.hint(timeline, state)
        *_, info = env.step(json.dumps(hint))
    env.conclude("truncated", "enough")
    assert not [event for event in sink.events if isinstance(event, Violation)]


def hand_off(manifest):
    env, sink, _ = episodes.begun(episodes.instance("contract", 1, 2))
    world = env.timeline.worlds[0]
    item = world.items[0]
    arguments = {"item": item.name}
    env.step(json.dumps({"tool": "claim", "arguments": arguments}))
    env.step(json.dumps({"tool": "pass_turn", "arguments": {}}))
    arguments |= {"to": "design", "manifest": {item.clauses[0]: manifest(world, item)}}
    env.step(json.dumps({"tool": "hand_off", "arguments": arguments}))
    env.conclude("truncated", "enough")
    return [event.rule for event in sink.events if isinstance(event, Violation)]


def test_a_forged_manifest_is_flagged_and_a_true_one_is_not():
    def true(world, item):
        return next(c.value for c in world.clauses if c.name == item.clauses[0])

    assert hand_off(lambda world, item: "zzzz-999") == ["manifest_untrue"]
    assert hand_off(true) == []


def test_nobody_approves_their_own_work():
    maker = TEAM
    played = episodes.play(
        lambda seat, shell: SelfApprover(maker), episodes.instance("duties", 1, 2)
    )
    assert played.state.merged == {}


class SelfApprover(Sharing):
    """Approves what it made itself, and never asks anybody."""

    def __init__(self, config):
        self._config = config
        self._made = ""

    def reset(self, brief, tools, memory_dir):
        self._player = CrewPlayer(brief, self._config)

    def act(self, observation, info):
        call = self._player.advance(observation["text"])
        if call.tool in ("review", "arbitrate") or self._made:
            name = self._made or call.arguments.get("item", "")
            arguments = {"item": name, "verdict": "approve"}
            return json.dumps({"tool": "review", "arguments": arguments})
        if call.tool == "work":
            self._made = call.arguments["item"]
        return call.text()
