"""Client of the model probe: one chat server, asked without showing a key anywhere.

A reply keeps the server's own words with every key taken out. An exception of a library
is told by its class and by words of ours, since its text may hold a header.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import httpx

from owa_bench.errors import FieldError
from owa_bench.shells import addresses

_CHAT = "/chat/completions"
_VERSION = "/v1"
_SHOWN = 240  # characters of a server's words
_MOST_BYTES = 8 << 20
_LONGEST_S = 600.0  # of one request; the probe has a deadline for all of them
_SHORTEST_KEY = 4  # a shorter "key" is a placeholder, and would blot out plain text
_GONE = "{key}"
_VARIABLE = re.compile("[A-Z][A-Z0-9_]*")  # anything else may be the key itself
_HIDDEN = "a text that is not shown, since it may be the key"
_UNSENDABLE = re.compile(r"[^\x21-\x7e]")
_URL = "--model-url"


class ServerReply(NamedTuple):
    """One reply of a server; `status` 0: none came, and `words` say why.

    `body` is the decoded JSON, None where there is none. `words` are the server's,
    short and without keys; `text` is all of it. `chunks` are the moments of a stream's
    pieces in seconds.
    """

    status: int
    words: str
    body: Any = None
    text: str = ""
    seconds: float = 0.0
    is_page: bool = False
    chunks: tuple[float, ...] = ()

    @property
    def is_completion(self) -> bool:
        """Whether it is a chat completion with a message."""
        return self.status == httpx.codes.OK and isinstance(self.message, dict)

    @property
    def message(self) -> Any:
        """The assistant's message, None where there is none."""
        return dig(self.body, "choices", 0, "message")

    @property
    def cause(self) -> str:
        """Status and words, for a person."""
        return f"HTTP {self.status}: {self.words}" if self.status else self.words


def dig(value: Any, *path: str | int) -> Any:
    """Return the part of a decoded document at a path, None where it has none.

    Args:
        value: The document.
        path: Names and places.

    Returns:
        The part.
    """
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and value[step:] else None
    return value


def base_url(address: str) -> httpx.URL:
    """Return the base of a server's address; a pasted path of a request is cut off.

    Raises:
        FieldError: It is no http address, or holds a password or key.
    """
    try:
        url = httpx.URL(address.strip())
    except (httpx.InvalidURL, UnicodeError, ValueError):
        url = httpx.URL("")
    if addresses.holds_secret(str(url)):
        rule = (
            "must hold no password or key, since it is public in the plan; put the key "
            "into a variable and name it with --model-key-env or --model-header"
        )
        raise FieldError(_URL, f"{url.scheme}://{url.host}/..", rule)
    if url.scheme not in {"http", "https"} or not url.host:
        rule = "must be an address such as http://127.0.0.1:8000/v1"
        raise FieldError(_URL, _HIDDEN if "@" in address else address, rule)
    path = url.path.rstrip("/").removesuffix(_CHAT)
    return url.copy_with(path=path or "/", fragment=None)


def secret_of(variable: str, environment: Mapping[str, str], option: str) -> str:
    """Return the key that a variable holds, without blanks and line ends around it.

    Args:
        variable: Its name.
        environment: Variables.
        option: The option that named it.

    Returns:
        The key.

    Raises:
        FieldError: The variable is not set, or its value cannot be sent as a header.
    """
    key = environment.get(variable, "").strip()
    if not key:
        rule = "must name a variable that is set and holds the key"
        shown = variable if _VARIABLE.fullmatch(variable) else _HIDDEN
        raise FieldError(option, shown, rule)
    if _UNSENDABLE.search(key):
        rule = (
            "must name a variable with a key of visible ASCII characters; this one has "
            "a blank, a line end or another letter within it: set it again"
        )
        raise FieldError(option, variable, rule)
    return key


class ProbeClient:
    """Asks one server, until it is closed; an async context manager.

    Args:
        base: Address of the server, as `base_url` returns it.
        headers: Sent with every request; their values are the keys.
        transport: For tests.
    """

    def __init__(
        self,
        base: httpx.URL,
        headers: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base = base
        self._secrets = sorted(
            {part for value in headers.values() for part in _parts(value)},
            key=len,
            reverse=True,
        )
        self._client = httpx.AsyncClient(
            headers=dict(headers),
            transport=transport,
            trust_env=addresses.uses_proxy(str(base)),
            timeout=_LONGEST_S,
            # Some servers close a connection just as the next request enters it.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def __aenter__(self) -> "ProbeClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def chat(self, body: Mapping[str, Any]) -> ServerReply:
        """Return the reply to a chat request; a stream's pieces are put together."""
        return await self._send("POST", self._url(_CHAT), body)

    async def models(self, version: str = "") -> ServerReply:
        """Return the list of models; `version` goes before the path."""
        return await self._send("GET", self._url(f"{version}/models"), None)

    async def at_root(
        self, path: str, body: Mapping[str, Any] | None = None
    ) -> ServerReply:
        """Return the reply of a path beside /v1, where servers tell of themselves.

        Args:
            path: The path.
            body: Of the request; None asks with GET.

        Returns:
            The reply.
        """
        root = self.base.path.rstrip("/").removesuffix(_VERSION)
        url = self.base.copy_with(path=root + path)
        return await self._send("GET" if body is None else "POST", url, body)

    def _url(self, path: str) -> httpx.URL:
        return self.base.copy_with(path=self.base.path.rstrip("/") + path)

    async def _send(
        self, method: str, url: httpx.URL, body: Mapping[str, Any] | None
    ) -> ServerReply:
        begun = time.perf_counter()
        data, moments = bytearray(), []
        try:
            async with self._client.stream(method, url, json=body) as response:
                async for piece in response.aiter_bytes():
                    moments.append(time.perf_counter() - begun)
                    data += piece
                    if len(data) > _MOST_BYTES:
                        break
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return ServerReply(0, addresses.why_no_reply(error, str(url)))
        text = data.decode(errors="replace")
        kind = response.headers.get("content-type", "")
        page = "html" in kind or text.lstrip()[:1] == "<"
        events = list(_events(text)) if "event-stream" in kind else []
        reply = _joined(events) if events else _decoded(text)
        words = self.without_keys(_words(text, reply, response, is_page=page))
        return ServerReply(
            status=response.status_code,
            words=words[:_SHOWN],
            body=reply,
            text=text,
            seconds=time.perf_counter() - begun,
            is_page=page,
            chunks=tuple(moments) if events else (),
        )

    def without_keys(self, text: str) -> str:
        """Return a text with every key taken out."""
        for secret in self._secrets:
            text = text.replace(secret, _GONE)
        return text


def _parts(value: str) -> tuple[str, ...]:
    """Return what is secret in a header: its value without `Bearer`."""
    key = value.rpartition(" ")[2]
    return (key,) if len(key) >= _SHORTEST_KEY else ()


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _events(text: str) -> Iterator[Any]:
    """Yield the decoded data of a stream's events, whatever ends its lines."""
    for line in text.splitlines():
        if line.startswith("data:") and isinstance(event := _decoded(line[5:]), dict):
            yield event


def _joined(events: list[Any]) -> dict[str, Any]:
    """Return a stream as one completion: its text, its usage, its error."""
    parts = [dig(event, "choices", 0, "delta") for event in events]
    texts = [dig(p, "content") or dig(p, "reasoning_content") for p in parts]
    pieces = [text for text in texts if isinstance(text, str) and text]
    usage = [event["usage"] for event in events if event.get("usage")]
    errors = [event["error"] for event in events if event.get("error")]
    joined: dict[str, Any] = {"usage": usage[-1] if usage else None}
    if errors:
        return joined | {"error": errors[0]}
    message = {"content": "".join(pieces)}
    return joined | {"choices": [{"message": message}], "pieces": len(pieces)}


def _words(text: str, body: Any, response: httpx.Response, *, is_page: bool) -> str:
    """Return what a reply says, in one line."""
    if is_page:
        return "a web page, no reply of an API"
    if response.is_redirect:
        target = httpx.URL(response.headers.get("location", "")).host
        return f"it sends requests on to {target or 'another path'}"
    error = dig(body, "error")
    said = dig(error, "message") or dig(body, "message") or dig(body, "detail") or error
    return " ".join(str(said or text).split())
