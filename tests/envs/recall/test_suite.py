"""The suite as a whole: its contract, its controls, its cards."""

import json

import pytest

from owa_bench import contract_checks
from owa_bench.envs.recall import generate
from owa_bench.envs.recall.suite import SUITE
from owa_bench.records.events import ToolOffer
from tests.builders import recall_episodes as episodes

ZERO = ("answer", "go_on", "finish", "declare_infeasible")


def call(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


def begun(family, tier=1, seed=0):
    chosen = episodes.instance(family, tier, seed)
    env = SUITE.env(lambda _: episodes.timeline(chosen))
    observation, _ = env.reset(options={"instance": chosen})
    return env.unwrapped, observation["text"]


def test_the_contract_holds_with_an_oracle_of_one_and_a_floor_of_nothing():
    contract_checks.check_suite(SUITE, seeds=(0,))


def controlled(name, family, tier):
    chosen = episodes.instance(family, tier)
    env = SUITE.env(lambda _: episodes.timeline(chosen))
    observation, info = env.reset(options={"instance": chosen})
    policy = SUITE.policies[name](env.unwrapped.oracle_access())
    over = False
    while not over:
        action = policy.act(observation, info)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return info["q_state"]


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_controls_are_in_order(family):
    score = {name: controlled(name, family, 2) for name in SUITE.policies}
    assert score["oracle"] == 1.0
    assert score["noop"] == score["leak_probe"] == 0.0
    assert score["plausible_wrong"] <= 0.5
    assert score["random"] <= 0.5
    assert score["over_doer"] < 1.0


def test_only_answering_is_on_offer_but_with_assisted_items(tmp_path):
    for family in generate.FAMILIES:
        agent = episodes.reference("no_memory")
        played = episodes.play(agent, tmp_path / family, family)
        offers = [e.names for e in played.events if isinstance(e, ToolOffer)]
        assert set(offers[0]) == set(ZERO)
        assert (len(offers) > 1) == (family == "retrieval")


def test_the_supervisor_notes_and_search_are_refused_by_name():
    env, _ = begun("learning")
    for tool in ("ask_supervisor", "note", "recall", "search"):
        arguments = {"note": {"text": "x"}, "search": {"query": "x"}}.get(tool, {})
        *_, info = env.step(call(tool, **arguments))
        assert "on offer now" in info["error"]


def test_shaping_pays_each_marked_answer_as_it_is_given():
    chosen = episodes.instance("n_back")
    env = SUITE.env(lambda _: episodes.timeline(chosen), view="vector", shaping=True)
    env.reset(options={"instance": chosen})
    pays, over = {"yes": set(), "no": set(), "unmarked": set()}, False
    while not over:
        shell = env.unwrapped
        exercise = shell.episode.session.state.card.exercise
        hint = SUITE.oracle.hint(*shell.oracle_access().observe())
        number = 1 + ["yes", "no"].index(hint["arguments"].get("values", ["yes"])[0])
        if hint["tool"] == "finish":
            break
        _, reward, over, *_ = env.step(number)
        pays["unmarked" if exercise.unmarked else exercise.key[0]].add(round(reward, 5))
    exercises = [e for e in SUITE.generate(chosen).exercises if not e.unmarked]
    assert pays.pop("unmarked") == {0.0}
    for key, paid in pays.items():
        count = sum(exercise.key == (key,) for exercise in exercises)
        assert sorted(paid) == pytest.approx([0.5 / count] * len(paid), abs=1e-5)


def test_what_is_never_answered_is_a_failed_probe(tmp_path):
    played = episodes.play(Quitter, tmp_path, "learning")
    assert len(played.probes) == 126
    assert not any(probe.correct for probe in played.probes)


class Quitter:
    def reset(self, brief, tools, memory_dir):
        pass

    def act(self, observation, info):
        return call("finish", p=0.0)

    def close(self):
        pass
