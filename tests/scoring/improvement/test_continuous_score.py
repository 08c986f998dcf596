"""Continuous score, escape, levers, pace, milestones and theorem 3.1."""

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.score import Interval
from owa_bench.scoring.improvement.checkpoints import yes_or_no
from owa_bench.scoring.improvement.continuous_score import (
    Milestones,
    ScoreParts,
    acceleration,
    at_least,
    continuous,
    cut_point_table,
    cut_points,
    innovation,
    marginal_returns,
    milestones,
    position,
    rate,
    score_parts,
    telemetry_table,
)
from owa_bench.scoring.improvement.curvature import Curvature, on_link
from owa_bench.scoring.improvement.kappa import differences, per_resource, window_pace
from owa_bench.scoring.improvement.theorem import (
    Estimate,
    escape,
    normalised_rate,
    rate_escape,
    theorem,
)
from tests.builders.episodes import PROTOCOL


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
    found = marginal_returns(0.5, {"A": 0.8, "P": 0.2}, {"A": 1, "P": 1}, {"A": 9.0, "P": 1.0})
    assert [lever.symbol for lever in found] == ["P", "A"]
    assert found[0].growth == pytest.approx(0.5 * 1 / 0.2)


def test_a_window_without_spending_has_no_slope() -> None:
    days, flat = np.arange(3.0), np.zeros(3)
    assert math.isnan(window_pace(days, flat, days).kappa)
    assert np.isnan(differences(flat, days)).all()


def test_each_part_follows_its_formula() -> None:
    assert position(2.0, 1.0, 5.0) == pytest.approx(0.25)
    assert position(0.0, 1.0, 5.0) == 0.0
    assert rate(0.03, 0.02, 2.0) == pytest.approx(math.tanh(3.0))
    assert rate(-0.03, 0.02, 2.0) == 0.0
    assert math.isnan(rate(math.nan, 0.02, 2.0))
    assert acceleration(-0.01, 0.02, 3.0) == pytest.approx(math.tanh(-1.5))
    assert innovation(3.0, 2.0, 2.0, 4.0) == pytest.approx(
        (1 - math.exp(-1.5) + 1 - math.exp(-0.5)) / 2
    )
    assert innovation(0.0, 0.0, 2.0, 4.0) == 0.0


def test_the_score_weighs_its_parts() -> None:
    weights = (0.5, 0.3, 0.2)
    plain = 0.5 * 0.4 + 0.3 * 0.6
    assert continuous(0.4, 0.6, -0.5, weights) == pytest.approx(plain + 0.2 * 0.25)
    raw = continuous(0.4, 0.6, -0.5, weights, shifted=False)
    assert raw == pytest.approx(plain - 0.2 * 0.5)
    assert continuous(0.4, 0.6, None, weights) == pytest.approx(plain / 0.8)
    assert continuous(0.4, 0.6, None, (1.0, 0.0, 0.0)) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: continuous(0.1, 0.1, 0.1, (1.1, -0.1, 0.0)),
        lambda: continuous(0.1, 0.1, 0.1, (0.5, 0.5)),
        lambda: acceleration(0.1, 0.1, 0.0),
        lambda: acceleration(0.1, -0.1, 1.0),
        lambda: cut_points(np.array([0.1]), [1, 2]),
        lambda: cut_points(np.array([0.1, math.nan]), [1, 2]),
        lambda: innovation(1.0, -1.0, 1.0, 1.0),
        lambda: innovation(1.0, 1.0, 0.0, 1.0),
        lambda: innovation(1.0, 1.0, 1.0, 0.0),
        lambda: marginal_returns(0.5, {"A": 1.0, "P": 0.0}, {"A": 1.0, "P": 1.0}),
        lambda: marginal_returns(0.5, {"A": 1.0}, {"A": 1.0, "P": 1.0}),
        lambda: marginal_returns(0.5, {}, {}),
    ],
)
def test_parts_that_cannot_be_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ScoringError):
        call()


def test_levers_are_the_derivatives_of_the_weighted_mean() -> None:
    values, weights = {"A": 0.8, "P": 0.2, "E": 0.5}, {"A": 3.0, "P": 1.0, "E": 0.0}

    def index(of: dict[str, float]) -> float:
        logs = sum(w * math.log(of[s]) for s, w in weights.items() if w)
        return math.exp(logs / 4)

    found = marginal_returns(index(values), values, weights, {"A": 0.1, "E": 9.0})
    assert [lever.symbol for lever in found] == ["P", "A"]
    for lever in found:
        up = values | {lever.symbol: values[lever.symbol] + 1e-6}
        slope = (index(up) - index(values)) / 1e-6
        assert lever.marginal == pytest.approx(slope, rel=1e-4)
    assert found[0].growth is None
    assert found[1].growth == pytest.approx(0.75 * 0.1 / 0.8)
    tied = marginal_returns(0.5, {"P": 0.5, "A": 0.5}, {"P": 1.0, "A": 1.0})
    assert [lever.symbol for lever in tied] == ["A", "P"]


def test_milestones_read_bounds_above_0_and_both_families() -> None:
    options = {"closures": True, "most": 0.05, "elasticity": 0.2}
    up, flat, unknown = bend(0.1, 0.05), bend(0.0, 0.05), bend(None, 0.05)
    assert milestones([up, flat], **options).sustained is False
    assert milestones([up, unknown], **options).sustained is None
    assert milestones([up], **options).sustained is False
    assert milestones([up, up, flat], **options)[:2] == (True, False)
    assert milestones([up, up, unknown], **options)[:2] == (True, None)
    assert milestones([up, up], **(options | {"closures": False})).ready is False


def test_the_trajectory_needs_a_mean_bend_and_an_elasticity_above_0() -> None:
    def last(*points: float | None, elasticity: float | None = 0.2) -> bool | None:
        families = [bend(0.1, 0.05, point) for point in points]
        return milestones(families, closures=True, most=0.05, elasticity=elasticity).trajectory

    assert last(0.3, -0.2) is True
    assert last(0.2, -0.3) is False
    assert last(0.1, -0.1) is False
    assert last(0.3, 0.2, elasticity=0.0) is False
    assert last(0.3, 0.2, elasticity=-0.1) is False
    assert last(0.3, 0.2, elasticity=None) is None
    assert last(0.3, None) is None


@pytest.mark.parametrize(
    ("marks", "count", "enough"),
    [
        ([True, True], 2, True),
        ([True, None], 2, None),
        ([True, False, None], 3, False),
        ([False, None], 1, None),
        ([], 0, True),
    ],
)
def test_unknown_marks_decide_nothing_that_they_could(marks, count, enough) -> None:
    assert at_least(marks, count) is enough


def test_cut_points_are_printed_with_their_exemplars() -> None:
    found = cut_point_table([(0.6, 3), (0.2, 1), (0.9, 0), (None, 2)])
    assert found is not None
    assert found.rows == (("AAI-1", 0.2, 2), ("AAI-3", 0.6, 1))


def test_telemetry_prints_every_part_and_the_unit_in_usd() -> None:
    parts = ScoreParts(0.1, 0.2, -0.3, 0.4, 0.5, 0.6, 0.7)
    table = telemetry_table(parts, 0.8, Milestones(True, False, None), 2.5e6)
    assert dict(table.rows) == {
        "position": 0.1,
        "rate": 0.2,
        "acceleration": -0.3,
        "k": 0.4,
        "base score, position and rate": 0.7,
        "continuous score": 0.5,
        "continuous score, shifted into [0, 1]": 0.6,
        "innovation index": 0.8,
        "M1": yes_or_no(True),
        "M2": yes_or_no(False),
        "M3": yes_or_no(None),
        "kappa unit, USD": 2.5,
    }


def test_the_parts_of_a_window_stand_on_the_link() -> None:
    telemetry = PROTOCOL.telemetry
    link = PROTOCOL.improvement
    values = np.array([0.2, 0.35, 0.5])
    window = SimpleNamespace(protocol=PROTOCOL, daily=SimpleNamespace(dynamic=values))
    found = score_parts(window, bend(0.1, 0.05, 0.02))  # type: ignore[arg-type]
    g, top = (on_link(np.array(x), link.link, link.link_clip) for x in (values, [link.saturated]))
    place = (g[-1] - g[0]) / (top[0] - g[0])
    speed = math.tanh(telemetry.rate_sharpness * 0.1 / telemetry.rate_reference)
    gain = math.tanh(telemetry.bend_sharpness * 0.02 / telemetry.bend_reference)
    weights = telemetry.weights
    assert found.position == pytest.approx(place)
    assert found.rate == pytest.approx(speed)
    assert found.acceleration == pytest.approx(gain)
    assert found.k == pytest.approx(0.1 / (0.1 + telemetry.rate_normaliser))
    parts = (place, speed, gain)
    assert found.score == pytest.approx(sum(map(math.prod, zip(weights, parts, strict=True))))
    assert found.shifted == pytest.approx(continuous(place, speed, gain, weights))
    assert found.base == pytest.approx(continuous(place, speed, None, weights))
    none = score_parts(window, Curvature("logit", None, NOTHING, None, NOTHING))  # type: ignore[arg-type]
    assert none == ScoreParts(position=found.position)
    holed = SimpleNamespace(
        protocol=PROTOCOL, daily=SimpleNamespace(dynamic=np.array([0.2, np.nan, 0.5]))
    )
    without = score_parts(holed, bend(0.1, 0.05, 0.02))  # type: ignore[arg-type]
    assert (without.position, without.score) == (None, None)
    assert without.rate == found.rate


NOTHING = Interval(low=None, high=None, method="m")
