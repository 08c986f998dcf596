"""Reads web pages (links, text), and matches phrases of a goal to what they say."""

import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin

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
    Returns: A share in [0, 1].

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
    Returns: Names and scores.
    """
    scored = [Match(name, overlap(phrase, text)) for name, text in texts.items()]
    return tuple(sorted(scored, key=lambda match: (-match.score, match.name)))


def best(phrase: str, texts: Mapping[str, str], *, least: float = 0.0) -> str | None:
    """Return the name whose text is nearest to `phrase`, None below `least`.

    Args:
        phrase: What is looked for.
        texts: Text by name.
        least: Score that must be exceeded.
    """
    order = ranked(phrase, texts)
    return order[0].name if order and order[0].score > least else None


def assign(scores: Mapping[tuple[str, str], float], wanted: Iterable[str]) -> dict[str, str]:
    """Return wanted -> option, greedily by score; each option is chosen once.

    Args:
        scores: Score by (wanted name, option).
        wanted: Names that need an option.
    Returns: Option by wanted name; those without a positive score are left out.
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


# --- web pages ------------------------------------------------------------------------


class HtmlLink(NamedTuple):
    """An address on a page and its words."""

    address: str
    text: str


class HtmlPage(NamedTuple):
    """A page as read: title, links in order, all words."""

    title: str
    links: tuple[HtmlLink, ...]
    text: str


def parse(html: str, base: str) -> HtmlPage:
    """Return the page `html` found at `base`; links are absolute.

    A link that no reader of the page would see is not one.

    Args:
        html: Text of the page.
        base: Its address.
    """
    reader = _Reader(base)
    reader.feed(html)
    reader.close()
    links = tuple(HtmlLink(address, " ".join(text)) for address, text in reader.links)
    return HtmlPage(" ".join(reader.title), links, " ".join(reader.words))


def nearest(page: HtmlPage, phrase: str) -> tuple[str, ...]:
    """Return the page's addresses by how near their words are to `phrase`.

    Args:
        page: The page.
        phrase: What is looked for.
    Returns: Addresses, nearest first.
    """
    texts = {link.address: f"{link.text} {link.address}" for link in page.links}
    return tuple(match.name for match in ranked(phrase, texts))


class _Reader(HTMLParser):
    """Collects links, title and words."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self._open: list[str] | None = None
        self._in_title = False
        self._hidden = 0
        self.title: list[str] = []
        self.words: list[str] = []
        self.links: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a link, the title or a part that is not text."""
        given = dict(attrs)
        if tag == "a" and _is_visible(given):
            self._open = []
            address = urljoin(self._base, given.get("href") or "")
            self.links.append((address, self._open))
        elif tag == "link" and given.get("href"):
            address = urljoin(self._base, given.get("href") or "")
            self.links.append((address, [given.get("rel") or ""]))
        self._in_title = self._in_title or tag == "title"
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        """Close what the tag opened."""
        if tag == "a":
            self._open = None
        elif tag == "title":
            self._in_title = False
        elif tag in ("script", "style"):
            self._hidden -= 1

    def handle_data(self, data: str) -> None:
        """Take the words of a piece of text."""
        if self._hidden or not data.strip():
            return
        found = data.split()
        if self._in_title:
            self.title += found
            return
        self.words += found
        if self._open is not None:
            self._open += found


def _is_visible(attributes: dict[str, str | None]) -> bool:
    """Return whether a browser shows an element of these attributes."""
    style = (attributes.get("style") or "").replace(" ", "").lower()
    hidden = "hidden" in attributes or attributes.get("aria-hidden") == "true"
    return not hidden and "display:none" not in style
