"""Views of a whole crew: PettingZoo's own tests, and the trace of the per-seat view."""

import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from owa_bench.bridges.crew_views import CentralEnv, CrewRounds
from owa_bench.bridges.pettingzoo import CrewParallelEnv
from owa_bench.envs.multicrew import generate
from owa_bench.errors import UsageError
from owa_bench.records.events import Action, Observation
from owa_bench.records.trace import replay_line
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode_events import ListSink
from tests.builders import crew_episodes as episodes

EVERY = (*generate.FAMILIES, *generate.HELD_OUT)
REAL = [pytest.param(name, marks=pytest.mark.slow) for name in generate.REAL]
PASS = '{"tool": "pass_turn", "arguments": {}}'
FINISH = '{"tool": "finish", "arguments": {}}'


@pytest.mark.parametrize("family", [*generate.FAMILIES, *REAL])
def test_pettingzoos_own_tests_pass(family, capsys):
    """All three of them, with every warning of theirs an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the package itself imports
        from pettingzoo.test import parallel_api_test, parallel_seed_test, render_test
        from pettingzoo.utils.conversions import parallel_to_aec

    def made(**options):
        return CrewParallelEnv(family=family, tier=2, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(made(), num_cycles=40)
        parallel_seed_test(made, num_cycles=40)
        render_test(lambda render_mode: parallel_to_aec(made(render_mode=render_mode)))
    assert "Tick " in capsys.readouterr().out


@pytest.mark.parametrize("family", [*generate.FAMILIES, *REAL])
def test_recorded_actions_leave_the_trace_that_was_recorded(family):
    """Fed round by round; what each seat was shown before its act is what it saw."""
    chosen = episodes.instance(family, 2, 1, 10_000)
    recorded = episodes.play(episodes.reference("contract_net"), chosen)
    by_seat = {seat: [] for seat in recorded.state.hours}
    shown = {seat: [] for seat in by_seat}
    for event in recorded.events:
        if isinstance(event, Action):
            by_seat[event.role].append(event.action)
        elif isinstance(event, Observation):
            shown[event.role].append(event.blob)
    env = CrewParallelEnv(family=family, tier=2)
    env.rounds.env._source = lambda _: episodes.timeline(chosen)
    sink = ListSink()
    env.attach(sink)
    seen, infos = env.reset(options={"instance": chosen})
    while env.agents:
        acting = [seat for seat in env.agents if infos[seat]["acts"]]
        for seat in acting:
            if by_seat[seat]:  # else the lead ends the episode before its turn
                assert sink.blob(seen[seat]["text"].encode()) == shown[seat].pop(0)
        actions = {s: by_seat[s].pop(0) if by_seat[s] else PASS for s in acting}
        seen, *_, infos = env.step(actions)
    assert lines(sink.events) == lines(recorded.events)
    assert infos["lead"]["q_state"] == recorded.q_state


def lines(events):
    return [line for line in map(replay_line, events) if line is not None]


def test_a_seat_that_finishes_is_terminated_alone():
    env = CrewParallelEnv(tier=2)
    env.reset(seed=3)
    actions = dict.fromkeys(env.agents, PASS) | {"design": FINISH}
    _, rewards, terminated, truncated, _ = env.step(actions)
    assert terminated == {"lead": False, "design": True, "build": False}
    assert not any(truncated.values())
    assert rewards.keys() == terminated.keys()
    assert env.agents == ["lead", "build"]
    *_, terminated, _, infos = env.step({"lead": FINISH, "build": PASS})
    assert (terminated, env.agents) == ({"lead": True, "build": True}, [])
    assert infos["build"]["outcome"] == "finished"


@pytest.mark.parametrize("idle", ['{"tool": "note", "arguments": {"text": "x"}}', "?"])
def test_after_what_takes_no_tick_a_seat_acts_again_before_the_others(idle):
    """Nobody's action is played as another seat's."""
    env, sink = CrewParallelEnv(tier=2), ListSink()
    env.attach(sink)
    env.reset(seed=3)
    read = '{"tool": "read", "arguments": {"name": "x"}}'
    *_, infos = env.step({"lead": idle, "design": read, "build": read})
    assert [seat for seat in env.agents if infos[seat]["acts"]] == env.agents
    env.step({"lead": PASS, "design": read, "build": read})
    played = [(e.role, e.action) for e in sink.events if isinstance(e, Action)]
    assert played[:2] == [("lead", idle), ("lead", PASS)]
    assert played[2:] == [("design", read), ("build", read)]


def test_the_limit_of_steps_truncates_every_seat():
    env = CrewParallelEnv(tier=2, step_limit=2)
    env.reset(seed=3)
    _, _, terminated, truncated, _ = env.step(dict.fromkeys(env.agents, PASS))
    assert not any(terminated.values())
    assert all(truncated.values())


def test_ceiling_and_mute_hold_in_the_views():
    env = CrewParallelEnv(tier=3, role_cap=2, muted=True)
    env.reset(seed=0)
    assert env.possible_agents == ["lead", "design"]
    tell = '{"tool": "tell", "arguments": {"to": "all", "text": "hello"}}'
    env.step({"lead": tell, "design": PASS})
    seen, *_ = env.step(dict.fromkeys(env.agents, PASS))
    assert "hello" not in seen["design"]["text"]


def test_the_centralised_view_passes_gymnasiums_checker():
    spec = gymnasium.envs.registration.EnvSpec(
        "test/Crew-v0", entry_point="owa_bench.bridges.crew_views:CentralEnv"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(spec).unwrapped)


def test_the_reward_of_both_views_sums_to_the_quality_once():
    central, parallel = CentralEnv(tier=1), CrewParallelEnv(tier=1)
    central.reset(seed=4)
    parallel.reset(seed=4)
    paid, other, over = 0.0, 0.0, False
    while not over:
        actions = oracle_actions(central.rounds)
        _, reward, terminated, truncated, info = central.step(actions)
        rewards = parallel.step(actions)[1]
        paid, over = paid + reward, terminated or truncated
        other += rewards["lead"]
    assert paid == other == pytest.approx(info["lead"]["quality"])
    assert info["lead"]["q_state"] > 0.5


def oracle_actions(rounds):
    """Return the oracle's step for the first seat that is free, a wait for the rest."""
    timeline, state = rounds.env.oracle_access().observe()
    hint = episodes.SUITE.oracle.hint(timeline, state)
    first = call_text(hint["tool"], hint["arguments"])
    return dict.fromkeys(rounds.seats, PASS) | {rounds.acting[0]: first}


def test_a_free_seat_without_an_action_plays_a_malformed_one():
    env = CrewParallelEnv(tier=1)
    env.reset(seed=0)
    *_, infos = env.step({"lead": PASS})
    assert "error" not in infos["lead"]
    assert "must be a JSON object, got null" in infos["design"]["error"]


def test_a_suite_without_seats_is_refused():
    with pytest.raises(UsageError, match="must have seats, got 'toolquest'"):
        CrewRounds("toolquest")
