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
from typing import Any, NamedTuple, Self

import httpx
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from owa_bench import bounded_json
from owa_bench.canonical import sha256
from owa_bench.errors import UsageError
from owa_bench.records.model_replies import (
    Judgement,
    judge,
    judge_events,
    no_reply,
    usage_of,
)
from owa_bench.run.gateway.egress import connect_protocol
from owa_bench.run.gateway.scrubbing import Scrubber
from owa_bench.run.gateway.session import EventStream, GatewaySession, ModelRequest
from owa_bench.run.gateway.translation import (
    APIS,
    ModelProvider,
    Translator,
    translation_fault,
)
from owa_bench.seeding import fresh_bytes
from owa_bench.shells import addresses
from owa_bench.shells.loopback import serve_in_thread

INNER_PORT = 8473  # of a sandbox's loopback, behind which the Unix socket lies
VERDICT_HEADER = "x-owa-verdict"
_STOP_S = 10.0
_MOST_REPLY = 64 << 20
_PATHS = {
    "POST": (
        "/chat/completions",
        "/completions",
        "/responses",
        "/messages",
        "/embeddings",
    ),
    "GET": ("/models",),
}
_MODEL = "/models/"  # one of them, by its name
_DEPLOYMENT = "/openai/deployments/"  # of clients that speak to Azure
# The endpoint that a provider of another form serves itself: no translation there.
_NATIVE = {"responses": "/responses", "anthropic": "/messages"}
_PASSED = ("content-type", "retry-after", "x-request-id")
_WRONG = 400
_TRANSLATED = "/translated/{ticket}"
_HOP = frozenset({"host", "connection", "content-length", "accept-encoding"})
_LATE = (httpx.TimeoutException, TimeoutError)
_REFUSED = frozenset({400, 404, 422})  # of a request that holds something unknown
_IMPATIENT = 0.5  # share of the provider's time after which a hang-up is its lateness
_ANTHROPIC_VERSION = "2023-06-01"


class _Upstream(NamedTuple):
    """A request as it goes to the provider."""

    method: str
    path: str
    content: bytes
    headers: Mapping[str, str]


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
        self._scrubber = Scrubber(provider.secrets)
        self._client = _client_of(provider)
        self._well: set[str] = set()  # models that answered
        self._folder = addresses.socket_folder("owa-gateway-")
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
                    Route(_DEPLOYMENT + "{path:path}", self._answer, methods=methods),
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

    def open(self, scope: str = "") -> GatewaySession:
        """Return a new session, whose token is good until it is closed.

        Args:
            scope: Instance, repeat and seat, which part the cache.
        """
        return GatewaySession(self._sessions, scope)

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
            variables["ANTHROPIC_BASE_URL"] = f"http://{address}"
            variables["ANTHROPIC_API_KEY"] = session.token
        if self._allowed:
            proxy = f"http://owa:{session.token}@{address}"
            variables |= {"HTTPS_PROXY": proxy, "https_proxy": proxy}
        return variables

    def close(self) -> None:
        """Stop the server."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def answers(self, model: str) -> bool:
        """Return whether the provider answers a plain request for a model.

        It tells an outage from a request that the provider does not take. A model that
        never answered is asked for as the agent named it; the call is not recorded.
        """
        named = model if model in self._well or not self._well else min(self._well)
        body = {"model": named, "messages": [{"role": "user", "content": "Say OK."}]}
        session = self.open()
        try:
            with httpx.Client(trust_env=False, timeout=self.provider.timeout_s) as ask:
                address = f"http://127.0.0.1:{self.port}/v1/chat/completions"
                headers = {"authorization": f"Bearer {session.token}"}
                return ask.post(address, json=body, headers=headers).is_success
        except httpx.HTTPError:
            return False
        finally:
            session.close()

    @contextlib.asynccontextmanager
    async def _with_client(self, _: Starlette) -> AsyncIterator[None]:
        """Hold the connections to the provider, in the server's event loop."""
        async with self._client:
            yield

    # --- one request ------------------------------------------------------------------

    async def _answer(self, request: Request) -> Response:
        session = self._sessions.get(_token(request))
        if session is None:
            return _error(401, "The API key is not the token of an episode.")
        path = _endpoint(request)
        if path not in _PATHS[request.method] and not (
            path.startswith(_MODEL) and request.method == "GET"
        ):
            known = ", ".join(p for paths in _PATHS.values() for p in paths)
            return _error(404, f"The gateway serves /v1 with {known}; got {path}.")
        body = await request.body()
        try:
            terms = bounded_json.decode(body) if body else {}
        except ValueError as error:
            return _error(400, f"The body does not parse: {error}.")
        if not isinstance(terms, dict):
            return _error(400, "The body must be a JSON object.")
        model = str(terms.get("model", "")) if path != "/models" else ""
        record = ModelRequest(path=path, body=body, model=model[:2_000])
        session.begin(record)
        try:
            response = await self._while_connected(request, session, record, terms)
        except BaseException:
            session.end(record)
            raise
        finally:
            record.latency_s = time.monotonic() - record.begun
        if not isinstance(response, StreamingResponse):
            self._note(record)
            session.end(record)
            response.headers[VERDICT_HEADER] = _verdict(record)
        return response

    async def _while_connected(
        self,
        request: Request,
        session: GatewaySession,
        record: ModelRequest,
        terms: dict[str, Any],
    ) -> Response:
        """Return the reply; an agent that hangs up ends the provider's request too."""
        reply = asyncio.ensure_future(self._forward(session, record, terms))
        hung_up = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({reply, hung_up}, return_when=asyncio.FIRST_COMPLETED)
            if reply.done():
                return reply.result()
            waited_s = time.monotonic() - record.begun
            if waited_s >= _IMPATIENT * self.provider.timeout_s:
                record.judgement = no_reply("hung up", late=True, seconds=waited_s)
            return _error(499, "The agent hung up.")
        finally:
            for task in (reply, hung_up):
                task.cancel()
            await asyncio.gather(reply, hung_up, return_exceptions=True)

    async def _forward(
        self, session: GatewaySession, record: ModelRequest, terms: dict[str, Any]
    ) -> Response:
        """Return the provider's reply, or the cached one; the record says which."""
        streamed = terms.get("stream") is True
        cache = None if streamed else self._cache_path(session, record, terms)
        if cache is not None and cache.exists():
            record.reply, record.status, record.cached = cache.read_bytes(), 200, True
            record.usage = usage_of(record.reply)
            record.judgement = judge(200, record.reply, record.path)
            return Response(record.reply, media_type="application/json")
        if not self.provider.url:
            record.judgement = no_reply("the cache holds no such reply", late=False)
            return _error(503, "No provider, and the cache holds no such reply.")
        native = record.path == _NATIVE.get(self.provider.api)
        if self._translator is not None and not native:
            return await self._translate(self._translator, record, terms, cache)
        asked = _with_usage(record.path, terms) if streamed else None
        try:
            async with asyncio.timeout(self.provider.timeout_s):
                reply = await self._send(record, asked)
                if asked is not None and reply.status_code in _REFUSED:
                    await reply.aclose()  # the server may not know `stream_options`
                    asked, reply = None, await self._send(record, None)
                if streamed and reply.is_success and _is_stream(reply):
                    stream = EventStream(hide_usage=asked is not None)
                    record.status = reply.status_code
                    relayed = self._relay(session, record, reply, stream)
                    return StreamingResponse(relayed, 200, _headers(reply))
                await self._read(record, reply)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            return self._no_reply(record, error)
        if cache is not None and _is_completion(record):
            await asyncio.to_thread(_write, cache, record.reply)
        return _as_judged(record, _headers(reply))

    async def _send(
        self, record: ModelRequest, changed: Mapping[str, Any] | None
    ) -> httpx.Response:
        """Send a request as the agent wrote it, or changed; its reply is not read."""
        content = record.body if changed is None else msgspec.json.encode(changed)
        asked = self._request(record.path, content)
        return await self._client.send(asked, stream=True)

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
            return self._untranslated(record, error)
        finally:
            del self._translated[ticket]
        record.reply, record.usage = self._scrubber.clean(reply), usage_of(reply)
        record.judgement = judge(200, record.reply)
        if cache is not None and _is_completion(record):
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
        base = httpx.URL(self.provider.url)
        given = base.query.decode()
        url = base.copy_with(
            path=f"{base.path.rstrip('/')}/{path}",
            query="&".join(filter(None, (given, query))).encode() or None,
        )
        asked = self._client.build_request(
            "POST", url, content=body, headers=headers | dict(self.provider.headers)
        )
        try:
            async with asyncio.timeout(self.provider.timeout_s):
                reply = await self._client.send(asked, stream=True)
                await self._read(record, reply, path="")
        except (httpx.HTTPError, TimeoutError) as error:
            return self._no_reply(record, error)
        return Response(record.reply, reply.status_code, _headers(reply))

    def _request(self, path: str, content: bytes) -> httpx.Request:
        provider = self.provider
        headers = {"content-type": "application/json"} if content else {}
        headers |= dict(provider.headers)
        own = {name.lower() for name in headers}
        if provider.api == "anthropic":
            headers.setdefault("anthropic-version", _ANTHROPIC_VERSION)
            path = f"/v1{path}"
            if provider.key:
                headers.setdefault("x-api-key", provider.key)
        elif provider.key and not own & {"authorization", "api-key", "x-api-key"}:
            headers["authorization"] = f"Bearer {provider.key}"
        url = addresses.joined(provider.url, path)
        method = "POST" if path.removeprefix("/v1") in _PATHS["POST"] else "GET"
        return self._client.build_request(
            method, url, content=content or None, headers=headers
        )

    async def _read(
        self, record: ModelRequest, reply: httpx.Response, path: str | None = None
    ) -> None:
        """Read a reply that is not streamed into the record, and judge it.

        Args:
            record: Of the request.
            reply: Its head.
            path: Whose form the reply has; the record's if left out.
        """
        data = bytearray()
        try:
            async for chunk in reply.aiter_bytes():
                data += chunk
                if len(data) > _MOST_REPLY:
                    raise httpx.DecodingError("the reply is too long")
        finally:
            await reply.aclose()
        body = self._scrubber.clean(bytes(data))
        record.status, record.reply = reply.status_code, body
        record.judgement = judge(record.status, body, path or record.path)
        record.usage = usage_of(body) if reply.is_success else None

    async def _relay(
        self,
        session: GatewaySession,
        record: ModelRequest,
        reply: httpx.Response,
        stream: EventStream,
    ) -> AsyncIterator[bytes]:
        """Yield the events of a streamed reply as they come."""
        kept, fault = bytearray(), None
        try:
            async for chunk in reply.aiter_bytes():
                for event in stream.feed(chunk):
                    clean = self._scrubber.clean(event)
                    kept += clean[: _MOST_REPLY - len(kept)]
                    yield clean
            rest = self._scrubber.clean(stream.end())
            kept += rest
            yield rest
        except httpx.HTTPError as error:
            kind = type(error).__name__
            late, waited_s = isinstance(error, _LATE), time.monotonic() - record.begun
            fault = no_reply(kind, late=late, seconds=waited_s)
            raise
        except (asyncio.CancelledError, GeneratorExit):
            fault = Judgement("completion")  # the agent hung up in the middle
            raise
        finally:
            record.reply, record.usage = bytes(kept), stream.usage
            record.latency_s = time.monotonic() - record.begun
            record.judgement = fault or judge_events(record.reply, record.path)
            self._note(record)
            session.end(record)
            with contextlib.suppress(httpx.HTTPError):
                await reply.aclose()

    def _note(self, record: ModelRequest) -> None:
        """Remember that a model answered."""
        if _is_completion(record) and record.model:
            self._well.add(record.model)

    def _no_reply(self, record: ModelRequest, error: Exception) -> Response:
        """Return what an agent is told of a provider that did not answer; record it.

        The library's own words may repeat a key, so its class alone is told.
        """
        kind, late = type(error).__name__, isinstance(error, _LATE)
        record.judgement = no_reply(kind, late=late, seconds=self.provider.timeout_s)
        where = addresses.shown(self.provider.url)
        words = record.judgement.text
        return _error(504 if late else 502, f"The provider at {where}: {words}")

    def _untranslated(self, record: ModelRequest, error: Exception) -> Response:
        """Return what an agent is told where a translated request gave no completion.

        Status and judgement are those of the provider's own reply, never the library's.
        """
        if record.judgement is not None and not record.status:
            return _error(502, f"The provider gave no reply: {record.judgement.text}.")
        if record.status and record.status != httpx.codes.OK:
            return Response(record.reply, record.status, media_type="application/json")
        words = self._scrubber.text(f"{type(error).__name__}: {error}")
        if record.status:
            record.judgement = Judgement("failure", "no completion", words[:600])
            return _error(502, f"The provider's reply cannot be translated: {words}")
        record.status = _WRONG
        record.judgement = Judgement("failure", "request", words[:600])
        return _error(_WRONG, f"The request cannot be translated: {words}")

    def _cache_path(
        self, session: GatewaySession, record: ModelRequest, terms: Mapping[str, Any]
    ) -> Path | None:
        """Return the file of a request's reply, None without a cache.

        A request with a seed is the same request wherever it is asked in its session;
        one without is another in each repeat and at each place, so that repeats differ.
        """
        if not self.provider.cache:
            return None
        api = "" if self.provider.api == "chat" else self.provider.api
        seeded = type(terms.get("seed")) is int
        place = "" if seeded else f"{session.scope}\n{record.ordinal}\n"
        digest = sha256(f"{place}{api}{record.path}\n".encode() + record.body)
        return Path(self.provider.cache) / digest[:2] / f"{digest}.json"


def _client_of(provider: ModelProvider) -> httpx.AsyncClient:
    """Return the client of a provider; UsageError for a proxy that it cannot use."""
    url = provider.url or "http://127.0.0.1"
    try:
        return httpx.AsyncClient(
            timeout=provider.timeout_s, trust_env=addresses.uses_proxy(url)
        )
    except (ValueError, ImportError) as error:
        kind = type(error).__name__
        where = addresses.shown(url)
        raise UsageError(
            f"The models' provider at {where} cannot be reached through the proxy that "
            f"the environment names ({kind}): unset it, or name the host in $no_proxy."
        ) from error


async def _disconnected(request: Request) -> None:
    """Return when the agent has closed its connection."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.05)


def _token(request: Request) -> str:
    """Return the token that a request carries in one of the usual headers."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    headers = request.headers
    return headers.get("api-key", "") or headers.get("x-api-key", "")


def _endpoint(request: Request) -> str:
    """Return the path below /v1, as a client of OpenAI would write it."""
    path = f"/{request.path_params['path']}".rstrip("/")
    if request.url.path.startswith(_DEPLOYMENT):
        path = "/" + path.lstrip("/").partition("/")[2]  # without the deployment
    return path


def _is_stream(reply: httpx.Response) -> bool:
    return "json" not in reply.headers.get("content-type", "") and (
        "html" not in reply.headers.get("content-type", "")
    )


def _is_completion(record: ModelRequest) -> bool:
    return record.judgement is not None and record.judgement.verdict == "completion"


def _verdict(record: ModelRequest) -> str:
    """Return the judgement as the agent's client reads it in a header."""
    if record.judgement is None:
        return ""
    return f"{record.judgement.verdict}; {record.judgement.cause}".rstrip("; ")


def _as_judged(record: ModelRequest, headers: Mapping[str, str]) -> Response:
    """Return a reply as it came; an error inside a success gets an error's status."""
    judgement = record.judgement
    if judgement is None or judgement.verdict == "completion" or record.status >= 300:
        return Response(record.reply, record.status, headers)
    status = _STATUS_OF.get(judgement.cause, 502)
    return _error(status, f"The provider answered HTTP 200, but {judgement.text}")


_STATUS_OF = {
    "key": 401,
    "credit": 402,
    "model": 404,
    "quota": 429,
    "request": 400,
    "tool call": 400,
    "too long": 400,
    "filtered": 400,
}


def _with_usage(path: str, terms: dict[str, Any]) -> dict[str, Any] | None:
    """Return a streamed request that asks for usage; None: it does already."""
    options = terms.get("stream_options") or {}
    if path != "/chat/completions" or not isinstance(options, dict):
        return None
    if options.get("include_usage") is True:
        return None
    return {**terms, "stream_options": {**options, "include_usage": True}}


def _headers(reply: httpx.Response) -> dict[str, str]:
    return {name: reply.headers[name] for name in _PASSED if name in reply.headers}


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "gateway"}}, status)


def _write(path: Path, data: bytes) -> None:
    """Keep a reply; the file appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
        draft.write(data)
    Path(draft.name).replace(path)
