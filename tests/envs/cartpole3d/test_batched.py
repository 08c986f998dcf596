"""The batched backend against PyBullet, against itself, and against mechanics."""

import itertools
import math
import pickle  # noqa: TID251  (what vector envs of other packages send between processes)

import cartpole3d_parity as parity
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.start import BallState, SceneState, draw_start
from owa_bench.errors import FieldError, UsageError
from owa_bench.seeding import stream
from tests.builders.slices import by_commit

pytest.importorskip("numba")

from owa_bench.envs.cartpole3d.batched import numbers, planner
from owa_bench.envs.cartpole3d.batched import simulator as batched
from owa_bench.envs.cartpole3d.batched.simulator import Simulator
from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D

pytestmark = pytest.mark.part(2)

EASY = 1 / 3
SPEEDS = [2, 3, 8, 9, 10]  # of a core observation: cart's and pole's velocities


def world(level=0, spec="table1", magnitude=EASY):
    return levels.level(spec, level, magnitude if level else 1.0)


def simulator(states, level=0, spec="table1"):
    """Return exact states on the batched backend."""
    found = Simulator(world(level, spec), len(states), seed=1, starts=2)
    found.set_states(states)
    return found


def simulated(states, actions, **of):
    """Return the cores after each tick, (ticks, lanes, 11)."""
    lanes = simulator(states, **of)
    seen = []
    for column in np.asarray(actions).T:
        lanes.step(column)
        seen.append(exact(lanes))
    return np.stack(seen)


def exact(lanes, slots=0):
    """Return the observations (lanes, n) in double precision."""
    return lanes.observe(out=np.empty((lanes.count, 11 + 7 * slots)))


def on_bullet(env, state, actions):
    """Return the cores after each tick in PyBullet, as float32 shows them."""
    env.reset(seed=0, options={"state": state})
    return np.stack([env.step(int(action))[0][:11] for action in actions])


def thrown(count, level=0, spec="table1"):
    return [draw_start(world(level, spec), stream(7, i)) for i in range(count)]


def test_the_first_compilation_is_said(tmp_path, monkeypatch, caplog):
    simulated(thrown(1), [[0]])
    caplog.clear()
    batched._announce_compilation.__wrapped__()
    assert "compiled" not in caplog.text
    newer = tmp_path / "kernels.py"
    newer.touch()
    monkeypatch.setattr(batched.kernels, "__file__", str(newer))
    batched._announce_compilation.__wrapped__()
    assert "is compiled: once" in caplog.text


# --- against PyBullet -----------------------------------------------------------------


@pytest.mark.physics
def test_free_motion_is_that_of_the_engine(make):
    env = make(obs="core")
    states = [state._replace(balls=()) for state in thrown(8)]
    actions = stream(3, "actions").integers(0, 5, (8, 40))
    ours = simulated(states, actions)
    for i, state in enumerate(states):
        bullet = on_bullet(env, state, actions[i])
        np.testing.assert_allclose(ours[:, i], bullet, atol=2e-6)


@pytest.mark.physics
@pytest.mark.parametrize("spec", ["table1", "released"])
@pytest.mark.parametrize("level", [n for n in levels.LEVELS if n != 5])
def test_every_level_starts_as_in_the_engine(make, level, spec):
    """The first five ticks of balls that touch nothing but walls (5 draws sizes)."""
    env = make(spec=spec, level=level, magnitude=EASY)
    (state,) = thrown(1, level, spec)
    env.reset(seed=0, options={"state": state})
    lanes = simulator([state], level, spec)
    for tick in range(5):
        seen = env.step(tick % 5)[0]
        lanes.step(np.array([tick % 5]))
        shown = exact(lanes, 4)[0]
        count = 7 * len(state.balls)
        places = np.arange(count) % 7 < 4
        np.testing.assert_allclose(shown[:11], seen[:11], atol=2e-5)
        ours, theirs = shown[11 : 11 + count], seen[11 : 11 + count]
        if level == 10:  # of rails hold the joint: boxes of links may be a tick late
            ours, theirs = rails(lanes), railed(env)
            np.testing.assert_allclose(ours, theirs, atol=2e-4)
            continue
        np.testing.assert_allclose(ours[places], theirs[places], atol=2e-4)


def rails(lanes):
    """Return the speed of each ball of lane 0 along its rail."""
    balls = lanes.balls[0][: lanes.lanes["arrived"][0]]
    return (balls["rail"] * balls["speed"]).sum(1)


def railed(env):
    """Return the same of the engine's joints."""
    balls = env.state().balls
    return [ball.velocity[0] * ball.rail[0] + ball.velocity[1] * ball.rail[1] for ball in balls]


@pytest.mark.physics
@pytest.mark.parametrize("height", [0.45, 0.7, 1.0])
def test_a_ball_that_hits_strikes_as_in_the_engine(make, height):
    """The one tick of the impact, but for the spin: the engine's bodies have facets."""
    env = make(obs="core")
    reach = 0.9 if height < 0.5 else 0.5
    ball = BallState((reach * 0.6, reach * 0.8, height), (-6.0, -8.0, 0.3))
    state = SceneState(cart=(0.0, 0.0), balls=(ball,))
    ours = simulated([state], [[0]])[0, 0]
    bullet = on_bullet(env, state, [0])[0]
    assert np.abs(bullet[SPEEDS]).max() > 0.3, "nothing was hit"
    speeds = SPEEDS[:-1]  # round bodies are not spun about their own axis
    np.testing.assert_allclose(ours[speeds], bullet[speeds], rtol=0.06, atol=0.03)


@pytest.mark.physics
def test_the_cart_stops_at_a_wall_as_in_the_engine(make):
    env = make(obs="core")
    state = SceneState(cart=(4.0, 0.0), velocity=(3.0, 0.0))
    ours = simulated([state], [[0] * 14])[:, 0]
    bullet = on_bullet(env, state, [0] * 14)
    np.testing.assert_allclose(ours, bullet, atol=5e-3)
    assert -0.2 < ours[-1, 2] < 0.0  # pushed out, never thrown back


def rule(name, observation, rng):
    """Return the action of a control rule on one observation."""
    if name == "nothing":
        return 0
    if name == "random":
        return int(rng.integers(5))
    x, y, vx, vy, qx, qy, qz, qw, wx, wy, _ = observation[:11].tolist()
    pitch = math.asin(2 * (qw * qy - qz * qx))
    roll = math.atan2(2 * (qw * qx + qy * qz), 1 - 2 * (qx * qx + qy * qy))
    ex = pitch + 0.5 * wy + 0.02 * x + 0.05 * vx
    ey = -roll - 0.5 * wx + 0.02 * y + 0.05 * vy
    if max(abs(ex), abs(ey)) < 0.002:
        return 0
    return (1 if ex > 0 else 2) if abs(ex) >= abs(ey) else (3 if ey > 0 else 4)


def bullet_lengths(env, name, count):
    rng, found = stream(11, name), []
    for seed in range(count):
        observation, _ = env.reset(seed=seed)
        steps, over = 0, False
        while not over:
            observation, _, fallen, late, _ = env.step(rule(name, observation, rng))
            steps, over = steps + 1, fallen or late
        found.append(steps)
    return found


def compare(make, level, names, count, spec="table1", many=2000):
    """Hold the lengths of many batched episodes against `count` of PyBullet.

    Kolmogorov-Smirnov, level 0.001 for each comparison, seeds fixed: of the 51
    comparisons of a variant one in twenty runs would fail by chance with other seeds.
    """
    from scipy import stats

    env = make(spec=spec, level=level, magnitude=EASY, obs="core")
    lanes = Simulator(world(level, spec), many, seed=5, starts=many)
    for name in names:
        ours = batched.episode_lengths(lanes, batched.CONTROLS[name])
        found = stats.ks_2samp(ours, bullet_lengths(env, name, count))
        assert found.pvalue > 0.001, (level, name, found)


@pytest.mark.physics
@pytest.mark.parametrize("level", [0, 4])
def test_episodes_last_as_long_as_in_the_engine(make, level):
    compare(make, level, ["nothing", "pd"], 40, many=400)


@pytest.mark.physics
@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "spec"), by_commit([*itertools.product(levels.LEVELS, ("table1", "released"))], 3)
)
def test_episodes_of_every_level_last_as_long_as_in_the_engine(make, level, spec):
    compare(make, level, ["nothing", "random", "pd"], 150, spec)


# --- against mechanics ----------------------------------------------------------------


def test_two_balls_that_meet_keep_momentum_and_energy():
    first = BallState((-0.5, 0.0, 5.0), (4.0, 0.0, 0.0))
    second = BallState((0.5, 0.0, 5.0), (-2.0, 1.0, 0.0))
    lanes = simulator([SceneState(cart=(3.0, 3.0), balls=(first, second))])
    lanes.step(np.array([0]))
    after = lanes.balls["speed"][0, :2].T

    def dragged(velocity):
        v = np.asarray(velocity)
        return v * (1 - 0.02 * (0.04 + 0.04 * np.linalg.norm(v)))

    before = np.stack((dragged(first.velocity), dragged(second.velocity)), 1)
    np.testing.assert_allclose(after.sum(1), before.sum(1), atol=1e-12)
    assert (after**2).sum() == pytest.approx((before**2).sum(), rel=2e-4)
    np.testing.assert_allclose(after[0], before[0][::-1], atol=1e-3)


def test_a_pole_without_pushes_keeps_energy_but_for_drag():
    """Semi-implicit Euler swings about the true energy; drag only takes."""
    half = math.radians(20.0) / 2
    state = SceneState(cart=(0.0, 0.0), pole=(math.sin(half), 0.0, 0.0, math.cos(half)))
    lanes = simulator([state])
    body = world()
    energies = []
    for _ in range(300):
        lanes.step(np.array([0]))
        energies.append(energy(body, exact(lanes)[0]))
    assert max(energies) < energies[0] + 0.02
    assert energies[-1] < energies[0]


def energy(body, core):
    """Return kinetic plus potential energy of cart and pole."""
    vx, vy = core[2:4]
    x, y, z, w = core[4:8]
    d = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    spin = core[8:11]
    tip = np.array([vx, vy, 0.0]) + np.cross(spin, body.pole.centre * d)
    along = spin @ d
    across = spin - along * d
    turning = body.pole.inertia[0] * across @ across + body.pole.inertia[1] * along**2
    moving = body.cart.mass * (vx * vx + vy * vy) + body.pole.mass * tip @ tip
    return 0.5 * (moving + turning) + body.pole.mass * 9.8 * body.pole.centre * d[2]


# --- lanes ----------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 5, 8, 16])
def test_a_lane_does_not_depend_on_the_others_or_the_threads(level, monkeypatch):
    """Lane 0 alone, among eleven, and shared out: bit by bit, over ends of episodes."""
    monkeypatch.setattr(batched, "LANES_A_THREAD", 4)
    seen = []
    for count, threads in ((1, 1), (12, 1), (12, 3)):
        lanes = Simulator(world(level), count, seed=9, starts=16, threads=threads)
        rows = []
        for _ in range(60):
            fallen, late = lanes.step(batched.random(lanes))
            lanes.restart(fallen | late)
            rows.append(exact(lanes, 4)[0])
        assert lanes.episodes[0] > 1
        seen.append(np.stack(rows))
    assert np.array_equal(seen[0], seen[1])
    assert np.array_equal(seen[1], seen[2])


def test_a_thread_is_not_woken_for_few_lanes():
    def shares(count, threads):
        lanes = Simulator(world(), count, seed=1, starts=2, threads=threads)
        return [share.stop - share.start for share in lanes._shares]

    assert shares(64, 8) == [64]
    assert shares(2 * batched.LANES_A_THREAD, 8) == [batched.LANES_A_THREAD] * 2
    assert shares(2 * batched.LANES_A_THREAD, 1) == [2 * batched.LANES_A_THREAD]


def test_seeds_make_other_episodes():
    first, second, again = (exact(Simulator(world(), 4, seed=s, starts=64)) for s in (1, 2, 1))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, again)


def test_a_restart_leaves_other_lanes_alone():
    lanes = Simulator(world(), 6, seed=2, starts=64)
    for _ in range(7):
        lanes.step(batched.random(lanes))
    before = exact(lanes, 4)
    mask = np.array([True, False, True, False, False, False])
    lanes.restart(mask)
    after = exact(lanes, 4)
    assert np.array_equal(after[~mask], before[~mask])
    assert (after[mask] != before[mask]).any()
    assert lanes.lanes["ticks"].tolist() == [0, 7, 0, 7, 7, 7]


def test_numbers_are_uniform_and_independent():
    seeds = np.arange(20_000, dtype=np.uint64)
    u = np.array([[numbers.uniform(s, k) for s in seeds] for k in range(6)])
    assert float(u.mean()) == pytest.approx(0.5, abs=0.005)
    assert float(u.var()) == pytest.approx(1 / 12, abs=0.002)
    assert np.abs(np.triu(np.corrcoef(u), 1)).max() < 0.03


def test_more_balls_than_slots_are_shown_by_distance():
    lanes = Simulator(world(16), 3, seed=1, starts=8)
    for _ in range(30):
        lanes.step(batched.nothing(lanes))
    assert lanes.lanes["arrived"].min() > 8
    shown = exact(lanes, 4)
    for lane, balls, row in zip(lanes.lanes, lanes.balls, shown, strict=True):
        x, y, z, w = lane["pole"]
        d = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        centre = [*lane["cart"], lanes.world.cart.joint] + lanes.world.pole.centre * d
        there = balls["place"][: lane["arrived"]]
        gaps = ((there - centre) ** 2).sum(1)
        nearest = there[np.argsort(gaps, kind="stable")[:4]]
        assert np.array_equal(row[11:].reshape(4, 7)[:, 1:4], nearest)


@pytest.mark.parametrize("actions", [[0], [0, 5], [0, -1], [[0, 0]]])
def test_actions_that_are_none_are_refused(actions):
    lanes = Simulator(world(), 2, seed=1, starts=2)
    with pytest.raises(FieldError, match="must be"):
        lanes.step(np.array(actions))


# --- faces ----------------------------------------------------------------------------


def test_the_vector_env_keeps_its_word():
    from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D

    env = BatchedCartPole3D(32, level=4, obs="full", starts=64)
    seen, _ = env.reset(seed=3)
    assert env.observation_space.contains(seen)
    ended, length = 0, 0.0
    for _ in range(80):
        seen, reward, fallen, late, info = env.step(np.zeros(32, dtype=np.int64))
        assert env.observation_space.contains(seen)
        assert np.all(reward == 1 / 200)
        over = fallen | late
        if over.any():
            assert np.array_equal(info["_final_obs"], over)
            assert not np.array_equal(info["final_obs"][over], seen[over])
        ended, length = ended + over.sum(), length + 32
    assert 30 < length / ended < 70


@pytest.mark.physics
def test_its_spaces_are_those_of_the_single_env(make):
    from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D

    for obs in ("full", "core"):
        many, one = BatchedCartPole3D(2, obs=obs, starts=2), make(obs=obs)
        assert many.single_observation_space == one.observation_space
        assert many.single_action_space == one.action_space


@pytest.mark.rl
def test_stable_baselines_learns_on_it():
    stable = pytest.importorskip("stable_baselines3")
    from owa_bench.envs.cartpole3d.batched.vector_env import vec_env

    env = vec_env(16, obs="core", starts=64)
    model = stable.PPO("MlpPolicy", env, n_steps=32, batch_size=128, seed=0)
    model.learn(1024)
    assert len(model.ep_info_buffer) > 10
    assert all(5 < episode["l"] <= 200 for episode in model.ep_info_buffer)


def fast(**options):
    return gymnasium.make("owa_bench/CartPole3DFast-v2", **options)


@pytest.mark.parametrize("obs", ["core", "full"])
def test_the_quick_env_passes_gymnasiums_checker(obs):
    check_env(fast(obs=obs, level=4).unwrapped, skip_render_check=True)


@pytest.mark.physics
def test_the_quick_env_starts_where_the_engine_does(make):
    quick, engine = fast(level=9, difficulty="easy"), make(level=9, magnitude=EASY)
    for seed in range(5):
        ours, theirs = quick.reset(seed=seed)[0], engine.reset(seed=seed)[0]
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    for action in (1, 3, 0, 2):
        ours, *flags, _ = quick.step(action)
        theirs, *expected, _ = engine.step(action)
        np.testing.assert_allclose(ours, theirs, atol=1e-3)
        assert flags == expected


def test_the_quick_env_names_what_is_wrong():
    env = fast()
    with pytest.raises(UsageError, match="reset first"):
        env.unwrapped.step(0)
    env.reset(seed=1)
    assert env.unwrapped.step(5)[-1] == {"error": "an action is a number of 0..4"}
    with pytest.raises(FieldError, match="options"):
        env.reset(options={"instance": 1})
    with pytest.raises(UsageError, match="difficulty"):
        fast(difficulty="easy", magnitude=0.5)


def test_the_quick_env_goes_on_where_its_pickle_does():
    env = fast(level=9, difficulty="easy").unwrapped
    env.reset(seed=3)
    env.step(1)
    other = pickle.loads(pickle.dumps(env))
    for action in (0, 4, 2):
        np.testing.assert_array_equal(env.step(action)[0], other.step(action)[0])
    np.testing.assert_array_equal(env.reset(seed=4)[0], other.reset(seed=4)[0])


@pytest.mark.filterwarnings("ignore:.*render")
def test_a_render_mode_is_refused_as_an_unknown_parameter_is():
    with pytest.raises(TypeError, match="`render_mode` must be None: nothing draws"):
        fast(render_mode="rgb_array")


@pytest.mark.filterwarnings("ignore:.*render")
@pytest.mark.rl
def test_stable_baselines_makes_its_own_lanes():
    """It asks for pictures first; the quick env has none."""
    from stable_baselines3.common.env_checker import check_env as check_for_sb3
    from stable_baselines3.common.env_util import make_vec_env

    lanes = make_vec_env("owa_bench/CartPole3DFast-v2", 3, env_kwargs={"obs": "core"})
    assert lanes.reset().shape == (3, 11)
    lanes.close()
    check_for_sb3(fast().unwrapped)


def test_many_lanes_by_gymnasiums_own_call():
    many = gymnasium.make_vec(
        "owa_bench/CartPole3DFast-v2",
        num_envs=8,
        vectorization_mode="vector_entry_point",
        obs="core",
        starts=8,
    )
    assert many.reset(seed=1)[0].shape == (8, 11)


def test_recorded_episodes_of_the_generator_end_on_the_same_tick():
    """By `benchmarks/cartpole3d_parity.py`, of 36, touches included."""
    found = parity.deviations(parity.GOLDEN, parity.on_compiled).values()
    assert sum(one.ended == one.recorded for one in found) >= 34
    assert sum(one.largest <= parity.CLOSE for one in found) >= 28


def test_levels_share_the_lanes_of_one_vector_env():
    made = BatchedCartPole3D(14, level="0,9", starts=4)
    assert [one.world.pole.length for one in made.simulators] == [1.0, 3.0, 5.0, 8.0]
    assert sum(one.count for one in made.simulators) == 14
    rows, _ = made.reset(seed=3)
    for _ in range(80):
        rows, _, _, _, _ = made.step(np.zeros(14, np.int64))
    assert np.isfinite(rows).all()
    with pytest.raises(FieldError, match="must be 0 to 16, `all`"):
        BatchedCartPole3D(4, level="0,17")


def test_a_trial_begins_at_level_0_and_changes_for_good():
    made = BatchedCartPole3D(32, level=9, trial=4, starts=64)
    levels_seen, count = [[] for _ in range(32)], np.zeros(32, int)
    for _ in range(500):
        plain = made._episode < made.plain
        _, _, fallen, late, _ = made.step(np.zeros(32, np.int64))
        for i in np.flatnonzero(fallen | late):
            levels_seen[i].append(bool(plain[i]))
            count[i] += 1
    for seen, ended in zip(levels_seen, count, strict=True):
        for start in range(0, ended - 3, 4):
            trial = seen[start : start + 4]
            assert 1 <= sum(trial) <= 2
            assert trial == sorted(trial, reverse=True)  # plain ones first


@pytest.mark.parametrize("level", [0, 4, 16])
def test_a_lane_that_is_not_restarted_gets_no_more_balls_than_it_has_room(level):
    lanes = Simulator(world(level), 8, seed=1, starts=8)
    for _ in range(2 * lanes.world.ticks):
        lanes.step(batched.pd(lanes))
    assert lanes.lanes["ticks"].min() == 2 * lanes.world.ticks
    assert lanes.lanes["arrived"].max() <= lanes.slots
    assert np.isfinite(lanes.observe(slots=8)).all()


def test_the_planner_sees_balls_come_and_leaves_its_lanes_alone():
    lanes = Simulator(world(), 64, seed=2, starts=64)
    before = lanes.lanes.copy(), lanes.balls.copy()
    planner.plan_actions(lanes)
    assert np.array_equal(before[0], lanes.lanes)
    assert np.array_equal(before[1], lanes.balls)
    rule = batched.episode_lengths(Simulator(world(), 64, seed=2), batched.pd)
    ahead = batched.episode_lengths(
        Simulator(world(), 64, seed=2), lambda lanes: planner.plan_actions(lanes).actions
    )
    assert ahead.mean() > rule.mean()
