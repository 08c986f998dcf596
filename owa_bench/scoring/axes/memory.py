"""Axis M: memory, what an agent recalls after days and what it retrieves."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.records.protocol import Memory
from owa_bench.scoring.axis import Axis, Coverage, Diagnostics, check_shapes
from owa_bench.scoring.sample import Sample
from owa_bench.scoring.statistics_table import MILLION, StatisticsTable, Totals

_HALVINGS = 40  # of an interval that holds a root: 1e-12 of it is left
_OUTER, _INNER = 32, 24  # the same, nested
_FASTEST = 8.0  # largest forgetting rate per day that is distinguished
_TINY = 1e-12
_NEVER = 1e-6  # forgetting per day that counts as none: a half-life of 1,900 years


def memory(
    start: Floats, forgetting: Floats, recall: Floats, guess: Floats, rules: Memory
) -> Floats:
    """Return what is retained and retrieved of a family.

    Formula:
        r(l) = r0 exp(-lambda l), e = clip((r0 - g) / (0.9 - g), 0, 1)
        ret = e clip(1 - lambda / lambda_max, 0, 1), lambda_max = ln 2 / h_min
        M   = N(median over families of (ret + recall@K) / 2)
    Shapes: four arrays of one shape; result the same, before median and N.
    Units: lambda per day, the others shares; result a share.
    Missing: NaN where a law or recall@K is not known; the median leaves it out.
    Errors: ScoringError if shapes differ, are empty, or g reaches full encoding.
    Source: [R] eqs 5-6 of the AAI paper; 0.9, K and h_min [D].

    >>> from types import SimpleNamespace
    >>> rules = SimpleNamespace(half_life_days=7, full_encoding=0.9)
    >>> memory(np.array([0.9]), np.array([0.0]), np.ones(1), np.zeros(1), rules)
    array([1.])
    """
    check_shapes("memory", start, forgetting, recall, guess)
    if (guess >= rules.full_encoding).any():
        raise ScoringError(
            f"The guess rate must lie below {rules.full_encoding}, got {guess.max()}."
        )
    encoded = np.clip((start - guess) / (rules.full_encoding - guess), 0.0, 1.0)
    fastest = math.log(2) / rules.half_life_days
    kept = encoded * np.clip(1.0 - forgetting / fastest, 0.0, 1.0)
    result: Floats = (kept + recall) / 2.0
    return result


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
    >>> found = fit_retention(hits, np.full(2, 100.0), lags)
    >>> float(found.start.round(4)), round(math.log(2) / float(found.forgetting), 4)
    (0.8, 7.0)
    """
    _check(hits, trials, lags)
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
    return Retention(
        np.where(used > 0, start, np.nan), np.where(used > 1, rate, np.nan)
    )


def _check(hits: Floats, trials: Floats, lags: Floats) -> None:
    if hits.shape != trials.shape or lags.shape != hits.shape[-1:] or not lags.size:
        raise ScoringError(
            "Retention needs hits and trials (..., lags) and lags (lags,), got "
            f"{hits.shape}, {trials.shape}, {lags.shape}."
        )
    if np.isnan(hits).any() or np.isnan(trials).any() or np.isnan(lags).any():
        raise ScoringError(
            "Retention cannot read NaN: leave the probe out and count it."
        )
    if (hits < 0).any() or (hits > trials + _TINY).any() or (lags < 0).any():
        raise ScoringError(
            "Hits must lie between 0 and the trials, lags must be at least 0."
        )


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
    found: Floats = np.where(nothing, 0.0, np.where(top, 1.0, start))
    return found


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
    floor = top - float(stats.chi2.ppf(level, 1)) / 2

    def inside(rate: float) -> bool:
        return float(_likelihood(hits, trials, lags, np.array([rate]))[0]) >= floor

    slow = 0.0 if inside(0.0) else _edge(0.0, best, inside, rising=True)
    fast = _FASTEST if inside(_FASTEST) else _edge(best, _FASTEST, inside, rising=False)
    return HalfLife(
        *(math.log(2) / x if x > 0 else math.inf for x in (best, fast, slow))
    )


def _edge(
    low: float, high: float, inside: Callable[[float], bool], *, rising: bool
) -> float:
    """Return where `inside` changes between two rates."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if inside(middle) == rising:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _recall(sample: Sample) -> Flags:
    """Return which probes ask for recall without tools."""
    probes = sample.table.probes
    recall: Flags = sample.base[probes.row] & (probes.mode == "recall")
    return recall


def _lags(sample: Sample) -> Floats:
    return np.unique(sample.table.probes.lag[_recall(sample)])


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add trials and hits per lag of recall without tools, and of retrieval."""
    probes = sample.table.probes
    counted: Flags = sample.base[probes.row]
    recall, retrieval = _recall(sample), counted & (probes.mode == "retrieve")
    cells, used = int(counted.sum()), int(recall.sum() + retrieval.sum())
    lags = _lags(sample)
    if not cells:
        return Coverage(0, 0, "no memory probes over days in this run")
    if len(lags) < 2:
        return Coverage(0, cells, "recall was probed at fewer than two lags")
    if not retrieval.any():
        return Coverage(0, cells, "no retrieval probe: recall@K is not known")
    first = probes.verified[:, : sample.protocol.memory.recall_at]
    for name, rows, values in (
        *(
            (f"M:lag:{i}", recall & (probes.lag == lag), probes.correct)
            for i, lag in enumerate(lags)
        ),
        ("M:found", retrieval, first.sum(axis=1) > 0),
        ("M:guess", recall, probes.guess),
    ):
        statistics.add_entries(name, probes.row[rows], values[rows])
    return Coverage(used, cells)


def _raw(totals: Totals, sample: Sample) -> Floats:
    """Return the median over families.

    A family without a retrieval probe of its own reads the recall@K of the run.
    """
    lags = _lags(sample)
    hits, trials = (
        np.stack([totals.sum(f"M:lag:{i}{k}") for i in range(len(lags))], axis=2)
        / MILLION
        for k in ("", "#")
    )
    law, recall = fit_retention(hits, trials, lags), totals.mean("M:found")
    recall = np.where(np.isnan(recall), _recall_at(totals)[:, None], recall)
    guess = np.nan_to_num(totals.mean("M:guess"))
    rules = sample.protocol.memory
    return _median(memory(law.start, law.forgetting, recall, guess, rules))


def _recall_at(totals: Totals) -> Floats:
    """Return recall@K over all retrieval probes (resamples,)."""
    share: Floats = totals.pooled("M:found") / np.maximum(
        totals.pooled("M:found#"), 1.0
    )
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
    """Return each family's half-life in days with its profile interval."""
    table, probes, lags = sample.table, sample.table.probes, _lags(sample)
    half_lives: dict[str, Any] = {}
    for family in sample.families:
        rows = _recall(sample) & (table.family[probes.row] == family)
        if not rows.any():
            continue
        at = np.searchsorted(lags, probes.lag[rows])
        trials = np.bincount(at, minlength=len(lags)).astype(np.float64)
        hits = np.bincount(at, probes.correct[rows], len(lags)).astype(np.float64)
        fitted = half_life(hits, trials, lags, sample.protocol.statistics.level)
        half_lives[family] = [
            None if math.isnan(x) else "no forgetting seen" if math.isinf(x) else x
            for x in (round(value, 4) for value in fitted)
        ]
    return {"half-life in days, low, high": half_lives, "lags": lags.tolist()}


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
