import dataclasses
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from owa_bench.errors import InstanceError, UsageError
from owa_bench.records.events import Drift, EpisodeStart
from owa_bench.shells import tool_env
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.instances import plain_instances
from owa_bench.shells.solution import horizon
from tests.builders.toy_suite import CARD, corridor, honeypot, relocked

FINISH = call_text("finish", {"p": 0.5})


def start(opening):
    return EpisodeStart(
        index=0,
        attempt=0,
        arm="a",
        pair="p",
        repeat=0,
        env_id=CARD.env_id,
        instance=opening.instance,
        delta=0.0,
        realised=opening.realised,
        world=opening.world,
        agent="a",
        fingerprint="f",
        interventions=None,
        horizon=opening.horizon,
        depth=opening.depth,
        theta=opening.theta,
        categories=opening.categories,
        needs_tools=opening.needs_tools,
        honeypot=opening.honeypot,
    )


@pytest.mark.parametrize("view", ["language", "vector", "python"])
def test_gymnasiums_checker_passes(view):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(corridor(view), skip_render_check=True)


@pytest.mark.parametrize("view", ["language", "vector", "python"])
def test_random_episodes_end_and_their_rewards_sum_to_q(view):
    env = corridor(view, step_limit=20)
    env.action_space.seed(0)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            assert observation in env.observation_space
            total += reward
            done = terminated or truncated
        assert total == pytest.approx(env.ending.quality)


def test_a_seed_is_an_instance_and_no_seed_draws_one():
    env = corridor()
    env.reset(seed=5)
    assert env.timeline.instance.seed == 5
    env.reset()
    first = env.timeline.instance.seed
    env.reset()
    assert env.timeline.instance.seed != first
    env.reset(seed=5)
    env.reset()
    assert env.timeline.instance.seed == first


def test_an_exact_instance_may_be_given():
    env = corridor()
    instance = plain_instances(CARD, tier=2, family="long", drift_step=3)(7)
    env.reset(options={"instance": instance})
    assert env.timeline.instance == instance
    assert (instance.tier, instance.family, instance.drift_step) == (2, "long", 3)


def test_seeds_draw_all_families():
    instances = plain_instances(CARD)
    assert {instances(seed).family for seed in range(20)} == {"short", "long"}


@pytest.mark.parametrize(("field", "value"), [("tier", 9), ("family", "wide")])
def test_what_the_suite_lacks_is_refused(field, value):
    with pytest.raises(InstanceError, match=field):
        plain_instances(CARD, **{field: value})


def test_wrong_arguments_name_their_way_out():
    with pytest.raises(UsageError, match="`view` must be one of language, vector"):
        corridor("pixels")
    env = corridor()
    with pytest.raises(UsageError, match="call reset first"):
        env.step(FINISH)
    with pytest.raises(UsageError, match="'seeds'"):
        env.reset(options={"seeds": 1})


def test_the_start_comes_first_then_the_drift_of_the_first_world():
    sink = ListSink()
    env = corridor(source=_struck)
    env.attach(sink)
    env.reset(seed=3, options={"start": start})
    first, second = sink.events[:2]
    assert isinstance(first, EpisodeStart)
    assert isinstance(second, Drift)
    assert (first.horizon, first.depth, first.realised) == (2, 2, 1.0)
    assert first.world == second.after


def _struck(instance):
    """Return a timeline whose first world is changed already."""
    timeline = relocked(1)(instance)
    return dataclasses.replace(
        timeline, starts=(0,), worlds=timeline.worlds[1:], changes=timeline.changes[1:]
    )


def test_a_honeypot_says_so_in_its_start():
    sink = ListSink()
    env = corridor(source=honeypot, sink=sink)
    env.reset(seed=3, options={"start": start})
    assert sink.events[0].honeypot
    assert sink.events[0].horizon == 0


def test_the_horizon_is_solved_once_an_instance(monkeypatch):
    solved = []

    def counted(suite, timeline, **options):
        solved.append(timeline.instance)
        return horizon(suite, timeline, **options)

    monkeypatch.setattr(tool_env, "horizon", counted)
    sink = ListSink()
    env = corridor(sink=sink)
    for seed in (1, 2, 1):
        env.reset(seed=seed, options={"start": start})
    assert [instance.seed for instance in solved] == [1, 2]
    horizons = [e.horizon for e in sink.events if isinstance(e, EpisodeStart)]
    assert horizons == [2, 2, 2]


def test_shaping_is_off_while_scoring():
    env = corridor("vector", shaping=True)
    env.reset(seed=0)
    assert env._playing.terms.shaping
    env.reset(seed=0, options={"start": start})
    assert not env._playing.terms.shaping


def test_interventions_may_be_set_for_one_episode():
    env = corridor(interventions=3)
    _, info = env.reset(seed=0, options={"interventions": 1})
    assert info["interventions_left"] == 1
    _, info = env.reset(seed=0)
    assert info["interventions_left"] == 3
    _, info = env.reset(seed=0, options={"interventions": None})
    assert "interventions_left" not in info


def test_the_recorder_changes_nothing_the_agent_sees():
    plain, recorded = corridor(), corridor(sink=ListSink())
    for env in (plain, recorded):
        env.action_space.seed(1)
    one, other = plain.reset(seed=0), recorded.reset(seed=0)
    for _ in range(10):
        assert one[0]["text"] == other[0]["text"]
        assert one[1:] == other[1:]
        if plain.ending:
            break
        one = plain.step(plain.action_space.sample())
        other = recorded.step(recorded.action_space.sample())


def test_sessions_are_closed_on_reset_and_close():
    env = corridor()
    env.reset(seed=0)
    first = env._playing.session
    env.reset(seed=1)
    second = env._playing.session
    env.close()
    assert first.closed
    assert second.closed


def test_the_end_is_told_in_info():
    env = corridor()
    env.reset(seed=0)
    *_, info = env.step(FINISH)
    assert info["outcome"] == "finished"
    assert (info["q_state"], info["success"]) == (0.0, False)
    assert info["quality"] == env.ending.quality


def test_conclude_and_privilege_serve_the_loop():
    env = corridor()
    env.reset(seed=0)
    privilege = env.oracle_access()
    timeline, state = privilege.observe()
    assert privilege.oracle.hint(timeline, state)["tool"] == "walk"
    env.step("nonsense")
    assert env.conclude("agent_timeout", "60 s").outcome == "agent_timeout"
    assert (env.steps, env.failed_attempts, env.simulated_ms) == (1, 1, 0)
    assert env.task.goal == {"door": "open"}
    assert env.tools[-1].name == "declare_infeasible"


def contents(envs, actions):
    """Return observations and rewards of a vector env as plain values."""
    seen = [envs.reset(seed=[3, 4])[0]]
    rewards = []
    for pair in actions:
        observation, reward, *_ = envs.step(pair)
        seen.append(observation)
        rewards.append(reward.tolist())
    texts = [tuple(batch["text"]) for batch in seen]
    masks = [batch["action_mask"].tolist() for batch in seen]
    return texts, masks, rewards


def test_sync_and_async_observations_have_equal_contents():
    right = call_text("walk", {"to": "right"})
    actions = [(right, right), (right, "bad"), (FINISH, right), (right, right)]
    makers = [corridor, corridor]
    sync = SyncVectorEnv(makers)
    parallel = AsyncVectorEnv(makers, shared_memory=False)
    try:
        one, other = contents(sync, actions), contents(parallel, actions)
    finally:
        sync.close()
        parallel.close()
    assert one == other
    assert one[0][1][0].startswith("cell 1")


def test_shared_memory_is_refused_with_the_fix():
    with pytest.raises(UsageError, match="shared_memory=False"):
        AsyncVectorEnv([corridor])


def test_the_vector_view_works_in_shared_memory():
    def make():
        return corridor("vector")

    sync, parallel = SyncVectorEnv([make, make]), AsyncVectorEnv([make, make])
    try:
        one, other = (envs.reset(seed=[1, 2])[0] for envs in (sync, parallel))
        assert np.array_equal(one, other)
        moves = np.array([1, 0])
        one, other = (envs.step(moves)[0] for envs in (sync, parallel))
        assert np.array_equal(one, other)
    finally:
        sync.close()
        parallel.close()


def test_the_env_is_a_gymnasium_env_behind_wrappers():
    env = gym.wrappers.RecordEpisodeStatistics(corridor("vector"))
    env.reset(seed=1)
    assert env.get_wrapper_attr("action_masks")().dtype == np.bool_
