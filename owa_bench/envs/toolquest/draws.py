"""Small integers from one random stream, and the draws that several families share.

Numbers are taken from the stream in blocks.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple, TypeVar

import numpy as np

from owa_bench.envs.toolquest.world import Value

T = TypeVar("T")

_BLOCK = 1024
YEAR = 365
# Every day of the year in which all worlds play, and the one after it.
DAYS = tuple((date(2031, 1, 1) + timedelta(days=i)).isoformat() for i in range(366))
_LIVE = 2  # rows that have the status asked for in every task
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


class IntegerDraws:
    """A supply of small whole numbers; equal streams give equal supplies.

    `practice` worlds know only the practice share of every vocabulary. `grain` is what every amount
    of money is a multiple of: whole dollars, or any cent.
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
        """Return a whole number in [low, high].

        Args:
            low: Least value.
            high: Greatest value.
        """
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
        """Return `count` different ones of `items`, in random order.

        Args:
            items: What to draw from.
            count: How many, at most all.
        """
        pool = list(items)
        for i in range(count):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return all of `items` in random order."""
        return self.sample(items, len(items))

    def allowed(self, words: Sequence[T]) -> Sequence[T]:
        """Return the part of a vocabulary that this world may use.

        The last third is held out: no practice world holds a word of it.
        """
        return words[: practice_share(len(words))] if self.practice else words

    def word(self, words: Sequence[T]) -> T:
        """Return one of the words that this world may use."""
        return self.pick(self.allowed(words))

    def cents(self, low: int, high: int) -> int:
        """Return an amount of `low` to `high` dollars, in cents.

        Args:
            low: Least amount, in dollars.
            high: Greatest amount, in dollars.
        Returns: Cents: whole dollars where `grain` says so.
        """
        whole = 100 * self.between(low, high)
        return whole + self.below(100) if self.grain == 1 else whole

    def letters(self, count: int) -> str:
        """Return `count` random letters and digits, none easily confused."""
        return "".join(self.pick(_ALPHABET) for _ in range(count))


def practice_share(size: int) -> int:
    """Return how many words of a vocabulary of `size` practice worlds may use."""
    return size - size // 3


def random_codes(
    draws: IntegerDraws, prefix: str, count: int, digits: int, near: int = 40
) -> list[str]:
    """Return different codes.

    Args:
        draws: Small integers.
        prefix: What stands before the digits.
        count: How many codes.
        digits: Digits of each.
        near: How many of 100 swap the last two digits of the one before.
    Returns: The codes in the order drawn.
    """
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


class Postings(NamedTuple):
    """Rows with ids; the ids of a repeated pair, and of one that only looks alike."""

    rows: list[Mapping[str, Value]]
    pairs: tuple[tuple[str, str], tuple[str, str]]


def with_copies(
    draws: IntegerDraws,
    rows: Sequence[Mapping[str, Value]],
    count: int,
    alter: Callable[[dict[str, Value]], None],
    ids: str,
    first: int = 0,
) -> Postings:
    """Return rows with some repeated, all under ids in random order.

    Args:
        draws: Small integers.
        rows: The rows without ids.
        count: How many are repeated.
        alter: Makes another posting of a copy; the first half of the copies is altered.
        ids: Prefix and first number of the ids, such as "tr-5001".
        first: Rows before this one are not repeated.
    Returns: The rows in the order given, copies last.
    """
    chosen = draws.sample(range(first, len(rows)), count)
    copies = [dict(rows[i]) for i in chosen]
    for copy in copies[: count // 2]:
        alter(copy)
    prefix, _, start = ids.partition("-")
    order = draws.shuffled(range(len(rows) + count))
    names = [f"{prefix}-{int(start) + place}" for place in order]
    both: list[Mapping[str, Value]] = [
        {"id": name, **row} for name, row in zip(names, (*rows, *copies), strict=True)
    ]
    repeat = (names[chosen[-1]], names[-1])
    alike = (names[chosen[0]], names[len(rows)])
    return Postings(both, (repeat, alike))


def by_id(rows: Sequence[Mapping[str, Value]]) -> list[Mapping[str, Value]]:
    """Return rows in the order of their ids."""
    return sorted(rows, key=lambda row: str(row["id"]))


def status(draws: IntegerDraws, place: int, live: str, others: Sequence[str], share: int) -> str:
    """Return the status of a row; every status occurs, so that drift can be seen.

    Args:
        draws: Small integers.
        place: Number of the row: the first two are live, the next ones are not.
        live: The status that the rule asks for.
        others: The other statuses.
        share: How many of 100 rows are live.
    Returns: `live` or one of `others`.
    """
    found = live if place < _LIVE or draws.percent(share) else draws.pick(others)
    return others[place - _LIVE] if _LIVE <= place < _LIVE + len(others) else found


def day_bounds(draws: IntegerDraws, first: int, last: int) -> dict[str, Value]:
    """Return the bounds of a period; about half of them name the day after it.

    Args:
        draws: Small integers.
        first: First day of the period, a number in the year.
        last: Last day of the period.
    Returns: `first_day`, `last_day` and whether the latter is included.
    """
    included = draws.coin()
    return {
        "first_day": DAYS[first],
        "last_day": DAYS[last if included else last + 1],
        "last_day_included": included,
    }
