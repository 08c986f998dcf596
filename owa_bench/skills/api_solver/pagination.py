"""Brings home a whole collection: finds it, pages through it, learns from errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from owa_bench.skills import matching, openapi, probing, schema_matching
from owa_bench.skills.api_solver.authentication import AuthenticatedClient
from owa_bench.skills.api_solver.skill_config import ALL_SKILLS, SkillConfig
from owa_bench.skills.openapi import Operation, PagingScheme
from owa_bench.skills.planning import ToolPlan
from owa_bench.skills.probing import HttpReply

BAD_REQUEST, NOT_FOUND = 400, 404
MOST_PAGES = 200
LEAST_FIT = 0.5
GUESSED = 0.7  # what a field counts that fits by type alone
WireRow = Mapping[str, Any]


@dataclass(slots=True)
class FetchedRows:
    """The rows of a collection as served, and how the documents were wrong about it."""

    address: str
    rows: list[WireRow] = field(default_factory=list)
    lags: set[str] = field(default_factory=set)
    complete: bool = False


def fetch_pages(
    access: AuthenticatedClient,
    operation: Operation,
    others: Sequence[Operation],
    known: str | None = None,
    habits: SkillConfig = ALL_SKILLS,
) -> ToolPlan[FetchedRows | None]:
    """Return every row of `operation`'s collection; None when it is nowhere.

    `others` are the vendor's other documented operations, whose places are taken;
    `known` is where the collection was found another time.
    """
    crop = FetchedRows(operation.address)
    searched = others if habits.searches else None
    first = yield from _locate(access, operation, searched, crop, known)
    if first is None:
        return None
    found = probing.find_list(first.body)
    if found is None:
        return None
    if found.path != operation.wrapper:
        crop.lags.add("wrapper")
    crop.rows.extend(found.rows)
    yield from _follow(access, operation, first, crop, habits)
    return crop


def _locate(
    access: AuthenticatedClient,
    operation: Operation,
    others: Sequence[Operation] | None,
    crop: FetchedRows,
    known: str | None,
) -> ToolPlan[HttpReply | None]:
    """Return the first page from where the collection is served now.

    It is not looked for elsewhere when `others` is None.
    """
    for address in dict.fromkeys(filter(None, (operation.address, known))):
        reply = yield from access.request("GET", address, query=operation.fixed_query)
        if reply.status != NOT_FOUND:
            crop.address = address
            return reply if reply.ok else None
    crop.lags.add("path")
    if others is None:
        return None
    taken = {other.address for other in others}
    best: tuple[float, str, HttpReply] | None = None
    for address in _places(operation, reply):
        if address in taken:
            continue
        reply = yield from access.peek(address)
        found = probing.find_list(reply.body) if reply.ok else None
        fit = likeness(operation, found.rows) if found else 0.0
        if fit > LEAST_FIT and (best is None or fit > best[0]):
            best = (fit, address, reply)
    if best is None:
        return None
    crop.address = best[1]
    return best[2]


def _places(operation: Operation, reply: HttpReply) -> list[str]:
    """Return the addresses that a 404 offers, by how near their words are."""
    server = "/".join(operation.address.split("/")[:3])
    texts = {path: path for path in probing.paths(reply)}
    phrase = f"{operation.address} {operation.about}"
    return [server + match.name for match in matching.ranked(phrase, texts)]


def likeness(operation: Operation, rows: Sequence[WireRow]) -> float:
    """Return the share of fields, documented or served, that fit each other.

    A field of the documented name counts whole, one that only could be it in part.
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
    crop: FetchedRows,
    habits: SkillConfig,
) -> ToolPlan[None]:
    """Add the pages after the first one to `crop`."""
    pager, fixed = operation.pager, operation.fixed_query
    total = probing.total(first)
    link = probing.next_link(first)
    mark = probing.cursor(first)
    page_size = len(crop.rows)
    if mark and pager.style != "cursor":
        crop.lags.add("pager")
        pager = PagingScheme("cursor", "cursor")
    for number in range(2, MOST_PAGES):
        if not link and _is_whole(crop, pager, total, mark, page_size):
            crop.complete = True
            return
        if not habits.pages:
            return
        query = fixed | _position(pager, number, len(crop.rows), mark)
        if link:
            reply = yield from access.request("GET", link)
        else:
            reply = yield from access.request("GET", crop.address, query=query)
        if reply.status == BAD_REQUEST:
            crop.lags.add("pager")
            if not habits.repages:
                return
            told = [name for name in probing.named(reply) if name not in query]
            pager = openapi.pager_of({name: {} for name in told})
            query = fixed | _position(pager, number, len(crop.rows), mark)
            reply = yield from access.request("GET", crop.address, query=query)
        found = probing.find_list(reply.body) if reply.ok else None
        if found is None or not found.rows or found.rows[0] in crop.rows[:1]:
            crop.complete = total is None and reply.ok
            return
        crop.rows.extend(found.rows)
        mark, link = probing.cursor(reply), probing.next_link(reply)


def _is_whole(
    crop: FetchedRows,
    pager: PagingScheme,
    total: int | None,
    mark: str | None,
    page_size: int,
) -> bool:
    """Return whether nothing is left to fetch."""
    if total is not None:
        return len(crop.rows) >= total
    if pager.style == "cursor":
        return mark is None
    return pager.style == "none" or len(crop.rows) % max(1, page_size) != 0


def _position(
    pager: PagingScheme, number: int, skipped: int, mark: str | None
) -> dict[str, Any]:
    """Return the query of page `number`; a guess where no pager is known."""
    match pager.style:
        case "cursor":
            return {pager.position: mark or ""}
        case "page":
            return {pager.position: number}
        case "offset":
            return {pager.position: skipped}
        case _:
            return {"offset": skipped}
