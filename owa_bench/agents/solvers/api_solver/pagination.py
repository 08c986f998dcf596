"""Pagination: a whole collection, found where it is served now, page by page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from owa_bench.agents.solvers import documents, openapi, probing, schema_matching
from owa_bench.agents.solvers.api_solver.authentication import AuthenticatedClient
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, SkillConfig
from owa_bench.agents.solvers.openapi import Operation, PagingScheme
from owa_bench.agents.solvers.planning import ToolPlan
from owa_bench.agents.solvers.probing import HttpReply

BAD_REQUEST, NOT_FOUND = 400, 404
MOST_PAGES = 200
LEAST_FIT = 0.5
GUESSED = 0.7  # what a field counts that fits by type alone
WireRow = Mapping[str, Any]


@dataclass(slots=True)
class FetchedRows:
    """The rows of a collection as served; `doc_errors` are faults of its documents."""

    address: str
    rows: list[WireRow] = field(default_factory=list)
    doc_errors: set[str] = field(default_factory=set)
    complete: bool = False


def fetch_pages(
    access: AuthenticatedClient,
    operation: Operation,
    others: Sequence[Operation],
    known: str | None = None,
    config: SkillConfig = ALL_SKILLS,
) -> ToolPlan[FetchedRows | None]:
    """Return every row of a collection.

    Args:
        access: Client of the vendor.
        operation: The collection as documented.
        others: The vendor's other documented operations, whose places are taken.
        known: Where the collection was found another time, perhaps on another host.
        config: Which skills are on.
    Returns: The rows, None when the collection is nowhere.
    """
    fetched = FetchedRows(operation.address)
    searched = others if config.searches else None
    first = yield from _locate(access, operation, searched, fetched, known)
    if first is None:
        return None
    found = probing.find_list(first.body)
    if found is None:
        return None
    if found.path != operation.wrapper:
        fetched.doc_errors.add("wrapper")
    fetched.rows.extend(found.rows)
    yield from _follow(access, operation, first, fetched, config)
    return fetched


def _locate(
    access: AuthenticatedClient,
    operation: Operation,
    others: Sequence[Operation] | None,
    fetched: FetchedRows,
    known: str | None,
) -> ToolPlan[HttpReply | None]:
    """Return the first page from where the collection is served now.

    It is not looked for elsewhere when `others` is None.
    """
    missing = yield from access.request("GET", operation.address, query=operation.fixed_query)
    if missing.status != NOT_FOUND:
        return missing if missing.ok else None
    fetched.doc_errors.add("path")
    server = "/".join(operation.address.split("/")[:3])
    taken = {other.address for other in others or ()}
    if known:  # on another host, perhaps, and not there for good: only its path counts
        address = f"{server}/{'/'.join(known.split('/')[3:])}"
        reply = yield from access.peek(address)
        if address not in taken and _fit(operation, reply) > LEAST_FIT:
            fetched.address = address
            return reply
    if others is None:
        return None
    best: tuple[float, str, HttpReply] | None = None
    for address in _places(operation, missing):
        if address in taken:
            continue
        reply = yield from access.peek(address)
        fit = _fit(operation, reply)
        if fit > LEAST_FIT and (best is None or fit > best[0]):
            best = (fit, address, reply)
    if best is None:
        return None
    fetched.address = best[1]
    return best[2]


def _fit(operation: Operation, reply: HttpReply) -> float:
    """Return how like the collection is to what a reply lists, 0 for no list."""
    found = probing.find_list(reply.body) if reply.ok else None
    return likeness(operation, found.rows) if found else 0.0


def _places(operation: Operation, reply: HttpReply) -> list[str]:
    """Return the addresses that a 404 offers, by how near their words are."""
    server = "/".join(operation.address.split("/")[:3])
    texts = {path: path for path in probing.paths(reply)}
    phrase = f"{operation.address} {operation.about}"
    return [server + match.name for match in documents.ranked(phrase, texts)]


def likeness(operation: Operation, rows: Sequence[WireRow]) -> float:
    """Return the share of fields, documented or served, that fit each other.

    A field of the documented name counts whole, one that only could be it in part.

    Args:
        operation: The collection as documented.
        rows: Rows as served.
    Returns: A share in [0, 1].
    """
    naming = schema_matching.resolve(operation.fields, rows)
    served = len(rows[0]) if rows else 0
    same = len(naming.names) - len(naming.guessed)
    fitting = same + GUESSED * len(naming.guessed)
    return fitting / max(1, served, len(operation.fields))


def _follow(
    access: AuthenticatedClient,
    operation: Operation,
    first: HttpReply,
    fetched: FetchedRows,
    config: SkillConfig,
) -> ToolPlan[None]:
    """Add the pages after the first one to `fetched`."""
    pager, fixed = operation.pager, operation.fixed_query
    total = probing.total(first)
    link = probing.link(first, "next")
    mark = probing.cursor(first)
    page_size = len(fetched.rows)
    if mark and pager.style != "cursor":
        fetched.doc_errors.add("pager")
        pager = PagingScheme("cursor", "cursor")
    for number in range(2, MOST_PAGES):
        if not link and _is_whole(fetched, pager, total, mark, page_size):
            fetched.complete = True
            return
        if not config.pages:
            return
        query = fixed | _position(pager, number, len(fetched.rows), mark)
        if link:
            reply = yield from access.request("GET", link)
        else:
            reply = yield from access.request("GET", fetched.address, query=query)
        if reply.status == BAD_REQUEST:
            fetched.doc_errors.add("pager")
            if not config.repages:
                return
            named = [name for name in probing.quoted_names(reply) if name not in query]
            pager = openapi.pager_of({name: {} for name in named})
            query = fixed | _position(pager, number, len(fetched.rows), mark)
            reply = yield from access.request("GET", fetched.address, query=query)
        found = probing.find_list(reply.body) if reply.ok else None
        if found is None or not found.rows or found.rows[0] in fetched.rows[:1]:
            fetched.complete = total is None and reply.ok
            return
        fetched.rows.extend(found.rows)
        mark, link = probing.cursor(reply), probing.link(reply, "next")


def _is_whole(
    fetched: FetchedRows, pager: PagingScheme, total: int | None, mark: str | None, page_size: int
) -> bool:
    """Return whether nothing is left to fetch."""
    if total is not None:
        return len(fetched.rows) >= total
    if pager.style == "cursor":
        return mark is None
    return pager.style == "none" or len(fetched.rows) % max(1, page_size) != 0


def _position(pager: PagingScheme, number: int, skipped: int, mark: str | None) -> dict[str, Any]:
    """Return the query of page `number`; a guess where no pager is known."""
    positions = {"cursor": mark or "", "page": number}
    return {pager.position or "offset": positions.get(pager.style, skipped)}
