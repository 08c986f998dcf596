"""Matches phrases of a goal to descriptions in documents by the words they share."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_SMALL = "a an and as at by for from in is it its of on or that the this to with"
_FILLERS = frozenset(_SMALL.split())


class Match(NamedTuple):
    """The name whose text is nearest and the share of words that both have."""

    name: str
    score: float


def words(text: str) -> frozenset[str]:
    """Return the words of `text` in lower case, singular, fillers left out.

    >>> sorted(words("unitPrice of the orders"))
    ['order', 'price', 'unit']
    """
    found = (word.lower() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in found if word not in _FILLERS)


def overlap(a: str, b: str) -> float:
    """Return the Jaccard share of words that two texts have in common; 1 if equal.

    Args:
        a: A text.
        b: Another text.

    Returns:
        A share in [0, 1].

    >>> overlap("Amount of the booking.", "amount booking")
    1.0
    """
    first, second = words(a), words(b)
    union = first | second
    return len(first & second) / len(union) if union else float(a == b)


def ranked(phrase: str, texts: Mapping[str, str]) -> tuple[Match, ...]:
    """Return every name of `texts` by how near its text is to `phrase`, best first.

    Args:
        phrase: What is looked for.
        texts: Text by name.

    Returns:
        Names and scores.
    """
    scored = [Match(name, overlap(phrase, text)) for name, text in texts.items()]
    return tuple(sorted(scored, key=lambda match: (-match.score, match.name)))


def best(phrase: str, texts: Mapping[str, str], *, least: float = 0.0) -> str | None:
    """Return the name whose text is nearest to `phrase`, None below `least`.

    Args:
        phrase: What is looked for.
        texts: Text by name.
        least: Score that must be exceeded.

    Returns:
        The name.
    """
    order = ranked(phrase, texts)
    return order[0].name if order and order[0].score > least else None


def assign(
    scores: Mapping[tuple[str, str], float], wanted: Iterable[str]
) -> dict[str, str]:
    """Return wanted -> option, greedily by score; each option is chosen once.

    Args:
        scores: Score by (wanted name, option).
        wanted: Names that need an option.

    Returns:
        Option by wanted name; those without a positive score are left out.
    """
    left = set(wanted)
    chosen: dict[str, str] = {}
    for (name, option), score in sorted(scores.items(), key=lambda s: (-s[1], s[0])):
        if name in left and option not in chosen.values() and score > 0.0:
            chosen[name] = option
            left.discard(name)
    return chosen


def _stem(word: str) -> str:
    """Return `word` without its plural ending."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word
