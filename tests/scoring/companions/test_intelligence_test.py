"""Intelligence Test: planted exponents, censoring, truncation, levels, sandpile."""

import logging
import math

import numpy as np
import pytest
from scipy import special

from owa_bench.errors import ScoringError
from owa_bench.scoring.companions.arrays import IntervalEstimate
from owa_bench.scoring.companions.intelligence_test import (
    failures,
    measure,
    power_law,
    sandpile,
)


def bounded(alpha: float, top: int, n: int, rng: np.random.Generator) -> np.ndarray:
    x = np.arange(1.0, top + 1.0)
    shares = x**-alpha
    return rng.choice(x, n, p=shares / shares.sum())


@pytest.mark.parametrize(("alpha", "most"), [(1.5, 0.35), (2.0, 0.9), (2.5, 1.8)])
def test_planted_exponents_come_back_and_least_squares_is_biased_low(alpha, most, rng):
    likely, lines = [], []
    for _ in range(10):
        found = failures.from_counts(rng.zipf(alpha, 3000).clip(max=10**9))
        likely.append(
            measure.maximum_likelihood(found, start=1.0, resamples=0, rng=rng).alpha
        )
        line = measure.least_squares(found)
        if line.reason is None:
            lines.append(line.alpha)
    assert np.mean(likely) == pytest.approx(alpha, abs=0.03)
    # With 3,000 items the counts near 100 are rare, so the line is too flat.
    assert 0.05 < alpha - np.mean(lines) < most


def test_least_squares_is_right_where_every_count_is_frequent(rng):
    found = failures.from_counts(bounded(1.5, 1000, 2_000_000, rng))
    line = measure.least_squares(found)
    assert line.alpha == pytest.approx(1.5, abs=0.02)
    assert line.r_squared > 0.99
    assert line.window == (10.0, 100.0)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.5])
def test_truncation_at_the_last_candidate_recovers_any_exponent(alpha, rng):
    counts = bounded(alpha, 49, 20_000, rng)
    found = failures.from_counts(counts, candidates=50)
    fit = measure.maximum_likelihood(found, start=1.0, resamples=0, rng=rng)
    assert fit.alpha == pytest.approx(alpha, abs=0.03)
    assert measure.least_squares(found).window == (1.0, 49.0)
    if alpha <= 1.5:
        free = measure.maximum_likelihood(
            failures.from_counts(counts), start=1.0, resamples=0, rng=rng
        )
        assert abs(free.alpha - alpha) > 0.1  # what leaving the bound out costs


@pytest.mark.parametrize("alpha", [1.4, 1.8])
def test_censoring_is_counted_and_dropping_would_mislead(alpha, rng):
    true = rng.zipf(alpha, 20_000).astype(float)
    solved = true < 30
    found = failures.from_attempts(np.minimum(true, 30), solved)
    kept = measure.maximum_likelihood(found, start=1.0, resamples=0, rng=rng)
    assert kept.alpha == pytest.approx(alpha, abs=0.03)
    assert kept.censored == (~solved).sum()
    dropped = failures.from_counts(true[solved])
    wrong = measure.maximum_likelihood(dropped, start=1.0, resamples=0, rng=rng)
    assert wrong.alpha > alpha + 0.04


def test_mixed_limits_and_the_start_search(rng):
    true = rng.zipf(2.2, 20_000).astype(float)
    limits = rng.choice([20.0, 50.0, 200.0], true.size)
    found = failures.from_attempts(np.minimum(true, limits), true < limits)
    fit = measure.maximum_likelihood(found, resamples=0, rng=rng)
    assert fit.alpha == pytest.approx(2.2, abs=0.08)
    assert fit.start <= 20.0
    assert fit.distance < 0.02


def test_the_interval_covers_the_planted_exponent(rng):
    hits = 0
    for _ in range(30):
        found = failures.from_counts(rng.zipf(2.4, 400).clip(max=10**9))
        span = measure.maximum_likelihood(found, start=1.0, resamples=100, rng=rng).span
        hits += span.low <= 2.4 <= span.high
    assert hits >= 25


def test_the_likelihood_agrees_with_the_powerlaw_package(rng):
    package = pytest.importorskip("powerlaw")
    logging.disable(logging.CRITICAL)
    counts = rng.zipf(2.3, 4000).clip(max=10**7)
    other = package.Fit(counts, discrete=True, xmin=2, estimate_discrete=False)
    found = failures.from_counts(counts)
    fit = measure.maximum_likelihood(found, start=2.0, resamples=0, rng=rng)
    logging.disable(logging.NOTSET)
    assert fit.alpha == pytest.approx(other.power_law.alpha, abs=2e-3)


@pytest.mark.parametrize("top", [40.0, 1000.0, 128_000.0])
@pytest.mark.parametrize("alpha", [-1.0, 0.7, 1.0, 2.2])
def test_sums_equal_direct_sums(alpha, top):
    low = np.array([1.0, 7.0, 30.0])
    direct = [np.sum(np.arange(start, top + 1.0) ** -alpha) for start in low]
    assert power_law.power_sum(alpha, low, top) == pytest.approx(direct, rel=1e-9)
    if alpha > 1:
        assert power_law.power_sum(alpha, low, math.inf) == pytest.approx(
            special.zeta(alpha, low)
        )


@pytest.mark.parametrize("draw", ["lognormal", "exponential"])
def test_other_laws_are_recognised(draw, rng):
    raw = (
        rng.lognormal(3.0, 0.6, 4000)
        if draw == "lognormal"
        else rng.exponential(12.0, 4000)
    )
    found = failures.from_counts(np.ceil(raw))
    compared = {
        one.other: one for one in power_law.compare(found, alpha=1.5, start=1.0)
    }
    assert compared[draw].favours == draw
    assert compared[draw].p < 0.01


def test_too_little_is_undetermined_not_a_number(rng):
    few = measure.maximum_likelihood(
        failures.from_counts(rng.zipf(2.0, 40)), resamples=10, rng=rng
    )
    assert math.isnan(few.alpha)
    assert few.reason.startswith("undetermined: ")
    assert measure.level(few.alpha, few.span).name is None
    same = measure.least_squares(failures.from_counts(np.full(500, 12.0)))
    assert same.reason == (
        "undetermined: 1 distinct counts and 500 solved items in 10 .. 100; "
        "5 and 50 are needed"
    )
    compared = power_law.compare(failures.from_counts([1.0]), alpha=math.nan, start=1.0)
    assert all(one.reason for one in compared)


def test_nothing_but_success_is_undetermined(rng):
    found = failures.from_counts(np.zeros(1000))
    fit = measure.maximum_likelihood(found, resamples=10, rng=rng)
    assert fit.reason is not None
    assert measure.least_squares(found).reason is not None


def test_ties_take_the_mean_rank_and_keep_their_weight():
    tied = failures.from_scores(np.ones((3, 4)), [0, 1, 2])
    assert tied.counts.tolist() == [1.5, 1.5, 1.5]
    part = failures.tail(tied)
    assert part.values.tolist() == [1.0, 2.0]
    assert part.weights.tolist() == [1.5, 1.5]
    assert part.size == 3.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: failures.from_counts([]), "`counts` needs at least 1 values, got 0"),
        (
            lambda: failures.from_counts([1, math.nan]),
            "finite numbers, got nan at (1,)",
        ),
        (lambda: failures.from_counts([-1]), "must lie in [0, inf], got -1.0"),
        (lambda: failures.from_counts([0.3]), "must be whole or half, got 0.3 at 0"),
        (
            lambda: failures.from_counts([9], candidates=5),
            "must lie in [0, 4], got 9.0",
        ),
        (lambda: failures.from_scores([[1.0]], [0]), "two candidates or more"),
        (lambda: failures.from_scores([[1, 2]], [2]), "must be columns 0 .. 1"),
        (lambda: failures.from_scores([[1, 2]], [0, 1]), "of one length, got (1, 2)"),
        (lambda: failures.from_attempts([1, 2], [1]), "one true or false for each"),
    ],
)
def test_bad_input_is_named(make, said):
    with pytest.raises(ScoringError) as raised:
        make()
    assert said in str(raised.value)


def test_a_level_needs_its_whole_interval():
    assert measure.level(1.5, IntervalEstimate(1.2, 1.9)).name == "Limited"
    assert measure.level(3.5, IntervalEstimate(3.1, 3.9)).name == "Autonomous"
    assert measure.level(2.0, IntervalEstimate(1.9, 2.1)).name is None


def test_projection_reads_the_seeds_dates():
    # Sizes of 10^18, 10^21 and 10^26 are 30, 45 and 70 years away [S section 5.3: the
    # seed prints "about 40" for 10^21].
    for size, years in ((18, 30), (21, 45), (26, 70)):
        x = np.array([9.0, 10.0, 11.0])
        alphas = 10 ** (math.log10(3.0) + 0.05 * (x - size))
        found = measure.projection(10**x, alphas)
        assert math.log10(found.size) == pytest.approx(size)
        assert found.years == pytest.approx(years, abs=0.6)


def test_projection_covers_and_says_when_it_cannot(rng):
    x = np.linspace(8.0, 12.0, 12)
    hits = 0
    for _ in range(200):
        noise = rng.normal(0.0, 0.02, x.size)
        found = measure.projection(10**x, 10 ** (0.05 * (x - 16) + 0.477 + noise))
        hits += found.span.low <= 10**16.0024 <= found.span.high
    assert 180 <= hits <= 199
    flat = measure.projection([1e9, 1e10, 1e11], [1.0, 1.5, 1.1])
    assert flat.span.reason == "the slope may be 0: no size is excluded"
    falling = measure.projection([1e9, 1e10, 1e11], [1.5, 1.2, 1.1])
    assert falling.reason == "the exponent does not rise with size"
    assert measure.projection([1e9], [1.0]).reason == "1 model sizes; three are needed"


def test_both_sandpile_loops_agree():
    pytest.importorskip("numba")
    sizes = [
        sandpile.avalanches(
            side=8,
            dimension=dimension,
            grains=400,
            warm_up=50,
            compiled=compiled,
            rng=np.random.default_rng(1),
        )
        for dimension in (2, 3)
        for compiled in (False, True)
    ]
    assert sizes[0].tolist() == sizes[1].tolist()
    assert sizes[2].tolist() == sizes[3].tolist()
    assert sizes[0].max() > 20


def test_a_lonely_cell_topples_every_fourth_grain():
    sizes = sandpile.avalanches(
        side=1,
        dimension=2,
        grains=8,
        warm_up=0,
        compiled=False,
        rng=np.random.default_rng(0),
    )
    assert sizes.tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(ScoringError, match="`dimension` must be"):
        sandpile.avalanches(side=2, dimension=5, grains=1, rng=np.random.default_rng(0))


@pytest.mark.slow
def test_the_sandpile_exponent_rises_with_dimension():
    pytest.importorskip("numba")
    alphas = []
    for dimension, side, grains in (
        (2, 64, 300_000),
        (3, 24, 300_000),
        (4, 12, 300_000),
    ):
        stream = np.random.default_rng(dimension)
        sizes = sandpile.avalanches(
            side=side, dimension=dimension, grains=grains, rng=stream
        )
        window = sizes[(sizes >= 10) & (sizes <= 100)]
        found = failures.from_counts(window, candidates=101)
        fit = measure.maximum_likelihood(found, start=10.0, resamples=50, rng=stream)
        alphas.append(fit)
    assert alphas[0].span.high < alphas[1].span.low
    assert alphas[1].span.high < alphas[2].span.low


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
