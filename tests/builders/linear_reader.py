"""A linear reader: guesses one of two kinds of episode from what is told at reset."""

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

_BUCKETS = 4096  # of hashed words
_RIDGE = 1.0
_FEW = 8  # columns of the reader that chooses


class Reading(NamedTuple):
    """What a reader is given of one episode: a text, and numbers if there are any."""

    text: str
    numbers: tuple[float, ...] = ()


class Guesses(NamedTuple):
    """How many held-out episodes were guessed right, and how likely by chance."""

    right: int
    of: int
    chance: float


def guesses(first: list[Reading], second: list[Reading]) -> Guesses:
    """Train readers on the first half of each kind and test them on the second.

    Ridge regression of +1 / -1 on words, pairs of words and numbers, standardised on
    the half it is trained on: one reader takes them all, another the few that go best
    with the answers. Kinds have equally many episodes, so a reader that knows nothing
    is right half of the time, whatever it learnt.

    Args:
        first: Episodes of one kind, independently drawn.
        second: As many of the other kind.

    Returns:
        Right guesses of the better reader, and twice P(at least so many | coin), since
        there are two.
    """
    assert len(first) == len(second)
    half = len(first) // 2
    trained = [*first[:half], *second[:half]]
    tested = [*first[half:], *second[half:]]
    table = np.stack([_row(reading) for reading in (*trained, *tested)])
    mean, spread = table[: 2 * half].mean(axis=0), table[: 2 * half].std(axis=0)
    varies = spread > 0  # what never varied while training is no basis for a guess
    table = (table - mean)[:, varies] / spread[varies]
    seen, unseen = table[: 2 * half], table[2 * half :]
    answers = np.repeat([1.0, -1.0], half)
    best = np.argsort(-np.abs(answers @ seen), kind="stable")[:_FEW]
    truth = np.repeat([1.0, -1.0], len(first) - half)
    right = max(
        _right(seen[:, columns], answers, unseen[:, columns], truth)
        for columns in (slice(None), best)
    )
    chance = min(1.0, 2 * float(binom.sf(right - 1, len(truth), 0.5)))
    return Guesses(right, len(truth), chance)


def _right(seen, answers, unseen, truth) -> int:
    """Return how many signs a ridge regression gets right; half of those at zero."""
    gram = seen @ seen.T + _RIDGE * seen.shape[1] * np.eye(len(seen))
    score = unseen @ (seen.T @ np.linalg.solve(gram, answers))
    return int((np.sign(score) == truth).sum() + (score == 0).sum() // 2)


def _row(reading: Reading) -> np.ndarray:
    row = np.zeros(_BUCKETS)
    words = re.findall(r"[a-z]+|\d+", reading.text.lower())
    for item in (*words, *map(" ".join, pairwise(words))):
        row[_bucket(item)] += 1.0
    sizes = (len(words), reading.text.count("\n"))
    return np.concatenate((np.log1p(row), np.log1p(sizes), reading.numbers))


@cache
def _bucket(item: str) -> int:
    """Return the place of a word: FNV-1a, the same in every process."""
    value = 2166136261
    for byte in item.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value % _BUCKETS
