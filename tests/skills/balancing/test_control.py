"""Reading, the PD rule, the model and its regulator, forecasts of balls."""

import numpy as np
import pytest

from owa_bench.skills.balancing import flight, identification, tails
from owa_bench.skills.balancing.law import pd_action
from owa_bench.skills.balancing.model import (
    CAUTIOUS,
    LEVEL_0,
    PLACED,
    Model,
    advance,
    choose,
    surprise,
)
from owa_bench.skills.balancing.reading import EFFECTS, Seen, read
from owa_bench.skills.balancing.statement import Speaker, Statement


def observation(*, cart=(0, 0), speed=(0, 0), lean=(0, 0), spin=(0, 0, 0), balls=()):
    """Return a full observation; the pole leans by small angles along x and y."""
    x, y = lean
    pole = (-y / 2, x / 2, 0.0, 1.0)  # leaning to +x is a turn about +y
    row = [*cart, *speed, *pole, *spin]
    for place, velocity in balls:
        row += [1.0, *place, *velocity]
    return np.array(row + [0.0] * (39 - len(row)), dtype=np.float32)


def seen(state):
    """Return what is seen of a (4, 2) state, no balls about."""
    nobody = np.zeros((0, 3))
    return Seen(*state, nobody, nobody)


def rollout(model, ticks, rng, wind=(0.0, 0.0)):
    """Yield (before, action, after) of random pushes in a world that is the model."""
    state = np.array([[0, 0], [0, 0], [0.01, -0.02], [0.01, 0.02]], dtype=float)
    world = model._replace(wind=wind)
    for _ in range(ticks):
        action = int(rng.integers(5))
        after = advance(world, state, EFFECTS[action])
        yield seen(state), action, seen(after)
        state = after
        state[2:] *= 0.5  # somebody keeps the pole up


def test_reading_says_where_the_pole_leans_and_turns():
    found = read(observation(lean=(0.1, -0.05), spin=(0.2, 0.3, 0.0)))
    assert found.tilt == pytest.approx([0.1, -0.05], abs=2e-3)
    assert found.rate == pytest.approx([0.3, -0.2], abs=2e-2)
    assert len(found.places) == 0


def test_reading_leaves_out_balls_that_are_not_there():
    ball = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    found = read(observation(balls=(ball,)))
    assert found.places.tolist() == [[1.0, 2.0, 3.0]]
    assert found.speeds.tolist() == [[4.0, 5.0, 6.0]]
    assert len(read(observation(balls=(ball,))[:11]).places) == 0  # the core alone


@pytest.mark.parametrize(
    ("lean", "action"),
    [((0.05, 0), 1), ((-0.05, 0), 2), ((0, 0.05), 3), ((0, -0.05), 4), ((0, 0), 0)],
)
def test_the_rule_and_the_plan_push_where_the_pole_leans(lean, action):
    found = read(observation(lean=lean))
    assert pd_action(found) == action
    for cost in (PLACED, CAUTIOUS):
        for depth in (1, 2):
            assert choose(LEVEL_0, found, np.zeros(2), depth=depth, cost=cost) == action


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
        action = choose(LEVEL_0, seen(state), np.zeros(2), depth=1)
        state = advance(LEVEL_0, state, EFFECTS[action])
        assert np.abs(state[2]).max() < 0.17
    assert np.abs(state[0]).max() < 0.4


def test_a_world_that_is_the_model_is_no_surprise():
    rng = np.random.default_rng(0)
    for before, action, after in rollout(LEVEL_0, 20, rng):
        assert np.abs(surprise(LEVEL_0, before, action, after)).max() < 1e-9


def test_identification_finds_the_numbers_of_another_world():
    truth = Model(kick=0.05, growth=2.5, lever=0.4)
    estimate = identification.fresh()
    rng = np.random.default_rng(1)
    for before, action, after in rollout(truth, 150, rng, wind=(1.5, -0.5)):
        identification.learn(estimate, before, action, after)
    found = estimate.model
    assert found.kick == pytest.approx(truth.kick, rel=0.05)
    assert found.growth == pytest.approx(truth.growth, rel=0.1)
    assert found.lever == pytest.approx(truth.lever, rel=0.05)
    assert found.wind == pytest.approx((1.5, -0.5), abs=0.1)
    away = identification.deviation(estimate)
    assert min(away.cart, away.pole, away.wind) > 1.0


def test_identification_stays_at_level_0_in_level_0():
    estimate = identification.fresh()
    rng = np.random.default_rng(2)
    for before, action, after in rollout(LEVEL_0, 150, rng):
        identification.learn(estimate, before, action, after)
    assert identification.deviation(estimate).largest < 0.3


def test_a_ball_bounces_off_the_wall_in_the_forecast():
    ball = ((4.0, 0.0, 5.0), (10.0, 0.0, 0.0))
    places = flight.forecast(read(observation(balls=(ball,))))
    assert places[..., 0].max() <= 4.45
    assert places[-1, 0, 0] < 2.0


def test_the_cart_makes_way_for_a_ball_and_for_nothing_else():
    home = np.zeros(2)
    coming = ((-4.0, 0.2, 0.6), (5.0, 0.0, 0.0))
    high = ((-4.0, 0.0, 7.0), (5.0, 0.0, 0.0))
    assert flight.safest(read(observation()), home).tolist() == [0.0, 0.0]
    assert flight.safest(read(observation(balls=(high,))), home).tolist() == [0.0, 0.0]
    aside = flight.safest(read(observation(balls=(coming,))), home)
    assert abs(aside[1]) >= 0.5


def test_a_tail_knows_its_levels():
    rng = np.random.default_rng(3)
    tail = tails.fit(rng.exponential(size=4000))
    assert tail.level(0.01) == pytest.approx(-np.log(0.01), rel=0.1)
    assert tails.fit(rng.random(10)) is None
    assert tails.chance_of(0, 100, 0.01) == 1.0
    assert tails.chance_of(6, 100, 0.01) < 1e-3


def test_a_statement_is_made_where_it_changes():
    speaker = Speaker()
    assert speaker.move(1, Statement(0.1)).beliefs == (
        ("novelty", 0.1),
        ("novelty_threshold", 0.5),
    )
    assert speaker.move(1, Statement(0.105)).beliefs == ()
    assert speaker.move(1, Statement(0.9)).beliefs[0] == ("novelty", 0.9)
    assert speaker.move(1, Statement(1.7)).beliefs[0] == ("novelty", 1.0)
