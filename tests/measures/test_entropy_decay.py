"""Entropy decay: the seed's table 4, streaming, intervals, the n-gram model."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.measures.entropy_decay import measure, texts

# The seed's tables 1-3: U at k = 3, 9, 30, 90, 300, 600, and table 4.
CELLS = {
    "ulysses llama": ((0.8273, 0.5164, 0.2182, 0.0605, 0.0316, 0.0265), 0.6523),
    "ulysses deepseek": ((0.5602, 0.4645, 0.4089, 0.3945, 0.3854, 0.3806), 0.3161),
    "ulysses qwen": ((0.5902, 0.4972, 0.4506, 0.4426, 0.4148, 0.3989), 0.3225),
    "alice llama": ((0.8669, 0.5058, 0.1662, 0.0220, 0.0141, 0.0150), 0.6764),
    "alice deepseek": ((0.5663, 0.4650, 0.2984, 0.1650, 0.1483, 0.1688), 0.4339),
    "alice qwen": ((0.6164, 0.4909, 0.2766, 0.0925, 0.0623, 0.0679), 0.5176),
    "kant llama": ((0.8619, 0.5751, 0.3621, 0.2084, 0.1810, 0.1946), 0.5836),
    "kant deepseek": ((0.5751, 0.4994, 0.4095, 0.3532, 0.3459, 0.3541), 0.3492),
    "kant qwen": ((0.6192, 0.5385, 0.4318, 0.3880, 0.3848, 0.3906), 0.3544),
}


@pytest.mark.parametrize("cell", CELLS)
def test_table_4_to_four_digits(cell):
    index, printed = CELLS[cell]
    found = measure.information_gain(measure.LENGTHS, index)
    assert abs(found - printed) < 1e-4


def test_all_nine_cells_are_there():
    assert len(CELLS) == 9


def test_table_1_first_row_from_entropies():
    found = measure.from_entropies(
        measure.LENGTHS,
        [11.2112, 5.4613, 1.9958, 0.5029, 0.2583, 0.2160],
        [13.5514, 10.5765, 9.1482, 8.3146, 8.1838, 8.1527],
    )
    index = [round(point.uncertainty, 4) for point in found.points]
    assert index == pytest.approx(CELLS["ulysses llama"][0], abs=1.01e-4)
    assert found.gain == pytest.approx(0.6523, abs=1e-4)
    assert found.collapsed is False
    assert math.isnan(found.gain_span.low)


class Table:
    """A model that knows the distribution after each last token."""

    def __init__(self, rows):
        self.logs = np.log(rows)
        self.widest = 0

    def next_token_logits(self, contexts):
        self.widest = max(self.widest, len(contexts))
        return self.logs[contexts[:, -1]] + 7.0  # logits, not log probabilities


def test_streamed_sums_equal_the_definition(rng):
    rows = rng.dirichlet(np.ones(6), 6)
    tokens = rng.integers(0, 6, 240)
    model = Table(rows)
    found = measure.measure(model, tokens, windows=200, lengths=(3, 9), batch=7)
    assert model.widest <= 7
    for point in found.points:
        shares = rows[tokens[point.length - 1 : point.length + 199]]
        inner = -(shares * np.log2(shares)).sum(axis=1).mean()
        mean = shares.mean(axis=0)
        outer = -(mean * np.log2(mean)).sum()
        assert point.conditional == pytest.approx(inner)
        assert point.marginal == pytest.approx(outer)
        assert point.uncertainty == pytest.approx(inner / outer)
        assert point.span.low < point.uncertainty < point.span.high
        assert point.windows == 200


def test_jackknife_intervals_cover_the_long_run_value(rng):
    rows = rng.dirichlet(np.full(5, 0.4), 5)
    tokens = rng.integers(0, 5, 60_000)
    truth = measure.measure(Table(rows), tokens, windows=59_000, lengths=(3,))
    inside = 0
    for _ in range(60):
        part = rng.integers(0, 5, 430)
        found = measure.measure(Table(rows), part, windows=400, lengths=(3,))
        span = found.points[0].span
        inside += span.low <= truth.points[0].uncertainty <= span.high
    assert inside >= 52


def test_a_constant_model_has_no_index_and_no_gain():
    class Constant:
        def next_token_logits(self, contexts):
            logits = np.full((len(contexts), 4), -np.inf)
            logits[:, 0] = 0.0
            return logits

    found = measure.measure(Constant(), np.arange(700), windows=60)
    assert all(math.isnan(point.uncertainty) for point in found.points)
    assert math.isnan(found.gain)
    assert found.reason == "U is undefined at a length it needs"
    assert found.collapsed is None


def test_a_memorised_text_collapses(rng):
    tokens = rng.integers(0, 8, 900)

    class Reader:
        """Knows the next token once it has read 30 of them."""

        def next_token_logits(self, contexts):
            logits = np.zeros((len(contexts), 8))
            if contexts.shape[1] >= 30:
                views = np.lib.stride_tricks.sliding_window_view(tokens, contexts.shape[1])
                for i, row in enumerate(contexts):
                    at = int(np.argmax((views == row).all(axis=1)))
                    logits[i, tokens[at + contexts.shape[1]]] = 40.0
            return logits

    found = measure.measure(Reader(), tokens, windows=100)
    assert found.collapsed is True
    assert found.points[0].uncertainty == pytest.approx(1.0)
    assert found.gain > 0.9


@pytest.mark.parametrize(
    ("tokens", "options", "said"),
    [
        (np.arange(50), {"windows": 40}, "`tokens` needs 640 for 40 windows"),
        (np.arange(50) / 2, {"windows": 40}, "one row of integers"),
        (np.arange(900), {"windows": 10}, "2 <= `groups` <= `windows`"),
        (np.arange(900), {"windows": 40, "lengths": ()}, "`lengths` must be"),
        (np.arange(900), {"windows": 40, "lengths": (0, 5)}, "`lengths` must be"),
        (np.zeros(0, int), {"windows": 40}, "got 0"),
    ],
)
def test_bad_input_is_named(tokens, options, said):
    with pytest.raises(ScoringError) as raised:
        measure.measure(Table(np.ones((900, 2)) / 2), tokens, **options)
    assert said in str(raised.value)


ONE_NAN, ONE_EMPTY = np.zeros((2, 20, 3))
ONE_NAN[4, 2], ONE_EMPTY[4] = np.nan, -np.inf


@pytest.mark.parametrize("logits", [np.zeros(3), ONE_NAN, ONE_EMPTY])
def test_bad_logits_are_named(logits):
    class Broken:
        def next_token_logits(self, contexts):
            return logits

    with pytest.raises(ScoringError, match="next_token_logits"):
        measure.measure(Broken(), np.arange(60), windows=20, lengths=(3,), groups=2)


def test_conditional_above_marginal_is_refused():
    with pytest.raises(ScoringError, match="cannot exceed"):
        measure.from_entropies([3], [2.0], [1.0])


def test_the_ngram_model_is_a_distribution_and_learns(rng):
    text = "the cat sat on the mat and the dog sat on the log " * 30
    tokens, alphabet = texts.character_tokens(text)
    model = texts.NGramModel(tokens, order=4)
    logs = model.next_token_logits(np.array([tokens[:6], tokens[1:7]]))
    assert np.exp(logs).sum(axis=1) == pytest.approx([1.0, 1.0])
    long = measure.measure(model, tokens, windows=200, lengths=(1, 3, 9))
    first, middle, last = (point.uncertainty for point in long.points)
    assert first > middle
    assert last == pytest.approx(middle, abs=0.05)  # it reads three tokens only
    assert len(alphabet) == model.vocabulary


def test_gutenberg_texts_begin_with_the_work():
    text = (
        "Licence\n*** START OF THE PROJECT GUTENBERG EBOOK ALICE ***\n"
        "CHAPTER I.  Down the Rabbit-Hole\nCHAPTER II. The Pool\n\n"
        "CHAPTER I.\nDown the Rabbit-Hole\n\nAlice was beginning\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK ALICE ***\nlicence"
    )
    work = texts.strip_gutenberg(text, begins_with="CHAPTER I. Down the Rabbit-Hole")
    assert work == "CHAPTER I.\nDown the Rabbit-Hole\n\nAlice was beginning"
    assert texts.strip_gutenberg("plain") == "plain"
    with pytest.raises(ScoringError, match="`begins_with` must be found"):
        texts.strip_gutenberg(text, begins_with="PREFACE")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(4)


def test_the_correction_and_the_interval_are_the_jackknifes(rng):
    rows = rng.dirichlet(np.ones(5), 5)
    tokens = rng.integers(0, 5, 40)
    found = measure.measure(
        Table(rows), tokens, windows=30, lengths=(3,), groups=4, batch=3, level=0.9
    ).points[0]
    shares = rows[tokens[2:32]]
    edges = [0, 8, 15, 22, 30]  # 30 windows in four, 7.5 and 22.5 to even

    def share(rest: np.ndarray) -> float:
        inner = -(rest * np.log2(rest)).sum(axis=1).mean()
        mean = rest.mean(axis=0)
        return float(inner / -(mean * np.log2(mean)).sum())

    whole = share(shares)
    left = np.array(
        [share(np.delete(shares, np.s_[edges[g] : edges[g + 1]], axis=0)) for g in range(4)]
    )
    assert found.corrected == pytest.approx(4 * whole - 3 * left.mean())
    error = math.sqrt(3 / 4 * ((left - left.mean()) ** 2).sum())
    reach = 2.353363 * error  # t of .95 with three degrees of freedom
    assert found.span.low == pytest.approx(max(whole - reach, 0.0), abs=1e-6)
    assert found.span.high == pytest.approx(min(whole + reach, 1.0), abs=1e-6)


def test_the_gain_and_its_interval_come_from_the_four_lengths(rng):
    class Fading:
        """Knows more the longer the context."""

        def next_token_logits(self, contexts):
            sharp = math.log(contexts.shape[1]) * 1.2
            logits = np.zeros((len(contexts), 6))
            logits[np.arange(len(contexts)), contexts[:, -1]] = sharp
            return logits

    tokens = rng.integers(0, 6, 700)
    found = measure.measure(Fading(), tokens, windows=60, groups=6)
    u = {point.length: point.uncertainty for point in found.points}
    gain = (u[3] + u[9]) / 2 * (1 - (u[300] + u[600]) / 2)
    assert found.gain == pytest.approx(gain)
    assert found.gain_span.low < found.gain < found.gain_span.high
    assert found.collapsed is (u[600] < 0.02)
    assert found.reason is None


@pytest.mark.parametrize(("last", "collapsed"), [(0.019, True), (0.02, False)])
def test_collapse_is_uncertainty_below_the_threshold(last, collapsed):
    found = measure.from_entropies(measure.LENGTHS, [1.0, 0.5, 0.4, 0.3, 0.2, last], [1.0] * 6)
    assert found.collapsed is collapsed


def test_lengths_without_600_know_no_collapse():
    found = measure.from_entropies([3, 9, 300], [0.5, 0.4, 0.3], [1.0] * 3)
    assert found.collapsed is None
    assert found.reason == "the IGS needs context lengths [600] too"
    assert [p.windows for p in found.points] == [0, 0, 0]
    with pytest.raises(ScoringError, match="each context length once"):
        measure.from_entropies([3, 3], [0.5, 0.4], [1.0, 1.0])
    with pytest.raises(ScoringError, match="lengths"):
        measure.from_entropies([0, 3], [0.5, 0.4], [1.0, 1.0])


def test_rounding_above_the_marginal_is_no_error():
    assert measure.uncertainty_index([1.0 + 1e-10], [1.0])[0] == pytest.approx(1.0)
    with pytest.raises(ScoringError, match=r"1.01 above 1.0 at 1"):
        measure.uncertainty_index([0.5, 1.01], [1.0, 1.0])


def test_windows_take_as_many_tokens_as_they_need():
    model = Table(np.full((9, 9), 1 / 9))
    tokens = np.arange(24) % 9
    assert measure.measure(model, tokens, windows=21, lengths=(3,), groups=21).points
    with pytest.raises(ScoringError, match="needs 25 for 22 windows of up to 3"):
        measure.measure(model, tokens, windows=22, lengths=(3,), groups=2)
    for wrong in ({"groups": 1}, {"groups": 22}, {"lengths": (0,), "groups": 2}):
        with pytest.raises(ScoringError, match="`lengths` must be"):
            measure.measure(model, tokens, windows=21, **({"lengths": (3,)} | wrong))


def test_a_vocabulary_that_changes_is_refused():
    class Growing:
        calls = 0

        def next_token_logits(self, contexts):
            self.calls += 1
            return np.zeros((len(contexts), 2 + self.calls))

    with pytest.raises(ScoringError, match=r"one vocabulary, got sizes \(4, 3\)"):
        measure.measure(Growing(), np.arange(40), windows=20, lengths=(3,), groups=2)


def test_witten_bell_smoothing_by_hand():
    # abab b: a is followed by b twice; b by a and b once each.
    model = texts.NGramModel(np.array([0, 1, 0, 1, 1]), order=2)
    ((log_a, log_b),) = model.next_token_logits(np.array([[1, 0]]))
    # p(x) = (count + 2 / 2) / (5 + 2); p(b | a) = (2 + 1 p(b)) / (2 + 1).
    assert np.exp(log_b) == pytest.approx((2 + 4 / 7) / 3)
    assert np.exp(log_a) == pytest.approx(1 / 7)
    ((log_a, log_b),) = model.next_token_logits(np.array([[0, 1]]))
    assert np.exp(log_a) == pytest.approx((1 + 2 * 3 / 7) / 4)
    one = texts.NGramModel(np.array([0, 1, 0]), order=1, vocabulary=4)
    logs = one.next_token_logits(np.array([[0], [1]]))
    assert np.exp(logs[0]) == pytest.approx([2.5 / 5, 1.5 / 5, 0.5 / 5, 0.5 / 5])
    assert (logs[0] == logs[1]).all()


def test_an_unseen_context_is_read_without_its_oldest_token():
    model = texts.NGramModel(np.array([0, 1, 2, 0, 1, 0]), order=3)
    unseen, shorter = model.next_token_logits(np.array([[2, 1], [1, 1]]))
    assert unseen.tolist() == shorter.tolist()


@pytest.mark.parametrize(
    ("tokens", "options"),
    [([], {}), ([0], {"order": 0}), ([[0]], {}), ([-1], {}), ([3], {"vocabulary": 3})],
)
def test_tokens_that_make_no_model_are_refused(tokens, options):
    with pytest.raises(ScoringError):
        texts.NGramModel(np.array(tokens, dtype=int), **options)
    assert texts.NGramModel(np.array([2]), order=1, vocabulary=3).vocabulary == 3


def test_a_point_by_hand():
    """One window is sure, one of two tokens: H is half a bit, H* that of 3 in 4."""
    sums = measure.GroupSums(
        np.ones(2), np.array([0.0, math.log(2.0)]), np.array([[1.0, 0.0], [0.5, 0.5]])
    )
    found = measure._point(sums)
    outer = -0.75 * math.log2(0.75) + 0.25 * 2
    shares = (0.5 / outer, 0.5 / outer)
    assert found[:5] == pytest.approx((0, 0.5, outer, *shares))
    assert found.windows == 0
    assert measure._point(sums, leave=0)[1:4] == pytest.approx((1.0, 1.0, 1.0))


def test_rounding_makes_no_share_above_1():
    """Every distribution is alike: H = H*, which sums to a little less here."""

    class Same:
        def next_token_logits(self, contexts):
            row = np.random.default_rng(3).normal(size=2)
            return np.tile(row, (len(contexts), 1))

    found = measure.measure(Same(), np.zeros(30, int), windows=20, lengths=(3,))
    assert found.points[0].conditional > found.points[0].marginal
    assert found.points[0].uncertainty == 1.0


def test_two_groups_have_an_interval_and_a_missing_one_has_none():
    # (1 / 2)(.04 + .04) = .2^2, t(.975, 1) = 12.7: cut at both ends
    assert measure._jackknife(0.9, np.array([0.6, 1.0]), 0.95)[:2] == (0.0, 1.0)
    narrow = measure._jackknife(0.5, np.array([0.49, 0.51]), 0.95)
    assert narrow[:2] == pytest.approx((0.5 - 0.1270620, 0.5 + 0.1270620))
    for left in ([0.5, math.nan], [0.5]):
        assert math.isnan(measure._jackknife(0.5, np.array(left), 0.95).low)


def test_what_exceeds_the_marginal_is_named_and_rounding_is_not():
    assert np.isnan(measure.uncertainty_index([1e-9], [0.0])[0])
    with pytest.raises(ScoringError, match=r"got 2\.0 above 1\.0 at 2"):
        measure.uncertainty_index([1.0, 1e-9, 2.0], [1.0, 0.0, 1.0])
    with pytest.raises(ScoringError, match=r"`index` must lie in \[0, 1\]"):
        measure.information_gain(measure.LENGTHS, [0.9, 0.5, 0.4, 0.3, 0.2, 1.5])


def test_the_papers_lengths_are_read_in_batches_of_thirty_two():
    seen = []

    class Counting:
        def next_token_logits(self, contexts):
            seen.append(contexts.shape)
            return np.zeros((len(contexts), 2))

    measure.measure(Counting(), np.zeros(680, int), windows=80, groups=2)
    assert sorted({k for _, k in seen}) == [3, 9, 30, 90, 300, 600]
    assert [count for count, k in seen if k == 3] == [32, 8, 32, 8]
    assert measure.from_entropies([1.0], [1.0], [2.0]).points[0].length == 1
    with pytest.raises(ScoringError, match="`lengths` must lie in"):
        measure.from_entropies([0.0], [1.0], [2.0])


def test_the_work_begins_at_the_last_of_its_first_words():
    text = "Of Law. 1 Of Law. 2 Of Law. 3"
    assert texts.strip_gutenberg(text, begins_with="Of Law.") == "Of Law. 3"


def test_tokens_outside_the_vocabulary_are_named():
    assert texts.NGramModel([0, 1]).order == 4
    assert texts.NGramModel([0, 4], vocabulary=5).vocabulary == 5
    for tokens, said in (([-1, 2], r"got \(-1, 2\)"), ([2, 5], r"got \(2, 5\)")):
        with pytest.raises(ScoringError, match=said):
            texts.NGramModel(tokens, vocabulary=5)
