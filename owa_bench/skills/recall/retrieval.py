"""BM25 over lines of text.

Source: Robertson and Zaragoza, 2009, doi:10.1561/1500000019 (k1 = 1.2, b = 0.75).
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

_SATURATION, _LENGTH = 1.2, 0.75


class TextIndex:
    """Term counts of some texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(_terms(text)) for text in texts]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(self._lengths) / max(len(texts), 1)
        self._spread = Counter(term for counts in self._counts for term in counts)

    def ranked(self, query: str) -> list[int]:
        """Return the places of texts that hold a term of a query, best first."""
        terms = set(_terms(query))
        scores = {
            place: self._score(place, terms)
            for place, counts in enumerate(self._counts)
            if terms & counts.keys()
        }
        return sorted(scores, key=lambda place: (-scores[place], place))

    def _score(self, place: int, terms: set[str]) -> float:
        counts, texts = self._counts[place], len(self._counts)
        length = self._lengths[place] / self._mean
        total = 0.0
        for term in terms & counts.keys():
            spread, count = self._spread[term], counts[term]
            weight = math.log(1 + (texts - spread + 0.5) / (spread + 0.5))
            damping = _SATURATION * (1 - _LENGTH + _LENGTH * length)
            total += weight * count * (_SATURATION + 1) / (count + damping)
        return total


def _terms(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())
