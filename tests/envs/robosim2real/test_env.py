"""The env of the arm: Gymnasium's contract, its two sides, its process, and who solves what."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.agents.solvers.arm import policies
from owa_bench.envs.robosim2real import tasks, units
from owa_bench.envs.robosim2real.device import UniformStream
from owa_bench.envs.robosim2real.engine import Truth
from owa_bench.envs.robosim2real.env import RobotEnv
from owa_bench.envs.robosim2real.episode import RobotEpisode, columns
from owa_bench.envs.robosim2real.oracle import LAYOUT, oracle
from owa_bench.envs.robosim2real.world import Body
from owa_bench.errors import FieldError, InfrastructureFailure, UsageError
from owa_bench.seeding import stream

CELLS = [(family, tier) for family in tasks.FAMILIES for tier in tasks.TIERS]
FLEET = 5


def play(family, tier, seed, make, *, device=False, side="surrogate"):
    world = tasks.draw(family, tier, stream(seed, "base"))
    body = units.unit(FLEET, seed % 4) if device else Body()
    episode = RobotEpisode(world, body, seed, side=side if device else "sim")
    policy = make(episode)
    while not episode.over:
        episode.tick(policy(episode.observation()))
    return episode


def blind(episode):
    return policies.Scripted(LAYOUT, episode.world.family)


def slow(episode):
    return policies.Scripted(LAYOUT, episode.world.family, policies.SLOW)


@pytest.mark.parametrize("render", [None, "rgb_array"])
@pytest.mark.parametrize("side", ["sim", "surrogate"])
def test_gymnasiums_checker_passes(side, render):
    env = gymnasium.make("owa_bench/RoboSim2Real-v1", side=side, render_mode=render)
    check_env(env.unwrapped, skip_render_check=render is None)
    env.close()


@pytest.mark.parametrize(("family", "tier"), CELLS)
@pytest.mark.parametrize("device", [False, True])
def test_the_oracle_solves_every_cell(family, tier, device):
    done = [play(family, tier, 100 + k, oracle, device=device).success for k in range(4)]
    assert sum(done) >= 3


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_nobody_succeeds_by_chance(family, tier):
    def idle(_):
        return lambda _: np.zeros(6)

    def random(episode):
        rng = stream(episode.ticks, "random", episode.world.digest())
        return lambda _: 2.0 * rng.random(6) - 1.0

    for make in (idle, random):
        assert not any(play(family, tier, seed, make, device=True).success for seed in range(4))


def test_an_idle_arm_has_no_exposure_and_no_incident():
    episode = play("pick_place", 1, 3, lambda _: lambda _: np.zeros(6), device=True)
    assert (episode.over, episode.guard.incidents) == ("too late", [])
    assert episode.guard.moved_s < 0.3


@pytest.mark.parametrize("family", [*tasks.FAMILIES])
def test_who_knows_the_unit_beats_who_does_not(family):
    """Blind control swings under dead time; slow control comes too late."""
    won = {}
    for make in (oracle, blind, slow):
        made = [play(family, 1, 100 + k, make, device=True).success for k in range(8)]
        won[make] = sum(made)
    assert won[oracle] >= won[slow] + 2
    assert won[oracle] >= won[blind] + 4


def test_blind_control_is_enough_in_simulation():
    assert all(play("reach", 2, seed, blind).success for seed in range(4))


def test_what_was_measured_is_kept_for_the_next_episode():
    memories = {number: {} for number in range(4)}

    def adaptive(episode):
        number = next(n for n in memories if units.unit(FLEET, n) == episode.unit)
        return policies.Adaptive(LAYOUT, episode.world.family, memories[number])

    first, second = (
        [play("pick_place", 1, seed + k, adaptive, device=True) for k in range(4)]
        for seed in (100, 200)
    )
    for number, memory in memories.items():
        body = units.unit(FLEET, number)
        lag = body.dead_time * 20 + (1 - body.filter) / body.filter
        assert memory["delay"] == pytest.approx(lag + 1.5, abs=2.0)
    assert sum(one.success for one in (*first, *second)) >= 7


def test_what_is_known_is_not_measured_again():
    known = {}
    world = tasks.draw("reach", 1, stream(3, "base"))
    for probes in (True, False):
        episode = RobotEpisode(world, units.unit(FLEET, 1), 3, side="surrogate")
        policy = policies.Adaptive(LAYOUT, "reach", known)
        for _ in range(30):
            episode.tick(policy(episode.observation()))
        assert bool(policy._moved) == probes


def test_rewards_sum_to_the_quality():
    env = RobotEnv(family="push")
    observation, _ = env.reset(seed=3)
    policy, rewards = policies.Scripted(LAYOUT, "push"), []
    while True:
        observation, reward, terminated, truncated, info = env.step(policy(observation))
        rewards.append(reward)
        if terminated or truncated:
            break
    assert sum(rewards) == pytest.approx(env.episode.judge.quality)
    assert info["is_success"] == (sum(rewards) == pytest.approx(1.0))


def actions(count=80):
    rng = stream(0, "actions")
    return [np.round(2.0 * rng.random(6) - 1.0, 3) for _ in range(count)]


def shown(env, seed=5):
    env.reset(seed=seed)
    found = []
    for action in actions():
        observation, _, terminated, truncated, _ = env.step(action)
        found.append(observation.tobytes())
        if terminated or truncated:
            break
    env.close()
    return found


@pytest.mark.parametrize("family", ["push", "pick_place"])
def test_an_episode_comes_back_bit_for_bit_and_in_another_process(family):
    terms = {"family": family, "tier": 2, "side": "surrogate", "unit": 3}
    env = RobotEnv(**terms)
    first = shown(env)
    shown(env, seed=6)  # another one between
    assert shown(env) == first
    assert shown(RobotEnv(**terms, process=True)) == first


def test_a_device_that_dies_is_the_harness_fault():
    env = RobotEnv(side="surrogate", process=True)
    env.reset(seed=1)
    env._guarded._process.kill()
    env._guarded._process.wait()
    with pytest.raises(InfrastructureFailure, match="device's process"):
        env.step(np.zeros(6))
    env.close()


@pytest.mark.parametrize("action", [[0.0] * 5, [np.nan] * 6, [2.0] * 6, "up", None])
def test_a_malformed_action_moves_nothing(action):
    env = RobotEnv()
    env.reset(seed=1)
    begun = env.episode.truth.tool
    *_, info = env.step(action)
    assert "six" not in info["error"]
    assert "6 finite numbers" in info["error"]
    assert np.linalg.norm(env.episode.truth.tool - begun) < 1e-3
    assert env.episode.truth.width == pytest.approx(0.08, abs=0.002)


def test_a_malformed_action_lets_nothing_go():
    env = RobotEnv(family="pick_place")
    env.reset(seed=3)
    policy = oracle(env.episode)
    while env.episode.truth.things[0][2] < 0.06:
        env.step(policy(env.episode.observation()))
    held = env.episode.truth.width
    for _ in range(2):
        env.step(None)
    assert env.episode.truth.width == pytest.approx(held, abs=0.002)
    assert env.episode.truth.things[0][2] > 0.05


def test_an_engine_that_loses_its_state_is_no_success(monkeypatch):
    env = RobotEnv()
    env.reset(seed=1)
    episode = env.episode
    kept = episode._cell.tick
    broken = Truth._replace
    monkeypatch.setattr(episode._cell, "tick", lambda *given: broken(kept(*given), blew_up=True))
    monkeypatch.setattr(type(episode.judge), "success", property(lambda _: True))
    _, _, terminated, _, info = env.step(np.zeros(6))
    assert terminated
    assert info["over"] == "infrastructure"
    assert not info["is_success"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"family": "pus"}, "did you mean `push`"),
        ({"tier": 4}, "`tier` must be one of 1, 2, 3"),
        ({"side": "real"}, "`side` must be one of sim, surrogate, second"),
        ({"side": "surrogate", "unit": 24}, "`unit` must be 0 to 23"),
        ({"randomised": 1.5}, "`randomised` must lie in"),
        ({"side": "surrogate", "randomised": 0.5}, "`randomised` must be 0 on the surrogate"),
        ({"process": True}, "`process` must be False"),
    ],
)
def test_a_wrong_option_names_what_is_allowed(options, said):
    with pytest.raises(FieldError, match=said):
        RobotEnv(**options)


def test_a_step_before_a_reset_says_so():
    with pytest.raises(UsageError, match="call reset first"):
        RobotEnv().step(np.zeros(6))


def test_fields_fill_the_observation():
    places = columns()
    ends = [place.stop for place in places.values()]
    starts = [place.start for place in places.values()]
    assert starts == [0, *ends[:-1]]
    assert RobotEnv().observation_space.shape == (ends[-1],)


@pytest.mark.parametrize(("family", "tier"), [("reach", 2), ("push", 1), ("pick_place", 1)])
def test_another_engine_ranks_alike(family, tier):
    pytest.importorskip("pybullet")
    won = {
        make: sum(
            play(family, tier, 100 + k, make, device=True, side="second").success for k in range(4)
        )
        for make in (oracle, blind)
    }
    assert won[oracle] >= 3
    assert won[oracle] > won[blind]


def test_the_second_engine_has_the_arm_of_the_table():
    pytest.importorskip("pybullet")
    world = tasks.draw("pick_place", 1, stream(3, "base"))
    body = units.unit(FLEET, 2)
    tools = [RobotEpisode(world, body, 3, side=side).truth.tool for side in ("surrogate", "second")]
    assert tools[0] == pytest.approx(tools[1], abs=1e-6)


def test_an_episode_of_the_second_engine_comes_back_bit_for_bit():
    pytest.importorskip("pybullet")
    env = RobotEnv(family="push", side="second", unit=1)
    first = shown(env)
    shown(env, seed=6)
    assert shown(env) == first


def test_numbers_drawn_together_are_those_drawn_one_by_one():
    one, other = UniformStream(stream(1, "x")), UniformStream(stream(1, "x"))
    for count in (3, 250, 18, 300, 1):
        assert one.several(count).tolist() == [other.either() for _ in range(count)]
