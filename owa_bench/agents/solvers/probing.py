"""Contents of HTTP replies: lists, totals, cursors, and the names in an error."""

import re
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

_QUOTED = re.compile(r"[`'\"]([^`'\"\s]{1,100})[`'\"]")
_CHALLENGE = re.compile(r'([A-Za-z_]+)="([^"]*)"')
_DEEPEST = 4
_TOTALS = ("total", "total_count", "count", "size")
_TOTAL_HEADERS = ("x-total-count", "total-count")
LONGEST_WAIT_S = 3600
GONE = 410
REDIRECTS = (301, 302, 303, 307, 308)
_LINK = re.compile(r"<([^>]*)>([^<]*)")
_RELATION = re.compile(r'rel="?([\w-]+)"?')


class HttpReply(NamedTuple):
    """A response as read: status, headers in lower case, body (JSON value or text).

    Status 0: the tool itself refused the call and `body` says why. `address` is where the answer
    came from, after redirects; "" for where the request went.
    """

    status: int
    headers: Mapping[str, str]
    body: Any
    handle: str = ""
    address: str = ""

    @property
    def ok(self) -> bool:
        """Whether the request was served."""
        return 200 <= self.status < 300


class RowList(NamedTuple):
    """The list of a reply and the path down to it."""

    path: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]


def find_list(body: Any, path: tuple[str, ...] = ()) -> RowList | None:
    """Return the first list of objects in `body`, nearest to the top; None if none.

    Args:
        body: A JSON value.
        path: Path down to the value.
    Returns: The list and its path.

    >>> find_list({"total": 1, "data": {"items": [{"id": 7}]}})
    RowList(path=('data', 'items'), rows=({'id': 7},))
    """
    if isinstance(body, list):
        rows = tuple(row for row in body if isinstance(row, Mapping))
        return RowList(path, rows) if len(rows) == len(body) else None
    if not isinstance(body, Mapping) or len(path) >= _DEEPEST:
        return None
    for nested in (False, True):
        for name, part in body.items():
            if isinstance(part, Mapping) == nested:
                found = find_list(part, (*path, name))
                if found is not None:
                    return found
    return None


def total(reply: HttpReply) -> int | None:
    """Return how many rows the whole list has, None if the reply does not say."""
    if isinstance(reply.body, Mapping):
        for name in _TOTALS:
            value = reply.body.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    for name in _TOTAL_HEADERS:
        if reply.headers.get(name, "").isdigit():
            return int(reply.headers[name])
    return None


def cursor(reply: HttpReply) -> str | None:
    """Return where the next page begins, None if the reply names no place."""
    if isinstance(reply.body, Mapping):
        for name, value in reply.body.items():
            if "cursor" in name.lower() and isinstance(value, str) and value:
                return value
    for name, text in reply.headers.items():
        if "cursor" in name and text:
            return text
    return None


def link(reply: HttpReply, relation: str) -> str | None:
    """Return the address that a Link header (RFC 8288) gives for a relation.

    Args:
        reply: The reply.
        relation: Relation such as "next".
    Returns: The address, None without one.
    """
    for address, words in _LINK.findall(reply.headers.get("link", "")):
        if relation in _RELATION.findall(words):
            return str(address)
    return None


def redirect_target(reply: HttpReply) -> str | None:
    """Return where a reply sends its caller, None if it does not.

    A redirect names the place, something that is gone may name its successor.
    """
    if reply.status in REDIRECTS:
        return reply.headers.get("location")
    return link(reply, "successor-version") if reply.status == GONE else None


def retry_after(reply: HttpReply) -> int:
    """Return the seconds a refused caller shall wait, 1 if the reply does not say."""
    text = reply.headers.get("retry-after", "1")
    if text.isdigit():
        return min(LONGEST_WAIT_S, max(1, int(text)))
    try:
        back = parsedate_to_datetime(text)
        now = parsedate_to_datetime(reply.headers.get("date", ""))
    except (TypeError, ValueError):
        return 1
    return min(LONGEST_WAIT_S, max(1, round((back - now).total_seconds())))


def quoted_names(reply: HttpReply) -> tuple[str, ...]:
    """Return the names that stand in quotes in an error, in order."""
    return tuple(_QUOTED.findall(" ".join(_texts(reply.body))))


def paths(reply: HttpReply) -> tuple[str, ...]:
    """Return the paths that an error lists."""
    texts = (text.strip("`") for text in _texts(reply.body))
    return tuple(text for text in texts if re.fullmatch(r"/[\w./~-]*", text))


def challenge(reply: HttpReply) -> dict[str, str]:
    """Return the parameters of the challenge that came with a 401 or 403."""
    return dict(_CHALLENGE.findall(reply.headers.get("www-authenticate", "")))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)
