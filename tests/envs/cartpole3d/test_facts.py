"""What the engine does at level 0, against the numbers of the facts page, section 1."""

import math

import msgspec
import numpy as np
import pytest

from owa_bench.envs.cartpole3d.bodies import CART, POLE
from owa_bench.envs.cartpole3d.levels import level
from owa_bench.envs.cartpole3d.start import BallState, SceneState
from owa_bench.envs.cartpole3d.world import SPECS, Arena, base

pytestmark = pytest.mark.physics

TICK = 0.02
MARGIN = 2.1e-3  # m, of the engine around a body of corners
MIDDLE = SceneState(cart=(0.0, 0.0))


def tilts(pole):
    """Return roll and pitch of quaternions, in degrees."""
    x, y, z, w = np.moveaxis(np.asarray(pole, dtype=float), -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(2 * (w * y - z * x))
    return np.degrees([roll, pitch])


def tilted(angle, cart=(0.0, 0.0)):
    """Return a still state with a roll of `angle` radians."""
    half = angle / 2
    return SceneState(cart=cart, pole=(math.sin(half), 0.0, 0.0, math.cos(half)))


def episode(env, seed, policy=lambda step: 0):
    seen = [env.reset(seed=seed)[0]]
    done = False
    while not done:
        observation, _, terminated, truncated, _ = env.step(policy(len(seen)))
        seen.append(observation)
        done = terminated or truncated
    return np.stack(seen).astype(float), terminated


@pytest.mark.parametrize(
    ("action", "column", "sign"), [(1, 2, 1), (2, 2, -1), (3, 3, 1), (4, 3, -1)]
)
def test_a_push_changes_the_speed_by_0_19845(make, action, column, sign):
    env = make()
    env.reset(options={"state": MIDDLE})
    observation = env.step(action)[0]
    assert observation[column] == pytest.approx(sign * 0.19845, abs=5e-6)
    assert observation[5 - column] == pytest.approx(0, abs=1e-6)


def test_nothing_pushes_nothing(make):
    env = make()
    env.reset(options={"state": MIDDLE})
    assert env.step(0)[0][2:4].tolist() == [0, 0]


def test_released_poses_lag_one_tick_and_table1_poses_do_not(make):
    for spec, late in (("released", True), ("table1", False)):
        seen, _ = episode(make(spec=spec), 3, lambda step: 1 + step % 4)
        moved = np.diff(seen[:, :2], axis=0) / TICK
        speeds = seen[:-1, 2:4] if late else seen[1:, 2:4]
        wrong = seen[1:, 2:4] if late else seen[:-1, 2:4]
        assert np.abs(moved - speeds).max() < 2e-5
        assert np.abs(moved - wrong).max() > 0.1


def test_the_lag_makes_an_episode_one_step_longer(make):
    lagged, clean = make(spec="released"), make(spec="table1")
    for seed in range(25):
        late, _ = episode(lagged, seed, lambda step: step * 7 % 5)
        prompt, _ = episode(clean, seed, lambda step: step * 7 % 5)
        assert len(late) == len(prompt) + 1
        if lagged.state().yaw[0] == 0.0:  # no hit has turned the cart
            assert np.allclose(late[1:, :2], prompt[:, :2], atol=1e-6)


@pytest.mark.parametrize("spec", SPECS)
def test_an_episode_ends_beyond_ten_degrees_and_not_before(make, spec):
    env = make(spec=spec)
    running, ended = [], []
    for seed in range(40):
        seen, terminated = episode(env, seed)
        worst = np.abs(tilts(seen[:, 4:8])).max(axis=0)
        assert terminated
        running.append(worst[:-1].max())
        ended.append(worst[-1])
    assert 9.5 < max(running) <= 10
    assert 10 < min(ended) < 10.6


def test_position_ends_no_episode(make):
    env = make()
    env.reset(options={"state": SceneState(cart=(4.3, 0.0), velocity=(3.0, 0.0))})
    assert not env.step(1)[2]


def test_a_hidden_tick_passes_before_the_first_observation(make):
    env = make()
    for seed in range(20):
        first = env.reset(seed=seed)[0]
        assert 0 < np.abs(first[2:4]).max() <= 0.02
        assert env.reset(options={"state": MIDDLE})[0][:4].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("length", "rate"), [(1.0, 3.01), (3.0, 2.36), (5.0, 1.78), (8.0, 1.24)])
def test_a_small_tilt_grows_at_its_rate(scene, length, rate):
    """On a cart too heavy to yield the tilt is cosh(rate t)."""
    world = base("released")
    world = msgspec.structs.replace(
        world,
        lag=False,
        cart=msgspec.structs.replace(world.cart, mass=1e6),
        pole=msgspec.structs.replace(world.pole, length=length),
    )
    one = scene(world)
    one.set_state(tilted(1e-4))
    angles = []
    for _ in range(100):
        one.tick((0.0, 0.0, 0.0))
        angles.append(2 * one.pole[0])
    growth = math.acosh(angles[-1] / 1e-4) / (100 * TICK)
    assert growth == pytest.approx(rate, rel=0.02)


def test_drag_slows_a_ball_as_measured(scene):
    """8 m/s is 5.84 after a second, 4.56 after two, 3.11 after four."""
    world = msgspec.structs.replace(
        base("table1"), arena=Arena(half=60.0, floor=-60.0, ceiling=60.0)
    )
    one = scene(world)
    ball = BallState((-20.0, 10.0, 5.0), (8.0, 0.0, 0.0))
    one.set_state(SceneState(cart=(0.0, 0.0), balls=(ball,)))
    speeds = []
    for _ in range(200):
        one.tick((0.0, 0.0, 0.0))
        speeds.append(one.speeds[0][0])
    assert [round(speeds[i - 1], 2) for i in (50, 100, 200)] == [5.84, 4.56, 3.11]
    a, b = world.damping
    now = speeds[100]
    fall = (speeds[101] - now) / TICK
    assert fall == pytest.approx(-(a + b * now) * now, rel=0.005)


def test_walls_are_elastic_and_cart_and_pole_are_not(scene):
    one = scene(base("table1"))
    at_wall = BallState((4.0, 3.0, 5.0), (8.0, 0.0, 0.0))
    one.set_state(SceneState(cart=(0.0, 0.0), balls=(at_wall,)))
    for _ in range(10):
        one.tick((0.0, 0.0, 0.0))
    assert one.speeds[0][0] == pytest.approx(-8 + 10 * TICK * 0.36 * 7.5, abs=0.15)
    at_cart = BallState((-1.2, 0.0, 0.2), (8.0, 0.0, 0.0))
    one.set_state(SceneState(cart=(0.0, 0.0), balls=(at_cart,)))
    for _ in range(10):
        one.tick((0.0, 0.0, 0.0))
    # an elastic hit would part them at 8 m/s: here only overlap is pushed apart
    assert 0 <= one.velocity[0] - one.speeds[0][0] < 0.6
    assert 3.4 < one.velocity[0] < 4.2


def test_the_cart_stops_at_the_wall(scene):
    one = scene(base("table1"))
    one.set_state(SceneState(cart=(4.0, 0.0)))
    for _ in range(300):
        one.tick((10.0, 0.0, 0.0))
    assert one.cart[0] == pytest.approx(4.45, abs=0.003)


def test_ball_speeds_are_differences_of_places(make):
    env = make(level=0)
    worst = 0.0
    for seed in range(10):
        env.reset(seed=seed)
        for _ in range(80):
            env.step(0)
            told = [ball.velocity for ball in env.state().balls]
            worst = max(worst, np.abs(np.subtract(env.scene.speeds, told)).max())
    assert worst < 1e-6


def test_balls_are_as_fast_as_measured(make):
    """Mean speed at ticks 1, 25, 50, 100: 13.8, 10.7, 8.7, 6.2 m/s."""
    env = make()
    means = {1: [], 25: [], 50: [], 100: []}
    for seed in range(120):
        env.reset(seed=seed)
        for tick in range(1, 101):
            env.step(0)
            if tick in means:
                means[tick] += np.linalg.norm(env.scene.speeds, axis=1).tolist()
    found = [np.mean(speeds) for speeds in means.values()]
    assert found == pytest.approx([13.8, 10.7, 8.7, 6.2], abs=0.25)


def test_bodies_have_their_masses_and_sizes(scene):
    import pybullet

    one = scene(level("released", 1))
    body, client = one._body, one.client
    assert pybullet.getDynamicsInfo(body, CART, client)[0] == 10
    assert pybullet.getDynamicsInfo(body, POLE, client)[0] == 0.1
    across, axial = base("table1").pole.inertia
    moments = pybullet.getDynamicsInfo(body, POLE, client)[2]
    assert moments == (across, across, axial)
    low, high = pybullet.getAABB(body, CART, client)
    assert (*low, *high) == pytest.approx((-0.5, -0.5, 0.1, 0.5, 0.5, 0.3), abs=MARGIN)
    low, high = pybullet.getAABB(body, POLE, client)
    assert (low[2], high[2], high[0]) == pytest.approx((0.25, 1.25, 0.03), abs=MARGIN)
    low, high = pybullet.getAABB(one._arena, -1, client)
    assert (*low, *high) == pytest.approx((-5.05, -5.05, -0.15, 5.05, 5.05, 10.05))
