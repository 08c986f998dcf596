"""AIQ on given tables: complexity, dissimilarity, the intelligence space."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.measures.aiq import complexity
from owa_bench.measures.aiq import measure as aiq


def measure(sizes, good, **options):
    return complexity.complexity(sizes, good, **options)


def test_bins_keep_the_smallest_and_fill_by_rule(rng):
    good = [0.15, 0.15, 0.35, 0.55, 0.85]
    found = measure([9, 4, 6, 10, 16], good, bins=10)
    assert found.how == (
        complexity.NEAREST,
        complexity.OBSERVED,
        complexity.MEAN,
        complexity.OBSERVED,
        complexity.MEAN,
        complexity.OBSERVED,
        complexity.LINE,
        complexity.LINE,
        complexity.OBSERVED,
        complexity.EXTRAPOLATED,
    )
    line = np.polyfit([0.15, 0.35, 0.55, 0.85], [4, 6, 10, 16], 1)
    top = float(np.polyval(line, 0.95))
    assert found.sizes == pytest.approx([4, 4, 5, 6, 8, 10, 12, 14, 16, top])
    assert found.value == pytest.approx(np.mean(found.sizes))


def test_extrapolation_never_goes_below_the_smallest_network(rng):
    found = measure([50, 5], [0.1, 0.5])
    assert found.sizes.min() == 5.0


def test_complexity_is_constant_under_duplication_and_rises_with_need(rng):
    good = rng.random(300)
    sizes = 20 + 500 * good + rng.exponential(200, 300)
    once = measure(sizes, good)
    twice = measure(np.tile(sizes, 2), np.tile(good, 2))
    assert twice.value == once.value
    harder = measure(2 * sizes, good)
    assert harder.value == pytest.approx(2 * once.value)


@pytest.mark.parametrize(
    ("sizes", "good", "said"),
    [
        ([], [], "`sizes` needs at least 1 values"),
        ([1.0], [0.5, 0.5], "of one length, got (1, 2)"),
        ([1.0], [1.5], "`performances` must lie in [0, 1], got 1.5"),
        ([0.0], [0.5], "`sizes` must be above 0"),
        ([1.0], [math.nan], "every policy is missing"),
    ],
)
def test_bad_pools_are_named(sizes, good, said, rng):
    with pytest.raises(ScoringError) as raised:
        measure(sizes, good)
    assert said in str(raised.value)


def test_control_entropy_of_uniform_coordinates(rng):
    found = complexity.control_entropy(rng.random((200_000, 3)))
    assert found == pytest.approx(3 * math.log2(30), abs=0.01)


def test_counted_observations_have_the_entropy_of_the_observations(rng):
    seen = np.column_stack((rng.normal(size=500), rng.random(500), np.full(500, 3.0)))
    counts = [np.histogram(column, 30)[0] for column in seen.T]
    assert complexity.histogram_entropy(counts) == pytest.approx(complexity.control_entropy(seen))
    with pytest.raises(ScoringError, match="each row of `counts`"):
        complexity.histogram_entropy([[1, 2], [0, 0]])


def test_a_part_of_a_suite_keeps_its_dissimilarities():
    gaps = [[0, 0.2, 0.4], [0.2, 0, np.nan], [0.4, np.nan, 0]]
    whole = aiq.dissimilarity_matrix(gaps, floor=0.3)
    part = aiq.subset(whole, [2, 0])
    assert part.matrix.tolist() == [[0.0, 0.4], [0.4, 0.0]]
    assert part.told.tolist() == [[False, True], [True, False]]
    assert (part.filled.any(), part.floor) == (False, 0.3)
    assert aiq.subset(whole, [1, 2]).filled[0, 1]
    for chosen in ([0], [0, 0], [0, 3]):
        with pytest.raises(ScoringError, match="at least 2 different domains of 3"):
            aiq.subset(whole, chosen)


def test_image_entropy_by_hand_and_label_bits():
    corner = complexity.image_entropy(np.array([[[0.0, 1.0], [1.0, 0.0]]]), classes=1)
    # Each pixel sees itself and two neighbours of the other value: H(1/3, 2/3).
    assert corner.mean == pytest.approx(math.log2(3) - 2 / 3)
    flat = np.zeros((5, 4, 4))
    assert complexity.image_entropy(flat, classes=100).mean == pytest.approx(6.6439, abs=1e-4)
    twice = complexity.image_entropy(np.tile(flat, (2, 1, 1)), classes=100)
    assert twice.total == 2 * complexity.image_entropy(flat, classes=100).total


def test_dissimilarity_of_a_domain_with_itself_is_noise(rng):
    p = np.linspace(0, 1, 11)[:, None]
    itself = 0.8 + rng.normal(0, 0.01, (11, 5))
    assert aiq.dissimilarity(itself) < 0.01
    mixed = np.repeat(0.8 - 0.6 * p * (1 - p), 5, axis=1)
    assert aiq.dissimilarity(mixed) == pytest.approx(0.1, abs=2e-3)
    assert aiq.dissimilarity(mixed[::-1]) == pytest.approx(aiq.dissimilarity(mixed))


def test_linear_mixing_is_no_dissimilarity():
    assert aiq.dissimilarity(np.linspace(0.2, 0.9, 11)) < 1e-12


def test_partial_maps_are_filled_between_the_triangle_bounds(rng):
    places = rng.random((6, 3))
    true = np.linalg.norm(places[:, None] - places[None], axis=2)
    part = true.copy()
    part[2, 5] = part[5, 2] = math.nan
    found = aiq.dissimilarity_matrix(part, floor=0.01)
    assert found.filled.sum() == 2
    assert found.matrix[2, 5] == pytest.approx(true[2, 5], rel=0.6)
    assert np.array_equal(found.matrix, found.matrix.T)
    alone = np.full((3, 3), math.nan)
    with pytest.raises(ScoringError, match="share none"):
        aiq.dissimilarity_matrix(alone)


def test_cells_below_the_noise_floor_are_not_told_apart():
    found = aiq.dissimilarity_matrix([[0, 0.01], [0.01, 0]], floor=0.02)
    assert not found.told.any()
    with pytest.raises(ScoringError, match="must be symmetric"):
        aiq.dissimilarity_matrix([[0, 0.5], [0.1, 0]])


def test_orthogonal_tests_span_a_simplex():
    gaps = 1.0 - np.eye(3)
    suite = aiq.intelligence_space(gaps, [2.0, 3.0, 4.0])
    assert suite.dimension == 3
    assert suite.cut == 0.0
    best = aiq.measure(suite, [1.0, 1.0, 1.0])
    assert best.volume == pytest.approx(2 * 3 * 4 / 6)
    assert best.full == pytest.approx(best.volume)
    assert best.length == pytest.approx(4 ** (1 / 3))
    half = aiq.measure(suite, [0.5, 1.0, 1.0])
    assert half.volume == pytest.approx(2.0)
    assert half.corners == (0, 1, 2)


def test_identical_tests_add_nothing_but_choose_the_better():
    gaps = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    suite = aiq.intelligence_space(gaps, [2.0, 2.0, 3.0])
    assert suite.dimension == 2
    found = aiq.measure(suite, [0.4, 1.0, 1.0])
    assert found.volume == pytest.approx(2 * 3 / 2)
    assert found.corners == (1, 2)
    assert found.full == 0.0


def test_a_specialist_is_flat_and_says_so():
    suite = aiq.intelligence_space(1.0 - np.eye(3), [1.0, 1.0, 1.0])
    found = aiq.measure(suite, [1.0, 1.0, 0.0])
    assert found.volume == 0.0
    assert found.reason == "the agent's points span 2 of 3 dimensions"


def test_handicapped_agents_rank_in_order(rng):
    places = rng.random((10, 4))
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    suite = aiq.intelligence_space(gaps, rng.uniform(10, 50, 10))
    assert 1 <= suite.dimension <= 8
    skill = rng.uniform(0.5, 1.0, 10)
    volumes = [aiq.measure(suite, s * skill).volume for s in (1.0, 0.8, 0.5, 0.2)]
    assert np.all(np.diff(volumes) < 0)
    assert 0.0 <= suite.cut < 0.5


def test_the_volume_does_not_depend_on_the_order_of_tests(rng):
    places = rng.random((5, 3))
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    heights, skill = rng.uniform(1, 3, 5), rng.random(5)
    order = rng.permutation(5)
    one = aiq.measure(aiq.intelligence_space(gaps, heights), skill)
    other = aiq.measure(
        aiq.intelligence_space(gaps[np.ix_(order, order)], heights[order]), skill[order]
    )
    assert other.volume == pytest.approx(one.volume)
    assert other.full == pytest.approx(one.full)


@pytest.mark.parametrize(
    ("gaps", "heights", "said"),
    [
        ([[0, 1], [1, 0]], [1.0], "n x n for n `complexities`"),
        ([[0, 1], [2, 0]], [1.0, 1.0], "must be symmetric"),
        ([[0, 1], [1, 0]], [0.0, 1.0], "`complexities` must be above 0"),
        ([[0, math.nan], [math.nan, 0]], [1.0, 1.0], "finite numbers"),
    ],
)
def test_bad_suites_are_named(gaps, heights, said):
    with pytest.raises(ScoringError) as raised:
        aiq.intelligence_space(gaps, heights)
    assert said in str(raised.value)


def test_one_test_is_a_line():
    found = aiq.measure(aiq.intelligence_space([[0.0]], [5.0]), [0.4])
    assert found.volume == pytest.approx(2.0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def test_uneven_proportions_weigh_their_own_widths():
    # V = 1, .2, 1 at p = 0, .25, 1: gaps of 0, .8, 0 from the line, trapezoids.
    found = aiq.dissimilarity([1.0, 0.2, 1.0], [0.0, 0.25, 1.0])
    assert found == pytest.approx(0.8 / 2 * 1.0)
    # A line from .2 at p = 0 to .6 at p = 1 lies at .3 at p = .25.
    tilted = aiq.dissimilarity([0.2, 0.5, 0.6], [0.0, 0.25, 1.0])
    assert tilted == pytest.approx(0.2 / 2)
    with_hole = aiq.dissimilarity([[1.0, 1.0], [0.4, math.nan], [1.0, 1.0]])
    assert with_hole == pytest.approx(0.6 / 2)


@pytest.mark.parametrize(
    "proportions", [[0.0, 0.5], [0.1, 0.5, 1.0], [0.0, 0.5, 0.9], [0.0, 0.0, 1.0]]
)
def test_proportions_must_rise_from_0_to_1(proportions):
    with pytest.raises(ScoringError):
        aiq.dissimilarity([1.0, 0.5, 1.0], proportions)


def test_a_proportion_without_a_retraining_is_named():
    with pytest.raises(ScoringError, match="without a retraining"):
        aiq.dissimilarity([[1.0], [math.nan], [1.0]])


def test_measured_twice_a_pair_is_the_mean_and_the_floor_is_not_above_itself():
    found = aiq.dissimilarity_matrix(
        [[0.0, 0.30, 0.5], [0.32, 0.0, math.nan], [math.nan, 0.02, 0.0]], floor=0.02
    )
    assert found.matrix == pytest.approx(
        np.array([[0, 0.31, 0.5], [0.31, 0, 0.02], [0.5, 0.02, 0]])
    )
    assert not found.filled.any()
    assert not found.told[1, 2]
    assert found.told[0, 1]
    assert not found.told.diagonal().any()


def test_a_filled_pair_is_the_middle_of_every_triangle():
    nan = math.nan
    found = aiq.dissimilarity_matrix(
        [[0.0, nan, 0.5, 0.2], [nan, 0.0, 0.1, 0.3], [0.5, 0.1, 0.0, 0.4], [0.2, 0.3, 0.4, 0.0]]
    )
    # At least |.5 - .1| and |.2 - .3|, at most .5 + .1 and .2 + .3.
    assert found.matrix[0, 1] == pytest.approx((0.4 + 0.5) / 2)
    assert found.filled.sum() == 2


def test_sides_may_differ_by_the_floor_and_a_tenth_of_the_largest():
    aiq.dissimilarity_matrix([[0.0, 1.0], [0.88, 0.0]], floor=0.03)
    with pytest.raises(ScoringError, match="must be symmetric"):
        aiq.dissimilarity_matrix([[0.0, 1.0], [0.86, 0.0]], floor=0.03)


def test_the_gram_matrix_of_a_space_is_that_of_its_dissimilarities(rng):
    places = rng.normal(size=(4, 4))
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    inner = places @ places.T
    gaps = np.sqrt(np.maximum(1.0 - inner, 0.0))
    gaps /= gaps.max()
    np.fill_diagonal(gaps, 0.0)
    heights = np.array([1.0, 2.0, 3.0, 4.0])
    suite = aiq.intelligence_space(3.0 * gaps, heights)
    gram = 1.0 - gaps**2
    values = np.linalg.eigvalsh(gram)
    cut = -values[values < 0].sum() / np.abs(values).sum()
    assert suite.cut == pytest.approx(cut, abs=1e-9)
    if cut < 1e-9:
        assert suite.units @ suite.units.T == pytest.approx(gram)
    assert np.linalg.norm(suite.points, axis=1) == pytest.approx(heights)
    assert suite.held.sum() == pytest.approx(1.0)
    shares = np.cumsum(np.linalg.svd(suite.points, compute_uv=False) ** 2)
    shares /= shares[-1]
    assert suite.dimension == int(np.argmax(shares >= 0.95)) + 1


def test_negative_eigenvalues_are_cut_and_their_share_is_said():
    # G of three points with d = 1, 1, 2 (scaled to .5, .5, 1).
    gaps = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    suite = aiq.intelligence_space(gaps, [1.0, 1.0, 1.0])
    # G = [[1, .75, 0], [.75, 1, .75], [0, .75, 1]]: 1 and 1 +- .75 sqrt 2.
    low = 0.75 * math.sqrt(2.0) - 1.0
    assert suite.cut == pytest.approx(low / (1.0 + (2.0 + low) + low))
    assert np.linalg.norm(suite.units, axis=1) == pytest.approx([1.0] * 3)


def test_weak_axes_are_no_dimension():
    suite = aiq.intelligence_space(1.0 - np.eye(3), [10.0, 10.0, 1.0])
    assert suite.dimension == 2
    assert suite.held == pytest.approx(np.array([100.0, 100.0, 1.0]) / 201.0)
    assert aiq.intelligence_space(1.0 - np.eye(12), np.ones(12)).dimension == 8
    drawn = np.abs(aiq.coordinates(suite))
    assert drawn == pytest.approx(np.abs(drawn[:, :2]) @ np.eye(2, 3))
    assert aiq.coordinates(suite, axes=2).shape == (3, 2)
    assert aiq.coordinates(suite, axes=1).shape == (3, 1)


def test_domains_alike_lie_on_one_line():
    suite = aiq.intelligence_space(np.zeros((2, 2)), [2.0, 5.0])
    assert suite.dimension == 1
    found = aiq.measure(suite, [1.0, 0.1])
    assert (found.volume, found.corners) == (pytest.approx(2.0), (0,))
    assert found.length == pytest.approx(2.0)


def test_large_complexities_scale_the_volume_by_their_product():
    heights = np.array([2e6, 3e6, 5e6])
    suite = aiq.intelligence_space(1.0 - np.eye(3), heights)
    found = aiq.measure(suite, [1.0, 0.9, 0.8])
    assert found.volume == pytest.approx(heights.prod() * 0.72 / 6)
    assert found.full == pytest.approx(found.volume)


def test_nothing_solved_spans_nothing():
    suite = aiq.intelligence_space(1.0 - np.eye(2), [1.0, 1.0])
    found = aiq.measure(suite, [0.0, 0.0])
    assert (found.volume, found.full, found.corners) == (0.0, 0.0, ())
    assert found.reason == "the agent's points span 0 of 2 dimensions"


def test_bins_divide_the_range_that_is_given(rng):
    found = measure([4, 8], [20.0, 70.0], bins=2, low=0.0, high=100.0)
    assert found.centres.tolist() == [25.0, 75.0]
    assert found.sizes.tolist() == [4.0, 8.0]
    assert found.value == pytest.approx(4 * 50 + 8 * 50)
    assert found.used == 2
    for options in ({"bins": 0}, {"low": 1.0, "high": 1.0}):
        with pytest.raises(ScoringError):
            measure([4], [1.0], **options)
    assert measure([4], [1.0], bins=1).value == 4.0


def test_a_performance_on_an_edge_is_in_the_upper_bin_and_the_top_in_the_last(rng):
    found = measure([6, 3], [0.5, 1.0], bins=2)
    assert found.how == (complexity.NEAREST, complexity.OBSERVED)
    assert found.sizes.tolist() == [3.0, 3.0]


def test_one_bin_seen_is_carried_flat_above(rng):
    found = measure([7, 9], [0.1, 0.12], bins=4)
    assert found.sizes.tolist() == [7.0] * 4
    assert found.how[1:] == (complexity.EXTRAPOLATED,) * 3


def test_a_failed_training_is_no_policy(rng):
    found = measure([2, 8], [math.nan, 0.5], bins=2)
    assert (found.used, found.value) == (1, 8.0)


def test_the_interval_is_of_pools_that_were_trained_apart():
    sizes, good = [3.0, 9.0, 5.0, 20.0, 4.0, 8.0], [0.1, 0.4, 0.6, 0.9, 0.2, 0.8]
    pools = [0, 0, 1, 1, 2, 2]
    areas = [measure(sizes[k : k + 2], good[k : k + 2], bins=3).value for k in (0, 2, 4)]
    found = measure(sizes, good, pools=pools, bins=3)
    assert found.value == pytest.approx(np.mean(areas))
    reach = 4.302653 * np.std(areas, ddof=1) / math.sqrt(3)
    assert found.span.low == pytest.approx(np.mean(areas) - reach)
    assert found.span.high == pytest.approx(np.mean(areas) + reach)
    alone = measure(sizes, good, bins=3)
    assert math.isnan(alone.span.low)
    assert "train it again" in alone.span.reason
    with pytest.raises(ScoringError, match="`sizes` and `pools`"):
        measure(sizes, good, pools=[0, 1])


def test_the_interval_covers_what_pools_of_this_size_have_on_average(rng):
    def pools(count):
        size = rng.geometric(0.02, (count, 16)) + 5.0
        good = np.clip(1.0 - 6.0 / size + rng.normal(0.0, 0.15, size.shape), 0.0, 1.0)
        return size, good

    many = zip(*pools(4000), strict=True)
    truth = np.mean([measure(size, good).value for size, good in many])
    labels = np.repeat(np.arange(5), 16)
    inside = 0
    for _ in range(300):
        size, good = pools(5)
        span = measure(size.ravel(), good.ravel(), pools=labels).span
        inside += span.low <= truth <= span.high
    assert inside >= 0.9 * 300


def test_complexities_are_shares_of_the_largest():
    assert complexity.normalise([3.0, 0.0, 6.0]).tolist() == [0.5, 0.0, 1.0]
    with pytest.raises(ScoringError, match="above 0, got 0 at most"):
        complexity.normalise([0.0, 0.0])


def test_image_entropy_is_that_of_five_pixels_counted_by_hand(rng):
    image = rng.integers(0, 3, (4, 5))
    each = []
    for i in range(4):
        for j in range(5):
            around = [(i, j), (i, j + 1), (i, j - 1), (i + 1, j), (i - 1, j)]
            seen = [image[a, b] for a, b in around if 0 <= a < 4 and 0 <= b < 5]
            shares = np.unique(seen, return_counts=True)[1] / len(seen)
            each.append(-(shares * np.log2(shares)).sum())
    found = complexity.image_entropy(image[None], classes=1)
    assert found.mean == pytest.approx(np.mean(each))
    for shape, classes in (((3, 3), 2), ((1, 3, 3), 0), ((0, 3, 3), 2)):
        with pytest.raises(ScoringError, match="`images` must be"):
            complexity.image_entropy(np.zeros(shape), classes=classes)


def test_a_histogram_refuses_counts_below_0():
    with pytest.raises(ScoringError, match="counts"):
        complexity.histogram_entropy([[3.0, -1.0]])
    assert complexity.histogram_entropy([[1, 3]]) == pytest.approx(2.0 - 0.75 * math.log2(3.0))


def test_every_bin_says_once_how_it_was_filled(rng):
    found = complexity.complexity([1, 2, 30, 40, 50], [0.05, 0.05, 0.25, 0.5, 0.95], bins=10)
    seen = [place for place, how in enumerate(found.how) if how == complexity.OBSERVED]
    assert seen == [0, 2, 5, 9]
    assert len(found.how) == 10


def test_two_pools_have_an_interval_and_thirty_bins_are_the_default():
    found = measure([4.0, 6.0], [0.5, 0.5], pools=[0, 1])
    assert found.sizes.tolist() == [5.0] * 30
    assert found.value == pytest.approx(5.0)
    # t(.975, 1) = 12.706205, the error of a mean of 4 and 6 is 1
    assert found.span == pytest.approx((5 - 12.706205, 5 + 12.706205, None))


def test_two_bins_seen_are_a_line_above():
    found = measure([4.0, 8.0], [0.1, 0.3], bins=5)
    assert found.sizes == pytest.approx([4.0, 8.0, 12.0, 16.0, 20.0])


def test_complexities_below_1_are_shares_too_and_one_size_of_0_is_refused():
    assert complexity.normalise([0.25, 0.5]).tolist() == [0.5, 1.0]
    with pytest.raises(ScoringError, match="`sizes` must be above 0"):
        measure([0.0, 5.0], [0.5, 0.5])


def test_a_coordinate_that_never_moves_adds_nothing_however_large():
    assert complexity.control_entropy([[0.0, 1e20], [1.0, 1e20]], bins=2) == 1.0


def test_ends_alone_have_no_dissimilarity_and_performances_stop_at_1():
    assert aiq.dissimilarity([0.3, 0.9]) == 0.0
    with pytest.raises(ScoringError, match=r"`mixed` must lie in \[0, 1\]"):
        aiq.dissimilarity([0.5, 1.5, 0.5])


@pytest.mark.parametrize(
    ("measured", "floor", "said"),
    [
        ([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]], 0.0, "must be square"),
        ([[0.0, 0.1], [0.13, 0.0]], 0.0, "got 0.1 at (0, 1) and 0.13 at (1, 0)"),
        ([[0.0, 1.0], [0.64, 0.0]], 0.25, "must be symmetric"),
        ([[0.0, 1.0], [0.65, 0.0]], 0.25, None),
    ],
)
def test_a_map_is_square_and_symmetric_within_its_noise(measured, floor, said):
    if said is None:
        found = aiq.dissimilarity_matrix(measured, floor=floor)
        assert found.matrix[0, 1] == pytest.approx(0.825)
        return
    with pytest.raises(ScoringError) as raised:
        aiq.dissimilarity_matrix(measured, floor=floor)
    assert said in str(raised.value)


def test_dissimilarities_are_read_by_their_largest():
    small = aiq.intelligence_space(0.5 * (1.0 - np.eye(3)), np.ones(3))
    assert small.units @ small.units.T == pytest.approx(np.eye(3))
    with pytest.raises(ScoringError, match="zeros on the diagonal"):
        aiq.intelligence_space([[0.5, 1.0], [1.0, 0.0]], [1.0, 1.0])


def test_axes_that_hold_exactly_the_share_are_enough():
    heights = [math.sqrt(19.0), 1.0]
    assert aiq.intelligence_space(1.0 - np.eye(2), heights).dimension == 1


def test_what_is_thin_is_thin_beside_the_largest():
    gaps = 1.0 - np.eye(3)
    large = aiq.intelligence_space(gaps, np.full(3, 1e6))
    found = aiq.measure(large, [1.0, 1e-5, 1e-13])
    assert found.reason == "the agent's points span 2 of 3 dimensions"
    small = aiq.intelligence_space(gaps, np.full(3, 1e-4))
    found = aiq.measure(small, [1.0, 1.0, 1e-6])
    assert found.volume == pytest.approx(1e-18 / 6, rel=1e-9, abs=0.0)
    with pytest.raises(ScoringError, match=r"`performances` must lie in \[0, 1\]"):
        aiq.measure(large, [1.0, 1.0, 1.5])
