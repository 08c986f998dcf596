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
    window_tests,
)
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
def test_the_interval_covers_a_planted_bend(
    record_property: Callable[[str, object], None],
) -> None:
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
    found = curvature(
        np.arange(28.0),
        np.full(28, 0.5),
        "logit",
        rules,
        level=0.95,
    )
    assert found.reason == "too few days: 28 of 30"
