"""Features of balls: a ball that comes is told, where it comes and how soon."""

import numpy as np
import pytest

pytest.importorskip("numba")

from owa_bench.agents.solvers.balancing import features

MAP = slice(8, 33)


def seen(*balls):
    """Return an observation of an upright pole in the middle, and of balls."""
    row = np.zeros(39, np.float32)
    row[7] = 1.0
    for k, ball in enumerate(balls):
        row[11 + 7 * k : 18 + 7 * k] = (1.0, *ball)
    return row


def made(*balls):
    return features.ball_forecast(seen(*balls)[None])[0]


def test_without_balls_nothing_is_told():
    assert not made().any()


def test_a_ball_that_comes_is_told_and_the_way_out_is_clear():
    row = made((3.9, 0.0, 1.0, -4.0, 0.0, 0.0))
    here, places = row[MAP][0], row[MAP]
    assert here > 0.1
    sideways = np.abs(features._PLACES[:, 1]) > 1.4
    assert places[sideways].max() < here


def test_the_sooner_ball_stands_first_whatever_its_slot():
    near, far = (2.0, 0.0, 1.0, -6.0, 0.0, 0.0), (0.0, 4.0, 1.0, 0.0, -6.0, 0.0)
    assert np.array_equal(made(near, far), made(far, near))
    first, second = made(near, far)[58:68], made(near, far)[68:78]
    assert first[0] > second[0] > 0


def test_a_ball_that_flies_overhead_is_no_danger():
    assert not made((1.0, 0.0, 6.0, -6.0, 0.0, 0.0))[MAP].any()


def test_a_ball_comes_back_from_the_wall():
    assert made((3.5, 0.0, 1.0, 8.0, 0.0, 0.0))[MAP][0] > 0.0


def test_a_quarter_turn_of_the_scene_turns_the_features():
    one = made((3.0, 0.4, 1.0, -6.0, 0.0, 0.0))
    turned = made((-0.4, 3.0, 1.0, 0.0, -6.0, 0.0))
    assert one[8] == pytest.approx(turned[8])
    assert one[58:60].tolist() == pytest.approx(turned[58:60].tolist())
    assert turned[60:62].tolist() == pytest.approx([-one[61], one[60]], abs=1e-6)
