"""Slopes over days by the AR(1) mixture, beside regressions written out by hand."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.scoring.statistics import slopes


def by_hand(x: list[float], y: list[float], rho: float) -> tuple[float, float, float]:
    """Slope, its error and the log restricted likelihood, by differences of days.

    The first day is kept with weight sqrt(1 - rho^2), each later one is a quasi
    difference: errors are then independent (Prais and Winsten 1954).
    """
    start = math.sqrt(1 - rho**2)
    one = [start] + [1 - rho] * (len(x) - 1)
    xs = [start * x[0]] + [b - rho * a for a, b in pairwise(x)]
    ys = [start * y[0]] + [b - rho * a for a, b in pairwise(y)]
    oo, ox = sum(o * o for o in one), sum(o * v for o, v in zip(one, xs, strict=True))
    xx, oy = sum(v * v for v in xs), sum(o * v for o, v in zip(one, ys, strict=True))
    xy = sum(v * w for v, w in zip(xs, ys, strict=True))
    det = oo * xx - ox * ox
    b1, b0 = (oo * xy - ox * oy) / det, (xx * oy - ox * xy) / det
    rss = sum((w - b0 * o - b1 * v) ** 2 for o, v, w in zip(one, xs, ys, strict=True))
    free = len(x) - 2
    # |V| of innovations of variance 1 is 1 / (1 - rho^2)
    height = math.log(start) - math.log(det) / 2 - free / 2 * math.log(rss)
    return b1, math.sqrt(rss / free * oo / det), height


def test_the_p_value_is_the_weighted_t_tail_of_regressions_by_hand():
    x, y = [0.0, 1.0, 2.5, 3.0, 4.5, 6.0], [0.1, 0.3, 0.2, 0.5, 0.4, 0.8]
    parts = [by_hand(x, y, 0.05 * k) for k in range(13)]
    top = max(height for _, _, height in parts)
    weights = [math.exp(height - top) for _, _, height in parts]
    tails = [stats.t.sf((b - 0.02) / se, 4) for b, se, _ in parts]
    expected = sum(w * p for w, p in zip(weights, tails, strict=True)) / sum(weights)
    found = slopes.slope(np.array(x), np.array(y))
    assert float(found.p_above(0.02)) == pytest.approx(expected, rel=1e-9)


def test_the_interval_holds_the_nulls_that_are_not_rejected():
    values = np.random.default_rng(5).normal(size=(3, 10)).cumsum(axis=1)
    found = slopes.slope(np.arange(10.0), values)
    low, high = found.interval(0.95)
    assert found.p_above(low) == pytest.approx(np.full(3, 0.025), abs=1e-9)
    assert found.p_above(high) == pytest.approx(np.full(3, 0.975), abs=1e-9)
    assert (low < found.value).all()
    assert (found.value < high).all()


def test_a_gap_of_two_days_counts_as_two_lags():
    x, y = np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 1.0, 1.0, 3.0])
    dated = slopes.slope(x, y, days=np.array([0.0, 1.0, 3.0, 4.0]))
    assert dated.errors[0] == slopes.slope(x, y).errors[0]
    assert dated.errors[12] != slopes.slope(x, y).errors[12]


@pytest.mark.parametrize(("step", "p"), [(0.0, 0.5), (0.1, 0.0), (-0.1, 1.0)])
def test_days_without_error_decide_by_the_sign(step: float, p: float):
    found = slopes.slope(np.arange(7.0), 0.3 + step * np.arange(7.0))
    assert float(found.p_above()) == pytest.approx(p)


def test_an_unchanged_agent_is_rejected_as_rarely_as_stated_at_lag_0():
    values = np.random.default_rng(1).normal(size=(4000, 14))
    assert (slopes.slope(np.arange(14.0), values).p_above() < 0.05).mean() < 0.05


@pytest.mark.parametrize(
    ("x", "days", "words"),
    [
        ([0.0, 1.0], None, "3 days at least, got 2"),
        ([1.0, 1.0, 1.0], None, "as many different x, got 1"),
        ([0.0, 1.0, 2.0], [0.0, 2.0, 2.0], "Days must rise"),
        ([0.0, 1.0, math.nan], None, "NaN"),
    ],
)
def test_what_cannot_be_fitted_is_named(x, days, words):
    when = None if days is None else np.array(days)
    with pytest.raises(ScoringError, match=words):
        slopes.slope(np.array(x), np.arange(float(len(x))), when)


@pytest.mark.parametrize("unit", [1e-6, 1e-4, 1.0, 1e4])
def test_equal_values_are_no_evidence_in_any_unit_of_spending(unit):
    draws = np.random.default_rng(3)
    for _ in range(20):
        spent = np.cumsum(draws.uniform(0.5, 1.5, 6)) * unit
        level = draws.uniform(0.1, 1.0)
        assert slopes.slope(spent, np.full(6, level)).p_above() == pytest.approx(0.5)


def generalised(
    design: np.ndarray, contrast: np.ndarray, y: np.ndarray, v: np.ndarray
) -> tuple[float, float, float, float]:
    """Estimate, error, residual variance, log restricted likelihood by matrices."""
    inverse = np.linalg.inv(v)
    gram = np.linalg.inv(design.T @ inverse @ design)
    b = gram @ design.T @ inverse @ y
    rest = y - design @ b
    free = len(y) - design.shape[1]
    rss = rest @ inverse @ rest
    height = -0.5 * np.log(np.linalg.det(v)) + 0.5 * np.log(np.linalg.det(gram))
    height -= free / 2 * np.log(rss)
    return (contrast @ b, np.sqrt(rss / free * contrast @ gram @ contrast), rss / free, height)


DAYS = np.array([0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 9.0])
VALUES = np.array([0.3, 0.1, 0.4, 0.5, 0.2, 0.9, 0.6])


@pytest.mark.parametrize(
    ("found", "powers", "contrast"),
    [
        (slopes.slope(DAYS, VALUES, DAYS), 2, [0.0, 1.0]),
        (slopes.end_level(VALUES, DAYS), 2, [1.0, 9.0]),
        (slopes.bend(DAYS, VALUES, DAYS), 3, [0.0, 0.0, 2.0]),
    ],
)
def test_every_contrast_is_that_of_generalised_least_squares(found, powers, contrast):
    design = np.stack([DAYS**k for k in range(powers)], axis=1)
    gaps = np.abs(DAYS[:, None] - DAYS)
    parts = np.array(
        [generalised(design, np.array(contrast), VALUES, (0.05 * k) ** gaps) for k in range(13)]
    )
    weights = np.exp(parts[:, 3])
    assert found.freedom == len(DAYS) - powers
    assert found.estimates == pytest.approx(parts[:, 0])
    assert found.errors == pytest.approx(parts[:, 1])
    assert found.weights == pytest.approx(weights / weights.sum(), rel=1e-6)
    assert found.value == pytest.approx(weights @ parts[:, 0] / weights.sum())


@pytest.mark.parametrize("days", [None, DAYS])
def test_a_plain_mean_has_the_error_that_correlated_days_give_it(days):
    when = np.arange(7.0) if days is None else days
    gaps = np.abs(when[:, None] - when)
    ones = np.ones((7, 1))
    errors, weights = [], []
    for k in range(15):
        v = (0.05 * k) ** gaps
        *_, variance, height = generalised(ones, np.ones(1), VALUES, v)
        errors.append(np.sqrt(variance * v.sum()) / 7)
        weights.append(np.exp(height) / (1 - 0.05 * k))
    found = slopes.mean_level(VALUES, days)
    assert found.estimates == pytest.approx(np.full(15, VALUES.mean()))
    assert found.errors == pytest.approx(errors)
    assert found.weights == pytest.approx(np.array(weights) / sum(weights))
    both = slopes.mean_level(np.stack((VALUES, 2 * VALUES)), days)
    assert both.errors[:, 1] == pytest.approx(2 * found.errors)
    assert both.weights[:, 0] == pytest.approx(found.weights)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95, 0.999])
def test_a_bound_is_where_the_p_value_is_one_less_the_level(level):
    found = slopes.slope(DAYS, VALUES, DAYS)
    assert found.p_above(found.lower(level)) == pytest.approx(1 - level, abs=1e-9)
    assert found.p_above(found.upper(level)) == pytest.approx(level, abs=1e-9)


def test_an_error_measured_elsewhere_is_added_in_squares():
    found = slopes.slope(DAYS, VALUES, DAYS)
    wider = found.with_error(0.3)
    assert wider.errors == pytest.approx(np.sqrt(found.errors**2 + 0.09))
    assert (wider.freedom, wider.value) == (found.freedom, found.value)
    assert found.with_error(0.3, 2).freedom == 2
    assert found.with_error(0.3, 99).freedom == found.freedom


def test_shapes_must_fit_and_every_number_be_finite():
    for values, days in ((VALUES[1:], DAYS), (VALUES, DAYS[1:])):
        with pytest.raises(ScoringError, match="one value and one day each"):
            slopes.slope(DAYS, values, days)
    for place in range(2):
        holed = [VALUES.copy(), DAYS.copy()]
        holed[place][-1] = math.inf
        with pytest.raises(ScoringError, match="NaN or infinity"):
            slopes.slope(np.arange(7.0), *holed)
    with pytest.raises(ScoringError, match="4 days at least, got 3"):
        slopes.bend(DAYS[:3], VALUES[:3], DAYS[:3])
    assert slopes.bend(DAYS[:4], VALUES[:4], DAYS[:4]).freedom == 1


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_a_bound_has_the_unit_of_its_values(unit):
    found = slopes.slope(DAYS, VALUES, DAYS)
    scaled = slopes.slope(DAYS, unit * VALUES, DAYS)
    for level in (0.05, 0.95):
        assert scaled.lower(level) == pytest.approx(unit * found.lower(level))


def test_days_at_0_are_no_evidence() -> None:
    found = slopes.slope(DAYS, np.zeros(7), DAYS)
    assert (found.value, float(found.p_above())) == (0.0, pytest.approx(0.5))
