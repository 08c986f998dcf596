"""Reads web pages: their links with the words on them, and their text."""

from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin

from owa_bench.skills import matching


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

    Returns:
        The page.
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

    Returns:
        Addresses, nearest first.
    """
    texts = {link.address: f"{link.text} {link.address}" for link in page.links}
    return tuple(match.name for match in matching.ranked(phrase, texts))


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
        if tag == "a" and _seen(given):
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


def _seen(attributes: dict[str, str | None]) -> bool:
    """Return whether a browser shows an element of these attributes."""
    style = (attributes.get("style") or "").replace(" ", "").lower()
    hidden = "hidden" in attributes or attributes.get("aria-hidden") == "true"
    return not hidden and "display:none" not in style
