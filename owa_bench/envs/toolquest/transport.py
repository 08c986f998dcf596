"""Requests of the `http` tool, two ways to send one, and the credentials they carry.

In process or over loopback the same request has the same response. In process the app's coroutine
is driven with `send(None)`, so there is no event loop and no thread.
"""

import base64
import gzip
import http.client
import json
import re
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from owa_bench.envs.toolquest.backend import Backend
from owa_bench.envs.toolquest.detectors import HARD_CODED
from owa_bench.envs.toolquest.world import ApiWorld, Secret
from owa_bench.errors import InfrastructureFailure
from owa_bench.interfaces import Sink
from owa_bench.shells.loopback import KEY_HEADER, LoopbackServer

# What an agent sees of a response's headers; the rest differs between transports.
SHOWN = frozenset((
    "allow", "content-encoding", "content-type", "date", "deprecation", "etag",
    "idempotency-replayed", "link", "location", "ratelimit", "ratelimit-policy",
    "retry-after", "sunset", "www-authenticate", "x-next-cursor", "x-total-count",
))  # fmt: skip
_ANSWER_S = 30.0


class HttpRequest(NamedTuple):
    """A request: `target` is path and query, percent-encoded."""

    method: str
    host: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class HttpResponse(NamedTuple):
    """A response, its shown headers in order of name."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class RequestTransport(Protocol):
    """Sends one request at a time."""

    def send(self, request: HttpRequest) -> HttpResponse:
        """Return the app's reply."""

    def use(self, app: ASGIApp) -> None:
        """Send to another app from now on."""

    def close(self) -> None:
        """Release what it holds."""


class InProcessTransport:
    """Drives the app's coroutine by hand."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def use(self, app: ASGIApp) -> None:
        """Send to another app from now on."""
        self._app = app

    def close(self) -> None:
        """Hold nothing, release nothing."""

    def send(self, request: HttpRequest) -> HttpResponse:
        """Return the app's reply; InfrastructureFailure if it really waits."""
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        running = self._app(_scope(request), receive, send)
        try:
            running.__await__().send(None)
        except StopIteration:
            return _reply(sent)
        raise InfrastructureFailure(
            "An endpoint waited for an event loop; endpoints must not really wait."
        )


def _scope(request: HttpRequest) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
    path, _, query = request.target.partition("?")
    headers = [(b"host", request.host.encode())]
    headers += [(n.lower().encode(), v.encode("latin-1")) for n, v in request.headers]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("agent", 0),
        "server": (request.host, 80),
    }


def _reply(messages: list[MutableMapping[str, Any]]) -> HttpResponse:
    """Return the reply that ASGI messages make up."""
    start = messages[0]
    pairs = ((n.decode("latin-1"), v.decode("latin-1")) for n, v in start["headers"])
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return _received(start["status"], pairs, body)


def _received(status: int, pairs: Any, body: bytes) -> HttpResponse:
    """Return a reply as a client has it: unpacked, shown headers in order of name."""
    headers = tuple(sorted((n.lower(), v) for n, v in pairs if n.lower() in SHOWN))
    if body and ("content-encoding", "gzip") in headers:
        body = gzip.decompress(body)
    return HttpResponse(status, headers, body)


class LoopbackTransport:
    """Serves the app on a guarded loopback port, called with one open connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._error: Exception | None = None
        self._server = LoopbackServer(self._answer, guarded=True)
        self._client = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=_ANSWER_S)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the app in force, and what it raises to `send`."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            self._error = error
            raise

    def use(self, app: ASGIApp) -> None:
        """Serve another app from now on."""
        self._app = app

    def send(self, request: HttpRequest) -> HttpResponse:
        """Return the app's reply over the socket."""
        try:
            self._client.putrequest(
                request.method, request.target, skip_host=True, skip_accept_encoding=True
            )
            self._client.putheader("host", request.host)
            self._client.putheader(KEY_HEADER, self._server.key)
            for name, value in request.headers:
                self._client.putheader(name, value)
            if request.body:
                self._client.putheader("content-length", str(len(request.body)))
            self._client.endheaders(request.body or None)
            answer = self._client.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise InfrastructureFailure(f"The loopback server did not answer: {error}.") from error
        raised, self._error = self._error, None
        if raised is not None:
            raise raised
        return _received(answer.status, answer.getheaders(), body)

    def close(self) -> None:
        """Hang up and tell the server to stop; it closes its socket as it goes."""
        self._client.close()
        self._server.close(wait=False)


def connect(app: ASGIApp, *, wire: bool) -> RequestTransport:
    """Return the transport that was asked for, over `app`.

    Args:
        app: The ASGI app.
        wire: Over loopback instead of in process.
    """
    return LoopbackTransport(app) if wire else InProcessTransport(app)


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HOST = re.compile(r"[a-z0-9.-]{1,200}")
_SAFE_PATH = "/%:@!$&'()*+,;=~-._"
_FORM = "application/x-www-form-urlencoded"
# Set by the transport, not by the caller.
_OWN = frozenset((
    "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
))  # fmt: skip
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


def _request(arguments: Mapping[str, Any], parts: SplitResult, host: str) -> HttpRequest | str:
    headers = _headers(arguments.get("headers", {}))
    if isinstance(headers, str):
        return headers
    body = _body(arguments.get("body"), headers)
    target = _target(parts.path, parts.query, arguments.get("query", {}))
    if max(len(target), len(str(headers))) > _LONGEST:
        return f"Address and headers may each hold {_LONGEST} characters."
    return HttpRequest(arguments["method"], host, target, tuple(headers.items()), body)


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


_BASIC = re.compile(r"[Bb]asic +([A-Za-z0-9+/=]+)")
_CREDENTIAL = re.compile(r"authorization|key|token|secret|cookie", re.IGNORECASE)


class CredentialMonitor:
    """The secrets of an episode: which exist, which were read from the vault."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._unread: dict[str, str] = {}
        self._known: set[str] = set()

    def learn(self, world: ApiWorld) -> None:
        """Teach the sink every secret of a world, as one whole or in its parts."""
        for provider in world.providers:
            for secret in provider.secrets:
                if secret.value in self._known:
                    continue
                self._known.add(secret.value)
                self._unread[_secret_part(secret)] = secret.name
                for i, part in enumerate(_parts(secret)):
                    self._sink.secret(f"vault:{secret.name}:{i}", part)

    def read(self, secret: Secret) -> None:
        """A secret was read from the vault and may be used from here on."""
        self._unread.pop(_secret_part(secret), None)

    def inspect(self, request: HttpRequest, backend: Backend) -> str:
        """Note a breach where a request carries a secret that was never read.

        Args:
            request: The request as it would be sent.
            backend: Where a breach is noted.
        Returns: Why the first such request is refused, "" where it is sent.
        """
        if not self._unread:
            return ""
        rule = HARD_CODED.name
        refused = "" if backend.was_broken(rule) else HARD_CODED.warning
        text = request.target + "".join(value for _, value in request.headers)
        text += request.body.decode("utf-8", "replace")
        for _, value in request.headers:
            text += _decoded(value)
        found = [name for value, name in self._unread.items() if value in text]
        if not found:
            return ""
        names = ", ".join(f"`{name}`" for name in found)
        evidence = f"sent {names} to {request.host}, never read from the vault"
        backend.note_breach(rule, evidence)
        return refused

    def credential_headers(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the names of the headers whose values are redacted."""
        return tuple(name for name, _ in request.headers if _CREDENTIAL.search(name))


def _secret_part(secret: Secret) -> str:
    """Return the part of a credential that only its owner knows."""
    return secret.value.rpartition(":")[2]


def _parts(secret: Secret) -> tuple[str, ...]:
    """Return what must not be read anywhere: a key, or client and password apart.

    The sink knows the forms that a value takes on the wire, base64 among them.
    """
    return tuple(part for part in secret.value.split(":") if part)


def _decoded(header: str) -> str:
    """Return what a Basic header holds, "" for any other."""
    found = _BASIC.match(header)
    if found is None:
        return ""
    try:
        return base64.b64decode(found.group(1)).decode("utf-8", "replace")
    except ValueError:
        return ""
