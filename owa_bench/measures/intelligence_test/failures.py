"""Failure counts: wrong attempts before the right one, from four kinds of input."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats, Observables
from owa_bench.scoring.statistics import arrays


class Failures(NamedTuple):
    """Wrong attempts at each item before it was solved.

    counts: wrong attempts, half counts where scores tie. censored: the item was never solved, so
    the true count is at least this one. top: the largest count there can be (candidates - 1), inf
    without a bound.
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
    Source: Intelligence Test paper, definition 3.2 [S].

    >>> from_counts([0, 3, 1], candidates=10).top
    9.0
    """
    values = _counts(counts, "counts")
    top = math.inf if candidates is None else float(candidates - 1)
    arrays.check_range(values, "counts", 0.0, top)
    return Failures(values, np.zeros(values.size, dtype=np.bool_), top)


def from_scores(scores: npt.ArrayLike, reference: npt.ArrayLike) -> Failures:
    """Return the rank of each item's reference among its candidates, minus one.

    Formula: X = |{candidates scored above the reference}| + |{tied with it}| / 2
    Shapes: scores (items, candidates), reference (items,) of columns; (items,).
    Units: any scores, higher is tried earlier; X in candidates.
    Missing: NaN scores are refused: an unscored candidate has no rank.
    Errors: ScoringError for NaN, lengths that differ, fewer than two candidates, or a
        reference that is no column.
    Source: Intelligence Test paper, section 3 [S]; ties at the mean rank [D].

    >>> from_scores([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]], [2, 0]).counts.tolist()
    [1.0, 0.5]
    """
    table = arrays.matrix(scores, "scores", axes="items, candidates")
    if np.isnan(table).any() or table.shape[1] < 2:
        raise ScoringError("`scores` needs two candidates or more and no NaN.")
    column = arrays.vector(reference, "reference")
    arrays.check_lengths(table, column, "`scores` and `reference`")
    integral = column == np.floor(column)
    if not np.all(integral & (column >= 0) & (column < table.shape[1])):
        raise ScoringError(f"`reference` must be columns 0 .. {table.shape[1] - 1} of `scores`.")
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
    Source: `docs/companions.md#intelligence-test` [R].

    >>> from_attempts([0, 8], [True, False]).censored.tolist()
    [False, True]
    """
    counts = _counts(failed, "failed")
    done = np.asarray(solved)
    if done.shape != counts.shape or not np.isin(done, (0, 1)).all():
        raise ScoringError("`solved` needs one true or false for each task of `failed`.")
    return Failures(counts, ~done.astype(np.bool_), math.inf)


def from_episodes(table: Observables) -> dict[str, Failures]:
    """Return each arm's failed attempts before success, unsolved ones censored.

    Formula: X = failed attempts if the episode succeeded, X >= failed attempts if not
    Shapes: episodes; counts per arm.
    Units: attempts.
    Missing: honeypots have no right answer to reach and are left out.
    Errors: ScoringError if there is no such episode.
    Source: `docs/companions.md#intelligence-test` [R].

    >>> from_attempts([2, 5], [True, False]).counts.tolist()
    [2.0, 5.0]
    """
    plain = table.take(~table.honeypot)
    if not len(plain):
        raise ScoringError("failure counts need an episode that is no honeypot, got none.")
    rows = {arm: plain.arm == arm for arm in np.unique(plain.arm).tolist()}
    return {
        arm: from_attempts(plain.failed_attempts[own], plain.u[own] > 0)
        for arm, own in rows.items()
    }


class TailCounts(NamedTuple):
    """Counts at or above a start, as the histogram that the likelihoods read.

    values: distinct whole counts, weights: how many (halves of tied ranks), limits and censored:
    distinct censoring points and the number of items at each.
    """

    values: Floats
    weights: Floats
    limits: Floats
    censored: Floats
    start: float
    top: float

    @property
    def size(self) -> float:
        """Observations, the censored ones included."""
        return float(self.weights.sum() + self.censored.sum())

    def above(self, start: float) -> "TailCounts":
        """Return the part at or above a higher start."""
        seen, late = self.values >= start, self.limits >= start
        part = self._replace(values=self.values[seen], weights=self.weights[seen])
        limits, censored = self.limits[late], self.censored[late]
        return part._replace(limits=limits, censored=censored, start=start)


def tail(failures: Failures, start: float = 0.0) -> TailCounts:
    """Return the histogram of counts at or above `start`.

    Formula: a half count gives half its weight to either whole neighbour; censored
        items whose limit lies below `start` are left out (they may be either side)
    Shapes: (items,); distinct values with their weights.
    Units: attempts.
    Missing: as the formula says.
    Errors: none.
    Source: docs/companions.md#intelligence-test [D].

    >>> tail(from_counts([0, 2, 2, 5]), 1.0).weights.tolist()
    [2.0, 1.0]
    """
    seen, limits = (failures.counts[~failures.censored], failures.counts[failures.censored])
    both = np.concatenate((np.floor(seen), np.ceil(seen)))
    values, halves = np.unique(both[both >= start], return_counts=True)
    points, numbers = np.unique(limits[limits >= start], return_counts=True)
    censored = numbers.astype(np.float64)
    return TailCounts(values, halves / 2.0, points, censored, start, failures.top)


def _counts(values: npt.ArrayLike, name: str) -> Floats:
    """Return counts: at least 0, whole or half."""
    counts = arrays.vector(values, name)
    arrays.check_range(counts, name, 0.0, math.inf)
    bad = np.flatnonzero(2.0 * counts != np.floor(2.0 * counts))
    if bad.size:
        raise ScoringError(
            f"`{name}` must be whole or half, got {counts[bad[0]]} at {int(bad[0])}."
        )
    return counts
