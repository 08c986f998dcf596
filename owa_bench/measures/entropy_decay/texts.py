"""Text inputs of entropy decay: Project Gutenberg files, a character n-gram model."""

import re

import numpy as np
import numpy.typing as npt

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Integers

_START = re.compile(r"\*{3}\s*START OF (?:THE|THIS) PROJECT GUTENBERG.*?\*{3}", re.S)
_END = re.compile(
    r"\*{3}\s*END OF (?:THE|THIS) PROJECT GUTENBERG|^End of (?:the )?"
    r"Project Gutenberg",
    re.M,
)


def strip_gutenberg(text: str, *, begins_with: str | None = None) -> str:
    """Return the work inside a Project Gutenberg file.

    Everything before the START line and after the END line is removed. A text without such lines is
    returned as it is.

    Args:
        text: the file.
        begins_with: first words of the main text (the paper's offsets, section 3.2): everything
            before their last occurrence is removed too, and with it a table of contents that
            repeats them. White space between words does not matter.
    Raises: ScoringError: the text does not hold `begins_with`.

    >>> strip_gutenberg("x *** START OF THE PROJECT GUTENBERG EBOOK A *** B *** "
    ...                 "END OF THE PROJECT GUTENBERG EBOOK A ***")
    'B'
    """
    start = _START.search(text)
    text = text[start.end() :] if start else text
    end = _END.search(text)
    text = (text[: end.start()] if end else text).strip()
    if begins_with is None:
        return text
    words = r"\s+".join(re.escape(word) for word in begins_with.split()) + r"(?!\w)"
    places = [match.start() for match in re.finditer(words, text)]
    if not places:
        raise ScoringError(f"`begins_with` must be found in the text, got {begins_with!r}.")
    return text[places[-1] :]


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
            raise ScoringError(f"`tokens` must lie in [0, {self.vocabulary}), got {span}.")
        self._counts = _counts(corpus.tolist(), order)
        self._logs: dict[tuple[int, ...], Floats] = {}

    def next_token_logits(self, contexts: Integers) -> Floats:
        """Return log probabilities (windows, vocabulary) of what follows contexts."""
        keep = self.order - 1
        rows = [tuple(row[len(row) - min(keep, len(row)) :]) for row in contexts.tolist()]
        return np.stack([self._log_distribution(row) for row in rows])

    def _log_distribution(self, context: tuple[int, ...]) -> Floats:
        logs = self._logs.get(context)
        if logs is None:
            logs = self._logs[context] = np.log(self._distribution(context))
        return logs

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


def character_tokens(text: str) -> tuple[Integers, tuple[str, ...]]:
    """Return a text as character tokens, and the alphabet they point into.

    >>> character_tokens("abba")
    (array([0, 1, 1, 0]), ('a', 'b'))
    """
    if not text:
        raise ScoringError("`text` is empty: there is nothing to measure.")
    alphabet = tuple(sorted(set(text)))
    place = {sign: i for i, sign in enumerate(alphabet)}
    return np.array([place[sign] for sign in text], dtype=np.int64), alphabet
