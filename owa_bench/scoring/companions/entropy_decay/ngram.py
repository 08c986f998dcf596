"""A language model that needs nothing: interpolated n-grams, and a text's tokens."""

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Integers


class NGramModel:
    """An interpolated n-gram model with Witten-Bell smoothing, fitted to tokens.

    It reads at most `order` - 1 tokens of a context, so its curve is flat beyond.
    """

    def __init__(
        self, tokens: npt.ArrayLike, *, order: int = 4, vocabulary: int | None = None
    ) -> None:
        corpus = np.asarray(tokens)
        if corpus.ndim != 1 or corpus.size < 1 or order < 1:
            raise ScoringError(
                "an n-gram model needs a row of tokens and `order` of at least 1, got "
                f"shape {corpus.shape} and {order}."
            )
        self.order = order
        self.vocabulary = int(vocabulary or corpus.max() + 1)
        if corpus.min() < 0 or corpus.max() >= self.vocabulary:
            span = (int(corpus.min()), int(corpus.max()))
            raise ScoringError(
                f"`tokens` must lie in [0, {self.vocabulary}), got {span}."
            )
        self._counts = _counts(corpus.tolist(), order)
        self._logs: dict[tuple[int, ...], Floats] = {}

    def next_token_logits(self, contexts: Integers) -> Floats:
        """Return log probabilities (windows, vocabulary) of what follows contexts."""
        keep = self.order - 1
        rows = [
            tuple(row[len(row) - min(keep, len(row)) :]) for row in contexts.tolist()
        ]
        return np.stack([self._log_distribution(row) for row in rows])

    def _log_distribution(self, context: tuple[int, ...]) -> Floats:
        found = self._logs.get(context)
        if found is None:
            found = self._logs[context] = np.log(self._distribution(context))
        return found

    def _distribution(self, context: tuple[int, ...]) -> Floats:
        """Return p(next | context): counts, and the shorter context for the rest."""
        shorter = (
            self._distribution(context[1:])
            if context
            else np.full(self.vocabulary, 1.0 / self.vocabulary)
        )
        after = self._counts.get(context)
        if after is None:
            return shorter
        kinds, total = len(after), sum(after.values())
        mixed = shorter * (kinds / (kinds + total))
        mixed[list(after)] += np.array(list(after.values())) / (kinds + total)
        return mixed


def _counts(corpus: list[int], order: int) -> dict[tuple[int, ...], dict[int, int]]:
    """Return how often each token follows each context of up to order - 1 tokens."""
    counts: dict[tuple[int, ...], dict[int, int]] = {}
    for length in range(order):
        for i in range(length, len(corpus)):
            after = counts.setdefault(tuple(corpus[i - length : i]), {})
            after[corpus[i]] = after.get(corpus[i], 0) + 1
    return counts


def characters(text: str) -> tuple[Integers, tuple[str, ...]]:
    """Return a text as character tokens, and the alphabet they point into.

    >>> characters("abba")
    (array([0, 1, 1, 0]), ('a', 'b'))
    """
    if not text:
        raise ScoringError("`text` is empty: there is nothing to measure.")
    alphabet = tuple(sorted(set(text)))
    place = {sign: i for i, sign in enumerate(alphabet)}
    return np.array([place[sign] for sign in text], dtype=np.int64), alphabet
