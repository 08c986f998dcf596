"""The compiled simulator of reaching: it moves as the engine does, and shows what the env shows."""

import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.env import RobotEnv
from owa_bench.envs.robosim2real.kinematic import SEEN, ReachLanes, ToolView
from owa_bench.errors import FieldError
from owa_bench.seeding import stream


def toward(view, gain):
    """Return the command of a policy of one gain, for one view or many."""
    full = arm.SPEED / arm.HERTZ
    return np.clip(view[..., 6:9] / 10.0 / full * gain, -1.0, 1.0)


def test_the_tool_moves_as_the_engines():
    env = ToolView(RobotEnv())
    view, _ = env.reset(seed=3)
    lanes = ReachLanes(1, randomised=0.0)
    lanes.reset(seed=3)
    lanes._state[0, :9] = np.tile(view[:3], 3)
    lanes._ring[0] = view[:3]
    lanes._numbers[0, 11] = 1e6  # ticks of its limit
    rng, gaps = stream(0, "moves"), []
    for _ in range(8):
        action = 2.0 * rng.random(3) - 1.0
        for _ in range(10):
            view, *_ = env.step(action)
            lanes.step(action[None])
            gaps.append(np.linalg.norm(lanes._state[0, 6:9] - view[:3]))
    assert np.mean(gaps) < 0.002
    assert np.max(gaps) < 0.004


@pytest.mark.parametrize("randomised", [0.0, 1.0])
def test_what_reaches_in_the_engine_reaches_here(randomised):
    """A gain for no dead time; under dead time it swings, and a lower one does not."""
    shares = {}
    for gain in (0.6, 0.09):
        lanes = ReachLanes(64, randomised=randomised)
        view, _ = lanes.reset(seed=1)
        done = late = 0
        for _ in range(400):
            view, _, won, lost, _ = lanes.step(toward(view, gain))
            done, late = done + won.sum(), late + lost.sum()
        shares[gain] = done / (done + late)
    if randomised:
        assert shares[0.6] < 0.3
        assert shares[0.09] > shares[0.6] + 0.4
    else:
        assert shares[0.6] > 0.95


def test_lanes_do_not_know_of_each_other():
    """A lane's episode is the same beside others that move otherwise."""
    one, other = ReachLanes(4), ReachLanes(4)
    one.reset(seed=5)
    other.reset(seed=5)
    rng = stream(0, "others")
    for _ in range(60):
        actions = 2.0 * rng.random((4, 3)) - 1.0
        first = one.step(actions)[0][2]
        actions[[0, 1, 3]] *= -1.0
        assert first.tobytes() == other.step(actions)[0][2].tobytes()


def test_an_episode_that_ends_shows_its_last_view_and_begins_anew():
    lanes = ReachLanes(8, randomised=0.0)
    view, _ = lanes.reset(seed=2)
    for _ in range(300):
        before = view
        view, reward, done, late, info = lanes.step(toward(view, 0.4))
        over = done | late
        if over.any():
            break
    lane = int(np.flatnonzero(over)[0])
    assert info["_final_obs"][lane]
    assert info["final_obs"][lane, 3:6] == pytest.approx(before[lane, 3:6])
    assert view[lane, 3:6] != pytest.approx(before[lane, 3:6])
    assert not view[lane, 9:].any()
    assert reward[lane] > 5.0
    assert lanes.observation_space.contains(view)


def test_the_same_seed_gives_the_same_lanes():
    first, again = (ReachLanes(16).reset(seed=9)[0] for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert ReachLanes(16).reset(seed=10)[0].tobytes() != first.tobytes()


def test_more_episodes_than_are_drawn_at_once():
    lanes = ReachLanes(600)
    lanes.reset(seed=1)
    lanes.reset()
    lanes.reset()
    assert lanes._block == 1


@pytest.mark.parametrize("side", ["sim", "surrogate"])
def test_the_view_is_an_env_of_its_own(side):
    env = ToolView(RobotEnv(side=side, unit=None if side == "sim" else 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is a wrapper
        check_env(env, skip_render_check=True)
    assert env.observation_space.shape == (SEEN,)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"num_envs": 0}, "`num_envs`"), ({"num_envs": 2, "randomised": 2.0}, "`randomised`")],
)
def test_a_wrong_option_is_named(options, said):
    with pytest.raises(FieldError, match=said):
        ReachLanes(**options)
