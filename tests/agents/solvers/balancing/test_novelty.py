"""System identification, Pareto tails and statements of novelty."""

import numpy as np
import pytest

from owa_bench.agents.solvers.balancing.control import LEVEL_0, LinearModel
from owa_bench.agents.solvers.balancing.novelty import (
    NoveltyReporter,
    NoveltyStatement,
    deviation,
    exceedance_probability,
    fit_tail,
    initial_estimate,
    update_estimate,
)
from tests.builders.balancing import rollout


def test_identification_finds_the_numbers_of_another_world():
    truth = LinearModel(kick=0.05, growth=2.5, lever=0.4)
    estimate = initial_estimate()
    rng = np.random.default_rng(1)
    for before, action, after in rollout(truth, 150, rng, wind=(1.5, -0.5)):
        update_estimate(estimate, before, action, after)
    found = estimate.model
    assert found.kick == pytest.approx(truth.kick, rel=0.05)
    assert found.growth == pytest.approx(truth.growth, rel=0.1)
    assert found.lever == pytest.approx(truth.lever, rel=0.05)
    assert found.wind == pytest.approx((1.5, -0.5), abs=0.1)
    away = deviation(estimate)
    assert min(away.cart, away.pole, away.wind) > 1.0


def test_identification_stays_at_level_0_in_level_0():
    estimate = initial_estimate()
    rng = np.random.default_rng(2)
    for before, action, after in rollout(LEVEL_0, 150, rng):
        update_estimate(estimate, before, action, after)
    assert deviation(estimate).largest < 0.3


def test_a_tail_knows_its_levels():
    rng = np.random.default_rng(3)
    tail = fit_tail(rng.exponential(size=4000))
    assert tail.level(0.01) == pytest.approx(-np.log(0.01), rel=0.1)
    assert fit_tail(rng.random(10)) is None
    assert exceedance_probability(0, 100, 0.01) == 1.0
    assert exceedance_probability(6, 100, 0.01) < 1e-3


def test_a_statement_is_made_where_it_changes():
    reporter = NoveltyReporter()
    assert reporter.move(1, NoveltyStatement(0.1)).beliefs == (
        ("novelty", 0.1),
        ("novelty_threshold", 0.5),
    )
    assert reporter.move(1, NoveltyStatement(0.105)).beliefs == ()
    assert reporter.move(1, NoveltyStatement(0.9)).beliefs[0] == ("novelty", 0.9)
    assert reporter.move(1, NoveltyStatement(1.7)).beliefs[0] == ("novelty", 1.0)
