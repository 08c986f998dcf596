"""Curvature: planted bends are found, and short windows say so."""

import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.improvement.curvature import (
    Curvature,
    curvature,
    link_named,
    local_quadratic,
    meta_elasticity,
    on_link,
    power_step,
    step,
    steps_made,
    window_tests,
)
from owa_bench.scoring.statistics import slopes
from tests.builders.episodes import PROTOCOL

RULES = PROTOCOL.improvement
DAYS = 28


def read(bend: float, noise: float = 0.0, seed: int = 0, days: int = DAYS) -> Curvature:
    """Return the curvature of a planted logit parabola; R is a tenth of the day."""
    rng = np.random.default_rng(seed)
    spent = np.arange(days) / 10.0
    centre = spent.mean()
    g = -1 + 0.4 * (spent - centre) + bend / 2 * (spent - centre) ** 2
    g = g + noise * rng.standard_normal(days)
    values = link_named("logit").inverse(g)
    return curvature(spent, values, "logit", RULES, level=0.95)


def test_a_planted_parabola_is_found() -> None:
    found = read(0.3)
    assert found.slope == pytest.approx(0.4, abs=1e-6)
    assert found.curvature == pytest.approx(0.3, abs=1e-6)


def test_window_tests_read_the_lower_bound() -> None:
    up, down = read(0.3, 0.01), read(-0.3, 0.01)
    assert window_tests(up, RULES.curvature_max) == (True, True)
    assert window_tests(down, RULES.curvature_max) == (False, False)
    assert window_tests(read(0.0, days=5), 0.05) == (None, None)


@pytest.mark.slow
def test_the_interval_covers_a_planted_bend(record_property: Callable[[str, object], None]) -> None:
    found = [read(0.3, 0.1, seed) for seed in range(200)]
    covered = np.mean([f.interval.low <= 0.3 <= f.interval.high for f in found])  # type: ignore[operator]
    record_property("coverage of c_g over 28 days", float(covered))
    assert covered >= 0.93


def test_short_windows_and_zeros_are_not_computable() -> None:
    assert "too few days: 13 of 14" in str(read(0.1, days=13).reason)
    spent = np.arange(20.0)
    zero = curvature(spent, np.zeros(20), "logit", RULES, level=0.95)
    assert "is 0 or unknown" in str(zero.reason)
    still = curvature(np.zeros(20), np.full(20, 0.5), "logit", RULES, level=0.95)
    assert "fewer than three levels" in str(still.reason)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ScoringError):
        local_quadratic(np.arange(4.0), np.array([1.0, 2.0, math.nan, 3.0]))
    with pytest.raises(ScoringError):
        local_quadratic(np.arange(4.0), np.arange(3.0))
    with pytest.raises(ScoringError):
        meta_elasticity(np.arange(4.0), np.arange(3.0))


def test_elasticity_is_the_exponent_of_a_power_law() -> None:
    spent = np.array([1.0, 2.0, 5.0, 9.0])
    assert meta_elasticity(spent, 0.1 * spent**0.7) == pytest.approx(0.7)
    assert math.isnan(meta_elasticity(spent, -spent))


def test_the_protocol_decides_the_least_days() -> None:
    rules = msgspec.structs.replace(RULES, curvature_days_min=30)
    found = curvature(np.arange(28.0), np.full(28, 0.5), "logit", rules, level=0.95)
    assert found.reason == "too few days: 28 of 30"


def test_links_map_odds_and_shortfalls_and_leave_zero_out() -> None:
    values = np.array([0.0, 0.2, 0.75, 1.0, math.nan])
    logit = on_link(values, "logit", 0.01)
    assert logit[1:4] == pytest.approx(np.log([0.25, 3.0, 99.0]))
    surprisal = on_link(values, "surprisal", 0.01)
    assert surprisal[1:4] == pytest.approx(-np.log([0.8, 0.25, 0.01]))
    for found in (logit, surprisal):
        assert np.isnan(found[[0, 4]]).all()
    for wrong in (-1e-9, 1 + 1e-9):
        with pytest.raises(ScoringError, match=r"in \[0, 1\]"):
            on_link(np.array([wrong]), "logit", 0.01)
    with pytest.raises(ScoringError, match="one of logit, surprisal"):
        link_named("probit")


def test_a_step_multiplies_odds_or_shortfall() -> None:
    assert step(0.2, math.log(2), "logit") == pytest.approx(0.5 / 1.5)
    assert step(0.2, -math.log(2), "surprisal") == pytest.approx(-0.6)
    assert power_step(0.4, 0.5) == pytest.approx(1 - math.sqrt(0.6))
    assert (power_step(0.0, 3), power_step(1.0, 3)) == (0.0, 1.0)
    for value, distance in ((0.0, 1.0), (1.0, 1.0), (0.5, math.inf)):
        with pytest.raises(ScoringError, match="between 0 and 1"):
            step(value, distance, "logit")
    for value, power in ((-0.1, 2.0), (1.1, 2.0), (0.5, 0.0)):
        with pytest.raises(ScoringError, match="power step"):
            power_step(value, power)


def test_whole_steps_are_counted_and_a_fall_has_none() -> None:
    """Odds of 1 / 4 and 4 are four doublings apart."""
    two = math.log(2)
    assert steps_made(0.2, 0.8, two, "logit") == 4
    assert steps_made(0.2, 0.799, two, "logit") == 3
    assert steps_made(0.2, 0.2, two, "logit") == 0
    assert steps_made(0.8, 0.2, two, "logit") == 0
    for before, after in ((0.0, 0.5), (0.5, 1.0), (1.0, 0.5), (0.5, 0.0)):
        with pytest.raises(ScoringError, match="between 0 and 1"):
            steps_made(before, after, two, "logit")
    with pytest.raises(ScoringError, match="must be above 0"):
        steps_made(0.2, 0.8, 0.0, "logit")


def test_a_parabola_is_read_at_the_middle_of_its_range() -> None:
    x = np.array([1.0, 2.0, 4.0, 9.0])
    found = local_quadratic(x, 2.0 + 3.0 * x - 0.5 * x**2)
    assert found == pytest.approx((3.0 - 5.0, -1.0))  # the middle is 5
    assert local_quadratic(x[:3], x[:3] ** 2) == pytest.approx((5.0, 2.0))
    for few in (np.array([1.0, 1.0, 2.0, 2.0]), x[:2]):
        assert np.isnan(local_quadratic(few, few)).all()


def test_a_window_has_the_slope_and_the_bend_of_the_mixture() -> None:
    rng = np.random.default_rng(4)
    days = np.cumsum(rng.integers(1, 3, RULES.curvature_days_min)).astype(float)
    spent = np.cumsum(rng.uniform(0.5, 1.5, len(days)))
    values = rng.uniform(0.2, 0.8, len(days))
    found = curvature(spent, values, "logit", RULES, level=0.9, days=days)
    g = np.log(values / (1 - values))
    x = spent - (spent[0] + spent[-1]) / 2
    design = np.stack((np.ones_like(x), x, x * x), axis=1)
    slope = slopes.fit(design, np.array([0.0, 1.0, 0.0]), g, days)
    bend = slopes.bend(spent, g, days)
    assert found.slope == pytest.approx(float(slope.value), abs=1e-6)
    assert found.curvature == pytest.approx(float(bend.value), abs=1e-6)
    for read, expected in ((found.slope_interval, slope), (found.interval, bend)):
        assert (read.low, read.high) == pytest.approx(
            [float(end) for end in expected.interval(0.9)], abs=1e-6
        )
    with pytest.raises(ScoringError, match="equal lengths"):
        curvature(spent[1:], values, "logit", RULES, level=0.9)


def test_three_levels_of_spending_have_a_bend_and_unknown_spending_none() -> None:
    values = np.linspace(0.3, 0.5, 20)
    three = curvature(np.arange(20.0) // 7, values, "logit", RULES, level=0.95)
    assert three.curvature is not None
    two = curvature(np.arange(20.0) // 10, values, "logit", RULES, level=0.95)
    assert "fewer than three levels" in str(two.reason)
    spent = np.where(np.arange(20) == 3, np.nan, np.arange(20.0))
    unknown = curvature(spent, values, "logit", RULES, level=0.95)
    assert "is 0 or unknown" in str(unknown.reason)


@pytest.mark.parametrize(
    ("low", "tests"), [(0.0, (False, True)), (1e-9, (True, True)), (-0.2, (False, True))]
)
def test_windows_at_their_limits(low: float, tests: tuple[bool, bool]) -> None:
    one = read(0.3)
    interval = msgspec.structs.replace(one.interval, low=low)
    assert window_tests(one._replace(interval=interval), 0.2) == tests


def test_windows_without_spending_or_gain_have_no_part_in_the_elasticity() -> None:
    spent = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    rates = np.array([5.0, 1.0, 4.0, 0.0, 64.0])
    assert meta_elasticity(spent, rates) == pytest.approx(2.0)
    assert math.isnan(meta_elasticity(np.array([2.0, 2.0]), np.array([1.0, 3.0])))
    assert meta_elasticity(np.array([1.0, 2.0]), np.array([3.0, 3.0])) == 0.0
