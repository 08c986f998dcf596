"""The suite as a whole: its contract, its controls, its channel, its references."""

import json

import pytest

from owa_bench import contract_checks
from owa_bench.envs.multicrew import generate, oracle
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.records.events import Conflict, Message
from tests.builders import crew_episodes as episodes

EVERY = (*generate.FAMILIES, *generate.HELD_OUT)
TIERS = (2,)  # of the default run; all under `slow`


def call(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


def mean(name, family, tier, *, seeds=4, **setting):
    maker = episodes.reference(name)
    played = [
        episodes.play(maker, episodes.instance(family, tier, seed), **setting)
        for seed in range(seeds)
    ]
    return sum(one.q_state for one in played) / seeds


@pytest.mark.slow
def test_the_contract_holds_with_an_oracle_of_one_and_a_floor_of_nothing():
    contract_checks.check_suite(SUITE, seeds=(0,))


def controls_in_order(family, tier, seed):
    chosen = episodes.instance(family, tier, seed)
    score = {name: episodes.play(episodes.control(name), chosen).q_state for name in SUITE.policies}
    assert score["oracle"] == 1.0
    assert score["noop"] == score["leak_probe"] == 0.0
    assert score["random"] <= 0.05
    assert score["plausible_wrong"] <= 0.5
    assert score["over_doer"] < 1.0


@pytest.mark.part(2)
@pytest.mark.parametrize("family", EVERY)
@pytest.mark.parametrize("tier", TIERS)
def test_controls_are_in_order(family, tier):
    controls_in_order(family, tier, 5)


@pytest.mark.part(3)
@pytest.mark.slow
@pytest.mark.parametrize("family", EVERY)
@pytest.mark.parametrize("tier", generate.TIERS)
def test_controls_are_in_order_everywhere(family, tier):
    for seed in range(5):
        controls_in_order(family, tier, seed)


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_who_tells_beats_who_is_muted_and_who_is_alone(family):
    full = mean("contract_net", family, 2)
    assert full > mean("contract_net", family, 2, muted=True) + 0.2
    assert full > mean("list_scheduler", family, 2, cap=1) + 0.2


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_a_muted_crew_gets_most_done_by_research(family):
    assert mean("list_scheduler", family, 1, muted=True) > 0.5


def test_the_bound_rises_with_seats_and_holds_for_agents():
    for seed in range(4):
        world = SUITE.generate(episodes.instance("contract", 3, seed))
        bounds = [oracle.bound(world, m) for m in (1, 2, 3, 4)]
        assert bounds == sorted(bounds)
        assert bounds[0] < 0.6 < bounds[-1]


def test_chains_are_told_to_be_inadmissible_and_others_are_not():
    for seed in range(4):
        for tier in generate.TIERS:
            for family in (*EVERY, *generate.REAL):
                world = SUITE.generate(episodes.instance(family, tier, seed))
                chained = family.startswith(generate.CHAINS)
                assert bool(generate.inadmissible(world)) == chained


def test_a_message_arrives_a_tick_later_and_is_an_event_of_the_env():
    env, sink, _ = episodes.begun(episodes.instance("contract", 2))
    env.step(call("tell", to="all", text="hello"))
    observation, *_ = env.step(call("pass_turn"))
    assert "hello" not in observation["text"]
    env.step(call("pass_turn"))  # the third seat; a new tick begins
    env.step(call("pass_turn"))
    (message,) = [event for event in sink.events if isinstance(event, Message)]
    assert (message.source, message.sender) == ("env", "lead")
    assert message.receivers == ("design", "build")
    observation, *_ = env.step(call("pass_turn"))
    shown = observation["text"]
    assert "Message from lead: hello" in shown


@pytest.mark.parametrize("setting", [{}, {"muted": True}, {"cap": 1}])
def test_a_message_that_is_dropped_is_answered_like_any_other(setting):
    env, sink, _ = episodes.begun(episodes.instance("contract", 2), **setting)
    observation, *_, info = env.step(call("tell", to="all", text="hello"))
    while info["seat"] != "lead":
        observation, *_, info = env.step(call("pass_turn"))
    assert observation["text"].startswith("Sent.")
    assert any(isinstance(e, Message) for e in sink.events) == (not setting)


def test_the_channel_is_rated_and_names_the_tick():
    env, _, _ = episodes.begun(episodes.instance("contract", 2), cap=1)
    env.step(call("tell", to="all", text="one"))
    observation, *_ = env.step(call("tell", to="all", text="two"))
    assert "your next message at tick 2" in observation["text"]
    observation, *_ = env.step(call("tell", to="all", text="x" * 1000))
    assert "at most 120 tokens, got 250" in observation["text"]


def test_a_crew_settles_what_is_contested():
    played = episodes.play(episodes.reference("contract_net"), episodes.instance("contract", 2, 1))
    resolved = {event.item for event in played.of(Conflict) if event.resolved}
    assert resolved == set(played.state.settled)
    assert len(resolved) == 2
