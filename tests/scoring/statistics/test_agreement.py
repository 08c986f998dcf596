"""Kappa and alpha against other hands: scikit-learn, and published examples."""

import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.scoring.statistics.agreement import cohen_kappa, krippendorff_alpha, rater_agreement


def test_kappa_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    one = rng.integers(0, 4, 60).astype(float)
    two = np.where(rng.random(60) < 0.6, one, rng.integers(0, 4, 60))
    assert cohen_kappa(one, two) == pytest.approx(metrics.cohen_kappa_score(one, two))


def test_alpha_of_the_published_binary_example():
    jon = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 0], dtype=float)
    han = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0], dtype=float)
    assert krippendorff_alpha(jon, han) == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha(jon, han, "interval") == pytest.approx(0.095, abs=5e-4)


def test_intervals_hold_the_value_and_too_few_items_have_none():
    one = np.array([0, 1, 2, 2, 1, 0, 2, 1], dtype=float)
    two = np.array([0, 1, 2, 1, 1, 0, 2, 0], dtype=float)
    found = rater_agreement(one, two, "interval", 0.95)
    for value, low, high in (found.kappa, found.alpha):
        assert low < value < high <= 1
    assert rater_agreement(one[:2], two[:2], "nominal", 0.95).alpha[1] is None
    same = rater_agreement(np.ones(5), np.ones(5), "nominal", 0.95)
    assert (same.kappa, same.alpha) == ((None, None, None), (None, None, None))
    with pytest.raises(ScoringError, match="same items"):
        cohen_kappa(one, two[1:])


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_an_interval_is_that_of_the_coefficients_without_one_item_each(level):
    one, two = np.array([0.0, 1, 2, 2, 1, 0]), np.array([0.0, 1, 2, 1, 1, 2])
    found = rater_agreement(one, two, "interval", level)
    assert found.items == 6
    for (value, low, high), coefficient in (
        (found.kappa, cohen_kappa),
        (found.alpha, lambda a, b: krippendorff_alpha(a, b, "interval")),
    ):
        left = [coefficient(np.delete(one, i), np.delete(two, i)) for i in range(6)]
        error = np.std(left) * np.sqrt(5)
        reach = stats.t.ppf((1 + level) / 2, 5) * error
        assert value == pytest.approx(coefficient(one, two), abs=1e-6)
        assert low == pytest.approx(value - reach, abs=1e-6)
        assert high == pytest.approx(min(value + reach, 1.0), abs=1e-6)


def test_three_items_have_an_interval_and_it_ends_at_1():
    one, two = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0, 0.0])
    assert rater_agreement(one, two, "nominal", 0.95).alpha[2] == 1.0
    value, low, high = rater_agreement(one[1:], two[1:], "nominal", 0.95).alpha
    assert None not in (value, low, high)


def test_raters_without_a_common_score_agree_less_than_by_chance():
    assert cohen_kappa(np.array([0.0, 1.0]), np.array([1.0, 0.0])) == -1.0
    assert cohen_kappa(np.zeros(2), np.ones(2)) == 0.0
    two = rater_agreement(np.array([0.0, 1.0]), np.array([1.0, 0.0]), "nominal", 0.95)
    assert two.kappa == (-1.0, None, None)
    assert np.isnan(cohen_kappa(np.ones(3), np.ones(3)))
    for shape in ((0,), (2, 2)):
        with pytest.raises(ScoringError, match="at least 1"):
            cohen_kappa(np.ones(shape), np.ones(shape))
