"""The Gymnasium env: contract, seeds, instances, states, trials, what it releases."""

import sys
import warnings

import gymnasium
import msgspec
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from owa_bench.discovery import get
from owa_bench.drift.timeline import source
from owa_bench.envs.cartpole3d.levels import LEVELS, LevelSchedule
from owa_bench.envs.cartpole3d.start import BallState, SceneState
from owa_bench.envs.cartpole3d.world import SPECS, base
from owa_bench.errors import FieldError, MissingPartError, UsageError
from owa_bench.records.instance import Instance

pytestmark = pytest.mark.physics

ID = "owa_bench/CartPole3D-v2"


def instance(family="table1/7", tier=2, seed=5, drift_step=1):
    return Instance(
        suite="cartpole3d", version=2, family=family, tier=tier, seed=seed, drift_step=drift_step
    )


def play(env, actions, **reset):
    """Return all observations of an episode, one after the other."""
    seen = [env.reset(**reset)[0]]
    for action in actions:
        observation, _, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        if terminated or truncated:
            break
    return np.stack(seen)


@pytest.mark.parametrize("obs", ["full", "core"])
@pytest.mark.parametrize("spec", SPECS)
def test_gymnasiums_checker_passes(make, spec, obs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(spec=spec, obs=obs), skip_render_check=True)  # it has no spec


@pytest.mark.rl
def test_stable_baselines_checker_passes(make):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(make(level=16))


def test_the_id_makes_it_and_a_prefix_registers_it():
    pytest.importorskip("pybullet")
    env = gymnasium.make(f"owa_bench:{ID}", level=9, difficulty="easy", obs="core")
    observation, info = env.reset(seed=1)
    assert (observation.shape, info) == ((11,), {})
    assert env.unwrapped.world.pole.length == 3
    env.close()


def test_a_seed_is_an_episode_and_every_level_plays(make):
    actions = np.random.default_rng(0).integers(5, size=30).tolist()
    for level in LEVELS:
        env = make(level=level, spec="released")
        first = play(env, actions, seed=level)
        assert np.array_equal(first, play(env, actions, seed=level))
        assert not np.array_equal(first[0], env.reset(seed=level + 1)[0])
        assert env.observation_space.contains(first[0])


def test_seeds_without_number_come_from_the_env(make):
    env = make()
    env.reset(seed=3)
    one = [env.reset()[0] for _ in range(2)]
    env.reset(seed=3)
    assert np.array_equal(one, [env.reset()[0] for _ in range(2)])
    assert not np.array_equal(one[0], one[1])


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("difficulty", ["easy", "hard"])
def test_the_short_way_to_a_world_is_the_timelines(make, spec, difficulty):
    for level in LEVELS:
        env = make(spec=spec, level=level, difficulty=difficulty)
        env.reset(seed=8)
        assert env.timeline.worlds == (env.world,)
        by_seed = play(env, [1, 2, 3] * 5, seed=8)
        named = env.instance
        assert named.family == f"{spec}/{level}"
        again = play(env, [1, 2, 3] * 5, options={"instance": named})
        assert np.array_equal(by_seed, again)


def test_a_magnitude_between_presets_reaches_the_timeline(make):
    env = make(level=7, magnitude=0.5)
    env.reset(seed=1)
    assert env.timeline.worlds == (env.world,)
    assert env.world.pulls[0].size == (20, 20)


def test_drift_step_zero_is_the_world_before_the_novelty(make):
    env = make()
    env.reset(options={"instance": instance(drift_step=0)})
    assert env.world == base("table1")
    env.reset(options={"instance": instance()})
    assert env.world.pulls[0].size == (25, 25)
    assert [change.operator for change in env.timeline.changes[0]] == ["physics/pull_to_origin"]


def test_a_state_is_set_exactly_and_passes_no_hidden_tick(make):
    env = make(spec="released")
    env.reset(seed=4)
    for _ in range(7):
        env.step(1)
    state = env.state()
    observation, _ = env.reset(options={"state": state})
    assert env.state() == state
    assert observation[0] == np.float32(state.cart[0])
    assert observation[3] == np.float32(state.velocity[1])
    onward = play(env, [1, 3, 0, 2], options={"state": state})
    assert np.array_equal(onward, play(env, [1, 3, 0, 2], options={"state": state}))


def test_levels_change_between_the_episodes_of_a_trial(make):
    env = make(levels=((2, 0), (1, 7), (1, 15)))
    seen = []
    for episode in range(5):
        env.reset(seed=episode)
        seen.append([pull.target for pull in env.world.pulls])
    assert seen == [[], [], ["origin"], ["tip"], ["tip"]]


def test_a_novelty_may_strike_in_the_middle_of_an_episode(make):
    onset_ms = 100
    for family in ("table1/9", "table1/7", "table1/1"):
        env = get("suites", "cartpole3d").env(
            source("cartpole3d", LevelSchedule(onset_ms=onset_ms))
        )
        plain = make()
        options = {"instance": instance(family)}
        env.reset(options=options)
        plain.reset(seed=options["instance"].seed)
        for tick in range(5):
            one, other = env.step(1), plain.step(1)
            assert np.array_equal(one[0], other[0]), tick
            assert env.world == base("table1")
        changed = env.step(1)[0]
        assert env.world == env.timeline.worlds[1] != base("table1")
        assert changed[:2] == pytest.approx(plain.step(1)[0][:2], abs=0.01)
        env.close()


def test_core_is_the_head_of_full(make):
    full, core = make(), make(obs="core")
    assert np.array_equal(full.reset(seed=2)[0][:11], core.reset(seed=2)[0])
    assert np.array_equal(full.step(3)[0][:11], core.step(3)[0])


def test_slots_show_balls_and_say_which_are_there(make):
    env = make(slots=6)
    observation, _ = env.reset(seed=2)
    count = len(env.scene.live)
    slots = observation[11:].reshape(6, 7)
    assert slots[:, 0].tolist() == [1.0] * count + [0.0] * (6 - count)
    assert not slots[count:].any()
    assert np.allclose(slots[:count, 1:4], env.scene.places)


def test_of_too_many_balls_the_nearest_are_shown(make):
    env = make(level=16, slots=2)
    env.reset(seed=2)
    for _ in range(30):
        shown = env.step(0)[0][11:].reshape(2, 7)[:, 1:4]
        centre = env.scene.centre
        away = sorted(np.linalg.norm(np.subtract(env.scene.places, centre), axis=1))
        assert np.linalg.norm(shown - centre, axis=1) == pytest.approx(away[:2], 1e-5)
    assert len(away) > 30


def test_a_whole_episode_earns_one(make):
    env = make()
    env.reset(options={"state": SceneState(cart=(0.0, 0.0))})
    rewards, ends = [], []
    for _ in range(200):
        _, reward, terminated, truncated, _ = env.step(0)
        rewards.append(reward)
        ends.append((terminated, truncated))
    assert sum(rewards) == pytest.approx(1.0)
    assert ends == [(False, False)] * 199 + [(False, True)]


def test_no_body_is_built_at_reset(make, monkeypatch):
    import pybullet

    env = make(level=10)
    env.reset(seed=0)
    before = pybullet.getNumBodies(env.scene.client)

    def refuse(*args, **kwargs):
        raise AssertionError

    for name in ("createMultiBody", "loadURDF", "removeBody", "resetSimulation"):
        monkeypatch.setattr(pybullet, name, refuse)
    for seed in range(50):
        env.reset(seed=seed)
    assert pybullet.getNumBodies(env.scene.client) == before


def test_balls_that_take_no_part_wait_far_away(make):
    import pybullet

    env = make(levels=((1, 16), (1, 0)))
    for seed in range(30):
        env.reset(seed=seed)
        for _ in range(seed):
            env.step(0)
        scene = env.scene
        playing = {ball.body for ball in scene.live}
        pool = [ball.body for ball in scene._pools["free"]]
        heights = {
            body: pybullet.getBasePositionAndOrientation(body, scene.client)[0][2] for body in pool
        }
        assert {body for body, z in heights.items() if z > -900} == playing


def test_several_envs_do_not_disturb_each_other(make):
    one, other = make(level=16), make(level=16)
    alone = play(one, [1, 4] * 10, seed=6)
    one.reset(seed=6)
    other.reset(seed=7)
    seen = [one.reset(seed=6)[0]]
    for step in range(len(alone) - 1):
        other.step(2)
        seen.append(one.step([1, 4][step % 2])[0])
    assert np.array_equal(alone, seen)


def test_close_releases_the_client_and_may_be_called_twice(make):
    import pybullet

    env = make()
    env.reset(seed=0)
    client = env.scene.client
    assert pybullet.isConnected(client)
    env.close()
    env.close()
    assert not pybullet.isConnected(client)
    assert env.reset(seed=0)[0].shape == (39,)


def test_envs_that_are_closed_leave_no_client_behind(make):
    """The engine has room for about a thousand clients: more would fail."""
    for _ in range(60):
        env = make()
        env.reset(seed=0)
        number = env.scene.client
        env.close()
    assert number < 30


def test_each_env_holds_one_client_and_close_gives_it_back(make):
    import pybullet

    def clients():
        return sum(pybullet.isConnected(number) for number in range(100))

    before = clients()
    envs = [make(level=level) for level in (0, 2, 9, 10, 16)]
    assert clients() == before  # none before it is needed
    for env in envs:
        env.reset(seed=0)
    assert clients() == before + 5
    for env in envs:
        env.reset(seed=1)
        env.step(1)
    assert clients() == before + 5
    for left, env in enumerate(reversed(envs)):
        env.close()
        assert clients() == before + 4 - left


def test_a_picture_has_its_size_and_shows_something(make):
    env = make(render_mode="rgb_array")
    env.reset(seed=1)
    image = env.render()
    assert (image.shape, image.dtype) == ((240, 240, 3), np.uint8)
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 20
    assert make().render() is None


def test_without_the_engine_the_way_to_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pybullet", None)
    env = get("suites", "cartpole3d").env(source("cartpole3d"))
    with pytest.raises(MissingPartError, match=r"pip install 'owa_bench\[physics\]'"):
        env.reset(seed=0)


def test_a_window_needs_a_screen(make, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    env = make(render_mode="human")
    with pytest.raises(MissingPartError, match="screen"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    "options",
    [
        {"spec": "paper"},
        {"level": 17},
        {"difficulty": "brutal"},
        {"magnitude": 1.2},
        {"obs": "image"},
        {"slots": 0},
        {"levels": ((0, 3),)},
        {"render_mode": "ansi"},
    ],
)
def test_what_names_no_world_is_refused_when_made(make, options):
    with pytest.raises(FieldError):
        make(**options)


def test_wrong_use_is_named(make):
    with pytest.raises(UsageError, match="difficulty"):
        make(difficulty="easy", magnitude=0.5)
    env = make()
    with pytest.raises(UsageError, match="reset first"):
        env.step(0)
    with pytest.raises(FieldError, match="options"):
        env.reset(options={"sate": None})
    env.reset(seed=0)
    *_, info = env.step(-1)
    assert info == {"error": "an action is a number of 0..4"}


def test_the_suite_is_native_and_says_so():
    suite = get("suites", "cartpole3d")
    assert suite.card.native
    assert suite.card.axes == ()
    assert suite.policies == {}
    for name in ("nothing", "random", "pd"):  # its references need no privilege
        assert get("agents", name) is not None
    with pytest.raises(UsageError, match="no oracle"):
        _ = suite.oracle
    one = suite.generate(instance())
    assert one == suite.generate(msgspec.structs.replace(instance(), seed=99))
    assert one == base("table1")
    assert BallState((0.0, 0.0, 1.0)).velocity == (0.0, 0.0, 0.0)
