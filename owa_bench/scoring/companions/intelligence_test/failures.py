"""Failure counts: wrong attempts before the right one, from three kinds of input."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.companions import checks


class Failures(NamedTuple):
    """How often each item was failed before it was solved.

    counts: wrong attempts, half counts where scores tie. censored: the item was never
    solved, so the true count is at least this one. top: the largest count there can be
    (candidates - 1), inf without a bound.
    """

    counts: Floats
    censored: Flags
    top: float


def from_counts(counts: npt.ArrayLike, *, candidates: int | None = None) -> Failures:
    """Return failure counts that were counted elsewhere.

    Formula: X as given; top = K - 1 with K candidates
    Shapes: (items,); (items,).
    Units: wrong attempts, whole or half (ties).
    Missing: nothing may be missing; unsolved items enter through `from_attempts`.
    Errors: ScoringError for NaN, negative or other fractional counts, or above K - 1.
    Source: Intelligence Test seed, definition 3.2 [S].

    >>> from_counts([0, 3, 1], candidates=10).top
    9.0
    """
    values = _counts(counts, "counts")
    top = math.inf if candidates is None else float(candidates - 1)
    checks.within(values, "counts", 0.0, top)
    return Failures(values, np.zeros(values.size, dtype=np.bool_), top)


def from_scores(scores: npt.ArrayLike, reference: npt.ArrayLike) -> Failures:
    """Return the rank of each item's reference among its candidates, minus one.

    Formula: X = |{candidates scored above the reference}| + |{tied with it}| / 2
    Shapes: scores (items, candidates), reference (items,) of columns; (items,).
    Units: any scores, higher is tried earlier; X in candidates.
    Missing: NaN scores are refused: an unscored candidate has no rank.
    Errors: ScoringError for NaN, lengths that differ, fewer than two candidates, or a
        reference that is no column.
    Source: Intelligence Test seed, section 3 [S]; ties at the mean rank [D].

    >>> from_scores([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]], [2, 0]).counts.tolist()
    [1.0, 0.5]
    """
    table = checks.matrix(scores, "scores", axes="items, candidates")
    if np.isnan(table).any() or table.shape[1] < 2:
        raise ScoringError("`scores` needs two candidates or more and no NaN.")
    column = checks.vector(reference, "reference")
    checks.same_length(table, column, "`scores` and `reference`")
    whole = column == np.floor(column)
    if not np.all(whole & (column >= 0) & (column < table.shape[1])):
        raise ScoringError(
            f"`reference` must be columns 0 .. {table.shape[1] - 1} of `scores`."
        )
    own = np.take_along_axis(table, column.astype(np.int64)[:, None], axis=1)
    above = np.sum(table > own, axis=1)
    tied = np.sum(table == own, axis=1) - 1
    counts = np.asarray(above + tied / 2.0, dtype=np.float64)
    censored = np.zeros(counts.size, dtype=np.bool_)
    return Failures(counts, censored, float(table.shape[1] - 1))


def from_attempts(failed: npt.ArrayLike, solved: npt.ArrayLike) -> Failures:
    """Return counts of failed attempts per task; unsolved tasks are right-censored.

    Formula: X = failed attempts if solved, X >= failed attempts if not
    Shapes: (tasks,) each; (tasks,).
    Units: attempts.
    Missing: unsolved tasks are kept as censored, never dropped.
    Errors: ScoringError for lengths that differ, NaN or negative counts.
    Source: `other-measures.md` section 2 [R].

    >>> from_attempts([0, 8], [True, False]).censored.tolist()
    [False, True]
    """
    counts = _counts(failed, "failed")
    done = np.asarray(solved)
    if done.shape != counts.shape or not np.isin(done, (0, 1)).all():
        raise ScoringError(
            "`solved` needs one true or false for each task of `failed`."
        )
    return Failures(counts, ~done.astype(np.bool_), math.inf)


class Tail(NamedTuple):
    """Counts at or above a start, as a histogram: what the likelihoods read.

    values: distinct whole counts, weights: how many (halves of tied ranks), limits and
    held: distinct censoring points and how many items each holds.
    """

    values: Floats
    weights: Floats
    limits: Floats
    held: Floats
    start: float
    top: float

    @property
    def size(self) -> float:
        """Observations, the censored ones included."""
        return float(self.weights.sum() + self.held.sum())


def tail(failures: Failures, start: float = 0.0) -> Tail:
    """Return the histogram of counts at or above `start`.

    Formula: a half count gives half its weight to either whole neighbour; censored
        items whose limit lies below `start` are left out (they may be either side)
    Shapes: (items,); distinct values with their weights.
    Units: attempts.
    Missing: as the formula says.
    Errors: none.
    Source: [D].

    >>> tail(from_counts([0, 2, 2, 5]), 1.0).weights.tolist()
    [2.0, 1.0]
    """
    seen = failures.counts[~failures.censored]
    both = np.concatenate((np.floor(seen), np.ceil(seen)))
    values, halves = np.unique(both[both >= start], return_counts=True)
    limits, held = np.unique(failures.counts[failures.censored], return_counts=True)
    kept = limits >= start
    return Tail(
        values,
        halves / 2.0,
        limits[kept],
        held[kept].astype(np.float64),
        start,
        failures.top,
    )


def _counts(values: npt.ArrayLike, name: str) -> Floats:
    """Return counts: at least 0, whole or half."""
    counts = checks.vector(values, name)
    checks.within(counts, name, 0.0, math.inf)
    bad = np.flatnonzero(2.0 * counts != np.floor(2.0 * counts))
    if bad.size:
        raise ScoringError(
            f"`{name}` must be whole or half, got {counts[bad[0]]} at {int(bad[0])}."
        )
    return counts
