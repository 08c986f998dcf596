"""Cheap small draws from one stream: numbers are taken in blocks."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TypeVar

import numpy as np

T = TypeVar("T")

_BLOCK = 1024
YEAR = 365
# Every day of the year in which all worlds play, and the one after it.
DAYS = tuple((date(2031, 1, 1) + timedelta(days=i)).isoformat() for i in range(366))
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


class IntegerDraws:
    """A supply of small whole numbers; equal streams give equal supplies.

    `practice` worlds know only the practice share of every vocabulary. `grain` is what
    every amount of money is a multiple of: whole dollars, or any cent.
    """

    def __init__(self, rng: np.random.Generator, *, practice: bool = False) -> None:
        self._rng = rng
        self.practice = practice
        self.grain = 1
        self._block: list[int] = []

    def below(self, limit: int) -> int:
        """Return a whole number in [0, limit); limits are far below 2**31."""
        if not self._block:
            self._block = self._rng.integers(0, 1 << 31, size=_BLOCK).tolist()
        return self._block.pop() % limit

    def between(self, low: int, high: int) -> int:
        """Return a whole number in [low, high]."""
        return low + self.below(high - low + 1)

    def coin(self) -> bool:
        """Return true half of the time."""
        return self.below(2) == 1

    def percent(self, share: int) -> bool:
        """Return true in `share` of 100 cases."""
        return self.below(100) < share

    def pick(self, items: Sequence[T]) -> T:
        """Return one of `items`."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different ones of `items`, in random order."""
        pool = list(items)
        for i in range(count):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return all of `items` in random order."""
        return self.sample(items, len(items))

    def known(self, words: Sequence[T]) -> Sequence[T]:
        """Return the part of a vocabulary that this world may use.

        The last third is held out: no practice world holds a word of it.
        """
        return words[: practice_share(len(words))] if self.practice else words

    def word(self, words: Sequence[T]) -> T:
        """Return one of the words that this world may use."""
        return self.pick(self.known(words))

    def cents(self, low: int, high: int) -> int:
        """Return an amount of `low` to `high` dollars, in cents."""
        whole = 100 * self.between(low, high)
        return whole + self.below(100) if self.grain == 1 else whole

    def letters(self, count: int) -> str:
        """Return `count` random letters and digits, none easily confused."""
        return "".join(self.pick(_ALPHABET) for _ in range(count))


def practice_share(size: int) -> int:
    """Return how many words of a vocabulary of `size` practice worlds may use."""
    return size - size // 3


def numbered(
    draws: IntegerDraws, prefix: str, count: int, digits: int, near: int
) -> list[str]:
    """Return `count` different codes; `near` of 100 swap digits of the one before."""
    low, high = 10 ** (digits - 1), 10**digits - 1
    taken: dict[str, None] = {}
    last = str(draws.between(low, high))
    while len(taken) < count:
        if taken and draws.percent(near):
            last = last[:-2] + last[-1] + last[-2]
        if last in taken or not taken:
            last = str(draws.between(low, high))
        if last not in taken:
            taken[last] = None
    return [prefix + code for code in taken]
