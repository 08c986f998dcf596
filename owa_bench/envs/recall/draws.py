"""Draws that families share: structure, and apart from it the surface in nonce words.

The structure comes from the seed alone, words and names from the seed and the form, so forms A, B
and C of one seed are isomorphic and no word means anything.

Source: docs/recall.md#worlds
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from numpy.random import Generator

from owa_bench.envs.recall.world import Form, Notice
from owa_bench.seeding import stream

_ONSETS = (
    *("b", "br", "d", "dr", "f", "fl", "g", "gr", "h", "k", "kl", "l", "m", "n"),
    *("p", "pl", "r", "s", "sk", "st", "t", "tr", "v", "z"),
)
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("k", "l", "m", "n", "r", "s", "t", "ld", "nt", "rk", "sh", "st")
_OPEN = tuple(onset + vowel for onset in _ONSETS for vowel in _VOWELS)
_CLOSED = tuple(start + coda for start in _OPEN for coda in _CODAS)
_WORDS = len(_OPEN) * len(_CLOSED)


class Lexicon:
    """A source of distinct nonce words of two syllables and of names."""

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._used: set[str] = set()
        self._next = self._stream()

    def words(self, count: int) -> tuple[str, ...]:
        """Return words that were not given before."""
        return tuple(next(self._next) for _ in range(count))

    def names(self, count: int) -> tuple[str, ...]:
        """Return names of persons, a first and a last name each."""
        words = self.words(2 * count)
        return tuple(
            f"{first.capitalize()} {last.capitalize()}"
            for first, last in zip(words[::2], words[1::2], strict=True)
        )

    def siblings(self, name: str, count: int) -> tuple[str, ...]:
        """Return names that differ from `name` in one vowel of the last name.

        Args:
            name: A name of this lexicon.
            count: How many, at most 4.
        """
        place = max(name.rfind(vowel) for vowel in _VOWELS)
        others = [vowel for vowel in _VOWELS if vowel != name[place]]
        start = int(self._rng.integers(len(others)))
        chosen = (others[(start + i) % len(others)] for i in range(count))
        return tuple(name[:place] + vowel + name[place + 1 :] for vowel in chosen)

    def _stream(self) -> Iterator[str]:
        while True:
            for number in self._rng.integers(_WORDS, size=128).tolist():
                word = _OPEN[number % len(_OPEN)] + _CLOSED[number // len(_OPEN)]
                if word not in self._used:
                    self._used.add(word)
                    yield word


FORMS: tuple[Form, ...] = ("A", "B", "C")
STUDY_DAYS = (0, 1, 3)
LAGS = (1, 7, 28)  # days after which an item is asked
DAY_BLOCK = 1000  # numbers of notices that a day may give
_STYLES = 1 << 16


class Draws(NamedTuple):
    """The streams of one world, its tier, and a generator of words."""

    tier: int
    rng: Generator
    lexicon: Lexicon

    def styles(self, count: int) -> list[int]:
        """Return numbers that choose among sentences."""
        numbers: list[int] = self.rng.integers(_STYLES, size=count).tolist()
        return numbers

    def order(self, count: int) -> list[int]:
        """Return the numbers below `count` in a drawn order."""
        numbers: list[int] = self.rng.permutation(count).tolist()
        return numbers

    def by_tier(self, values: Sequence[Any]) -> Any:
        """Return the value of this tier."""
        return values[self.tier - 1]


def draws_of(seed: int, family: str, tier: int, form: Form) -> Draws:
    """Return the streams of a world.

    Args:
        seed: The instance's.
        family: Name of its family.
        tier: 1 to 4.
        form: Chooses the surface.
    Returns: Streams at their start.
    """
    return Draws(
        tier=tier, rng=stream(seed, "base", family), lexicon=Lexicon(stream(seed, "form", form))
    )


class Statement(NamedTuple):
    """A notice before it has a number: its chain's place, what it says."""

    day: int
    chain: int  # statements of one chain are issued in this order
    place: int
    terms: dict[str, Any]
    withdrawn_place: int = -1  # place in its chain of the statement that it withdraws


def numbered(
    statements: Sequence[Statement], draws: Draws
) -> tuple[dict[tuple[int, int], int], tuple[Notice, ...]]:
    """Return notices in order of issue, chains in theirs, mixed by draw.

    Args:
        statements: Of all chains.
        draws: For the order within a day and the sentences.
    Returns: The number of each (chain, place), and the notices.
    """
    ranks = draws.rng.random(len(statements)).tolist()
    slots: dict[tuple[int, int], list[float]] = {}
    for statement, rank in zip(statements, ranks, strict=True):
        slots.setdefault((statement.chain, statement.day), []).append(rank)
    for group in slots.values():
        group.sort(reverse=True)
    ordered = sorted(statements, key=lambda s: (s.chain, s.place))
    keyed = [(s.day, slots[s.chain, s.day].pop(), s) for s in ordered]
    keyed.sort(key=lambda entry: entry[:2])
    steps = draws.rng.integers(1, 3, size=len(keyed)).tolist()
    styles = draws.styles(len(keyed))
    numbers: dict[tuple[int, int], int] = {}
    notices = []
    day, number = -1, 0
    for (at, _, statement), step, style in zip(keyed, steps, styles, strict=True):
        if at != day:
            day, number = at, DAY_BLOCK * (at + 1)
        number += step
        numbers[statement.chain, statement.place] = number
        withdrawn = numbers.get((statement.chain, statement.withdrawn_place), 0)
        notices.append(
            Notice(number=number, day=at, style=style, withdraws=withdrawn, **statement.terms)
        )
    return numbers, tuple(notices)
