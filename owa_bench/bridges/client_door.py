"""Door of the MCP server over HTTP: a token, a name of this machine, and one session.

Whoever reaches the port could play the client's episode, or end it. So each request carries a
token, names a host that no other site can take (DNS rebinding), and belongs to the one session that
is open; a session is begun by the handshake of the protocol.

Source: the MCP specification (Streamable HTTP: sessions, security);
docs/serve-over-mcp.md#the-door.
"""

import hmac
import ipaddress
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from owa_bench.seeding import fresh_bytes

SHORTEST_TOKEN = 16  # characters
_BEARER = "bearer"
_SESSION, _VERSION = "mcp-session-id", "mcp-protocol-version"
_UNSUPPORTED, _INVALID = -32022, -32600
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def fresh_token() -> str:
    """Return a token that nobody can guess."""
    return fresh_bytes(24).hex()


class ClientDoor:
    """Refuses requests without the token, of other hosts, and of a second client.

    Args:
        app: The MCP server's application.
        token: What the client sends as `Authorization: Bearer`.
        host: Where the server listens.
        idle_s: Seconds without a request after which a session has ended.
        versions: Versions of the protocol that begin a session with a handshake.
        clock: Seconds, for tests.
    """

    def __init__(
        self,
        app: Any,
        *,
        token: str,
        host: str,
        idle_s: float,
        versions: tuple[str, ...],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._token = token.encode()
        self._host = host
        self._idle_s = idle_s
        self._versions = versions
        self._clock = clock
        self._session = ""
        self._opening = False
        self._under_way = 0
        self._last = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request.

        Args:
            scope: Of the connection, as ASGI has it.
            receive: Yields the request's body.
            send: Takes the response.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._serve(scope, headers, receive, send)

    async def _serve(self, scope: Any, headers: Headers, receive: Any, send: Any) -> None:
        """Pass a request on; the session that it begins, or ends, is noted."""
        own = headers.get(_SESSION, "")
        begins = not own
        self._opening |= begins
        self._under_way += 1

        async def note(message: Any) -> None:
            if message["type"] == "http.response.start":
                found = Headers(raw=message["headers"]).get(_SESSION, "")
                if begins and message["status"] < HTTPStatus.BAD_REQUEST:
                    self._session = found
                ends = scope["method"] == "DELETE" and own == self._session
                if ends and message["status"] < HTTPStatus.BAD_REQUEST:
                    self._session = ""
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            self._under_way -= 1
            self._last = self._clock()
            self._opening &= not begins

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        """Return why a request is refused, None where it is served."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        is_known = hmac.compare_digest(token.strip().encode(), self._token)
        if kind.lower() != _BEARER or not is_known:
            words = (
                "The token of this run must come as `Authorization: Bearer TOKEN`; "
                "`owa-bench serve --http` printed it."
            )
            challenge = {"www-authenticate": 'Bearer realm="owa-bench serve"'}
            return _error(HTTPStatus.UNAUTHORIZED, words, headers=challenge)
        if words := self._foreign_host(headers):
            return _error(HTTPStatus.FORBIDDEN, words)
        version = headers.get(_VERSION)
        if version is not None and version not in self._versions:
            return _error(
                HTTPStatus.BAD_REQUEST,
                "Each client of this server has a session: begin with `initialize`.",
                _UNSUPPORTED,
                {"supported": list(self._versions), "requested": version},
            )
        if self._is_taken() and headers.get(_SESSION, "") != self._session:
            return _error(
                HTTPStatus.CONFLICT,
                "Another client plays this run, and its session is open: a run has one "
                "client. It ends its session with DELETE, or is silent for "
                f"{self._idle_s:g} s; for a run of your own start another server.",
            )
        return None

    def _is_taken(self) -> bool:
        """Return whether a client's session is open, or is being opened."""
        silent_s = 0.0 if self._under_way else self._clock() - self._last
        return self._opening or bool(self._session and silent_s < self._idle_s)

    def _foreign_host(self, headers: Headers) -> str:
        """Return why a request's host or origin is none of this server's, "" if it is.

        A page of another site can make its own name lead here, but no other.
        """
        host = _name(f"//{headers.get('host', '')}")
        if not (self._is_own(host) or _is_address(host)):
            return f"`Host` must be the address of this server, got {host[:80]!r}."
        origin = headers.get("origin", "")
        if origin and not self._is_own(_name(origin)):
            return f"`Origin` must be of this machine, got {origin[:80]!r}."
        return ""

    def _is_own(self, host: str) -> bool:
        return host in _HERE or host == self._host.lower()


def _name(address: str) -> str:
    """Return the host of an address in lower case, "" where there is none."""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _error(
    status: HTTPStatus,
    words: str,
    code: int = _INVALID,
    data: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """Return an error that MCP clients read."""
    error = {"code": code, "message": words} | ({"data": data} if data else {})
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return JSONResponse(body, status, headers)
