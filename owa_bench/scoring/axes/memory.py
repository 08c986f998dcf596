"""Axis M: memory, what an agent recalls after days and what it retrieves."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats, Integers
from owa_bench.records.protocol import Memory
from owa_bench.scoring.axis import Axis, Coverage, Diagnostics, check_shapes
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.distributions import chi2_quantile, normal_quantile
from owa_bench.scoring.statistics.statistics_table import MILLION, StatisticsTable, Totals

_HALVINGS = 40  # of an interval that holds a root: 1e-12 of it is left
_OUTER, _INNER = 32, 24  # the same, nested
_FASTEST = 8.0  # largest forgetting rate per day that is distinguished
_TINY = 1e-12
_NEVER = 1e-6  # forgetting per day that counts as none: a half-life of 1,900 years


def memory(law: "Retention", recall: Floats, guess: Floats, error: Floats, rules: Memory) -> Floats:
    """Return what is retained and retrieved of a family.

    Formula:
        r(l) = r0 exp(-lambda l), e = clip((r0 - g) / (0.9 - g), 0, 1)
        ret = e clip(1 - lambda / lambda_max, 0, 1), lambda_max = ln 2 / h_min;
              0 where r0 - g does not exceed its error: it was never known
        recall@K = relevant found among the first K / min(K, relevant)
        M   = N(median over families of sqrt(ret recall@K))
    Shapes: a law of two arrays and three arrays of one shape; result the same, before
        median and N.
    Units: lambda per day, the others shares; `error` is z standard errors of r0;
        result a share.
    Missing: NaN where a law or recall@K is not known; the median leaves it out.
    Errors: ScoringError if shapes differ, are empty, or g reaches full encoding.
    Source: [R] eqs 5-6 of the AAI paper; 0.9, K and h_min [D].

    >>> from types import SimpleNamespace
    >>> rules = SimpleNamespace(half_life_days=7, full_encoding=0.9)
    >>> kept, none = Retention(np.array([0.9]), np.zeros(1)), np.zeros(1)
    >>> memory(kept, np.array([0.25]), none, none, rules)
    array([0.5])
    """
    start, forgetting = law
    check_shapes("memory", start, forgetting, recall, guess, error)
    if (guess >= rules.full_encoding).any():
        raise ScoringError(
            f"The guess rate must lie below {rules.full_encoding}, got {guess.max()}."
        )
    encoded = np.clip((start - guess) / (rules.full_encoding - guess), 0.0, 1.0)
    fastest = math.log(2) / rules.half_life_days
    kept = encoded * np.clip(1.0 - forgetting / fastest, 0.0, 1.0)
    kept = np.where(start - guess <= error, 0.0, kept)
    result: Floats = np.sqrt(kept * recall)
    return np.where(np.isnan(start), np.nan, result)


class Retention(NamedTuple):
    """Fitted r0 and lambda of r(l) = r0 exp(-lambda l), each of shape (...)."""

    start: Floats
    forgetting: Floats


def fit_retention(hits: Floats, trials: Floats, lags: Floats) -> Retention:
    """Return the retention law of probes, by binomial maximum likelihood.

    Formula:
        hits_i ~ Binomial(trials_i, r0 exp(-lambda l_i)), 0 <= r0 <= 1, lambda >= 0
        (concave in ln r0 and lambda: nested bisection of the score finds the one
        maximum; a log-linear fit overestimates long half-lives)
    Shapes: hits and trials (..., lags), lags (lags,); each result (...).
    Units: lags in days, lambda per day.
    Missing: NaN without trials, lambda NaN with trials at one lag only.
    Errors: ScoringError if shapes differ, hits exceed trials, a lag is negative.
    Source: [R] eq 5 of the AAI paper.

    >>> hits, lags = np.array([80.0, 40.0]), np.array([0, 7.0])
    >>> fit = fit_retention(hits, np.full(2, 100.0), lags)
    >>> float(fit.start.round(4)), round(math.log(2) / float(fit.forgetting), 4)
    (0.8, 7.0)
    """
    _check(hits, trials, lags)
    # A resample changes few families: equal rows are fitted once.
    hit, tried = (values.reshape(-1, lags.size) for values in (hits, trials))
    number = np.zeros(len(hit), dtype=np.int64)
    for column in (*hit.T, *tried.T):
        values, code = np.unique(column, return_inverse=True)
        number = number * len(values) + code.reshape(-1)
        _, first, number = np.unique(number, return_index=True, return_inverse=True)
    law = _fit(hit[first], tried[first], lags)
    start, forgetting = (one[number.reshape(hits.shape[:-1])] for one in law)
    return Retention(start, forgetting)


def _fit(hits: Floats, trials: Floats, lags: Floats) -> Retention:
    """Return `fit_retention` of rows that differ."""
    low, high = np.zeros(hits.shape[:-1]), np.full(hits.shape[:-1], _FASTEST)
    for _ in range(_OUTER):
        middle = (low + high) / 2
        chance = _chances(hits, trials, lags, middle)
        uphill = ((_odds(hits, trials, chance)) * lags).sum(axis=-1) > 0
        low, high = np.where(uphill, middle, low), np.where(uphill, high, middle)
    rate = (low + high) / 2
    rate = np.where(rate < _NEVER, 0.0, rate)
    start = _start(hits, trials, lags, rate)
    used = (trials > 0).sum(axis=-1)
    return Retention(np.where(used > 0, start, np.nan), np.where(used > 1, rate, np.nan))


def _check(hits: Floats, trials: Floats, lags: Floats) -> None:
    if hits.shape != trials.shape or lags.shape != hits.shape[-1:] or not lags.size:
        raise ScoringError(
            "Retention needs hits and trials (..., lags) and lags (lags,), got "
            f"{hits.shape}, {trials.shape}, {lags.shape}."
        )
    if np.isnan(hits).any() or np.isnan(trials).any() or np.isnan(lags).any():
        raise ScoringError("Retention cannot read NaN: leave the probe out and count it.")
    if (hits < 0).any() or (hits > trials + _TINY).any() or (lags < 0).any():
        raise ScoringError("Hits must lie between 0 and the trials, lags must be at least 0.")


def _odds(hits: Floats, trials: Floats, chance: Floats) -> Floats:
    """Return minus the score function at each lag: misses times odds, less hits."""
    kept = np.minimum(chance, 1 - _TINY)
    odds: Floats = (trials - hits) * kept / (1 - kept) - hits
    return odds


def _start(
    hits: Floats, trials: Floats, lags: Floats, rate: Floats, halvings: int = _HALVINGS
) -> Floats:
    """Return the best r0 under a given rate of forgetting."""
    keep = np.exp(-rate[..., None] * lags)
    low, high = np.zeros(rate.shape), np.ones(rate.shape)
    for _ in range(halvings):
        middle = (low + high) / 2
        uphill = _odds(hits, trials, middle[..., None] * keep).sum(axis=-1) < 0
        low, high = np.where(uphill, middle, low), np.where(uphill, high, middle)
    start = (low + high) / 2
    top = start > 1 - 2.0 ** (2 - halvings)
    nothing = hits.sum(axis=-1) <= 0
    best: Floats = np.where(nothing, 0.0, np.where(top, 1.0, start))
    return best


def _chances(hits: Floats, trials: Floats, lags: Floats, rate: Floats) -> Floats:
    start = _start(hits, trials, lags, rate, _INNER)
    chance: Floats = start[..., None] * np.exp(-rate[..., None] * lags)
    return chance


class HalfLife(NamedTuple):
    """A half-life in days with its profile interval; inf: no forgetting observed."""

    days: float
    low: float
    high: float


def _likelihood(hits: Floats, trials: Floats, lags: Floats, rates: Floats) -> Floats:
    """Return the profile log-likelihood at each rate."""
    shape = (len(rates), len(lags))
    hits, trials = np.broadcast_to(hits, shape), np.broadcast_to(trials, shape)
    chance = np.clip(_chances(hits, trials, lags, rates), _TINY, 1 - _TINY)
    parts = hits * np.log(chance) + (trials - hits) * np.log1p(-chance)
    total: Floats = parts.sum(axis=1)
    return total


def half_life(hits: Floats, trials: Floats, lags: Floats, level: float) -> HalfLife:
    """Return ln 2 / lambda with its profile-likelihood interval.

    Formula:
        {lambda : 2 (L(lambda_hat) - L(lambda)) <= chi2_1(level)}, ends by bisection
    Shapes: three arrays (lags,). Units: days.
    Missing: NaN without trials at two lags; infinite where lambda reaches 0.
    Errors: as `fit_retention`. Source: [R] docs/scoring.md#axes.

    >>> half_life(np.array([8.0]), np.array([10.0]), np.array([1.0]), 0.95)
    HalfLife(days=nan, low=nan, high=nan)
    """
    best = float(fit_retention(hits, trials, lags).forgetting)
    if math.isnan(best):
        return HalfLife(math.nan, math.nan, math.nan)
    top = float(_likelihood(hits, trials, lags, np.array([best]))[0])
    floor = top - chi2_quantile(level, 1) / 2

    def inside(rate: float) -> bool:
        return float(_likelihood(hits, trials, lags, np.array([rate]))[0]) >= floor

    slow = 0.0 if inside(0.0) else _edge(0.0, best, inside, rising=True)
    fast = _FASTEST if inside(_FASTEST) else _edge(best, _FASTEST, inside, rising=False)
    return HalfLife(*(math.log(2) / x if x > 0 else math.inf for x in (best, fast, slow)))


def _edge(low: float, high: float, inside: Callable[[float], bool], *, rising: bool) -> float:
    """Return where `inside` changes between two rates."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if inside(middle) == rising:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _recall(sample: Sample) -> Flags:
    """Return which probes ask for recall, proved without tools and without help."""
    probes = sample.table.probes
    asked: Flags = sample.base[probes.row] & (probes.mode == "recall")
    return asked & probes.zero_tool & ~probes.helped


def _retrieval(sample: Sample) -> Flags:
    """Return which probes ask for retrieval, late enough and in a new sitting."""
    probes, least = sample.table.probes, sample.protocol.memory.retrieval_days
    asked: Flags = sample.base[probes.row] & (probes.mode == "retrieve")
    return asked & (probes.lag >= least) & probes.new_sitting & ~probes.helped


def _lags(sample: Sample) -> Floats:
    return np.unique(sample.table.probes.lag[_recall(sample)])


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add trials and hits per lag of recall without tools, and of retrieval."""
    probes = sample.table.probes
    recall, retrieval = _recall(sample), _retrieval(sample)
    cells, used = int(sample.base[probes.row].sum()), int((recall | retrieval).sum())
    if reason := _lacking(sample, recall, retrieval, cells):
        return Coverage(0, cells, reason)
    most = sample.protocol.memory.recall_at
    hits = probes.verified[:, :most].sum(axis=1) / np.minimum(most, probes.relevant)
    rows = _clusters(sample)
    for name, chosen, values in (
        *(
            (f"M:lag:{i}", recall & (probes.lag == lag), probes.correct)
            for i, lag in enumerate(_lags(sample))
        ),
        ("M:found", retrieval, np.minimum(hits, 1.0)),
        ("M:guess", recall, probes.guess),
    ):
        statistics.add_entries(name, rows[chosen], values[chosen])
    return Coverage(used, cells)


def _lacking(sample: Sample, recall: Flags, retrieval: Flags, cells: int) -> str | None:
    """Return why there is no evidence; ScoringError for an impossible number."""
    probes, table, rules = sample.table.probes, sample.table, sample.protocol.memory
    asked = recall | retrieval
    for name, fault in (
        ("guess", ~((probes.guess >= 0) & (probes.guess < 1))),
        ("lag_days", ~(probes.lag >= 0)),
        ("relevant", probes.relevant < 1),
    ):
        if (fault & asked).any():
            at = table.attempt[probes.row[fault & asked][0]]
            raise ScoringError(f"A probe of attempt {at} has an impossible `{name}`.")
    if not cells:
        return "no memory probes over days in this run"
    rows = np.isin(np.arange(len(sample.base)), probes.row[asked])
    if gaps := table.channel_gaps(rows):
        return f"a memory beside memory_dir is not ruled out: {gaps}"
    if not recall.any():
        return "no recall probe was answered unhelped and is proved to be without tools"
    for family in np.unique(table.family[probes.row[recall]]).tolist():
        own = recall & (table.family[probes.row] == family)
        lags, items = np.unique(probes.lag[own]), np.unique(probes.item[own])
        if (
            len(lags) < rules.lags_min
            or lags.max() < rules.longest_lag_days
            or len(items) < rules.items_min
        ):
            return (
                f"{family} has {len(items)} items at {len(lags)} lags up to "
                f"{lags.max():g} days; {rules.items_min} items at {rules.lags_min} "
                f"lags up to {rules.longest_lag_days:g} days are needed"
            )
    if not retrieval.any():
        return "no retrieval probe a day later in a new session: recall@K is not known"
    return None


def _clusters(sample: Sample) -> Integers:
    """Return the episode to book each probe under: the first of its item.

    So all lags of one item are resampled together.
    """
    probes = sample.table.probes
    families = np.unique(sample.table.family, return_inverse=True)[1].reshape(-1)
    items, item = np.unique(probes.item, return_inverse=True)
    number = families[probes.row] * len(items) + item.reshape(-1)
    _, first, item = np.unique(number, return_index=True, return_inverse=True)
    rows: Integers = probes.row[first][item.reshape(-1)]
    return rows


def _raw(totals: Totals, sample: Sample) -> Floats:
    """Return the median over families.

    A family without a retrieval probe of its own reads the recall@K of the run.
    """
    lags = _lags(sample)
    hits, trials = (
        np.stack([totals.sum(f"M:lag:{i}{k}") for i in range(len(lags))], axis=2) / MILLION
        for k in ("", "#")
    )
    law, recall = fit_retention(hits, trials, lags), totals.mean("M:found")
    recall = np.where(np.isnan(recall), _recall_at(totals)[:, None], recall)
    guess = np.nan_to_num(totals.mean("M:guess"))
    error = _start_error(law.start, trials, sample)
    return _median(memory(law, recall, guess, error, sample.protocol.memory))


def _start_error(start: Floats, trials: Floats, sample: Sample) -> Floats:
    """Return z standard errors of r0 (...), from the trials at its shortest lag."""
    z = normal_quantile(sample.protocol.statistics.gate_level)
    shortest = np.expand_dims((trials > 0).argmax(axis=-1), -1)
    count = np.maximum(np.take_along_axis(trials, shortest, axis=-1)[..., 0], 1.0)
    error: Floats = z * np.sqrt(start * (1.0 - start) / count)
    return error


def _recall_at(totals: Totals) -> Floats:
    """Return recall@K over all retrieval probes (resamples,)."""
    share: Floats = totals.pooled("M:found") / np.maximum(totals.pooled("M:found#"), 1.0)
    return share


def _median(values: Floats) -> Floats:
    """Return the median over families without NaN; NaN where all are."""
    ranked = np.sort(values, axis=1)  # NaN last
    count = (~np.isnan(values)).sum(axis=1)
    low = np.maximum(count - 1, 0) // 2
    high = np.minimum(count // 2, np.maximum(count - 1, 0))
    rows = np.arange(len(values))
    middle: Floats = (ranked[rows, low] + ranked[rows, high]) / 2.0
    return np.where(count > 0, middle, np.nan)


def _half_lives(sample: Sample) -> Diagnostics:
    """Return each family's half-life with its interval, and the probes left out."""
    table, probes, lags = sample.table, sample.table.probes, _lags(sample)
    half_lives: dict[str, Any] = {}
    for family in sample.families:
        rows = _recall(sample) & (table.family[probes.row] == family)
        if not rows.any():
            continue
        at = np.searchsorted(lags, probes.lag[rows])
        trials = np.bincount(at, minlength=len(lags)).astype(np.float64)
        hits = np.bincount(at, probes.correct[rows], len(lags)).astype(np.float64)
        start = fit_retention(hits, trials, lags).start
        if start - probes.guess[rows].mean() <= _start_error(start, trials, sample):
            half_lives[family] = "never known: r0 is the guess rate within its error"
            continue
        fitted = half_life(hits, trials, lags, sample.protocol.statistics.level)
        half_lives[family] = [
            None if math.isnan(x) else "no forgetting seen" if math.isinf(x) else x
            for x in (round(value, 4) for value in fitted)
        ]
    own, recall = sample.base[probes.row], probes.mode == "recall"
    left_out = {
        "answered after help": own & probes.helped,
        "recall with tools on offer": own & recall & ~probes.zero_tool,
        "retrieval within a day or a sitting": own
        & (probes.mode == "retrieve")
        & ~probes.helped
        & ~_retrieval(sample),
    }
    return {
        "half-life in days, low, high": half_lives,
        "lags": lags.tolist(),
        "left out": {name: int(rows.sum()) for name, rows in left_out.items()},
    }


AXIS = Axis(
    "M",
    "memory",
    formula=memory,
    collect=_collect,
    raw=_raw,
    secondary=lambda totals, sample: {
        f"recall@{sample.protocol.memory.recall_at}": _recall_at(totals)
    },
    diagnostics=_half_lives,
)
