"""Axis M on numbers written by hand: the law, its interval, probes, medians, errors."""

import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from scipy import optimize, stats

from owa_bench.errors import ScoringError
from owa_bench.scoring.axes import memory
from owa_bench.scoring.axes.memory import Retention, fit_retention, half_life
from owa_bench.scoring.statistics.statistics_table import Totals
from tests.builders.episodes import PROTOCOL

LAGS = np.array([0.0, 7.0])
LN2 = math.log(2)


def log_likelihood(start, rate, hits, trials, lags):
    chance = start * np.exp(-rate * lags)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = hits * np.log(chance) + (trials - hits) * np.log1p(-chance)
    return float(np.where(np.isnan(parts), 0.0, parts).sum())


@pytest.mark.parametrize(
    ("hits", "trials", "lags"),
    [
        ((80.0, 40.0), (100.0, 100.0), (0.0, 7.0)),
        ((9.0, 5.0, 3.0), (10.0, 10.0, 10.0), (1.0, 2.0, 5.0)),
        ((18.0, 3.0, 1.0), (20.0, 30.0, 5.0), (0.5, 3.0, 4.0)),
    ],
)
def test_the_law_is_the_most_likely_one(hits, trials, lags):
    """By another optimiser, over the same two numbers."""
    hits, trials, lags = map(np.array, (hits, trials, lags))

    def loss(x):
        return -log_likelihood(x[0], x[1], hits, trials, lags)

    best = optimize.minimize(
        loss, (0.7, 0.2), bounds=((1e-6, 1 - 1e-9), (0, 8)), method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000},
    )  # fmt: skip
    found = fit_retention(hits, trials, lags)
    assert found.start == pytest.approx(best.x[0], abs=1e-5)
    assert found.forgetting == pytest.approx(best.x[1], abs=1e-5)


def test_laws_at_the_ends_of_their_range():
    ten = np.array([10.0, 10.0])
    for hits, start, rate in (
        ((10.0, 10.0), 1.0, 0.0),  # all right
        ((0.0, 0.0), 0.0, 0.0),  # nothing right
        ((3.0, 6.0), 0.45, 0.0),  # better later: no forgetting, the mean
        ((10.0, 5.0), 1.0, LN2 / 7),
        ((1.0, 1.0), 0.1, 0.0),
    ):
        found = fit_retention(np.array(hits), ten, LAGS)
        assert found.start == pytest.approx(start, abs=1e-9)
        assert found.forgetting == pytest.approx(rate, abs=2e-8)
    assert fit_retention(ten, ten, LAGS).start == 1.0
    assert fit_retention(np.array([3.0, 6.0]), ten, LAGS).forgetting == 0.0
    assert fit_retention(np.array([6.0, 0.0]), ten, LAGS).forgetting > 2.0
    fastest = fit_retention(np.array([6.0, 0.0]), ten, np.array([0.0, 0.01]))
    assert fastest.forgetting == pytest.approx(8.0, abs=1e-6)  # none is faster


def test_lags_without_trials_say_nothing():
    hits, trials = (np.array([[6.0, 0.0], [0.0, 0.0]]), np.array([[10.0, 0.0], [0.0, 0.0]]))
    found = fit_retention(hits, trials, LAGS)
    assert found.start[0] == pytest.approx(0.6)
    assert np.isnan(found.start[1])
    assert np.isnan(found.forgetting).all()
    one = half_life(hits[0], trials[0], LAGS, 0.95)
    assert all(math.isnan(value) for value in one)


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("hits", [(16.0, 8.0), (40.0, 37.0)])
def test_the_interval_ends_where_the_likelihood_has_fallen_by_half_the_quantile(hits, level):
    hits, trials = np.array(hits), np.array([50.0, 50.0])

    def profile(rate):
        found = optimize.minimize_scalar(
            lambda start: -log_likelihood(start, rate, hits, trials, LAGS),
            bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12},
        )  # fmt: skip
        return -found.fun

    found = half_life(hits, trials, LAGS, level)
    best = LN2 / found.days
    assert best == pytest.approx(math.log(hits[0] / hits[1]) / 7, abs=1e-6)
    fall = float(stats.chi2.ppf(level, 1)) / 2
    assert profile(best) - profile(LN2 / found.low) == pytest.approx(fall, abs=1e-4)
    if math.isinf(found.high):
        assert profile(best) - profile(0.0) <= fall
    else:
        assert profile(best) - profile(LN2 / found.high) == pytest.approx(fall, abs=1e-4)
    assert found.low < found.days < found.high


def test_a_half_life_without_an_end():
    ten = np.array([10.0, 10.0])
    flat = half_life(np.array([6.0, 6.0]), ten, LAGS, 0.95)
    assert flat.days == flat.high == math.inf
    assert 3 < flat.low < 30
    near = half_life(np.array([6.0, 0.0]), ten, np.array([0.0, 0.01]), 0.95)
    assert near.days == pytest.approx(LN2 / 8)
    assert near.low == LN2 / 8  # no rate above 8 a day is distinguished


@pytest.mark.parametrize(
    ("hits", "trials", "lags", "words"),
    [
        ((1.0, 1.0), (1.0,), (0.0, 1.0), "needs hits and trials"),
        ((1.0, 1.0), (2.0, 2.0), (0.0,), "needs hits and trials"),
        ((), (), (), "needs hits and trials"),
        ((np.nan, 1.0), (2.0, 2.0), (0.0, 1.0), "cannot read NaN"),
        ((1.0, 1.0), (2.0, np.nan), (0.0, 1.0), "cannot read NaN"),
        ((1.0, 1.0), (2.0, 2.0), (0.0, np.nan), "cannot read NaN"),
        ((-0.5, 1.0), (2.0, 2.0), (0.0, 1.0), "between 0 and the trials"),
        ((1.0, 2.5), (2.0, 2.0), (0.0, 1.0), "between 0 and the trials"),
        ((1.0, 1.0), (2.0, 2.0), (-1.0, 1.0), "lags must be at least 0"),
    ],
)
def test_counts_that_cannot_be_are_refused(hits, trials, lags, words):
    with pytest.raises(ScoringError, match=words):
        fit_retention(np.array(hits), np.array(trials), np.array(lags))


def test_what_is_retained_by_hand():
    """Encoding (.575 - .25) / .65 = .5, forgetting half of ln 2 / 7: ret = .25."""
    rules = PROTOCOL.memory
    assert (rules.full_encoding, rules.half_life_days) == (0.9, 7.0)
    one, half = np.ones(1), np.array([LN2 / 14])
    guess, law = np.array([0.25]), Retention(np.array([0.575]), half)
    found = memory.memory(law, np.array([0.64]), guess, 0 * one, rules)
    assert found == pytest.approx([math.sqrt(0.25 * 0.64)])
    for error, value in ((0.3249, 0.5), (0.3251, 0.0)):  # z errors of r0 - g = .325
        found = memory.memory(law, one, guess, np.array([error]), rules)
        assert found == pytest.approx([value])
    exact = Retention(np.array([0.75]), 0 * one)
    assert memory.memory(exact, one, guess, np.array([0.5]), rules) == [0.0]
    unknown = Retention(np.array([np.nan]), 0 * one)
    assert np.isnan(memory.memory(unknown, one, guess, 0 * one, rules))
    with pytest.raises(ScoringError, match=r"guess rate must lie below 0\.9"):
        memory.memory(law, one, np.array([0.9]), 0 * one, rules)
    two = np.ones(2)
    with pytest.raises(ScoringError, match="guess rate must lie below"):
        memory.memory(Retention(two, two), two, np.array([0.2, 0.9]), two, rules)


def test_the_error_of_r0_is_of_the_shortest_lag_with_trials():
    sample = SimpleNamespace(protocol=PROTOCOL)
    z = float(stats.norm.ppf(PROTOCOL.statistics.gate_level))
    trials = np.array([[0.0, 25.0, 400.0], [100.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    found = memory._start_error(np.array([0.2, 0.5, 0.5]), trials, sample)
    assert found == pytest.approx([z * 0.08, z * 0.05, z * 0.5])


def test_the_median_is_over_families_that_are_known():
    nan = np.nan
    rows = np.array(
        [
            [0.9, 0.1, 0.4, 0.2],
            [nan, 0.1, 0.5, 0.3],
            [nan, nan, 0.5, 0.1],
            [nan, nan, nan, 0.7],
            [nan] * 4,
        ]
    )
    found = memory._median(rows)
    assert found[:4] == pytest.approx([0.3, 0.3, 0.3, 0.7])
    assert np.isnan(found[4])


def probes(**columns):
    """Return a sample of probes, 40 of recall and 2 of retrieval, with changes."""
    lag = np.repeat([1.0, 2.0, 7.0, 14.0, 1.0], [10, 10, 10, 10, 2])
    count, late = len(lag), np.arange(len(lag)) >= 40
    verified = np.zeros((count, 8), bool)
    verified[40:, [0, 3, 7]] = True
    fields = {
        "row": np.arange(count) // 21,
        "mode": np.where(late, "retrieve", "recall"),
        "item": np.array([f"i{k % 10}" for k in range(40)] + ["q0", "q1"]),
        "lag": lag,
        "zero_tool": np.ones(count, bool),
        "helped": np.zeros(count, bool),
        "new_sitting": np.ones(count, bool),
        "correct": np.arange(count) % 2 == 0,
        "guess": np.full(count, 0.25),
        "relevant": np.full(count, 4),
        "verified": verified,
    }
    table = SimpleNamespace(
        probes=SimpleNamespace(**fields | columns),
        family=np.array(["s/f", "s/f"]),
        attempt=np.array(["e0", "e1"]),
        channel_gaps=lambda _: "",
    )
    rules = msgspec.structs.replace(
        PROTOCOL.memory, items_min=10, lags_min=4, longest_lag_days=14.0
    )
    return SimpleNamespace(
        table=table,
        base=np.ones(2, bool),
        families=("s/f", "s/g"),
        protocol=msgspec.structs.replace(PROTOCOL, memory=rules),
    )


class Entries:
    """What `_collect` adds, by name: sum and count."""

    def __init__(self):
        self.added = {}

    def add_entries(self, name, row, values):
        self.added[name] = (float(np.sum(values)), len(row))


def test_recall_at_five_of_four_relevant():
    """Of ranks 0, 3 and 7 two are among the first five: 2 of min(5, 4)."""
    assert PROTOCOL.memory.recall_at == 5
    statistics = Entries()
    coverage = memory._collect(probes(), statistics)
    assert coverage == (42, 42, None)
    assert statistics.added == {
        **{f"M:lag:{i}": (5.0, 10) for i in range(4)},
        "M:found": (1.0, 2),
        "M:guess": (10.0, 40),
    }
    most = Entries()
    memory._collect(probes(relevant=np.full(42, 1)), most)
    assert most.added["M:found"] == (2.0, 2)  # at most all there is


def changed(name, places, value, dtype=None):
    """Return one column of `probes()` with a value at some places."""
    column = np.array(getattr(probes().table.probes, name), dtype=dtype)
    column[places] = value
    return {name: column}


LATE, EARLY, ALL = slice(40, None), slice(0, 40), slice(None)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (changed("guess", 0, 1.0), "impossible `guess`"),
        (changed("guess", 0, -0.1), "impossible `guess`"),
        (changed("guess", 0, 0.0), None),
        (changed("lag", 0, -1.0), "impossible `lag_days`"),
        (changed("lag", slice(0, 10), 0.0), None),
        (changed("relevant", 41, 0), "impossible `relevant`"),
        (changed("relevant", 41, 1), None),
        (changed("zero_tool", EARLY, False), "no recall probe was answered unhelped"),
        (changed("helped", EARLY, True), "no recall probe was answered unhelped"),
        (changed("helped", LATE, True), "no retrieval probe a day later"),
        (changed("new_sitting", LATE, False), "no retrieval probe a day later"),
        (changed("lag", LATE, 0.99), "no retrieval probe a day later"),
        (changed("lag", slice(0, 10), 2.0), "10 items at 3 lags up to 14 days"),
        (changed("lag", slice(30, 40), 13.0), "10 items at 4 lags up to 13 days"),
        (changed("item", EARLY, "i1"), "1 items at 4 lags"),
        (changed("item", slice(0, None, 10), "i1"), "9 items at 4 lags"),
    ],
)
def test_what_a_family_lacks_is_named(columns, words):
    sample = probes(**columns)
    recall, retrieval = memory._recall(sample), memory._retrieval(sample)
    if words and "impossible" in words:
        with pytest.raises(ScoringError, match=f"attempt e[01] has an {words}"):
            memory._lacking(sample, recall, retrieval, 42)
        return
    found = memory._lacking(sample, recall, retrieval, 42)
    assert found is None if words is None else words in str(found)


def test_probes_outside_the_base_are_no_evidence():
    sample = probes()
    sample.base = np.array([True, False])
    assert memory._recall(sample).sum() == 21
    assert memory._retrieval(sample).sum() == 0
    sample.base[:] = False
    statistics = Entries()
    found = memory._collect(sample, statistics)
    assert found == (0, 0, "no memory probes over days in this run")
    assert not statistics.added


def test_half_lives_and_what_is_left_out_are_shown():
    helped = changed("helped", [0, 40], True)
    tools = changed("zero_tool", [1, 2, 41], False)
    sitting = changed("new_sitting", [41], False)
    right = {"correct": np.repeat([1, 1, 0, 0, 0, 0], [10, 10, 5, 5, 10, 2]) > 0}
    found = memory._half_lives(probes(**helped, **tools, **sitting, **right))
    assert found["left out"] == {
        "answered after help": 2,
        "recall with tools on offer": 2,
        "retrieval within a day or a sitting": 1,
    }
    assert found["lags"] == [1.0, 2.0, 7.0, 14.0]
    [(family, (days, low, high))] = found["half-life in days, low, high"].items()
    hits, trials = np.array([7.0, 10.0, 0.0, 0.0]), np.array([7.0, 10.0, 10.0, 10.0])
    law = half_life(hits, trials, np.array([1.0, 2.0, 7.0, 14.0]), 0.95)
    assert family == "s/f"
    assert (days, low, high) == tuple(round(value, 4) for value in law)
    flat = memory._half_lives(probes(correct=np.ones(42, bool)))
    assert flat["half-life in days, low, high"]["s/f"][0] == "no forgetting seen"
    guessed = memory._half_lives(probes(correct=np.arange(42) % 4 == 0))
    assert guessed["half-life in days, low, high"]["s/f"].startswith("never known")


def test_m_is_the_median_family_and_borrows_recall_at_k():
    """Families retain sqrt(1 x .25), sqrt(1 x .25) borrowed, and nothing at all."""
    sample = probes()
    lags = 4
    columns = [f"M:lag:{i}{k}" for i in range(lags) for k in ("", "#")]
    columns += ["M:found", "M:found#", "M:guess", "M:guess#"]
    table = np.zeros((1, 3, len(columns)))
    put = {name: place for place, name in enumerate(columns)}
    for i in range(lags):
        table[0, :, put[f"M:lag:{i}"]] = np.array([90, 90, 0]) * 1e6
        table[0, :, put[f"M:lag:{i}#"]] = 100e6
    table[0, 0, put["M:found"]], table[0, 0, put["M:found#"]] = 1e6, 4e6
    totals = Totals(put, table, np.full(3, 1 / 3), {})
    assert memory._recall_at(totals) == pytest.approx([0.25])
    assert memory._raw(totals, sample) == pytest.approx([0.5])
    table[0, 0, put["M:found#"]] = 0.0
    table[0, 0, put["M:found"]] = 0.0
    assert memory._recall_at(totals).tolist() == [0.0]  # nobody was asked


def test_what_seems_to_grow_is_retained_whole():
    """The law has no rate below 0; the share that is retained stops at 1."""
    law, one = Retention(np.array([0.575]), np.array([-1.0])), np.ones(1)
    found = memory.memory(law, one, np.array([0.25]), 0 * one, PROTOCOL.memory)
    assert found == pytest.approx([math.sqrt(0.5)])
    full = Retention(np.array([1.0]), np.zeros(1))
    assert memory.memory(full, one, 0 * one, 0 * one, PROTOCOL.memory) == [1.0]


def test_an_episode_that_may_have_kept_something_elsewhere_gives_no_m():
    sample = probes()
    recall, retrieval = memory._recall(sample), memory._retrieval(sample)
    assert memory._lacking(sample, recall, retrieval, 42) is None
    sample.table.channel_gaps = lambda rows: "a provider's store" if rows.any() else ""
    reason = memory._lacking(sample, recall, retrieval, 42)
    assert "a memory beside memory_dir is not ruled out: a provider's store" in reason
