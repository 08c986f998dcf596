"""Continuous score, escape, levers, pace, milestones and theorem 3.1."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.score import Interval
from owa_bench.scoring.improvement.continuous_score import (
    acceleration,
    continuous,
    cut_points,
    innovation,
    marginal_returns,
    milestones,
    position,
    rate,
)
from owa_bench.scoring.improvement.curvature import Curvature
from owa_bench.scoring.improvement.kappa import differences, per_resource, window_pace
from owa_bench.scoring.improvement.theorem import (
    Estimate,
    escape,
    normalised_rate,
    rate_escape,
    theorem,
)


def bend(slope_low: float | None, low: float | None, point: float = 0.1) -> Curvature:
    def band(bound: float | None) -> Interval:
        return Interval(low=bound, high=None, method="m")

    return Curvature("logit", 0.1, band(slope_low), point, band(low))


def test_the_score_lies_between_0_and_1_and_rises_with_each_part() -> None:
    weights = (0.5, 0.25, 0.25)
    low = continuous(0.2, rate(0.0, 0.02, 1), acceleration(-9, 0.05, 1), weights)
    high = continuous(0.9, rate(9.0, 0.02, 1), acceleration(9, 0.05, 1), weights)
    assert low == pytest.approx(0.1)
    assert high == pytest.approx(0.95)
    assert position(5.0, 0.0, 4.0) == 1.0
    assert math.isnan(position(math.nan, 0.0, 4.0))


def test_cut_points_rise() -> None:
    found = cut_points(np.array([0.3, 0.2, 0.6, 0.5]), [1, 2, 2, 3])
    assert found == {1: 0.2, 2: 0.2, 3: 0.5}


def test_rate_escape_is_the_integral_of_its_law() -> None:
    k, spent, step = 0.2, 0.0, 1e-4
    while k < 1 - 1e-6:
        k += step * 0.5 * (1 - k) ** 0.5
        spent += step
    assert spent == pytest.approx(rate_escape(0.2, 0.5, 0.5), rel=1e-2)


def test_no_bound_without_a_floor() -> None:
    for call in (
        lambda: escape(1.0, 0.0),
        lambda: escape(1.0, 0.1, 0.0),
        lambda: rate_escape(0.5, 0.1, 1.0),
        lambda: rate_escape(1.5, 0.1, 0.5),
        lambda: normalised_rate(0.1, 0.0),
        lambda: rate(0.1, 0.0, 1.0),
        lambda: position(0.1, 1.0, 1.0),
        lambda: continuous(0.1, 0.1, 0.1, (0.5, 0.5, 0.5)),
        lambda: continuous(0.1, 0.1, None, (0.0, 0.0, 1.0)),
        lambda: cut_points(np.array([math.nan]), [1]),
        lambda: innovation(-1.0, 0.0, 1.0, 1.0),
        lambda: marginal_returns(0.0, {"A": 0.0}, {"A": 1.0}),
        lambda: theorem((Estimate(),)),
        lambda: per_resource(0.1, 0.1, 0.0),
        lambda: window_pace(np.zeros(1), np.zeros(1), np.zeros(1)),
        lambda: differences(np.zeros(2), np.zeros(3)),
    ):
        with pytest.raises(ScoringError):
            call()
    assert escape(-1.0, 0.1).resource == 0.0


def test_bounds_of_the_theorem_are_given_only_where_all_holds() -> None:
    held = Estimate(0.5, 0.25, 0.75)
    found = theorem((held,) * 6, k=0.75, power=0.5)
    assert found.holds
    assert found.resource == pytest.approx(rate_escape(0.75, 0.25, 0.5))
    assert found.time == pytest.approx(4 * found.resource)
    for hole, status in ((Estimate(), "NO EVIDENCE"), (Estimate(-1.0), "FAILS")):
        short = theorem((held, hole, *(held,) * 4), k=0.75, power=0.5)
        assert (short.rows[1].status, short.resource) == (status, None)


def test_milestones_know_what_they_do_not_know() -> None:
    up = bend(0.1, 0.05)
    options = {"closures": True, "most": 0.05, "elasticity": 0.2}
    assert milestones([up, up], **options) == (True, True, True)
    assert milestones([up, up], **(options | {"closures": None})).sustained is None
    assert milestones([up, bend(-0.1, -0.2)], **options).sustained is False
    assert milestones([up, up, bend(0.1, -0.2)], **options).ready is False
    assert milestones([], **options) == (False, None, None)


def test_levers_prefer_the_lowest_axis_and_response() -> None:
    found = marginal_returns(
        0.5, {"A": 0.8, "P": 0.2}, {"A": 1, "P": 1}, {"A": 9.0, "P": 1.0}
    )
    assert [lever.symbol for lever in found] == ["P", "A"]
    assert found[0].growth == pytest.approx(0.5 * 1 / 0.2)


def test_a_window_without_spending_has_no_slope() -> None:
    days, flat = np.arange(3.0), np.zeros(3)
    assert math.isnan(window_pace(days, flat, days).kappa)
    assert np.isnan(differences(flat, days)).all()
