"""The law of forgetting: planted half-lives found again, and what is refused."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.axes.memory import fit_retention, half_life

LAGS = np.array([1.0, 2.0, 4.0, 7.0, 14.0])


def drawn(days: float, start: float, trials: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    chance = start * np.exp(-math.log(2) / days * LAGS)
    return rng.binomial(trials, chance).astype(np.float64)


def test_a_noise_free_law_is_found_exactly() -> None:
    hits = 1000 * 0.9 * 0.5 ** (LAGS / 10)
    found = fit_retention(hits, np.full(5, 1000.0), LAGS)
    assert float(found.start) == pytest.approx(0.9, abs=1e-5)
    assert math.log(2) / float(found.forgetting) == pytest.approx(10, rel=1e-4)


def test_it_is_the_maximum_of_the_likelihood() -> None:
    hits, trials = drawn(7, 0.8, 60, 3), np.full(5, 60.0)
    found = fit_retention(hits, trials, LAGS)

    def likelihood(start: float, rate: float) -> float:
        p = np.clip(start * np.exp(-rate * LAGS), 1e-12, 1 - 1e-12)
        return float((hits * np.log(p) + (trials - hits) * np.log1p(-p)).sum())

    best = likelihood(float(found.start), float(found.forgetting))
    for start in np.linspace(0.3, 1, 40):
        for rate in np.linspace(0, 0.4, 80):
            assert likelihood(start, rate) <= best + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("days", [7.0, 30.0])
def test_profile_intervals_cover_a_planted_half_life(days: float) -> None:
    hits = [drawn(days, 0.85, 80, seed) for seed in range(60)]
    spans = [half_life(h, np.full(5, 80.0), LAGS, 0.95) for h in hits]
    covered = np.mean([span.low <= days <= span.high for span in spans])
    assert 0.90 <= covered <= 0.99
    assert np.median([span.days for span in spans]) == pytest.approx(days, rel=0.15)


def test_log_linear_fits_of_long_half_lives_are_biased_and_ours_is_not() -> None:
    ours, theirs = [], []
    for seed in range(100):
        hits = drawn(30, 0.6, 40, seed)
        ours.append(float(fit_retention(hits, np.full(5, 40.0), LAGS).forgetting))
        logs = np.log(np.maximum(hits, 0.5) / 40)
        theirs.append(-np.polyfit(LAGS, logs, 1)[0])
    truth = math.log(2) / 30
    assert abs(np.mean(ours) - truth) < 0.15 * truth
    assert np.isfinite(theirs).all()


def test_what_does_not_fall_is_not_forgotten() -> None:
    found = half_life(np.full(5, 20.0), np.full(5, 40.0), LAGS, 0.95)
    assert found.days == found.high == math.inf
    assert 7 < found.low < math.inf


def test_nothing_recalled_and_all_recalled() -> None:
    none = fit_retention(np.zeros(5), np.full(5, 40.0), LAGS)
    assert float(none.start) == 0.0
    whole = fit_retention(np.full(5, 40.0), np.full(5, 40.0), LAGS)
    assert (float(whole.start), float(whole.forgetting)) == (1.0, 0.0)


def test_one_lag_and_no_trials_are_not_computable() -> None:
    trials = np.array([40.0, 0, 0, 0, 0])
    assert np.isnan(fit_retention(trials / 2, trials, LAGS).forgetting)
    assert np.isnan(fit_retention(np.zeros(5), np.zeros(5), LAGS).start)
    assert math.isnan(half_life(trials / 2, trials, LAGS, 0.95).days)


@pytest.mark.parametrize(
    ("hits", "trials", "lags"),
    [
        ([2.0], [1.0], [1.0]),
        ([math.nan], [1.0], [1.0]),
        ([1.0], [1.0], [-1.0]),
        ([1.0, 1.0], [1.0], [1.0]),
        ([], [], []),
    ],
)
def test_bad_counts_are_refused(hits: list, trials: list, lags: list) -> None:
    with pytest.raises(ScoringError):
        fit_retention(np.array(hits), np.array(trials), np.array(lags))
