"""Injected states give the same trajectory, bit for bit, whatever came before."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from owa_bench.envs.cartpole3d.start import BallState, SceneState
from owa_bench.envs.cartpole3d.world import SPECS

pytestmark = pytest.mark.physics

START = SceneState(
    cart=(0.3, -0.2),
    velocity=(0.1, 0.0),
    pole=(0.006, -0.004, 0.002, 0.999972),
    rates=(0.01, -0.02, 0.0),
    balls=(
        BallState((-3.0, -0.4, 0.9), (7.5, 0.3, -0.4)),
        BallState((2.5, 3.0, 4.0), (-6.5, -7.0, 8.0)),
        BallState((2.0, 3.5, 5.0), (6.5, -7.0, -8.0)),
    ),
)
CODE = """
from tests.envs.cartpole3d.test_repeat import digest
print([digest(spec, level) for spec, level in {cases}])
"""
CASES = [(spec, level) for spec in SPECS for level in (0, 5, 7, 10, 12, 14, 16)]


def trajectory(env, steps=70):
    """Return the bytes of all observations and of the last exact state."""
    # the seed names the noise stream: forces redrawn each tick, balls that come
    seen = [env.reset(seed=11, options={"state": START})[0]]
    for step in range(steps):
        seen.append(env.step((step * 7 + step // 3) % 5)[0])
    return np.stack(seen).tobytes() + repr(env.state()).encode()


def digest(spec, level):
    from owa_bench.runs.assembly import make_native_env

    env = make_native_env("cartpole3d", spec=spec, level=level)
    data = trajectory(env)
    env.close()
    return hashlib.sha256(data).hexdigest()


@pytest.mark.slow
def test_trajectories_are_equal_in_two_processes():
    runs = [
        subprocess.run(
            [sys.executable, "-c", CODE.format(cases=CASES)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert runs[0].count("'") == 2 * len(CASES)
    assert digest(*CASES[0]) in runs[0]


def test_what_was_played_before_changes_no_bit(make):
    fresh = trajectory(make())
    env = make()
    for seed in range(40):
        env.reset(seed=seed)
        for _ in range(seed):
            env.step(seed % 5)
    assert trajectory(env) == fresh
    assert trajectory(env) == fresh


def test_levels_played_before_change_no_bit(make):
    fresh = trajectory(make(levels=((1, 0),)))
    env = make(levels=((1, 16), (1, 10), (1, 9), (1, 2), (1, 0)))
    for seed in range(4):
        env.reset(seed=seed)
        for _ in range(40):
            env.step(1)
    assert trajectory(env) == fresh


def test_a_state_taken_on_the_way_goes_on_as_it_would_have(make):
    """A contact leaves a memory in the engine: while there is none, this is exact."""
    env = make()
    env.reset(options={"state": START._replace(balls=START.balls[1:])})
    for _ in range(10):
        env.step(2)
    state = env.state()
    onward = [env.step(3)[0] for _ in range(8)]
    env.reset(options={"state": state})
    again = [env.step(3)[0] for _ in range(8)]
    assert np.array_equal(onward, again)
