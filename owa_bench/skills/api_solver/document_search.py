"""Finds a vendor's documents: from a description, a home page or a registry."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

from owa_bench.skills import documents, openapi
from owa_bench.skills.api_solver.http_session import HttpSession
from owa_bench.skills.openapi import ApiModel, Security
from owa_bench.skills.planning import ToolPlan
from owa_bench.skills.probing import HttpReply

WANTED = "API description OpenAPI documentation reference"
MOST_PAGES = 8


class DocumentFinder(Protocol):
    """Whoever can say where a vendor's documents are."""

    def find(self, title: str, address: str) -> ToolPlan[ApiModel | None]:
        """Return the model of the vendor `title`, looked for from `address` on."""


class DocumentSearch:
    """Reads pages, each once, until one is the OpenAPI document of a vendor.

    `places` is where the documents of each vendor were found.
    """

    def __init__(self, desk: HttpSession) -> None:
        self._desk = desk
        self.places: dict[str, str] = {}
        self._pages: dict[str, HttpReply] = {}

    def find(self, title: str, address: str) -> ToolPlan[ApiModel | None]:
        """Return the model of the vendor `title`, looked for from `address` on.

        Without a document it is a model without operations, of the last page that was
        reached for people.
        """
        waiting = [address]
        seen: set[str] = set()
        home: ApiModel | None = None
        while waiting and len(seen) < MOST_PAGES:
            place = waiting.pop(0)
            if place in seen:
                continue
            seen.add(place)
            reply = yield from self._page(place)
            if not reply.ok:
                continue
            base = reply.address or place
            if openapi.is_openapi(reply.body):
                self.places[title] = place
                return openapi.read(reply.body, base)
            waiting = [*_leads(reply.body, base, title), *waiting]
            if isinstance(reply.body, str):
                home = _bare(reply.body, base, home)
        return home

    def _page(self, address: str) -> ToolPlan[HttpReply]:
        if address not in self._pages:
            self._pages[address] = yield from self._desk.http("GET", address)
        return self._pages[address]


def _bare(body: str, place: str, known: ApiModel | None) -> ApiModel:
    """Return a model without operations of the vendor whose page is at `place`."""
    server = urljoin(place, "/").rstrip("/")
    if known is not None and known.server == server:
        return known
    title = documents.read(body, place).title
    return ApiModel(title, server, Security("none"), (), documented=False)


def _leads(body: Any, place: str, title: str) -> list[str]:
    """Return the addresses on a page that may lead to the documents, best first."""
    if isinstance(body, str):
        page = documents.read(body, place)
        host = urlsplit(place).netloc
        found = documents.nearest(page, WANTED)
        own = [address for address in found if urlsplit(address).netloc == host]
        return own or list(found)  # a page that only leads elsewhere has moved
    return [
        urljoin(place, text)
        for record in _records(body)
        if title in record.values()
        for text in record.values()
        if isinstance(text, str) and text.startswith(("http://", "https://", "/"))
    ]


def _records(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object inside a JSON value."""
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _records(part)
