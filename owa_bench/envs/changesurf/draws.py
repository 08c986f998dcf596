"""Draws for worlds: only what gives equal results on every machine."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from owa_bench.envs.changesurf.formats import join_date

T = TypeVar("T")
# Days after the 12th: day and month of a goal's dates can never change places unseen.
_FIRST_DAY, _LAST_DAY = 13, 24


class Draws:
    """A generator's draws as plain values; `practice` worlds know no held-out words."""

    def __init__(self, rng: np.random.Generator, *, practice: bool) -> None:
        self._rng = rng
        self.practice = practice

    def between(self, low: int, high: int) -> int:
        """Return a whole number, both ends included."""
        return int(self._rng.integers(low, high + 1))

    def coin(self) -> bool:
        """Return true half of the time."""
        return self.between(0, 1) == 1

    def pick(self, items: Sequence[T]) -> T:
        """Return one of `items`."""
        return items[self.between(0, len(items) - 1)]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different ones of `items`, in a drawn order."""
        return [items[i] for i in self._rng.permutation(len(items))[:count].tolist()]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return all of `items` in a drawn order."""
        return self.sample(items, len(items))

    def cents(self, low: int, high: int) -> int:
        """Return an amount between whole units `low` and `high`, in cents."""
        return self.between(low, high) * 100 + self.pick((0, 25, 50, 75, 90, 99))

    def day(self, today: str, months: int) -> str:
        """Return a day after the 12th, so many months from the site clock's month."""
        year, month, _ = map(int, today.split("-"))
        total = year * 12 + month - 1 + months
        made = join_date(
            total // 12, total % 12 + 1, self.between(_FIRST_DAY, _LAST_DAY)
        )
        return made or today
