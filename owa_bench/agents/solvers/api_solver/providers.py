"""Providers of a goal: the search for their documents, their clients, their tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from owa_bench.agents.solvers import documents, openapi
from owa_bench.agents.solvers.api_solver.authentication import AuthenticatedClient, Connector
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, HttpSession, SkillConfig
from owa_bench.agents.solvers.api_solver.pagination import fetch_pages
from owa_bench.agents.solvers.api_solver.resource_table import (
    LEAST_MATCH,
    GoalSource,
    ResourceTable,
    resource_table,
)
from owa_bench.agents.solvers.api_solver.task_state import DECLARE
from owa_bench.agents.solvers.memory import FactMemory
from owa_bench.agents.solvers.openapi import ApiModel, Operation, PagingScheme, Property, Security
from owa_bench.agents.solvers.planning import ToolPlan
from owa_bench.agents.solvers.probing import HttpReply

WANTED = "API description OpenAPI documentation reference"
MOST_PAGES = 8
MOST_HINTS = 6


class ApiModelFinder(Protocol):
    """A search for the API description of a vendor."""

    def find(self, title: str, address: str) -> ToolPlan[ApiModel | None]:
        """Return the model of the vendor `title`, looked for from `address` on.

        Args:
            title: Title of the vendor.
            address: A page to begin with.
        Returns: The model, None where nothing was found.
        """


class DocumentSearch:
    """Reads pages, each once, until one is the OpenAPI document of a vendor.

    `places` is where the documents of each vendor were found.
    """

    def __init__(self, session: HttpSession) -> None:
        self._session = session
        self.places: dict[str, str] = {}
        self._pages: dict[str, HttpReply] = {}

    def find(self, title: str, address: str) -> ToolPlan[ApiModel | None]:
        """Return the model of the vendor `title`, looked for from `address` on.

        Without a document it is a model without operations, of the last page that was reached for
        people.

        Args:
            title: Title of the vendor.
            address: A page to begin with.
        Returns: The model, None where no page was reached.
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
                return openapi.parse(reply.body, base)
            waiting = [*_leads(reply.body, base, title), *waiting]
            if isinstance(reply.body, str):
                home = _bare(reply.body, base, home)
        return home

    def _page(self, address: str) -> ToolPlan[HttpReply]:
        if address not in self._pages:
            self._pages[address] = yield from self._session.http("GET", address)
        return self._pages[address]


def _bare(body: str, place: str, known: ApiModel | None) -> ApiModel:
    """Return a model without operations of the vendor whose page is at `place`."""
    server = urljoin(place, "/").rstrip("/")
    if known is not None and known.server == server:
        return known
    title = documents.parse(body, place).title
    return ApiModel(title, server, Security("none"), (), documented=False)


def _leads(body: Any, place: str, title: str) -> list[str]:
    """Return the addresses on a page that may lead to the documents, best first."""
    if isinstance(body, str):
        page = documents.parse(body, place)
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


class ProviderClient(NamedTuple):
    """A vendor whose documents were read."""

    title: str
    model: ApiModel
    access: AuthenticatedClient

    def operation(self, method: str, about: str) -> Operation | None:
        """Return the operation of that method whose meaning is nearest to `about`.

        Args:
            method: HTTP method.
            about: Description in the goal.
        Returns: The operation, None where nothing is near.
        """
        choices = self.model.method(method)
        texts = {str(i): choice.about for i, choice in enumerate(choices)}
        found = documents.best(about, texts, least=LEAST_MATCH)
        return None if found is None else choices[int(found)]


@dataclass(slots=True)
class ProviderClients:
    """Opens vendors once and fetches their collections, with help when stuck.

    `infeasible` is set when the supervisor or the documents say it cannot be done. `connectors` are
    by title.
    """

    session: HttpSession
    memory: FactMemory
    registry: str | None
    finder: ApiModelFinder
    config: SkillConfig = ALL_SKILLS
    connectors: Mapping[str, Connector] = field(default_factory=dict)
    infeasible: bool = field(default=False, init=False)
    _known: dict[str, ProviderClient] = field(default_factory=dict, init=False)

    def open(self, source: GoalSource) -> ToolPlan[ProviderClient | None]:
        """Return the vendor of `source`, None when its documents are not found."""
        title = source.provider
        entry = source.entry or self.registry
        if title not in self._known and entry:
            model = yield from self.finder.find(title, entry)
            if model is not None:
                access = AuthenticatedClient(
                    title,
                    model.security,
                    model.server,
                    self.session,
                    self.memory,
                    retries=self.config.retries,
                    aliases=(model.title,),
                    grants=self.config.grants,
                    connector=self.connectors.get(title),
                )
                self._known[title] = ProviderClient(title, model, access)
        return self._known.get(title)

    def refusing_client(self) -> ProviderClient | None:
        """Return the vendor that was refused to the end, None without one."""
        return next((v for v in self._known.values() if v.access.closed), None)

    def fetch(self, source: GoalSource) -> ToolPlan[ResourceTable | None]:
        """Return the table of `source`, None when it cannot be had."""
        vendor = yield from self.open(source)
        operation = vendor.operation("GET", source.resource) if vendor else None
        if vendor is not None and not vendor.model.documented:
            operation = undocumented_operation(source, vendor.model.server)
        found = None
        if vendor is not None and operation is not None:
            found = yield from self._fetch(vendor, operation, source)
        if found is None and not source.optional:
            found = yield from self._rescue(vendor, operation, source)
        return found

    def _fetch(
        self, vendor: ProviderClient, operation: Operation, source: GoalSource
    ) -> ToolPlan[ResourceTable | None]:
        known = self.memory.recall(vendor.title, f"place of {source.resource}")
        others = [o for o in vendor.model.method("GET") if o is not operation]
        fetched = yield from fetch_pages(vendor.access, operation, others, known, self.config)
        if fetched is None:
            return None
        self.memory.learn(vendor.title, f"place of {source.resource}", fetched.address)
        return resource_table(source, operation, fetched, guesses=self.config.guesses)

    def _rescue(
        self, vendor: ProviderClient | None, operation: Operation | None, source: GoalSource
    ) -> ToolPlan[ResourceTable | None]:
        """Ask for the next right step until it leads to the collection."""
        for _ in range(MOST_HINTS):
            hint = yield from self.session.ask(f"Where is: {source.resource}")
            if hint is None:
                break
            if hint.tool == DECLARE:
                self.infeasible = True
                return None
            address = str(hint.arguments.get("url", "")).partition("?")[0]
            if hint.tool != "http" or vendor is None or operation is None:
                yield hint
                continue
            moved = operation._replace(address=address)
            found = yield from self._fetch(vendor, moved, source)
            if found is not None:
                found.fetched.doc_errors.add("path")
                return found
        self.infeasible = vendor is not None and operation is None
        return None


def undocumented_operation(source: GoalSource, server: str) -> Operation:
    """Return the operation of a source that nothing documents, by the goal's words.

    Its address is a guess; the refusal there says what is served.

    Args:
        source: The source of the goal.
        server: Address of the vendor's server.
    """
    fields = tuple(Property(role, "", text) for role, text in source.fields.items())
    address = f"{server}/{source.id}"
    return Operation("GET", address, source.resource, (), PagingScheme("none"), fields)
