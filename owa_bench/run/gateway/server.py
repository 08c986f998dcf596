"""Gateway server: an OpenAI-compatible address that holds the API key.

One server a worker, on a Unix socket (for sandboxes, which reach it as a port of their
loopback) and on a loopback port. Each request carries the token of its session, as an
API key or as the password of a proxy. Source: docs/model-gateway.md#what-it-does.
"""

import asyncio
import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from owa_bench import bounded_json
from owa_bench.canonical import sha256
from owa_bench.run.gateway.egress import connect_protocol
from owa_bench.run.gateway.session import (
    EventStream,
    GatewaySession,
    ModelRequest,
    usage_of,
)
from owa_bench.run.gateway.translation import (
    APIS,
    ModelProvider,
    Translator,
    translation_fault,
)
from owa_bench.seeding import fresh_bytes
from owa_bench.shells.loopback import serve_in_thread

INNER_PORT = 8473  # of a sandbox's loopback, behind which the Unix socket lies
_STOP_S = 10.0
_MOST_REPLY = 64 << 20
_PATHS = {
    "POST": ("/chat/completions", "/responses", "/embeddings"),
    "GET": ("/models",),
}
_PASSED = ("content-type", "retry-after", "x-request-id")
_TOO_MANY = 429
_WRONG = 400
_TRANSLATED = "/translated/{ticket}"
_HOP = frozenset({"host", "connection", "content-length", "accept-encoding"})
_LATE = (httpx.TimeoutException, TimeoutError)
_SERVER_ERRORS = 500
SHORTEST_SECRET = 8  # a shorter "key" is a placeholder


class ModelGateway:
    """The gateway of one worker; a context manager. `provider` is where requests go.

    Args:
        provider: Where requests go.
        allowed: "host:port" of the hosts that agents may connect to.

    Raises:
        InfrastructureFailure: The server does not start.
    """

    def __init__(self, provider: ModelProvider, allowed: frozenset[str]) -> None:
        self.provider = provider
        self._allowed = allowed
        self._sessions: dict[str, GatewaySession] = {}
        api = APIS[provider.api]
        self._translator = Translator(api) if api.prefix and provider.url else None
        self._translated: dict[str, ModelRequest] = {}
        self._folder = tempfile.mkdtemp(prefix="owa-gateway-")
        self.socket_path = f"{self._folder}/gateway.sock"
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(self.socket_path)
        loopback = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        loopback.bind(("127.0.0.1", 0))
        self.port: int = loopback.getsockname()[1]
        methods = [*_PATHS]
        config = uvicorn.Config(
            Starlette(
                routes=[
                    Route("/v1/{path:path}", self._answer, methods=methods),
                    Route(_TRANSLATED + "/{path:path}", self._pass, methods=["POST"]),
                ],
                lifespan=self._with_client,
            ),
            http=connect_protocol(self._sessions.get, allowed),
            ws="none",
            loop="asyncio",
            proxy_headers=False,
            lifespan="on",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = serve_in_thread(self._server, [unix, loopback])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> GatewaySession:
        """Return a new session, whose token is good until it is closed."""
        return GatewaySession(self._sessions)

    def environment(
        self, session: GatewaySession, *, sandboxed: bool = False
    ) -> dict[str, str]:
        """Return the variables by which an agent finds the gateway.

        Args:
            session: The agent's session.
            sandboxed: Whether it reaches the Unix socket through `INNER_PORT`.

        Returns:
            Names and values.
        """
        address = f"127.0.0.1:{INNER_PORT if sandboxed else self.port}"
        variables: dict[str, str] = {}
        if self.provider.url or self.provider.cache:
            variables["OPENAI_BASE_URL"] = f"http://{address}/v1"
            variables["OPENAI_API_KEY"] = session.token
        if self._allowed:
            proxy = f"http://owa:{session.token}@{address}"
            variables |= {"HTTPS_PROXY": proxy, "https_proxy": proxy}
        return variables

    def close(self) -> None:
        """Stop the server."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextlib.asynccontextmanager
    async def _with_client(self, _: Starlette) -> AsyncIterator[None]:
        """Hold the connections to the provider, in the server's event loop."""
        timeout = self.provider.timeout_s
        async with httpx.AsyncClient(timeout=timeout) as self._client:
            yield

    # --- one request ------------------------------------------------------------------

    async def _answer(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        session = self._sessions.get(token) if scheme.lower() == "bearer" else None
        if session is None:
            return _error(401, "The API key is not the token of an episode.")
        path = f"/{request.path_params['path']}"
        if path not in _PATHS[request.method]:
            known = ", ".join(p for paths in _PATHS.values() for p in paths)
            return _error(404, f"The gateway serves /v1 with {known}; got {path}.")
        body = await request.body()
        try:
            terms = bounded_json.decode(body) if body else {}
        except ValueError as error:
            return _error(400, f"The body does not parse: {error}.")
        if not isinstance(terms, dict):
            return _error(400, "The body must be a JSON object.")
        record = ModelRequest(path=path, body=body)
        session.begin(record)
        begun = time.perf_counter()
        try:
            response = await self._forward(session, record, terms)
        except BaseException:
            session.end(record)
            raise
        finally:
            record.latency_s = time.perf_counter() - begun
        if not isinstance(response, StreamingResponse):
            session.end(record)
        return response

    async def _forward(
        self, session: GatewaySession, record: ModelRequest, terms: dict[str, Any]
    ) -> Response:
        """Return the provider's reply, or the cached one; the record says which."""
        streamed = terms.get("stream") is True
        cache = None if streamed else self._cache_path(record)
        if cache is not None and cache.exists():
            record.reply, record.status, record.cached = cache.read_bytes(), 200, True
            record.usage = usage_of(record.reply)
            return Response(record.reply, media_type="application/json")
        if not self.provider.url:
            return _error(503, "No provider, and the cache holds no such reply.")
        if self._translator is not None:
            return await self._translate(self._translator, record, terms, cache)
        asked = _with_usage(record.path, terms) if streamed else None
        content = record.body if asked is None else msgspec.json.encode(asked)
        try:
            reply = await self._client.send(self._request(record, content), stream=True)
            if streamed and reply.is_success:
                stream = EventStream(hide_usage=asked is not None)
                record.status = reply.status_code
                relayed = self._relay(session, record, reply, stream)
                return StreamingResponse(relayed, 200, _headers(reply))
            await self._read(record, reply)
        except (httpx.HTTPError, TimeoutError) as error:
            return _no_reply(record, error)
        if cache is not None and reply.is_success:
            await asyncio.to_thread(_write, cache, record.reply)
        return Response(record.reply, reply.status_code, _headers(reply))

    async def _translate(
        self,
        translator: Translator,
        record: ModelRequest,
        terms: dict[str, Any],
        cache: Path | None,
    ) -> Response:
        """Return the reply of a provider of another form to a chat request."""
        fault = translation_fault(terms)
        if record.path != "/chat/completions" or fault:
            why = fault or f"only /chat/completions is translated, got {record.path}"
            record.status = _WRONG
            return _error(_WRONG, f"For `{self.provider.api}`: {why}.")
        ticket = fresh_bytes(24).hex()
        self._translated[ticket] = record
        address = _TRANSLATED.format(ticket=ticket)
        try:
            reply = await translator.reply(
                terms,
                f"http://127.0.0.1:{self.port}{address}",
                ticket,
                self.provider.timeout_s + 1.0,
            )
        except Exception as error:  # noqa: BLE001  the library's, of any kind
            return _untranslated(record, error)
        finally:
            del self._translated[ticket]
        record.reply, record.usage = self._scrubbed(reply), usage_of(reply)
        if cache is not None:
            await asyncio.to_thread(_write, cache, record.reply)
        return Response(record.reply, media_type="application/json")

    async def _pass(self, request: Request) -> Response:
        """Pass a translated request on, with the API key in its ticket's place."""
        ticket = request.path_params["ticket"]
        record = self._translated.get(ticket)
        if record is None:
            return _error(404, "The gateway serves /v1.")
        key, body = self.provider.key, await request.body()
        headers = {
            name: value.replace(ticket, key)
            for name, value in request.headers.items()
            if name not in _HOP
        }
        path = request.path_params["path"]
        query = request.url.query.replace(ticket, key)
        url = f"{self.provider.url.rstrip('/')}/{path}{'?' if query else ''}{query}"
        asked = self._client.build_request("POST", url, content=body, headers=headers)
        try:
            reply = await self._client.send(asked, stream=True)
            await self._read(record, reply)
        except (httpx.HTTPError, TimeoutError) as error:
            return _no_reply(record, error)
        return Response(record.reply, reply.status_code, _headers(reply))

    def _request(self, record: ModelRequest, content: bytes) -> httpx.Request:
        key = self.provider.key
        headers = {"content-type": "application/json"} if content else {}
        if key:
            headers["authorization"] = f"Bearer {key}"
        url = self.provider.url.rstrip("/") + record.path
        method = "POST" if record.path in _PATHS["POST"] else "GET"
        return self._client.build_request(
            method, url, content=content or None, headers=headers
        )

    async def _read(self, record: ModelRequest, reply: httpx.Response) -> None:
        """Read a reply that is not streamed into the record."""
        data = bytearray()
        try:
            async with asyncio.timeout(self.provider.timeout_s):
                async for chunk in reply.aiter_bytes():
                    data += chunk
                    if len(data) > _MOST_REPLY:
                        raise httpx.DecodingError("the reply is too long")
        finally:
            await reply.aclose()
        record.status, record.reply = reply.status_code, self._scrubbed(bytes(data))
        record.usage = usage_of(record.reply) if reply.is_success else None
        if record.status == _TOO_MANY or record.status >= _SERVER_ERRORS:
            record.failure = f"HTTP {record.status}"

    async def _relay(
        self,
        session: GatewaySession,
        record: ModelRequest,
        reply: httpx.Response,
        stream: EventStream,
    ) -> AsyncIterator[bytes]:
        """Yield the events of a streamed reply as they come."""
        begun, kept = time.perf_counter(), bytearray()
        try:
            async for chunk in reply.aiter_bytes():
                for event in stream.feed(chunk):
                    kept += self._scrubbed(event)[: _MOST_REPLY - len(kept)]
                    yield self._scrubbed(event)
            rest = self._scrubbed(stream.end())
            kept += rest
            yield rest
        except httpx.HTTPError as error:
            record.failure = f"no reply: {type(error).__name__}"
            raise
        finally:
            record.reply, record.usage = bytes(kept), stream.usage
            record.latency_s += time.perf_counter() - begun
            session.end(record)
            with contextlib.suppress(httpx.HTTPError):
                await reply.aclose()

    def _scrubbed(self, data: bytes) -> bytes:
        """Return a reply without the API key, which some servers repeat."""
        key = self.provider.key.encode()
        if len(key) < SHORTEST_SECRET:
            return data
        return data.replace(key, b"{secret:api_key}")

    def _cache_path(self, record: ModelRequest) -> Path | None:
        if not self.provider.cache:
            return None
        api = "" if self.provider.api == "chat" else self.provider.api
        digest = sha256(f"{api}{record.path}\n".encode() + record.body)
        return Path(self.provider.cache) / digest[:2] / f"{digest}.json"


def _with_usage(path: str, terms: dict[str, Any]) -> dict[str, Any] | None:
    """Return a streamed request that asks for usage; None: it does already."""
    options = terms.get("stream_options") or {}
    if path != "/chat/completions" or options.get("include_usage") is True:
        return None
    return {**terms, "stream_options": {**options, "include_usage": True}}


def _headers(reply: httpx.Response) -> Mapping[str, str]:
    return {name: reply.headers[name] for name in _PASSED if name in reply.headers}


def _no_reply(record: ModelRequest, error: Exception) -> Response:
    """Return what an agent is told of a provider that did not answer; record it."""
    record.failure = f"no reply: {type(error).__name__}"
    status = 504 if isinstance(error, _LATE) else 502
    why = f"{type(error).__name__}: {error}".rstrip(": ")
    return _error(status, f"The provider gave no reply: {why}")


def _untranslated(record: ModelRequest, error: Exception) -> Response:
    """Return what an agent is told where a translated request gave no chat completion.

    Status and failure are those of the provider's own reply, never the library's.
    """
    if record.failure and not record.status:
        return _error(502, f"The provider gave no reply: {record.failure}.")
    if record.status and record.status != httpx.codes.OK:
        return Response(record.reply, record.status, media_type="application/json")
    words = f"{type(error).__name__}: {error}"
    if record.status:
        return _error(502, f"The provider's reply cannot be translated: {words}")
    record.status = _WRONG
    return _error(_WRONG, f"The request cannot be translated: {words}")


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "gateway"}}, status)


def _write(path: Path, data: bytes) -> None:
    """Keep a reply; the file appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
        draft.write(data)
    Path(draft.name).replace(path)
