"""Generality analysis: the seed's properties, its figure 1, its table 1, irises."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.measures.generality import difficulty
from owa_bench.measures.generality.measure import (
    ResponseCurve,
    analyse,
    characteristic_curve,
    interval,
    isometrics,
    measure,
    slodr,
)

Q = 10.0
INSIDE = st.floats(0.5, 9.5)


def step_down(at: float, end: float = Q) -> ResponseCurve:
    return ResponseCurve(np.array([0.0, at, at, end]), np.array([1.0, 1.0, 0.0, 0.0]))


def step_up(at: float, end: float = Q) -> ResponseCurve:
    return ResponseCurve(np.array([0.0, at, at, end]), np.array([0.0, 0.0, 1.0, 1.0]))


@given(INSIDE, st.floats(0.1, 5.0))
def test_property_1_translation_adds_to_capability_and_keeps_generality(at, k):
    ogive = ResponseCurve(np.array([0.0, at, Q]), np.array([1.0, 0.6, 0.0]))
    moved = ResponseCurve(np.append(0.0, ogive.difficulty + k), np.append(1.0, ogive.response))
    before, after = analyse(ogive), analyse(moved)
    assert after.capability == pytest.approx(before.capability + k)
    assert after.spread == pytest.approx(before.spread)


@given(st.floats(0.05, 0.9), st.floats(0.01, 0.09))
def test_property_2_mass_to_the_left_is_more_general(height, shift):
    h = np.linspace(0.0, Q, 21)
    flat = np.full(21, height)
    left = flat.copy()
    left[3] += shift
    left[15] -= shift / 2
    left[17] -= shift / 2
    left = np.clip(left, 0, 1)
    even, compact = analyse(ResponseCurve(h, flat)), analyse(ResponseCurve(h, left))
    if compact.capability == pytest.approx(even.capability):
        assert compact.spread < even.spread


@given(INSIDE)
def test_property_3_a_falling_step_has_no_spread(at):
    found = analyse(step_down(at))
    assert found.capability == pytest.approx(at)
    assert found.spread == 0.0
    assert found.absolute == math.inf
    assert found.normalised == pytest.approx(1.0)
    assert found.expected == pytest.approx(at / 2)


@given(st.floats(0.01, 0.99))
def test_property_4_a_constant_has_gamma_0(c):
    found = analyse(ResponseCurve(np.array([0.0, Q]), np.array([c, c])))
    assert found.spread == pytest.approx(Q * math.sqrt(c * (1 - c)))
    assert found.normalised == pytest.approx(0.0, abs=1e-6)


@given(INSIDE)
def test_property_5_a_rising_step_is_the_least_general(at):
    found = analyse(step_up(at))
    room = found.capability * (Q - found.capability)
    assert found.spread == pytest.approx(math.sqrt(2 * room))
    assert found.normalised == pytest.approx(-1.0)
    assert found.square == pytest.approx(1.0)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=8))
def test_property_6_gamma_1_means_task_transitivity(answers):
    found = measure([answers], np.arange(1.0, len(answers) + 1))[0]
    falling = all(a >= b for a, b in itertools.pairwise(answers))
    if found.reason is None and found.normalised > 0.99:
        assert falling


@given(st.integers(1, 7), st.integers(1, 7))
def test_property_7_gamma_1_means_agent_transitivity(first, second):
    hardness = np.arange(1.0, 9.0)
    one, other = (np.where(hardness <= n, 1.0, 0.0) for n in (first, second))
    a, b = measure([one, other], hardness)
    if a.capability >= b.capability:
        assert np.all(one >= other)


@given(st.floats(0.1, 50.0))
def test_property_8_capability_and_spread_have_the_units_of_difficulty(unit):
    h = np.array([1.0, 2.0, 3.0, 4.0])
    answers = [[1.0, 0.5, 0.7, 0.1]]
    one, scaled = measure(answers, h)[0], measure(answers, unit * h)[0]
    assert scaled.capability == pytest.approx(unit * one.capability)
    assert scaled.spread == pytest.approx(unit * one.spread)
    assert scaled.normalised == pytest.approx(one.normalised)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_a_normal_ogive_has_its_sigma_as_spread(sigma):
    h = np.linspace(0.0, 40.0, 4001)
    found = analyse(ResponseCurve(h, stats.norm.sf(h, 20.0, sigma)))
    assert found.spread == pytest.approx(sigma, rel=1e-3)


def test_figure_1_equal_means_different_generality():
    # Six tasks of four items, two tasks a difficulty; variances .016 and .203.
    first = np.array([0.5, 0.75, 0.5, 0.75, 0.75, 0.5])
    second = np.array([1.0, 1.0, 1.0, 0.75, 0.0, 0.0])
    assert first.mean() == second.mean() == 0.625
    assert round(first.var(), 3) == 0.016
    assert round(second.var(), 3) == 0.203
    a, b = measure([first, second], [1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    assert a.normalised == pytest.approx(0.0, abs=1e-6)
    assert b.normalised > 0.8
    assert b.spread < a.spread


def test_missing_answers_are_left_out_not_failed():
    whole, holed, empty = measure([[1, 1, 0], [1, math.nan, 0], [math.nan] * 3], [1.0, 2.0, 3.0])
    assert holed.used == 2
    assert holed.capability == pytest.approx(1 + 1)  # straight from (1, 1) to (3, 0)
    assert whole.capability == pytest.approx(2.5)
    assert math.isnan(empty.capability)
    assert empty.reason == "no item answered"
    assert (empty.used, empty.largest) == (0, 3.0)


def test_gamma_is_undefined_at_both_ends_and_says_so():
    none, everything = measure([[0.0, 0.0], [1.0, 1.0]], [1.0, 2.0])
    assert math.isnan(none.normalised)
    assert none.reason == "gamma is undefined at capability 0: it solves nothing"
    assert everything.reason == "gamma is undefined at capability q: it solves all"


@pytest.mark.parametrize(
    ("responses", "hardness", "said"),
    [
        ([[0.5, 1.2]], [1, 2], "`responses` must lie in [0, 1], got 1.2 at (1,)"),
        ([[0.5]], [1, 2], "one value an item, got (items, values) = (1, 2)"),
        ([[0.5, 0.5]], [1, math.nan], "`difficulties` must hold finite numbers"),
        ([[0.5, 0.5]], [-1, 2], "`difficulties` must lie in [0, inf], got -1.0"),
        ([[0.5, 0.5]], [0, 0], "end above 0"),
        ([], [], "`responses` must be (agents, items) and not empty"),
        ([["x"]], [1], "`responses` must hold numbers only"),
    ],
)
def test_bad_input_is_named(responses, hardness, said):
    with pytest.raises(ScoringError) as raised:
        measure(responses, hardness)
    assert said in str(raised.value)


def test_the_interval_covers_and_one_item_gives_a_reason(rng):
    h = np.repeat(np.arange(1.0, 6.0), 20)
    truth = measure([1.0 - h / 6.0], h)[0]
    hits = 0
    for _ in range(30):
        answers = (rng.random(h.size) < 1.0 - h / 6.0).astype(float)
        span = interval(answers, h, resamples=80, rng=rng)[0]
        hits += span.low <= truth.capability <= span.high
    assert hits >= 25
    assert interval([1.0], [2.0], rng=rng)[2].reason == "fewer than two items answered"


def test_slodr_finds_a_planted_correlation(rng):
    h = np.repeat(np.arange(1.0, 9.0), 50)
    rows = [
        (rng.random(h.size) < stats.norm.sf(h, a, 4.0 / a)).astype(float)
        for a in np.linspace(2.0, 6.0, 12)
    ]
    found = slodr(measure(rows, h), resamples=200, rng=rng)
    assert found.correlation > 0.8
    assert found.span.low > 0.5
    two = slodr(measure(rows[:2], h), resamples=10, rng=rng)
    assert two.reason == "2 agents have a gamma; three are needed"


def test_isometrics_bound_random_agents(rng):
    h = np.arange(1.0, 13.0)
    lines = isometrics(12.0)
    for one in measure(rng.random((50, 12)).round(), h):
        bound = np.interp(one.capability, lines.capability, lines.abstruse)
        assert 0.0 <= one.spread <= bound + 0.05


def test_small_tables_warn_with_their_sizes():
    with pytest.warns(difficulty.SmallSampleWarning, match="20 agents and 20 items"):
        difficulty.reference_agent([[1.0], [2.0]], [1.5])


def test_a_reference_agent_divides_the_population():
    scores = np.tile(np.arange(20.0)[:, None], 20)
    reference = np.arange(20.0)
    found = difficulty.reference_agent(scores, reference)
    assert found.difficulties == pytest.approx(np.arange(20) / 20)
    everyone = measure(found.responses, found.difficulties)
    assert all(one.normalised > 0.9 for one in everyone[1:19])


def test_consistent_agents_are_general_by_rank_and_random_ones_are_not(rng):
    scores = np.tile(np.arange(20.0)[:, None], 30)
    found = difficulty.ranks(scores, count=20)
    consistent = measure(found.responses, found.difficulties)
    assert min(one.normalised for one in consistent[1:19]) > 0.95
    found = difficulty.ranks(rng.permuted(scores, axis=0), count=20)
    mixed = slodr(measure(found.responses, found.difficulties), resamples=0, rng=rng)
    assert mixed.mean < 0.9 * min(one.normalised for one in consistent[1:19])


def test_a_reference_distribution_serves_one_agent(rng):
    people = rng.normal(size=(400, 10))
    found = difficulty.reference_distribution(np.zeros((1, 10)), people, count=9)
    one = measure(found.responses, found.difficulties)[0]
    assert one.capability == pytest.approx(0.5, abs=0.08)
    assert one.normalised > 0.9


def test_matches_between_ordered_players_are_transitive():
    order = np.triu(np.ones((8, 8)))
    np.fill_diagonal(order, np.nan)
    found = difficulty.opponents(order)
    players = measure(found.responses, found.difficulties)
    assert np.all(np.diff([one.capability for one in players]) < 0)
    assert players[3].normalised > 0.9


@pytest.mark.slow
def test_item_response_recovers_planted_difficulties(rng):
    b = np.linspace(-2.0, 2.0, 20)
    ability = rng.normal(size=(1500, 1))
    answers = (rng.random((1500, 20)) < 1 / (1 + np.exp(-1.5 * (ability - b)))) * 1.0
    found = difficulty.item_response(answers)
    assert found.converged
    assert np.abs(found.difficulties - b).max() < 0.35
    assert found.discriminations == pytest.approx(np.full(20, 1.5), abs=0.3)
    assert found.shifted.min() == 0.0


def test_item_response_leaves_out_what_all_solve(rng):
    answers = (rng.random((200, 20)) < 0.5) * 1.0
    answers[:, 3] = 1.0
    assert math.isnan(difficulty.item_response(answers).difficulties[3])
    with pytest.raises(ScoringError, match="must be 0 or 1 for IRT"):
        difficulty.item_response(np.full((200, 20), 0.5))


def test_one_factor_is_found_and_noise_has_none(rng):
    g = rng.normal(size=(400, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", difficulty.SmallSampleWarning)
        found = difficulty.factor_loadings(0.8 * g + 0.6 * rng.normal(size=(400, 6)))
        noise = difficulty.factor_loadings(rng.normal(size=(400, 6)))
    assert found.loadings == pytest.approx(np.full(6, 0.8), abs=0.1)
    assert found.share == pytest.approx(0.64, abs=0.1)
    assert noise.share < 0.35


def test_disagreeing_neighbours_by_hand():
    found = difficulty.disagreeing_neighbours(
        [[0.0], [1.0], [2.0], [10.0]], [0, 0, 1, 1], neighbours=2
    )
    assert found.tolist() == [0.5, 0.5, 1.0, 0.5]
    with pytest.raises(ScoringError, match="neighbours"):
        difficulty.disagreeing_neighbours([[0.0]], [0])


def test_a_flat_curve_extends_to_zero_and_largest():
    curve = characteristic_curve([0.5], [2.0], largest=4.0)
    assert curve.difficulty.tolist() == [0.0, 2.0, 4.0]
    assert curve.response.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.part(4)
@pytest.mark.slow
def test_irises_are_as_general_as_the_seed_found():
    pytest.importorskip("sklearn")
    from owa_bench.subjects.classifiers import iris_responses

    flowers = iris_responses()
    assert len(flowers.names) >= 36
    hardness = difficulty.disagreeing_neighbours(flowers.features, flowers.classes)
    found = measure(flowers.responses, hardness)
    assert np.mean(flowers.responses, axis=1).min() >= 0.35
    mean = np.nanmean([one.normalised for one in found])
    assert abs(mean - 0.75) <= 0.05  # the seed's table 2


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=7), st.integers(0, 99))
def test_the_analysis_is_that_of_the_curve_integrated_numerically(heights, seed):
    gaps = np.random.default_rng(seed).uniform(0.3, 2.0, len(heights) - 1)
    h = np.concatenate(([0.0], np.cumsum(gaps)))
    found = analyse(ResponseCurve(h, np.array(heights)), used=3)
    fine = np.linspace(0.0, h[-1], 20_001)
    psi = np.interp(fine, h, heights)
    area, moment = np.trapezoid(psi, fine), np.trapezoid(fine * psi, fine)
    assert found.capability == pytest.approx(area, abs=1e-3)
    assert (found.largest, found.used) == (h[-1], 3)
    if area > 0.05:
        assert found.expected == pytest.approx(moment / area, rel=1e-2)
    assert found.spread**2 == pytest.approx(2 * moment - area**2, abs=1e-2)
    room = found.capability * (h[-1] - found.capability)
    if found.spread > 0.05 and room > 0.05:
        x = found.spread**2 / room - 1
        assert found.absolute == pytest.approx(1 / found.spread)
        assert found.square == pytest.approx(x)
        gamma = -math.copysign(math.sqrt(abs(x)), x)
        assert found.normalised == pytest.approx(gamma, abs=1e-6)


def test_an_answer_at_difficulty_0_needs_no_flat_start():
    curve = characteristic_curve([0.25, 0.5], [0.0, 2.0])
    assert curve.difficulty.tolist() == [0.0, 2.0]
    assert curve.response.tolist() == [0.25, 0.5]


def test_all_agents_share_the_largest_difficulty_that_is_given():
    (found,) = measure([[1.0, 0.5]], [1.0, 2.0], largest=4.0)
    assert found.largest == 4.0
    assert found.capability == pytest.approx(1.0 + 0.75 + 0.5 * 2.0)


def test_the_interval_is_that_of_percentiles_over_items():
    answers, h = [1.0, 0.75, 0.5, 0.0, math.nan], [1.0, 2.0, 3.0, 4.0, 5.0]
    spans = interval(answers, h, resamples=50, level=0.8, rng=np.random.default_rng(3))
    stream, draws = np.random.default_rng(3), []
    for _ in range(50):
        chosen = stream.integers(0, 4, 4)
        one = measure([np.array(answers)[chosen]], np.array(h)[chosen], largest=5.0)[0]
        draws.append((one.capability, one.spread, one.normalised))
    for span, column in zip(spans, np.array(draws).T, strict=True):
        assert span.low == pytest.approx(np.nanquantile(column, 0.1))
        assert span.high == pytest.approx(np.nanquantile(column, 0.9))


def test_items_without_difficulty_give_no_interval(rng):
    spans = interval([1.0, 0.0, 1.0], [0.0, 0.0, 0.0], resamples=5, rng=rng)
    assert all(math.isnan(span.low) for span in spans)


def test_slodr_is_pearsons_correlation_over_agents_with_a_gamma(rng):
    rows = np.vstack((rng.random((9, 6)), np.zeros(6)))
    agents = measure(rows, np.arange(1.0, 7.0))
    found = slodr(agents, resamples=40, rng=rng)
    known = agents[:9]
    gammas = [one.normalised for one in known]
    r = stats.pearsonr([one.capability for one in known], gammas)[0]
    assert found.correlation == pytest.approx(r)
    assert found.mean == pytest.approx(np.mean(gammas))
    assert (found.used, found.agents, found.reason) == (9, 10, None)
    three = slodr(agents[:3], resamples=0, rng=rng)
    assert three.reason is None


def test_slodr_needs_two_capabilities_and_two_gammas(rng):
    one = measure([[1.0, 0.5, 0.0]], [1.0, 2.0, 3.0])[0]
    same = "all agents have one capability or one gamma"
    assert slodr([one] * 4, resamples=2, rng=rng).reason == same
    moved = [one._replace(capability=1.0 + k) for k in range(4)]
    assert slodr(moved, resamples=2, rng=rng).reason == same
    turned = [one._replace(normalised=0.1 * k) for k in range(4)]
    assert slodr(turned, resamples=2, rng=rng).reason == same


def test_isometrics_are_those_of_gamma_1_0_and_minus_1():
    lines = isometrics(4.0, points=5)
    assert lines.capability.tolist() == [0, 1, 2, 3, 4]
    assert lines.general.tolist() == [0.0] * 5
    assert lines.constant == pytest.approx(np.sqrt([0, 3, 4, 3, 0]))
    assert lines.abstruse == pytest.approx(np.sqrt([0, 6, 8, 6, 0]))


@pytest.mark.parametrize(
    ("case", "agents", "items"),
    [
        ("GA", 1, 5),
        ("Opp", 5, 1),
        ("ARef", 20, 20),
        ("Rnk", 20, 5),
        ("DRef", 1, 5),
        ("IRT", 200, 20),
        ("FA", 50, 5),
        ("FA", 60, 6),
    ],
)
def test_table_1_of_the_paper_sets_the_least_sizes(case, agents, items):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        difficulty.warn_if_small(case, agents, items)
    for fewer in ((agents - 1, items), (agents, items - 1))[: 1 if items == 6 else 2]:
        with pytest.warns(difficulty.SmallSampleWarning, match=f"{case} asks for"):
            difficulty.warn_if_small(case, *fewer)


def quietly(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", difficulty.SmallSampleWarning)
        return call(*arguments, **options)


def test_thresholds_of_ranks_are_values_of_the_population():
    scores = np.array([[3.0], [1.0], [math.nan], [2.0], [4.0]])
    found = quietly(difficulty.ranks, scores, count=2)
    assert found.difficulties.tolist() == [0.5, 1.0]
    assert found.item.tolist() == [0, 0]
    # Thresholds: the second and the fourth of the values 1, 2, 3, 4.
    nan = math.nan
    np.testing.assert_array_equal(found.responses, [[1, 0], [0, 0], [nan, nan], [1, 0], [1, 1]])
    whole = quietly(difficulty.ranks, scores, count=1)
    assert whole.difficulties.tolist() == [1.0]
    with pytest.raises(ScoringError, match="`count` must be at least 1, got 0"):
        quietly(difficulty.ranks, scores, count=0)


def test_who_never_answered_is_named_and_zeros_are_answers():
    with pytest.raises(ScoringError, match="no number for item 1"):
        quietly(difficulty.ranks, [[0.0, math.nan], [1.0, math.nan]])
    with pytest.raises(ScoringError, match="no number for agent 0"):
        quietly(difficulty.opponents, [[math.nan, math.nan], [1.0, math.nan]])


def test_as_many_neighbours_as_there_are_others_is_the_most():
    found = difficulty.disagreeing_neighbours([[0.0], [1.0], [5.0]], [0, 0, 1], neighbours=2)
    assert found.tolist() == [0.5, 0.5, 1.0]
    for wrong in (0, 3):
        with pytest.raises(ScoringError, match="must be below the instances"):
            difficulty.disagreeing_neighbours([[0.0], [1.0], [5.0]], [0, 0, 1], neighbours=wrong)


def test_neighbours_are_near_in_every_column():
    points = np.array([[0.0, 0.0], [0.0, 3.0], [2.0, 2.0], [9.0, 9.0]])
    found = difficulty.disagreeing_neighbours(points, [0, 1, 0, 1], neighbours=1)
    # The nearest of (0, 0) is (2, 2), of (0, 3) and of (9, 9) too, of (2, 2) (0, 3).
    assert found.tolist() == [0.0, 1.0, 1.0, 1.0]


def test_one_response_other_than_0_and_1_is_refused(rng):
    answers = (rng.random((200, 20)) < 0.5) * 1.0
    answers[7, 7] = 0.5
    with pytest.raises(ScoringError, match="must be 0 or 1 for IRT"):
        difficulty.item_response(answers)


def test_the_fitted_items_have_the_greatest_marginal_likelihood(rng):
    ability = rng.normal(size=(300, 1))
    b = np.array([-1.0, 0.0, 1.5])
    answers = (rng.random((300, 3)) < 1 / (1 + np.exp(-1.3 * (ability - b)))) * 1.0
    answers[:40, 1] = math.nan
    found = quietly(difficulty.item_response, answers)

    def likelihood(slopes: np.ndarray, difficulties: np.ndarray) -> float:
        t = np.linspace(-8.0, 8.0, 2001)
        p = 1 / (1 + np.exp(-slopes[:, None] * (t - difficulties[:, None])))
        each = np.ones((300, t.size))
        for i in range(3):
            known = ~np.isnan(answers[:, i])
            right = answers[:, i : i + 1] == 1.0
            each[known] *= np.where(right, p[i], 1 - p[i])[known]
        marginal = np.trapezoid(each * stats.norm.pdf(t), t, axis=1)
        return float(np.log(marginal).sum())

    best = likelihood(found.discriminations, found.difficulties)
    assert found.log_likelihood == pytest.approx(best, abs=5e-3)
    for step in (-0.05, 0.05):
        for i in range(3):
            moved = found.difficulties.copy()
            moved[i] += step
            assert likelihood(found.discriminations, moved) < best
            steeper = found.discriminations.copy()
            steeper[i] += step
            assert likelihood(steeper, found.difficulties) < best
    shifted = found.difficulties - found.difficulties.min()
    assert found.shifted == pytest.approx(shifted)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    line = found.discriminations * (nodes[:, None] - found.difficulties)
    p = (1 / (1 + np.exp(-line)))[:, None]
    each = np.where(np.isnan(answers), 1.0, np.where(answers == 1.0, p, 1 - p))
    marginal = weights / weights.sum() @ each.prod(axis=2)
    assert found.log_likelihood == pytest.approx(np.log(marginal).sum(), rel=1e-9)


def test_loadings_of_one_factor_reproduce_its_correlations():
    planted = np.array([0.9, 0.7, -0.5, 0.6])
    correlation = np.outer(planted, planted)
    np.fill_diagonal(correlation, 1.0)
    # Agents whose sample correlations are exactly these.
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(60, 4))
    raw -= raw.mean(axis=0)
    white = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T)).T)
    agents = white @ np.linalg.cholesky(correlation).T
    table = np.column_stack((agents, np.full(60, 2.0)))
    table = np.vstack((table, np.full(5, math.nan)))
    found = quietly(difficulty.factor_loadings, table)
    assert found.loadings[:4] == pytest.approx(planted, abs=1e-4)
    assert math.isnan(found.loadings[4])
    assert found.share == pytest.approx(np.mean(planted**2), abs=1e-4)


def test_factors_need_three_whole_agents_and_two_items():
    few = [[1.0, 2.0], [2.0, 1.0], [3.0, 5.0]]
    assert quietly(difficulty.factor_loadings, few).loadings.size == 2
    with pytest.raises(ScoringError, match=r"got \(2, 2\)"):
        quietly(difficulty.factor_loadings, few[:2])
    with pytest.raises(ScoringError, match=r"got \(3, 1\)"):
        quietly(difficulty.factor_loadings, [[1.0, 2.0], [1.0, 1.0], [1.0, 5.0]])
    with pytest.raises(ScoringError, match=r"got \(0, 0\)"):
        quietly(difficulty.factor_loadings, [[math.nan, 1.0]])


def test_slopes_that_the_data_do_not_tell_stop_at_their_bounds():
    """Three items in perfect order are steps; one that the able fail falls."""
    ability = np.arange(40)
    steps = [ability >= line for line in (10, 20, 30)]
    table = np.array([*steps, ability < 25, ability < 0, ability >= 39]).T * 1.0
    found = quietly(difficulty.item_response, table)
    assert found.discriminations[:3].max() == 8.0
    assert found.discriminations[3] == 0.05
    assert math.isnan(found.difficulties[4])
    assert found.difficulties[5] > found.difficulties[2]


def test_matches_are_square_and_between_0_and_1():
    with pytest.raises(ScoringError, match="`matches` must be square"):
        quietly(difficulty.opponents, [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ScoringError, match=r"`matches` must lie in \[0, 1\]"):
        quietly(difficulty.opponents, [[0.0, 1.5], [0.0, 0.0]])
    with pytest.warns(difficulty.SmallSampleWarning) as caught:
        difficulty.opponents([[0.0, 1.0], [0.0, 0.0]])
    assert caught[0].filename == __file__


def test_five_ranks_five_quantiles_and_ten_neighbours_are_the_defaults():
    scores = np.arange(5.0)[:, None]
    found = quietly(difficulty.ranks, scores).difficulties
    assert found == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    found = quietly(difficulty.reference_distribution, scores, scores).difficulties
    assert found == pytest.approx(np.arange(1, 6) / 6)
    line, classes = np.arange(12.0)[:, None], [0] * 11 + [1]
    found = difficulty.disagreeing_neighbours(line, classes)
    assert found.tolist() == [0.0] * 6 + [0.1] * 5 + [1.0]  # without the farthest


def test_a_curve_ends_where_it_is_asked_to():
    """From the last point to `largest`, and not beyond; a q of 0 is refused."""
    curve = characteristic_curve([0.5, 0.5], [1.0, 2.0], largest=2.0)
    assert curve.difficulty.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ScoringError, match="`largest` must lie in"):
        isometrics(0.0)
    assert isometrics(0.5).capability.size == 201


def test_two_items_have_an_interval(rng):
    spans = interval([1.0, 0.0], [0.5, 0.8], resamples=20, rng=rng)
    assert math.isfinite(spans[0].low)
    curve = ResponseCurve(np.array([0.0, 0.5]), np.array([1.0, 0.0]))
    assert analyse(curve).capability == pytest.approx(0.25)
    assert analyse(curve).used == 0


def test_half_of_everything_has_no_gamma_only_at_an_end():
    """At capability 1e-13 of q = 1 it solves nothing, at 1 - 1e-13 all of it."""
    h = np.array([0.0, 1.0])
    for height, words in ((1e-13, "it solves nothing"), (1 - 1e-13, "it solves all")):
        found = analyse(ResponseCurve(h, np.full(2, height)))
        assert words in str(found.reason)
    near = analyse(ResponseCurve(h, np.full(2, 1e-11)))
    assert near.reason is None
    assert near.square == pytest.approx(0.0, abs=1e-2)


@pytest.mark.parametrize(("height", "spread"), [(1e-11, 1e-7**0.5), (1e-13, 0.0)])
def test_rounding_is_measured_by_the_square_of_the_largest(height, spread):
    """A flat curve to q = 100 has the square of spread and the room q^2 height."""
    found = analyse(ResponseCurve(np.array([0.0, 100.0]), np.full(2, height)))
    assert found.spread == pytest.approx(spread, rel=1e-4, abs=0.0)
    assert (found.reason is None) == (spread > 0)
    assert found.absolute == (pytest.approx(1 / spread) if spread else math.inf)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_loading_stops_at_1(sign):
    """Without a stop the first would be the root of .8 .8 / .5."""
    near = 0.8 * sign
    matrix = np.array([[1.0, near, near], [near, 1.0, 0.5], [near, 0.5, 1.0]])
    found = difficulty._axis(matrix, 500)
    assert found[0] == sign
    assert found[1] == pytest.approx(found[2])
    assert 0.5 < found[1] < 0.85


def test_loadings_that_cancel_keep_their_size():
    found = difficulty._axis(np.array([[1.0, -0.5], [-0.5, 1.0]]), 200)
    assert np.sort(found) == pytest.approx([-(0.5**0.5), 0.5**0.5], abs=1e-6)


def test_a_curve_needs_a_difficulty_above_0():
    for h in ([0.0, 0.0], [0.0, 2.0, 1.0], [1.0, 2.0], [0.0]):
        with pytest.raises(ScoringError, match="must begin at 0, never fall"):
            analyse(ResponseCurve(np.array(h), np.ones(len(h))))
