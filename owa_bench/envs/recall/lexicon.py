"""Nonce words and names: drawn by seed and form, so that none means anything.

Source: docs/recall.md#worlds
"""

from collections.abc import Iterator

from numpy.random import Generator

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
        Returns: The names.
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
