"""Intelligence Test: planted exponents, censoring, truncation, levels, sandpile."""

import logging
import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from owa_bench.errors import ScoringError
from owa_bench.measures.intelligence_test import failures, measure, power_law, sandpile
from owa_bench.scoring.statistics.arrays import IntervalEstimate


def bounded(alpha: float, top: int, n: int, rng: np.random.Generator) -> np.ndarray:
    x = np.arange(1.0, top + 1.0)
    shares = x**-alpha
    return rng.choice(x, n, p=shares / shares.sum())


@pytest.mark.parametrize(("alpha", "most"), [(1.5, 0.35), (2.0, 0.9), (2.5, 1.8)])
def test_planted_exponents_come_back_and_least_squares_is_biased_low(alpha, most, rng):
    likely, lines = [], []
    for _ in range(10):
        found = failures.from_counts(rng.zipf(alpha, 3000).clip(max=10**9))
        likely.append(measure.maximum_likelihood(found, start=1.0, resamples=0, rng=rng).alpha)
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
        assert power_law.power_sum(alpha, low, math.inf) == pytest.approx(special.zeta(alpha, low))


@pytest.mark.parametrize("draw", ["lognormal", "exponential"])
def test_other_laws_are_recognised(draw, rng):
    raw = rng.lognormal(3.0, 0.6, 4000) if draw == "lognormal" else rng.exponential(12.0, 4000)
    found = failures.from_counts(np.ceil(raw))
    compared = {one.other: one for one in power_law.compare(found, alpha=1.5, start=1.0)}
    assert compared[draw].favours == draw
    assert compared[draw].p < 0.01


def test_too_little_is_undetermined_not_a_number(rng):
    few = measure.maximum_likelihood(failures.from_counts(rng.zipf(2.0, 40)), resamples=10, rng=rng)
    assert math.isnan(few.alpha)
    assert few.reason.startswith("undetermined: ")
    assert measure.level(few.alpha, few.span).name is None
    same = measure.least_squares(failures.from_counts(np.full(500, 12.0)))
    assert same.reason == (
        "undetermined: 1 distinct counts and 500 solved items in 10 .. 100; 5 and 50 are needed"
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
        (lambda: failures.from_counts([1, math.nan]), "finite numbers, got nan at (1,)"),
        (lambda: failures.from_counts([-1]), "must lie in [0, inf], got -1.0"),
        (lambda: failures.from_counts([0.3]), "must be whole or half, got 0.3 at 0"),
        (lambda: failures.from_counts([9], candidates=5), "must lie in [0, 4], got 9.0"),
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


@pytest.mark.slow
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
        side=1, dimension=2, grains=8, warm_up=0, compiled=False, rng=np.random.default_rng(0)
    )
    assert sizes.tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(ScoringError, match="`dimension` must be"):
        sandpile.avalanches(side=2, dimension=5, grains=1, rng=np.random.default_rng(0))


@pytest.mark.slow
def test_the_sandpile_exponent_rises_with_dimension():
    pytest.importorskip("numba")
    alphas = []
    for dimension, side, grains in ((2, 64, 300_000), (3, 24, 300_000), (4, 12, 300_000)):
        stream = np.random.default_rng(dimension)
        sizes = sandpile.avalanches(side=side, dimension=dimension, grains=grains, rng=stream)
        window = sizes[(sizes >= 10) & (sizes <= 100)]
        found = failures.from_counts(window, candidates=101)
        fit = measure.maximum_likelihood(found, start=10.0, resamples=50, rng=stream)
        alphas.append(fit)
    assert alphas[0].span.high < alphas[1].span.low
    assert alphas[1].span.high < alphas[2].span.low


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def counted(frequencies: dict[int, int]) -> failures.Failures:
    return failures.from_counts(np.repeat(*np.array(list(frequencies.items())).T))


def test_least_squares_is_the_line_through_the_window_with_both_ends():
    seen = {9: 50, 10: 100, 20: 40, 40: 25, 80: 11, 100: 8, 101: 900}
    found = measure.least_squares(counted(seen))
    inside = {x: n for x, n in seen.items() if 10 <= x <= 100}
    line = stats.linregress(np.log(list(inside)), np.log(list(inside.values())))
    assert found.alpha == pytest.approx(-line.slope)
    assert found.r_squared == pytest.approx(line.rvalue**2)
    assert (found.distinct, found.observations) == (5, 184)
    assert found.reason is None


@pytest.mark.parametrize(("candidates", "low"), [(100, 1.0), (101, 10.0)])
def test_the_window_of_few_candidates_begins_at_1(candidates, low, rng):
    counts = bounded(1.2, candidates - 1, 4000, rng)
    found = measure.least_squares(failures.from_counts(counts, candidates=candidates))
    assert found.window == (low, 99.0 if candidates == 100 else 100.0)


def test_five_counts_and_fifty_items_are_just_enough(rng):
    enough = {1: 30, 2: 10, 3: 5, 4: 3, 5: 2}
    found = measure.maximum_likelihood(counted(enough), resamples=0, rng=rng)
    assert found.reason is None
    assert (found.start, found.distinct, found.observations) == (1.0, 5, 50.0)
    for fewer in (enough | {1: 29}, dict.fromkeys(range(1, 5), 20)):
        poor = measure.maximum_likelihood(counted(fewer), resamples=0, rng=rng)
        assert poor.reason.endswith("at or above 1; 5 and 50 are needed")
    with pytest.raises(ScoringError, match="must be at least 1"):
        measure.maximum_likelihood(counted(enough), start=0.5, rng=rng)


def test_the_start_is_the_one_of_the_least_distance(rng):
    """Brute force over every start at which enough is left."""
    counts = np.concatenate((rng.integers(1, 6, 300), 5 + rng.zipf(2.0, 400)))
    found = failures.from_counts(counts.clip(max=400))
    fit = measure.maximum_likelihood(found, resamples=0, rng=rng)
    tried = {}
    for start in np.unique(found.counts):
        part = failures.tail(found, float(start))
        if part.values.size >= 5 and part.weights.sum() >= 50:
            tried[float(start)] = power_law.fit_exponent(part).distance
    assert len(tried) < 40
    assert fit.distance == pytest.approx(min(tried.values()))
    assert fit.start == min(tried, key=tried.__getitem__)
    assert fit.observations == (found.counts >= fit.start).sum()


def test_no_start_lies_above_the_lowest_censoring_limit(rng):
    true = np.concatenate((np.full(400, 1.0), rng.zipf(1.8, 900) + 6.0))
    found = failures.from_attempts(np.minimum(true, 7.0), true < 7.0)
    late = failures.from_attempts(np.minimum(true, 60.0), true < 60.0)
    for one, limit in ((found, 7.0), (late, 60.0)):
        fit = measure.maximum_likelihood(one, resamples=0, rng=rng)
        assert fit.start <= limit
    assert measure.maximum_likelihood(late, resamples=0, rng=rng).start > 1.0


def test_the_interval_is_that_of_percentiles_over_items():
    found = counted({1: 60, 2: 25, 3: 12, 4: 6, 5: 4, 7: 3})
    options = {"start": 1.0, "resamples": 20, "level": 0.8}
    fit = measure.maximum_likelihood(found, **options, rng=np.random.default_rng(2))
    stream, draws = np.random.default_rng(2), []
    for _ in range(20):
        items = stream.integers(0, 110, 110)
        part = failures.tail(failures.from_counts(found.counts[items]), 1.0)
        draws.append(power_law.fit_exponent(part).alpha)
    assert fit.span.low == pytest.approx(np.quantile(draws, 0.1))
    assert fit.span.high == pytest.approx(np.quantile(draws, 0.9))


def test_a_level_without_an_interval_says_why():
    none = IntervalEstimate(math.nan, math.nan, "half of it is missing")
    assert measure.level(1.5, none).reason == "undetermined: half of it is missing"
    known = IntervalEstimate(1.2, 1.8)
    assert measure.level(math.nan, known).reason == "undetermined: no exponent"
    with pytest.raises(ScoringError, match="`alpha` must be a number"):
        measure.region(math.nan)


def test_survival_is_kaplan_meiers_counted_item_by_item():
    seen, limits = [1, 1, 2, 2, 3, 5], [2, 3, 3, 6]
    counts = failures.from_attempts(seen + limits, [True] * 6 + [False] * 4)
    part = failures.tail(counts, 1.0)
    left, expected = 1.0, []
    for value in (1, 2, 3, 5):
        # A limit of L says X >= L: such an item was at risk below L.
        risk = sum(x >= value for x in seen) + sum(c > value for c in limits)
        left *= 1 - seen.count(value) / risk
        expected.append(left)
    assert part.values.tolist() == [1, 2, 3, 5]
    assert power_law.survival(part) == pytest.approx(expected)


def test_the_exponent_maximises_the_censored_likelihood(rng):
    true = rng.zipf(2.0, 800).astype(float)
    part = failures.tail(failures.from_attempts(np.minimum(true, 9.0), true < 9.0), 1.0)
    fit = power_law.fit_exponent(part)

    def likelihood(alpha: float) -> float:
        seen = -alpha * np.log(true[true < 9]).sum()
        late = (true >= 9).sum() * math.log(special.zeta(alpha, 9))
        return seen + late - true.size * math.log(special.zeta(alpha, 1))

    assert fit.log_likelihood == pytest.approx(likelihood(fit.alpha))
    for step in (-1e-3, 1e-3):
        assert likelihood(fit.alpha + step) < likelihood(fit.alpha)
    # The largest gap, at the whole counts below the limit.
    model = 1 - special.zeta(fit.alpha, np.arange(2.0, 10.0)) / special.zeta(fit.alpha, 1)
    data = [np.mean(true <= x) for x in range(1, 9)]
    assert fit.distance == pytest.approx(np.abs(model - data).max())


def test_the_comparison_is_vuongs_on_the_best_geometric_law():
    """A discrete exponential without a bound is geometric, its rate 1 / mean."""
    counts = np.repeat([1.0, 2.0, 3.0, 4.0, 6.0, 9.0], [90, 40, 22, 15, 8, 5])
    alpha = 1.9
    found = power_law.compare(failures.from_counts(counts), alpha=alpha, start=1.0)
    other = next(one for one in found if one.other == "exponential")
    p = 1 / counts.mean()
    geometric = np.log(p) + (counts - 1) * np.log(1 - p)
    power = -alpha * np.log(counts) - math.log(special.zeta(alpha, 1))
    gap = power - geometric
    assert other.ratio == pytest.approx(gap.sum(), abs=1e-3)
    chance = special.erfc(abs(gap.sum()) / math.sqrt(2 * counts.size * gap.var()))
    assert other.p == pytest.approx(chance, abs=1e-4)
    better = "power law" if gap.sum() > 0 else "exponential"
    assert other.favours == (better if chance < 0.1 else None)


def test_the_lognormal_is_fitted_between_the_start_and_the_top():
    counts = np.repeat(np.arange(2.0, 9.0), [20, 45, 60, 50, 30, 15, 5])
    alpha = 1.1
    data = failures.from_counts(counts, candidates=10)
    found = power_law.compare(data, alpha=alpha, start=2.0)[0]
    edges = np.arange(1.5, 10.0)

    def loss(point: np.ndarray) -> float:
        above = stats.norm.sf((np.log(edges) - point[0]) / math.exp(point[1]))
        shares = -np.diff(above) / (above[0] - above[-1])
        return -float(np.log(shares[(counts - 2).astype(int)]).sum())

    best = optimize.minimize(loss, [1.5, -1.0], method="Nelder-Mead").fun
    power = -alpha * np.log(counts) - np.log((np.arange(2.0, 10.0) ** -alpha).sum())
    assert found.other == "lognormal"
    assert found.ratio == pytest.approx(power.sum() + best, abs=0.01)
    assert found.favours == "lognormal"


def test_fiellers_interval_holds_the_sizes_that_the_line_does_not_exclude():
    u = np.array([8.0, 9.0, 10.0, 11.0, 12.0, 12.5])
    v = 0.05 * u - 0.3 + np.array([0.01, -0.02, 0.015, 0.0, -0.01, 0.005])
    found = measure.projection(10**u, 10**v, target=2.5, confidence=0.9)
    line = stats.linregress(u, v)
    n, goal = u.size, math.log10(2.5)
    assert found.slope == pytest.approx(line.slope)
    assert found.intercept == pytest.approx(line.intercept)
    assert found.r_squared == pytest.approx(line.rvalue**2)
    assert math.log10(found.size) == pytest.approx((goal - line.intercept) / line.slope)
    left = ((v - line.intercept - line.slope * u) ** 2).sum() / (n - 2)
    t = stats.t.ppf(0.95, n - 2)

    def excess(x: float) -> float:
        wide = ((u - u.mean()) ** 2).sum()
        error = left * (1 / n + (x - u.mean()) ** 2 / wide)
        return (line.intercept + line.slope * x - goal) ** 2 - t**2 * error

    middle = math.log10(found.size)
    low = optimize.brentq(excess, middle - 6, middle)
    high = optimize.brentq(excess, middle, middle + 12)
    assert math.log10(found.span.low) == pytest.approx(low)
    assert math.log10(found.span.high) == pytest.approx(high)
    doublings = math.log2(10 ** (high - 12.0))
    assert found.years_span.high == pytest.approx(max(0.0, 1.5 * doublings))


def test_a_size_that_exists_is_no_years_away():
    found = measure.projection([1e9, 1e10, 1e11], [2.0, 2.5, 3.2])
    assert found.size < 1e12
    assert found.years == 0.0


def test_a_line_without_rise_has_no_size():
    flat = measure.projection([1e9, 1e10, 1e11], [2.0, 2.0, 2.0])
    assert flat.reason == "the exponent does not rise with size"
    assert flat.slope == 0.0
    steep = measure.projection([1.0, 1.001, 1.002], [1.0, 1.0000001, 1.0000002])
    assert steep.size == math.inf


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_every_cell_has_two_neighbours_a_dimension_or_the_edge(dimension):
    side = 3
    table = sandpile._neighbours(side, dimension)
    places = list(np.ndindex(*(side,) * dimension))
    for cell, place in enumerate(places):
        near = []
        for axis in range(dimension):
            for step in (-1, 1):
                moved = [*place]
                moved[axis] += step
                inside = tuple(moved) in places
                near.append(places.index(tuple(moved)) if inside else len(places))
        assert table[cell].tolist() == near


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_first_grain_is_counted(compiled):
    sizes = sandpile.avalanches(
        side=2, dimension=2, grains=1, warm_up=0, compiled=compiled, rng=np.random.default_rng(0)
    )
    assert sizes.shape == (1,)


def test_solved_is_true_or_false_for_every_task():
    with pytest.raises(ScoringError, match="one true or false for each task"):
        failures.from_attempts([0, 1], [1, 2])


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.2])
def test_the_integral_is_corrected_to_the_third_derivative(alpha):
    start, top = np.array([10.0, 12.0]), 30.0
    direct = [np.sum(np.arange(x, top + 1.0) ** -alpha) for x in start]
    found = power_law._euler_maclaurin(alpha, start, top)
    assert found == pytest.approx(direct, rel=1e-7)
    assert abs(found[0] / direct[0] - 1) < 1e-7


@pytest.mark.parametrize(("alpha", "rel"), [(0.5, 2e-7), (1.0, 5e-7), (2.2, 4e-6)])
def test_the_correction_of_a_short_sum_is_small_but_seen(alpha, rel):
    start, top = np.array([6.0, 7.0]), 9.0
    direct = [np.sum(np.arange(x, top + 1.0) ** -alpha) for x in start]
    found = power_law._euler_maclaurin(alpha, start, top)
    assert found == pytest.approx(direct, rel=rel)


def test_searches_begin_at_the_moments():
    points, even = np.array([1.0, math.e]), np.ones(2)
    found = power_law._lognormal_start(points, even)
    assert found == pytest.approx([0.5, math.log(0.5)])
    narrow = power_law._lognormal_start(np.array([2.0]), np.ones(1))
    assert narrow == pytest.approx([math.log(2.0), math.log(0.1)])
    rate = power_law._exponential_start(np.array([2.0, 6.0]), np.array([3.0, 1.0]))
    assert rate == pytest.approx([-math.log(3.0 - 2.0 + 0.5)])


def test_the_top_of_scores_is_one_less_than_the_candidates():
    found = failures.from_scores([[1, 2, 3], [3, 2, 1]], [2, 2])
    assert (found.top, found.counts.tolist()) == (2.0, [0.0, 2.0])
    assert not found.censored.any()
    for scores in ([[1.0, math.nan]], [[1.0, 2.0], [math.nan, 1.0]]):
        with pytest.raises(ScoringError, match="no NaN"):
            failures.from_scores(scores, [0] * len(scores))
    for reference in ([0, 0.5], [0, -1], [0, 2]):
        with pytest.raises(ScoringError, match="must be columns"):
            failures.from_scores([[1.0, 2.0]] * 2, reference)


def test_forty_starts_are_spread_over_the_logarithm_from_end_to_end():
    part = failures.tail(counted(dict.fromkeys(range(1, 101), 60)), 1.0)
    starts = measure._starts(part)
    assert (starts[0], starts[-1]) == (1.0, 100.0)
    assert 20 < starts.size <= 40
    assert np.diff(starts)[-1] > np.diff(starts)[0] == 1.0
    few = failures.tail(counted(dict.fromkeys(range(1, 41), 60)), 1.0)
    assert measure._starts(few).tolist() == list(range(1, 41))
    thin = failures.tail(counted({1: 50, 2: 49, 3: 1}), 1.0)
    assert measure._starts(thin).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_stack_topples_as_many_as_generations(dimension):
    side, limit = 3, 2 * dimension
    cells, neighbours = side**dimension, sandpile._neighbours(side, dimension)
    grid = np.full(cells, limit - 1, dtype=np.int64)
    drops = np.random.default_rng(4).integers(0, cells, 40)
    one = sandpile._one_by_one(grid, neighbours, drops, limit)
    other = sandpile._generations(grid, neighbours, drops, limit)
    assert one.tolist() == other.tolist()
    assert one.max() > 1
    high = np.full(cells, 3 * limit, dtype=np.int64)  # topples more than once
    first, second = (
        relax(high, neighbours, drops[:5], limit)
        for relax in (sandpile._one_by_one, sandpile._generations)
    )
    assert first.sum() > 5
    assert second.sum() > 5


@pytest.mark.parametrize(("compiled", "used"), [(None, 1), (True, 1), (False, 0)])
def test_the_compiled_loop_is_taken_where_there_is_one(compiled, used, monkeypatch):
    calls = []

    def relax(grid, neighbours, drops, limit):
        calls.append((grid.size, drops.size, limit))
        return np.zeros(drops.size, dtype=np.int64)

    options = {"side": 2, "dimension": 2, "grains": 3, "compiled": compiled}
    monkeypatch.setattr(sandpile, "_compiled", lambda: relax)
    sandpile.avalanches(**options, rng=np.random.default_rng(0))
    assert calls == [(4, 4 + 3, 4)] * used
    monkeypatch.setattr(sandpile, "_compiled", lambda: None)
    sizes = sandpile.avalanches(**options, rng=np.random.default_rng(0))
    assert sizes.shape == (3,)


@pytest.mark.parametrize("wrong", [{"side": 0}, {"grains": 0}, {"dimension": 0}, {"dimension": 5}])
def test_a_pile_has_a_side_a_grain_and_up_to_four_dimensions(wrong):
    options = {"side": 1, "dimension": 1, "grains": 1, "compiled": False} | wrong
    with pytest.raises(ScoringError, match=r"must be 1 \.\. 4"):
        sandpile.avalanches(**options, rng=np.random.default_rng(0))


def test_a_tail_holds_what_lies_at_its_start():
    found = failures.from_attempts([0, 1, 2, 2, 3, 5], [1, 1, 1, 0, 1, 0])
    whole = failures.tail(found)
    assert whole.values.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert (whole.limits.tolist(), whole.start) == ([2.0, 5.0], 0.0)
    for part in (failures.tail(found, 2.0), whole.above(2.0)):
        assert part.values.tolist() == [2.0, 3.0]
        assert part.weights.tolist() == [1.0, 1.0]
        assert (part.limits.tolist(), part.censored.tolist()) == ([2, 5], [1, 1])
        assert (part.start, part.size) == (2.0, 4.0)
    half = failures.tail(failures.Failures(np.array([1.5]), np.zeros(1, bool), 9.0), 2)
    assert (half.values.tolist(), half.weights.tolist()) == ([2.0], [0.5])


def test_a_slope_that_may_be_0_excludes_no_size():
    """t^2 times the square of the slope's error is 1.44 times the slope's square."""
    u = np.array([8.0, 9.0, 10.0, 11.0])
    v = 0.05 * u + 0.029487179 * np.array([1.0, -1.0, 1.0, 1.0])
    line = stats.linregress(u, v)
    g = (stats.t.ppf(0.975, 2) * line.stderr / line.slope) ** 2
    assert 1.0 < g < 2.0
    found = measure.projection(10**u, 10**v)
    assert found.span.reason == "the slope may be 0: no size is excluded"
    assert math.isnan(found.span.low)
