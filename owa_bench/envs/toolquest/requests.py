"""From a tool call's arguments to a request, or to words about what is wrong."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from owa_bench.envs.toolquest.transport import HttpRequest

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HOST = re.compile(r"[a-z0-9.-]{1,200}")
_SAFE_PATH = "/%:@!$&'()*+,;=~-._"
_FORM = "application/x-www-form-urlencoded"
# Set by the transport, not by the caller.
_OWN = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_LONGEST = 16_000  # characters of the address, and of all headers together


def prepare(arguments: Mapping[str, Any]) -> HttpRequest | str:
    """Return the request a call asks for, or a sentence about its fault."""
    try:
        parts = urlsplit(arguments["url"])
        port = parts.port
    except ValueError:
        return "`url` must be an address such as https://host/path."
    host = (parts.hostname or "").lower()
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        return "`url` must begin with https:// and name a host."
    if port not in (None, 80, 443) or parts.username is not None:
        return "`url` must name a host alone: no port, no user."
    try:
        return _request(arguments, parts, host)
    except UnicodeEncodeError:
        return "The request holds characters that no text can hold."


def _request(
    arguments: Mapping[str, Any], parts: SplitResult, host: str
) -> HttpRequest | str:
    headers = _headers(arguments.get("headers", {}))
    if isinstance(headers, str):
        return headers
    body = _body(arguments.get("body"), headers)
    target = _target(parts.path, parts.query, arguments.get("query", {}))
    if max(len(target), len(str(headers))) > _LONGEST:
        return f"Address and headers may each hold {_LONGEST} characters."
    pairs = tuple(headers.items())
    return HttpRequest(arguments["method"], host, target, pairs, body)


def _headers(given: Mapping[str, str]) -> dict[str, str] | str:
    headers: dict[str, str] = {}
    for name, value in given.items():
        plain = value.isascii() and value.isprintable()
        if not _TOKEN.fullmatch(name) or not plain:
            return f"Header `{name}` must have a plain name and a printable value."
        if name.lower() in _OWN:
            return f"Header `{name}` is set for you; leave it out."
        headers[name.lower()] = value.strip()
    return headers


def _target(path: str, query: str, extra: Mapping[str, Any]) -> str:
    """Return path and query, percent-encoded, the `query` argument last."""
    added = urlencode({name: _text(value) for name, value in extra.items()})
    fixed = quote(query, safe=_SAFE_PATH + "?")
    whole = "&".join(part for part in (fixed, added) if part)
    target = quote(path or "/", safe=_SAFE_PATH)
    return f"{target}?{whole}" if whole else target


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _body(body: Any, headers: dict[str, str]) -> bytes:
    """Return the body's bytes; an object is JSON unless the headers say form."""
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if headers.get("content-type", "").startswith(_FORM):
        return urlencode({name: _text(value) for name, value in body.items()}).encode()
    headers.setdefault("content-type", "application/json")
    return json.dumps(body).encode()
