"""Gateway server: an OpenAI-compatible address that holds the API key.

One server a worker, on a Unix socket (for sandboxes, which reach it as a port of their loopback)
and on a loopback port. Each request carries the token of its session, as an API key or as the
password of a proxy. Source: docs/model-gateway.md#what-it-does.
"""

import asyncio
import contextlib
import re
import shutil
import socket
import time
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from owa_bench import bounded_json
from owa_bench.hosting.gateway.egress import connect_protocol
from owa_bench.hosting.gateway.reply_cache import ReplyCache
from owa_bench.hosting.gateway.reply_contents import hosted_work
from owa_bench.hosting.gateway.reply_masks import headers_of
from owa_bench.hosting.gateway.request_check import refusal
from owa_bench.hosting.gateway.responses import (
    VERDICT_HEADER,
    as_judged,
    as_masked,
    as_sent,
    error_response,
    is_stream,
    verdict_text,
    with_usage,
)
from owa_bench.hosting.gateway.session import (
    COUNT,
    INNER_PORT,
    EventStream,
    GatewaySession,
    ModelRequest,
)
from owa_bench.hosting.gateway.translation import APIS, ModelProvider, Translator, translation_fault
from owa_bench.hosting.gateway.upstream import LATE, MOST_REPLY, WRONG, Upstream
from owa_bench.records.model_replies import ReplyJudgement, judge, judge_events, no_reply
from owa_bench.records.token_usage import usage_of
from owa_bench.seeding import fresh_bytes
from owa_bench.shells import addresses
from owa_bench.shells.loopback import serve_in_thread

_STOP_S = 10.0
_PATHS = {
    "POST": ("/chat/completions", "/completions", "/responses", "/messages", COUNT, "/embeddings"),
    "GET": ("/models",),
}
# One of them, by its name: no part is dots alone, which would lead to another path.
_MODEL = re.compile(r"/models(/(?!\.+(/|$))[\w.:@+-]+)+", re.ASCII)
_AZURE = "/openai/"  # of clients that speak to Azure, a deployment or v1 below it
# The endpoints that a provider of another form serves itself: no translation there.
_NATIVE = {"responses": ("/responses", "/models"), "anthropic": ("/messages", "/models")}
_ANSWERING = frozenset({"/chat/completions", "/responses", "/messages"})
_TRANSLATED = "/translated/{ticket}"
_OF_AZURE = re.compile(r"^/(deployments/[^/]+|v1)/")
_PASSED = ("anthropic-version",)  # of an agent; betas open tools and memories
_HOP = frozenset({"host", "connection", "content-length", "accept-encoding"})
_REFUSED = frozenset({400, 404, 422})  # of a request that holds something unknown
_PLAIN_S = 30.0  # for the answer to a plain question, s [D]
_IMPATIENT = 0.5  # share of the provider's time after which a hang-up is its lateness


class ModelGateway:
    """The gateway of one worker; a context manager. `provider` is where requests go.

    Args:
        provider: Where requests go.
        allowed: "host:port" of the hosts that agents may connect to.
        fields: Names of fields that are not on the list and that the run lets pass.
    Raises: InfrastructureFailure: The server does not start.
    """

    def __init__(
        self, provider: ModelProvider, allowed: frozenset[str], fields: Collection[str] = ()
    ) -> None:
        self.provider = provider
        self._fields = frozenset(fields)
        self._allowed = allowed
        self._sessions: dict[str, GatewaySession] = {}
        api = APIS[provider.api]
        self._translator = Translator(api) if api.prefix and provider.url else None
        self._translated: dict[str, ModelRequest] = {}
        self._upstream = Upstream(provider)
        self._cache = ReplyCache(provider.cache, api.prefix and provider.api)
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
                    Route(_AZURE + "{path:path}", self._answer, methods=methods),
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

    def open(self, scope: str = "", *, hides: bool = False) -> GatewaySession:
        """Return a new session, whose token is good until it is closed.

        Args:
            scope: Run, entry, seat and sitting, which part the cache.
            hides: Whether replies hide what tells of other sessions.
        """
        return GatewaySession(self._sessions, scope, hides=hides)

    def environment(self, session: GatewaySession, *, sandboxed: bool = False) -> dict[str, str]:
        """Return the variables by which an agent finds the gateway.

        Args:
            session: The agent's session.
            sandboxed: Whether it reaches the Unix socket through `INNER_PORT`.
        Returns: Names and values.
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

        It tells an outage from a request that the provider does not take, and from a provider that
        fails by choice: it goes on a connection of its own and holds nothing of an episode. A model
        that never answered is asked for as the agent named it; the call is neither recorded nor
        counted.
        """
        named = model if model in self._well or not self._well else min(self._well)
        body = {"model": named, "messages": [{"role": "user", "content": "Say OK."}]}
        session = GatewaySession(self._sessions, reads_cache=False)
        patience_s = min(self.provider.timeout_s, _PLAIN_S)
        try:
            with httpx.Client(trust_env=False, timeout=patience_s) as ask:
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
        async with self._upstream.client, self._upstream.fresh_client:
            yield

    # --- one request ------------------------------------------------------------------

    async def _answer(self, request: Request) -> Response:
        found = (self._sessions.get(token) for token in _tokens(request))
        session = next((each for each in found if each is not None), None)
        if session is None:
            return error_response(401, "The API key is not the token of an episode.")
        path, method = _endpoint(request), request.method.replace("HEAD", "GET")
        listed = _MODEL.fullmatch(path) is not None and method == "GET"
        if path not in _PATHS[method] and not listed:
            known = ", ".join(p for paths in _PATHS.values() for p in paths)
            return error_response(404, f"The gateway serves /v1 with {known}; got {path}.")
        body = await request.body()
        try:
            terms = bounded_json.decode(body) if body else {}
        except ValueError as error:
            return error_response(400, f"The body does not parse: {error}.")
        if not isinstance(terms, dict):
            return error_response(400, "The body must be a JSON object.")
        model = str(terms.get("model", "")) if path != "/models" else ""
        record = ModelRequest(path=path, body=body, model=model[:2_000])
        record.fresh = not session.reads_cache
        record.headers = {n: v for n, v in request.headers.items() if n in _PASSED}
        session.begin(record)
        if words := self._refusal(session, record, terms):
            session.end(record)
            return error_response(WRONG, words, "unlisted_field")
        try:
            response = await self._while_connected(request, session, record)
        except Exception as error:  # noqa: BLE001  ours: never the agent's failure
            words = f"the gateway failed ({type(error).__name__})"
            record.judgement = ReplyJudgement("failure", "no reply", words)
            response = error_response(500, words)
        except BaseException:
            session.end(record)
            raise
        finally:
            record.latency_s = time.monotonic() - record.begun
        if not isinstance(response, StreamingResponse):
            self._note(session, record)
            session.end(record)
            if session.mask is not None:
                response = as_masked(session.mask, record, response)
            response.headers[VERDICT_HEADER] = verdict_text(record)
        return response

    def _refusal(self, session: GatewaySession, record: ModelRequest, terms: dict[str, Any]) -> str:
        """Return why a request goes nowhere, "" where the record says what is sent."""
        if session.mask is not None:
            terms = session.mask.request(terms)
        words, record.unlisted = refusal(record.path, terms, session.echoes.holds, self._fields)
        if words:
            record.status = WRONG
            record.judgement = ReplyJudgement("mistake", "request", words)
        record.sent = as_sent(session, record.path, terms, self._fields)
        return words

    async def _while_connected(
        self, request: Request, session: GatewaySession, record: ModelRequest
    ) -> Response:
        """Return the reply; an agent that hangs up ends the provider's request too."""
        reply = asyncio.ensure_future(self._forward(session, record))
        hung_up = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({reply, hung_up}, return_when=asyncio.FIRST_COMPLETED)
            if reply.done():
                return reply.result()
            waited_s = time.monotonic() - record.begun
            if waited_s >= _IMPATIENT * self.provider.timeout_s:
                record.judgement = no_reply("hung up", late=True, seconds=waited_s)
            return error_response(499, "The agent hung up.")
        finally:
            for task in (reply, hung_up):
                task.cancel()
            await asyncio.gather(reply, hung_up, return_exceptions=True)

    async def _forward(self, session: GatewaySession, record: ModelRequest) -> Response:
        """Return the provider's reply, or the cached one; the record says which."""
        terms = record.sent
        streamed = terms.get("stream") is True
        cache = self._cache.path(session, record, terms)
        if cache is not None and cache.exists():
            kept = cache.read_bytes()
            found = judge(200, kept, record.path)
            if found.verdict == "completion":  # not what older versions kept
                record.reply, record.status, record.cached = kept, 200, True
                record.usage, record.judgement = usage_of(kept), found
                return Response(record.reply, media_type="application/json")
        if not self.provider.url:
            record.judgement = no_reply("the cache holds no such reply", late=False)
            return error_response(503, "No provider, and the cache holds no such reply.")
        native = record.path.startswith(_NATIVE.get(self.provider.api, ()))
        if self._translator is not None and not native:
            return await self._translate(self._translator, record, terms, cache)
        asked = with_usage(record.path, terms) if streamed else None
        try:
            async with asyncio.timeout(self.provider.timeout_s):
                reply = await self._upstream.send(record, asked)
                if asked is not None and reply.status_code in _REFUSED:
                    await reply.aclose()  # the server may not know `stream_options`
                    asked, reply = None, await self._upstream.send(record)
                if streamed and reply.is_success and is_stream(reply):
                    stream = EventStream(hide_usage=asked is not None)
                    record.status = reply.status_code
                    relayed = self._relay(session, record, reply, stream)
                    headers = self._upstream.headers(reply)
                    if session.mask is not None:
                        headers = headers_of(headers, record.status)
                    return StreamingResponse(relayed, 200, headers)
                await self._upstream.read(record, reply)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as failure:
            return self._upstream.no_reply(record, failure)
        await self._cache.keep(cache, record)
        return as_judged(record, self._upstream.headers(reply))

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
            record.status = WRONG
            record.judgement = ReplyJudgement("mistake", "request", why)
            return error_response(WRONG, f"For `{self.provider.api}`: {why}.")
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
        except Exception as failure:  # noqa: BLE001  the library's, of any kind
            return self._upstream.untranslated(record, failure)
        finally:
            del self._translated[ticket]
        record.reply, record.usage = (self._upstream.scrubber.clean(reply), usage_of(reply))
        record.judgement = judge(200, record.reply)
        await self._cache.keep(cache, record)
        return Response(record.reply, media_type="application/json")

    async def _pass(self, request: Request) -> Response:
        """Pass a translated request on, with the API key in its ticket's place."""
        ticket = request.path_params["ticket"]
        record = self._translated.get(ticket)
        if record is None:
            return error_response(404, "The gateway serves /v1.")
        key, body = self.provider.key, await request.body()
        headers = {
            name: value.replace(ticket, key)
            for name, value in request.headers.items()
            if name not in _HOP
        }
        path = request.path_params["path"]
        query = request.url.query.replace(ticket, key)
        try:
            reply = await self._upstream.send_as(record, path, query, body, headers)
        except (httpx.HTTPError, TimeoutError) as failure:
            return self._upstream.no_reply(record, failure)
        return Response(record.reply, reply.status_code, self._upstream.headers(reply))

    async def _relay(
        self,
        session: GatewaySession,
        record: ModelRequest,
        reply: httpx.Response,
        stream: EventStream,
    ) -> AsyncIterator[bytes]:
        """Yield the events of a streamed reply as they come."""
        kept, fault, heard = bytearray(), None, time.monotonic()
        mask = session.mask
        try:
            async for chunk in reply.aiter_bytes():
                heard = time.monotonic()
                for event in stream.feed(chunk):
                    clean = self._upstream.scrubber.clean(event)
                    kept += clean[: MOST_REPLY - len(kept)]
                    yield mask.event(clean, record.path) if mask else clean
            rest = self._upstream.scrubber.clean(stream.end())
            kept += rest
            yield mask.event(rest, record.path) if mask and rest else rest
        except httpx.HTTPError as error:
            kind = type(error).__name__
            late, waited_s = isinstance(error, LATE), time.monotonic() - record.begun
            fault = no_reply(kind, late=late, seconds=waited_s)
            raise
        except (asyncio.CancelledError, GeneratorExit):
            # The agent hung up, perhaps since nothing came any more.
            quiet_s = time.monotonic() - heard
            late = quiet_s >= _IMPATIENT * self.provider.timeout_s
            gone = no_reply("hung up", late=True, seconds=quiet_s)
            fault = gone if late else ReplyJudgement("completion")
            raise
        finally:
            record.reply, record.usage = bytes(kept), stream.usage
            record.latency_s = time.monotonic() - record.begun
            record.judgement = fault or judge_events(record.reply, record.path)
            self._note(session, record)
            session.end(record)
            with contextlib.suppress(httpx.HTTPError):
                await reply.aclose()

    def _note(self, session: GatewaySession, record: ModelRequest) -> None:
        """Remember which model answered, and what its reply held."""
        if not record.is_completion:
            return
        if record.model:
            self._well.add(record.model)
        if record.path in _ANSWERING:
            session.echoes.add(record.reply)
            record.unlisted += hosted_work(record.reply)


async def _disconnected(request: Request) -> None:
    """Return when the agent has closed its connection."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.05)


def _tokens(request: Request) -> Iterator[str]:
    """Yield what a request carries in the usual headers; some clients fill two."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield token.strip()
    for name in ("api-key", "x-api-key", "x-goog-api-key"):
        yield request.headers.get(name, "").strip()


def _endpoint(request: Request) -> str:
    """Return the path below /v1, as a client of OpenAI writes it."""
    path = f"/{request.path_params['path']}".rstrip("/")
    if request.url.path.startswith(_AZURE):
        path = _OF_AZURE.sub("/", path)
    return path
