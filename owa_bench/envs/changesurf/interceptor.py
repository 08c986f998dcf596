"""Answers the browser's requests from an ASGI app; no request leaves the process.

Every request of a page is paused by the browser's Fetch domain and answered here. A
host that is not the sandbox's is refused and noted. The log is the HAR's source.
"""

import base64
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp

from owa_bench.envs.changesurf.driver import Exchange, Place

FAVICON = "/favicon.ico"  # asked for by some binaries and not by others: kept out
_NO_CONTENT = 204
_DOCUMENT = "Document"
_ERROR = 500


class Channel(Protocol):
    """Sends a command of the browser's debugging protocol."""

    async def send(self, method: str, params: dict[str, Any]) -> Any:
        """Return the command's result."""


class Answer(NamedTuple):
    """A response of the app."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Interceptor:
    """The requests of one page, answered by one app."""

    def __init__(self, channel: Channel, place: Place) -> None:
        self._channel = channel
        self._hosts = place.hosts
        self.app = place.app
        self.exchanges: list[Exchange] = []
        self.fault: Exception | None = None
        self.stayed = 0  # documents asked for whose answer replaces no page
        self.note = ""
        self.returning = False  # the browser goes back: a form is not sent once more

    async def start(self) -> None:
        """Pause every request of the page from now on."""
        await self._channel.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})

    async def answer(self, event: Mapping[str, Any]) -> None:
        """Answer one paused request."""
        main = event.get("resourceType") == _DOCUMENT
        if main and self.returning:
            self.returning = False
            event = {**event, "request": _asked_again(event["request"])}
        request = event["request"]
        parts = urlsplit(request["url"])
        if parts.hostname not in self._hosts:
            await self._deny(event, main=main)
            return
        if parts.path == FAVICON and not main:
            await self._fulfil(event, Answer(_NO_CONTENT, (), b""))
            return
        body = _body(request)
        try:
            reply = await call(self.app, request, body)
        except Exception as error:  # noqa: BLE001  # any fault of the app is the harness'
            self.fault = self.fault or error
            reply = Answer(_ERROR, (("content-type", "text/plain"),), b"fault")
        self._note(event, body, reply)
        if main and _replaces_nothing(reply):
            self.stayed += 1
            self.note = _downloaded(reply)
            reply = Answer(_NO_CONTENT, (), b"")
        await self._fulfil(event, reply)

    async def _deny(self, event: Mapping[str, Any], *, main: bool) -> None:
        """Refuse a request for a foreign host; the page stays as it is."""
        request = event["request"]
        self._note(event, _body(request), Answer(0, (), b""), denied=True)
        if main:
            self.stayed += 1
            self.note = f"{request['url']} is outside the sandbox and was refused."
            await self._fulfil(event, Answer(_NO_CONTENT, (), b""))
        else:
            await self._channel.send(
                "Fetch.failRequest",
                {"requestId": event["requestId"], "errorReason": "BlockedByClient"},
            )

    async def _fulfil(self, event: Mapping[str, Any], reply: Answer) -> None:
        headers = [{"name": name, "value": value} for name, value in reply.headers]
        await self._channel.send(
            "Fetch.fulfillRequest",
            {
                "requestId": event["requestId"],
                "responseCode": reply.status,
                "responseHeaders": headers,
                "body": base64.b64encode(reply.body).decode(),
            },
        )

    def _note(
        self,
        event: Mapping[str, Any],
        body: bytes,
        reply: Answer,
        *,
        denied: bool = False,
    ) -> None:
        request = event["request"]
        self.exchanges.append(
            Exchange(
                method=request["method"],
                url=request["url"],
                kind=event.get("resourceType", ""),
                request_headers=_kept(request["headers"]),
                request_body=body,
                status=reply.status,
                response_headers=reply.headers,
                response_body=reply.body,
                denied=denied,
            )
        )


# Headers that say which browser this is, not what was asked.
_PRIVATE = ("user-agent", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform")


def _kept(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers that are the same in every browser, in order of name."""
    named = ((name.lower(), value) for name, value in headers.items())
    return tuple(sorted(pair for pair in named if pair[0] not in _PRIVATE))


def _asked_again(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request for a page that was the answer to a form: without the form.

    A browser on its way back would send the form again, and a person is asked first.
    """
    kept = {k: v for k, v in request.items() if not k.startswith("postData")}
    headers = {
        name: value
        for name, value in request["headers"].items()
        if name.lower() not in ("content-type", "content-length", "origin")
    }
    return {**kept, "method": "GET", "headers": headers}


def _body(request: Mapping[str, Any]) -> bytes:
    """Return the body of a paused request."""
    parts = request.get("postDataEntries")
    if parts:
        return b"".join(base64.b64decode(part.get("bytes", "")) for part in parts)
    return str(request.get("postData", "")).encode()


def _replaces_nothing(reply: Answer) -> bool:
    """Return whether a document's answer leaves the page where it is."""
    if reply.status in (_NO_CONTENT, 205):
        return True
    return any(
        name == "content-disposition" and value.startswith("attachment")
        for name, value in reply.headers
    )


def _downloaded(reply: Answer) -> str:
    """Return what is told of an answer that replaced nothing."""
    if not reply.body:
        return "The site answered without a new page."
    text = reply.body.decode("utf-8", "replace")
    return f"A file was downloaded ({len(reply.body)} bytes):\n{text[:1500]}"


async def call(app: ASGIApp, request: Mapping[str, Any], body: bytes) -> Answer:
    """Return the app's answer to one request."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(_scope(request), receive, send)
    start = sent[0]
    headers = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in start["headers"]
    )
    whole = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(int(start["status"]), headers, whole)


def _scope(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
    parts = urlsplit(request["url"])
    host = parts.hostname or ""
    headers = [(b"host", (parts.netloc or host).encode())]
    headers += [
        (name.lower().encode(), str(value).encode("latin-1", "replace"))
        for name, value in request["headers"].items()
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request["method"],
        "scheme": parts.scheme,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("browser", 0),
        "server": (host, 443 if parts.scheme == "https" else 80),
    }
