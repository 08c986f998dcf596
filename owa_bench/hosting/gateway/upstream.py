"""The way to a model's provider: requests with its key, replies without it."""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import httpx
import msgspec
from starlette.responses import Response

from owa_bench.errors import UsageError
from owa_bench.hosting.gateway.responses import error_response
from owa_bench.hosting.gateway.scrubbing import Scrubber
from owa_bench.hosting.gateway.session import ModelRequest
from owa_bench.hosting.gateway.translation import ModelProvider
from owa_bench.records.model_replies import ReplyJudgement, judge, no_reply
from owa_bench.records.token_usage import usage_of
from owa_bench.shells import addresses

LATE = (httpx.TimeoutException, TimeoutError)
WRONG = 400
_GET = ("/models",)
MOST_REPLY = 64 << 20
_PASSED = ("content-type", "retry-after", "x-request-id")
_WORDS = 600  # characters of a library's words in a record


class Upstream:
    """The client of one provider, in the gateway's event loop.

    Args:
        provider: Where requests go.
        transport: For tests.
    Raises: UsageError: The environment names a proxy that cannot be used.
    """

    def __init__(
        self, provider: ModelProvider, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.provider = provider
        self.scrubber = Scrubber(provider.secrets)
        self.client = _client_of(provider, transport)
        self.fresh_client = _client_of(provider, transport, kept=0)

    async def send(
        self, record: ModelRequest, changed: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        """Send a request; its reply is not read.

        Args:
            record: The request.
            changed: A body in place of the record's.
        """
        terms = record.sent if changed is None else changed
        content = msgspec.json.encode(terms) if terms else b""
        client = self._client(record)
        try:
            return await client.send(self._request(record, content), stream=True)
        except httpx.RemoteProtocolError:
            # A server may close a connection that was kept open just as it is used.
            return await client.send(self._request(record, content), stream=True)

    def _client(self, record: ModelRequest) -> httpx.AsyncClient:
        return self.fresh_client if record.fresh else self.client

    async def send_as(
        self, record: ModelRequest, path: str, query: str, body: bytes, headers: Any
    ) -> httpx.Response:
        """Send a translated request, and read its reply into the record.

        Args:
            record: The chat request that it stands for.
            path: Below the provider's address.
            query: With the key in it, if the interface wants it there.
            body: In the provider's form.
            headers: With the key.
        """
        url = httpx.URL(addresses.endpoint_of(self.provider.url, f"/{path}"))
        both = (url.query.decode(), query)
        url = url.copy_with(query="&".join(filter(None, both)).encode() or None)
        sent = headers | dict(self.provider.headers)
        asked = self.client.build_request("POST", url, content=body, headers=sent)
        async with asyncio.timeout(self.provider.timeout_s):
            reply = await self._client(record).send(asked, stream=True)
            await self.read(record, reply, path="")
        return reply

    def _request(self, record: ModelRequest, content: bytes) -> httpx.Request:
        path = f"/v1{record.path}" if self.provider.api == "anthropic" else record.path
        headers = {"content-type": "application/json"} if content else {}
        headers = self.provider.sign(headers | record.headers)
        url = addresses.endpoint_of(self.provider.url, path)
        method = "GET" if path.removeprefix("/v1").startswith(_GET) else "POST"
        return self.client.build_request(method, url, content=content or None, headers=headers)

    async def read(
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
                if len(data) > MOST_REPLY:
                    raise httpx.DecodingError("the reply is too long")
        finally:
            await reply.aclose()
        body = self.scrubber.clean(bytes(data))
        record.status, record.reply = reply.status_code, body
        record.judgement = judge(record.status, body, record.path if path is None else path)
        if reply.has_redirect_location:
            where = _target(reply)
            words = f"HTTP {reply.status_code}: it sends requests on to {where}"
            record.judgement = ReplyJudgement("failure", "no completion", words)
        record.usage = usage_of(body) if reply.is_success else None

    def headers(self, reply: httpx.Response) -> dict[str, str]:
        """Return the headers of a reply that agents get, without a key."""
        return {
            name: self.scrubber.text(reply.headers[name])
            for name in _PASSED
            if name in reply.headers
        }

    def no_reply(self, record: ModelRequest, error: Exception) -> Response:
        """Return what an agent is told of a provider that did not answer; record it.

        The library's own words may repeat a key, so its class alone is told.

        Args:
            record: The request.
            error: What the library raised.
        """
        late = isinstance(error, LATE)
        words = addresses.why_no_reply(error, self.provider.url)
        if late:
            words = type(error).__name__
        record.judgement = no_reply(words, late=late, seconds=self.provider.timeout_s)
        where = addresses.host_and_port(self.provider.url)
        words = record.judgement.text
        return error_response(504 if late else 502, f"The provider at {where}: {words}")

    def untranslated(self, record: ModelRequest, error: Exception) -> Response:
        """Return what an agent is told where a translated request gave no completion.

        Status and judgement are those of the provider's own reply, never the library's.

        Args:
            record: The request and the provider's reply, where there was one.
            error: What the library raised.
        """
        if record.judgement is not None and not record.status:
            return error_response(502, f"The provider gave no reply: {record.judgement.text}.")
        if record.status and record.status != httpx.codes.OK:
            return Response(record.reply, record.status, media_type="application/json")
        words = self.scrubber.text(f"{type(error).__name__}: {error}")
        if record.status:
            record.judgement = ReplyJudgement("failure", "no completion", words[:_WORDS])
            return error_response(502, f"The provider's reply cannot be translated: {words}")
        record.status = WRONG
        record.judgement = ReplyJudgement("failure", "request", words[:_WORDS])
        return error_response(WRONG, f"The request cannot be translated: {words}")


def _target(reply: httpx.Response) -> str:
    """Return scheme and host of a redirect: the rest may hold a secret."""
    try:
        url = httpx.URL(reply.headers["location"])
    except httpx.InvalidURL:
        return "no address"
    return f"{url.scheme}://{url.host}" if url.host else "another path"


def _client_of(
    provider: ModelProvider, transport: httpx.AsyncBaseTransport | None, kept: int | None = None
) -> httpx.AsyncClient:
    """Return the client of a provider; UsageError for a proxy that it cannot use.

    `kept` connections stay open between requests, None: as many as usual.
    """
    usual = httpx.Limits(max_connections=100, max_keepalive_connections=20)
    limits = usual if kept is None else httpx.Limits(max_keepalive_connections=kept)
    url = provider.url or "http://127.0.0.1"
    proxied = addresses.uses_proxy(url)
    verify: Any = True
    if proxied or url.startswith("https:"):
        verify = addresses.certificates(os.environ)
    try:
        return httpx.AsyncClient(
            timeout=provider.timeout_s,
            trust_env=proxied,
            verify=verify,
            transport=transport,
            limits=limits,
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        kind = type(error).__name__
        where = addresses.host_and_port(url)
        raise UsageError(
            f"The models' provider at {where} cannot be reached through the proxy that "
            f"the environment names ({kind}): unset it, or name the host in $no_proxy."
        ) from error
