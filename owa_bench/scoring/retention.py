"""Retention: how fast what was learnt is forgotten, by binomial maximum likelihood."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats

_HALVINGS = 40  # of an interval that holds a root: 1e-12 of it is left
_OUTER, _INNER = 32, 24  # the same, nested
_FASTEST = 8.0  # forgetting rate per day beyond which nothing is told apart
_TINY = 1e-12
_NEVER = 1e-6  # forgetting per day that is none: half of it gone in 1,900 years


class Retention(NamedTuple):
    """The fitted law r(l) = r0 exp(-lambda l); each (...) without the lags."""

    start: Floats
    forgetting: Floats


def fit(hits: Floats, trials: Floats, lags: Floats) -> Retention:
    """Return the law of forgetting by binomial maximum likelihood.

    Formula:
        hits_i ~ Binomial(trials_i, r0 exp(-lambda l_i)), 0 <= r0 <= 1, lambda >= 0
        (concave in ln r0 and lambda: nested bisection of the score finds the one
        maximum; a log-linear fit overestimates long half-lives)
    Shapes: hits and trials (..., lags), lags (lags,); each result (...).
    Units: lags in days, lambda per day.
    Missing: NaN without trials, lambda NaN with trials at one lag only.
    Errors: ScoringError if shapes differ, hits exceed trials, a lag is negative.
    Source: [R] eq 5 of the AAI paper.

    >>> found = fit(np.array([80.0, 40.0]), np.full(2, 100.0), np.array([0, 7.0]))
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
    """Return minus the score of each lag: misses times odds, less the hits."""
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
    """A half-life in days with its profile interval; inf: no forgetting seen."""

    days: float
    low: float
    high: float


def _likelihood(hits: Floats, trials: Floats, lags: Floats, rates: Floats) -> Floats:
    """Return the profile log-likelihood at each rate."""
    shape = (len(rates), len(lags))
    held = np.broadcast_to(hits, shape), np.broadcast_to(trials, shape)
    chance = np.clip(_chances(*held, lags, rates), _TINY, 1 - _TINY)
    parts = held[0] * np.log(chance) + (held[1] - held[0]) * np.log1p(-chance)
    total: Floats = parts.sum(axis=1)
    return total


def half_life(hits: Floats, trials: Floats, lags: Floats, level: float) -> HalfLife:
    """Return ln 2 / lambda with its profile-likelihood interval.

    Formula:
        {lambda : 2 (L(lambda_hat) - L(lambda)) <= chi2_1(level)}, ends by bisection
    Shapes: three arrays (lags,). Units: days.
    Missing: NaN without trials at two lags; infinite where lambda reaches 0.
    Errors: as `fit`. Source: [R] section 1 of `aai-scale.md`, axis M.

    >>> half_life(np.array([8.0]), np.array([10.0]), np.array([1.0]), 0.95)
    HalfLife(days=nan, low=nan, high=nan)
    """
    best = float(fit(hits, trials, lags).forgetting)
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
