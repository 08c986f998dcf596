"""Client of the model probe: asks one chat server by the gateway's own way to it."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx
import msgspec

from owa_bench.hosting.gateway.session import ModelRequest
from owa_bench.hosting.gateway.translation import ModelProvider
from owa_bench.hosting.gateway.upstream import Upstream
from owa_bench.records.model_replies import CAUSES_OF_A_REQUEST, Cause, decoded, sse_events
from owa_bench.records.token_usage import TokenUsage
from owa_bench.shells import addresses

_CHAT = "/chat/completions"
_VERSION = "/v1"
_SHOWN = 240  # characters of a server's words


class ServerReply(NamedTuple):
    """One reply of a server; `status` 0: none came, and `words` say why.

    `cause` is the judge's, "" for a completion. `words` are the server's, short and without keys.
    `body` is the decoded JSON, None where there is none. `pieces` counts the pieces of text in a
    stream.
    """

    status: int
    words: str
    cause: Cause = ""
    body: Any = None
    usage: TokenUsage | None = None
    seconds: float = 0.0
    pieces: int = 0

    @property
    def is_completion(self) -> bool:
        """Whether it is a chat completion."""
        return bool(self.status) and not self.cause

    @property
    def is_refusal(self) -> bool:
        """Whether the server refused what was asked: neither the key nor its state."""
        return self.cause in _REFUSALS

    @property
    def message(self) -> Any:
        """The assistant's message, None where there is none."""
        return dig(self.body, "choices", 0, "message")


_REFUSALS = CAUSES_OF_A_REQUEST - {"key"} | {"tool call", "too long", "filtered"}


def dig(value: Any, *path: str | int) -> Any:
    """Return the part of a decoded document at a path, None where it has none.

    Args:
        value: The document.
        path: Names and places.
    """
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and value[step:] else None
    return value


class ProbeClient:
    """Asks one server, until it is closed; an async context manager.

    Args:
        provider: The server, with its key.
        transport: For tests.
    Raises: UsageError: The environment names a proxy that cannot be used.
    """

    def __init__(
        self, provider: ModelProvider, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.base = addresses.endpoint_of(provider.url, "")
        self._upstream = Upstream(provider, transport)

    async def __aenter__(self) -> "ProbeClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._upstream.client.aclose()

    async def chat(self, body: Mapping[str, Any]) -> ServerReply:
        """Return the reply to a chat request."""
        content = msgspec.json.encode(body)
        record = ModelRequest(path=_CHAT, body=content, sent=dict(body))
        try:
            reply = await self._upstream.send(record)
            await self._upstream.read(record, reply)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            self._upstream.no_reply(record, error)
        judgement = record.judgement
        value = decoded(record.reply)
        return ServerReply(
            status=record.status,
            words=judgement.words[:_SHOWN] if judgement else "",
            cause=judgement.cause if judgement else "no reply",
            body=value,
            usage=record.usage,
            seconds=time.monotonic() - record.begun,
            pieces=_pieces(record.reply) if value is None else 0,
        )

    async def models(self, version: str = "") -> Any:
        """Return the list of models; `version` goes before the path."""
        return await self._look(addresses.endpoint_of(self.base, f"{version}/models"))

    async def at_root(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what a path beside /v1 says, where servers tell of themselves.

        Args:
            path: The path.
            body: Of the request; None asks with GET.
        Returns: The decoded reply, None where there is none.
        """
        base = httpx.URL(self.base)
        root = base.copy_with(path=base.path.rstrip("/").removesuffix(_VERSION) + path)
        return await self._look(str(root), body)

    async def _look(self, url: str, body: Mapping[str, Any] | None = None) -> Any:
        upstream = self._upstream
        method = "GET" if body is None else "POST"
        headers = upstream.provider.sign({})
        try:
            reply = await upstream.client.request(method, url, headers=headers, json=body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError):
            return None
        return decoded(upstream.scrubber.clean(reply.content))

    def without_keys(self, text: str) -> str:
        """Return a text with every key taken out."""
        return self._upstream.scrubber.text(text)


def _pieces(body: bytes) -> int:
    """Return how many events of a stream hold text."""
    deltas = (dig(event, "choices", 0, "delta") for event in sse_events(body))
    return sum(bool(dig(d, "content") or dig(d, "reasoning_content")) for d in deltas)
