"""Observations, the PD rule, the linear model and its regulator, forecasts of balls."""

import numpy as np
import pytest

from owa_bench.agents.solvers.balancing.control import (
    CAUTIOUS,
    EFFECTS,
    LEVEL_0,
    PLACED,
    advance,
    choose_action,
    forecast_balls,
    parse_observation,
    pd_action,
    prediction_error,
    safest_target,
)
from tests.builders.balancing import balance_state, observation, rollout


def test_reading_says_where_the_pole_leans_and_turns():
    found = parse_observation(observation(lean=(0.1, -0.05), spin=(0.2, 0.3, 0.0)))
    assert found.tilt == pytest.approx([0.1, -0.05], abs=2e-3)
    assert found.rate == pytest.approx([0.3, -0.2], abs=2e-2)
    assert len(found.places) == 0


def test_reading_leaves_out_balls_that_are_not_there():
    ball = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    found = parse_observation(observation(balls=(ball,)))
    assert found.places.tolist() == [[1.0, 2.0, 3.0]]
    assert found.speeds.tolist() == [[4.0, 5.0, 6.0]]
    assert len(parse_observation(observation(balls=(ball,))[:11]).places) == 0  # the core alone


@pytest.mark.parametrize(
    ("lean", "action"),
    [((0.05, 0), 1), ((-0.05, 0), 2), ((0, 0.05), 3), ((0, -0.05), 4), ((0, 0), 0)],
)
def test_the_rule_and_the_plan_push_where_the_pole_leans(lean, action):
    found = parse_observation(observation(lean=lean))
    assert pd_action(found) == action
    for cost in (PLACED, CAUTIOUS):
        for depth in (1, 2):
            assert choose_action(LEVEL_0, found, np.zeros(2), depth=depth, cost=cost) == action


def test_a_push_speeds_up_the_cart_and_turns_the_pole_back():
    state = np.zeros((4, 2))
    after = advance(LEVEL_0, state, EFFECTS[1])
    assert after[1].tolist() == pytest.approx([0.19845, 0.0])
    assert after[3, 0] == pytest.approx(-0.9217 * 0.19845)


def test_a_pole_falls_at_the_rate_of_the_facts_page():
    state = np.zeros((4, 2))
    state[2:, 0] = (0.01, 0.03)  # on the growing branch
    for _ in range(25):
        state = advance(LEVEL_0, state, np.zeros(2))
    rate = np.log(state[2, 0] / 0.01) / 0.5
    assert rate == pytest.approx(3.0, rel=0.03)  # 3.01 /s measured


def test_the_regulator_brings_the_model_to_rest():
    state = np.zeros((4, 2))
    state[2] = (0.06, -0.05)
    state[0] = (1.0, -1.0)
    for _ in range(500):
        action = choose_action(LEVEL_0, balance_state(state), np.zeros(2), depth=1)
        state = advance(LEVEL_0, state, EFFECTS[action])
        assert np.abs(state[2]).max() < 0.17
    assert np.abs(state[0]).max() < 0.4


def test_a_world_that_is_the_model_is_no_surprise():
    rng = np.random.default_rng(0)
    for before, action, after in rollout(LEVEL_0, 20, rng):
        assert np.abs(prediction_error(LEVEL_0, before, action, after)).max() < 1e-9


def test_a_ball_bounces_off_the_wall_in_the_forecast():
    ball = ((4.0, 0.0, 5.0), (10.0, 0.0, 0.0))
    places = forecast_balls(parse_observation(observation(balls=(ball,))))
    assert places[..., 0].max() <= 4.45
    assert places[-1, 0, 0] < 2.0


def test_the_cart_makes_way_for_a_ball_and_for_nothing_else():
    home = np.zeros(2)
    coming = ((-4.0, 0.2, 0.6), (5.0, 0.0, 0.0))
    high = ((-4.0, 0.0, 7.0), (5.0, 0.0, 0.0))
    assert safest_target(parse_observation(observation()), home).tolist() == [0.0, 0.0]
    assert safest_target(parse_observation(observation(balls=(high,))), home).tolist() == [0.0, 0.0]
    aside = safest_target(parse_observation(observation(balls=(coming,))), home)
    assert abs(aside[1]) >= 0.5
