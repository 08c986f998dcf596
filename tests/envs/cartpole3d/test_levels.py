"""What each level does in the engine: sign and size of forces, counts, sizes."""

import math

import msgspec
import numpy as np
import pytest

from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.bodies import POLE
from owa_bench.envs.cartpole3d.levels import level
from owa_bench.envs.cartpole3d.rules import WindDrag
from owa_bench.envs.cartpole3d.start import BallState, SceneState
from owa_bench.envs.cartpole3d.world import PRESETS, SPECS

pytestmark = pytest.mark.physics

TICK = 0.02
SIZES = tuple(PRESETS)
STILL = (BallState((2.0, 3.0, 5.0)), BallState((-3.0, 1.0, 2.0)), BallState((1.0, -3.0, 8.0)))


def accelerations(env, balls=STILL, **more):
    """Return what resting balls of 1 kg gain in a tick, in m/s2."""
    env.reset(options={"state": SceneState(cart=(0.5, -0.5), balls=balls, **more)})
    env.step(0)
    speeds = [ball.velocity for ball in env.state().balls]
    return np.array(speeds) / TICK


def directed(env, goal):
    """Return the sizes of forces on resting balls, which must all point at a goal."""
    found = accelerations(env)
    way = np.subtract(goal, [ball.position for ball in STILL])
    way /= np.linalg.norm(way, axis=1)[:, None]
    along = (found * way).sum(axis=1)
    across = np.linalg.norm(found - along[:, None] * way, axis=1)
    assert across.max() < 1e-3
    return along


MIDST = np.mean([ball.position for ball in STILL], axis=0)


@pytest.mark.parametrize(
    ("spec", "number", "goal", "sizes"),
    [
        ("released", 7, (0, 0, 0), (15, 25, 35)),
        ("table1", 7, (0, 0, 0), (15, 25, 35)),
        ("released", 13, MIDST, (-1, -3, -5)),
        ("table1", 13, MIDST, (1, 3, 5)),
        ("released", 15, (0.5, -0.5, 0.5), (10, 20, 30)),
        ("table1", 15, (0.5, -0.5, 1.25), (10, 20, 30)),
    ],
)
def test_a_pull_has_its_sign_and_size(make, spec, number, goal, sizes):
    for difficulty, size in zip(SIZES, sizes, strict=True):
        env = make(spec=spec, level=number, difficulty=difficulty)
        # the engine's drag takes 4 percent a second of what a tick gives: nothing
        assert directed(env, goal) == pytest.approx([size] * 3, rel=2e-3)


@pytest.mark.parametrize(("spec", "sign"), [("released", 1), ("table1", -1)])
def test_level_5_redraws_its_force_for_each_ball_and_tick(make, spec, sign):
    env = make(spec=spec, level=5, difficulty="hard")
    sizes = []
    for seed in range(60):
        env.reset(seed=seed)
        found = env.scene
        found.set_state(SceneState(cart=(0.0, 0.0), balls=STILL))
        env.step(0)
        gained = np.array([ball.velocity for ball in env.state().balls]) / TICK
        way = MIDST - [ball.position for ball in STILL]
        way /= np.linalg.norm(way, axis=1)[:, None]
        sizes += (gained * way).sum(axis=1).tolist()
    sizes = sign * np.array(sizes)
    assert -0.01 < sizes.min() < 0.5
    assert 5.5 < sizes.max() < 6
    assert sizes.mean() == pytest.approx(3, abs=0.35)
    assert len(set(sizes.round(6))) == len(sizes)


@pytest.mark.parametrize(
    ("spec", "difficulty", "gravity"),
    [("released", d, 9.8) for d in SIZES] + [("table1", "easy", 20), ("table1", "hard", 40)],
)
def test_level_6_lets_balls_fall(make, spec, difficulty, gravity):
    found = accelerations(make(spec=spec, level=6, difficulty=difficulty))
    assert found == pytest.approx(np.array([[0, 0, -gravity]] * 3), rel=2e-3, abs=1e-6)
    level_0 = accelerations(make(spec=spec))
    assert np.abs(level_0).max() < 1e-9


def test_gravity_by_the_engine_and_as_one_force_move_the_pole_alike(make):
    """At 9.8 balls that weigh change nothing for the pole: two ways, one motion."""
    plain, weighing = make(spec="released"), make(spec="released", level=6)
    start = SceneState(cart=(0.0, 0.0), pole=(0.02, 0.01, 0.0, 0.99975))
    for env in (plain, weighing):
        env.reset(options={"state": start})
    for action in [1, 3, 0, 4, 2] * 6:
        one, other = plain.step(action)[0], weighing.step(action)[0]
        assert np.allclose(one[:11], other[:11], atol=1e-6)


@pytest.mark.parametrize(
    ("spec", "difficulty", "mass"),
    [("released", d, 10) for d in SIZES] + [("table1", "easy", 5), ("table1", "hard", 50)],
)
def test_level_1_makes_a_push_smaller(make, spec, difficulty, mass):
    env = make(spec=spec, level=1, difficulty=difficulty)
    env.reset(options={"state": SceneState(cart=(0.0, 0.0))})
    env.step(1)
    gain = env.state().velocity[0]
    assert gain == pytest.approx(10 * TICK / (mass + 0.0078), rel=1e-3)


def test_level_2_balls_cannot_be_moved(make):
    for spec in SPECS:
        env = make(spec=spec, level=2)
        env.reset(seed=3)
        before = env.scene.places
        ball = before[0]
        env.scene.set_state(
            SceneState(
                cart=(ball[0] - 1.5, ball[1]),
                velocity=(8.0, 0.0),
                balls=(BallState((ball[0], ball[1], 0.5), fixed=True),),
            )
        )
        for _ in range(20):
            env.step(0)
        assert env.scene.places[0] == pytest.approx((ball[0], ball[1], 0.5))
        assert env.scene.cart[0] < ball[0] - 0.8


def test_level_4_balls_have_a_radius_of_one_metre(make):
    import pybullet

    env = make(spec="released", level=4)
    env.reset(seed=0)
    ball = env.scene.live[0]
    low, high = pybullet.getAABB(ball.body, -1, env.scene.client)
    assert np.subtract(high, low) == pytest.approx([2, 2, 2])
    assert pybullet.getDynamicsInfo(ball.body, -1, env.scene.client)[0] == 1


def test_level_10_balls_stay_on_their_axes_without_drag(make):
    env = make(level=10)
    for seed in range(8):
        env.reset(seed=seed)
        first = env.state().balls
        for _ in range(100):
            env.step(0)
            for start, now in zip(first, env.state().balls, strict=True):
                away = np.subtract(now.position, start.position)
                axis = (*start.rail, 0.0)
                assert np.linalg.norm(away - np.dot(away, axis) * np.array(axis)) < 1e-6
    alone = BallState((-3.0, 2.0, 1.0), (6.4, 4.8, 0.0), rail=(0.8, 0.6))
    env.reset(options={"state": SceneState(cart=(0.0, -3.0), balls=(alone,))})
    for _ in range(20):
        env.step(0)
    assert env.scene.speeds[0] == pytest.approx((6.4, 4.8, 0.0))


def test_level_10_of_the_released_kind_shows_no_speed(make):
    env = make(spec="released", level=10)
    env.reset(seed=1)
    observation = env.step(0)[0]
    slots = observation[11:].reshape(-1, 7)
    assert slots[0, 0] == 1
    assert not slots[:, 4:].any()
    assert np.abs(env.scene.speeds).max() > 1


def test_level_12_multiplies_what_ball_and_wall_give_back(make):
    """Effective restitution 1.10-1.32, 1.44-1.69, 1.82-2.10: the square of a draw."""
    bands = ((1.05, 1.15), (1.2, 1.3), (1.35, 1.45))
    for difficulty, (low, high) in zip(SIZES, bands, strict=True):
        env = make(level=12, difficulty=difficulty)
        drawn = []
        for seed in range(10):
            env.reset(seed=seed)
            drawn.append(env.state().restitution)
            ball = BallState((4.4, 3.0, 5.0), (8.0, 0.0, 0.0))
            bounce = env.state()._replace(balls=(ball,), cart=(0.0, 0.0))
            env.reset(options={"state": bounce})
            speeds = [env.scene.speeds[0][0]]
            while speeds[-1] > 0:
                env.step(0)
                speeds.append(env.scene.speeds[0][0])
            ratio = -speeds[-1] / speeds[-2]
            # what overlaps the wall at the hit is pushed out on top
            assert 0.99 < ratio / drawn[-1] ** 2 < 1.08
        assert low <= min(drawn) < max(drawn) <= high


@pytest.mark.parametrize(
    ("difficulty", "cart", "most", "ball"),
    [("easy", 3.2, 7.4, 221), ("medium", 4.0, 9.4, 280), ("hard", 5.0, 11.6, 345)],
)
def test_level_14_of_the_released_kind_has_the_measured_forces(make, difficulty, cart, most, ball):
    env = make(spec="released", level=14, difficulty=difficulty)
    on_cart, on_balls, moved = [], [], []
    for seed in range(150):
        env.reset(seed=seed)
        heading = env._wind
        assert math.hypot(*heading) == pytest.approx(1)
        gale = WindDrag(env.world, env.world.wind, heading)
        force = gale.on_cart((0.0, 0.0, 0.0))
        assert force[1:] == (0, 0)
        assert gale.on_pole((0, 0, 0), 0.8) == (0, 0, 0)
        on_cart.append(abs(force[0]))
        for _ in range(30):
            env.step(0)
            scene = env.scene
            forces = gale.on_balls(scene.lows, scene.before, scene.rate)
            assert np.max(forces) <= 0
            on_balls += np.linalg.norm(forces, axis=1).tolist()
        moved.append(np.mean(env.scene.places, axis=0)[:2])
    assert np.mean(on_cart) == pytest.approx(cart, abs=0.3)
    assert np.max(on_cart) == pytest.approx(most, abs=0.1)
    assert np.mean(on_balls) == pytest.approx(ball, rel=0.05)
    assert np.mean(moved) < -3


def test_level_14_of_table1_pushes_with_the_wind(make):
    env = make(level=14, difficulty="hard")
    heading = (0.6, -0.8)
    env.reset(options={"state": SceneState(cart=(0.0, 0.0), balls=STILL, wind=heading)})
    env.step(0)
    state = env.state()
    for velocity in (state.velocity, *(ball.velocity for ball in state.balls)):
        assert velocity[0] / 0.6 == pytest.approx(velocity[1] / -0.8, rel=0.02)
        assert velocity[0] > 0
    centre = state.balls[0].velocity
    share = rules.wind_share(STILL[0].position[2])
    drag = 0.5 * 1.225 * 0.5 * math.pi * 0.25 * (3 * share) ** 2
    assert math.hypot(*centre[:2]) / TICK == pytest.approx(drag, rel=0.01)
    shown = rules.point_on_pole(env.scene.pole, (0.0, 0.0), 0.0, 1.0)
    assert shown[0] > 0 > shown[1]


def test_the_wind_has_its_profile():
    points = [(0.05, 0.29), (0.1, 0.41), (0.15, 0.47), (0.5, 0.64), (1, 0.74)]
    for height, share in [*points, (2.5, 0.9), (5, 1)]:
        assert rules.wind_share(height) == pytest.approx(share)
        assert rules.wind_share(10 - height) == pytest.approx(share)
    assert rules.wind_share(0) == rules.wind_share(10.4) == 0


@pytest.mark.parametrize(("difficulty", "counts"), [("easy", 67), ("medium", 100), ("hard", 200)])
def test_level_16_adds_balls_at_its_rate(make, difficulty, counts):
    env = make(level=16, difficulty=difficulty)
    env.reset(seed=1, options={"state": SceneState(cart=(0.0, 0.0))})
    for _ in range(60):
        env.step(0)
    assert len(env.scene.live) == 60 * counts // 200
    speeds = np.abs([ball.velocity for ball in env.state().balls[-12:]])
    as_thrown = ((speeds > 2.5) & (speeds < 5.01)).all(axis=1)
    assert as_thrown.sum() >= 4  # the others have been hit since


def test_the_hidden_tick_counts_for_what_comes(make):
    env = make(level=16, difficulty="easy")
    env.reset(seed=1)
    counts = [len(env.scene.live)]
    for _ in range(5):
        env.step(0)
        counts.append(len(env.scene.live))
    assert np.diff(counts).tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(("difficulty", "every"), [("easy", 50), ("hard", 7)])
@pytest.mark.parametrize("spec", SPECS)
def test_level_8_adds_resting_balls_ahead_of_the_cart(make, spec, difficulty, every):
    env = make(spec=spec, level=8, difficulty=difficulty)
    found = []
    for seed in range(12):
        env.reset(seed=seed)
        count = len(env.scene.live)
        began = env.scene.cart
        for step in range(1, every + 1):
            before = env.scene.cart
            env.step(1)
            if step + 1 < every:
                assert len(env.scene.live) == count
        for ball in env.scene.live[count:]:
            at = env.state().balls[env.scene.live.index(ball)]
            found.append(at)
            assert at.position[2] == pytest.approx(1)
            assert max(map(abs, at.position[:2])) <= 4.5
            if spec == "table1":
                assert at.position[0] > before[0]
            else:
                assert math.dist(at.position[:2], began[:2]) >= 0.74
    assert found
    if spec == "table1":
        hit = [any(ball.velocity) for ball in found]  # by another in its first tick
        assert sum(hit) <= 1 < len(hit)


def test_released_level_8_waits_for_a_cart_that_never_moved(make):
    env = make(spec="released", level=8, difficulty="hard")
    env.reset(options={"state": SceneState(cart=(0.0, 0.0))})
    for _ in range(20):
        env.step(0)
    assert env.scene.live == []


def test_level_9_poles_reach_their_height(make):
    import pybullet

    for spec in SPECS:
        for difficulty, length in zip(SIZES, (3, 5, 8), strict=True):
            env = make(spec=spec, level=9, difficulty=difficulty)
            env.reset(options={"state": SceneState(cart=(0.0, 0.0))})
            low, high = pybullet.getAABB(env.scene._body, POLE, env.scene.client)
            assert (low[2], high[2]) == pytest.approx((0.25, length + 0.25), abs=2.1e-3)
            centre = 1 if spec == "released" else length
            assert env.scene.centre[2] == pytest.approx(0.2 + centre)


def test_worlds_of_other_cart_masses_need_no_new_bodies(scene):
    one = scene(level("table1", 0))
    body = one._body
    assert not one.enter(level("table1", 1))
    assert not one.enter(level("table1", 16))
    assert one.enter(level("table1", 9))
    heavier = msgspec.structs.replace(level("table1", 9), gravity=12.0)
    assert not one.enter(heavier)
    assert body == one._body
