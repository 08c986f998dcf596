"""Driver interface, and the interceptor that answers a page's requests.

    open       a fresh browser context on a site
    act        one input, then settle and observe: one look, no sleeping
    picture, snapshot, tree    evidence of the page as it stands
    close      release everything

Every request of a page is paused by the browser's Fetch domain and answered here from an ASGI app;
none leaves the process. A request for a foreign host is refused and recorded. The log is the source
of the HAR.
"""

import base64
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp

from owa_bench.envs.changesurf.browser.observation import PageObservation

ActionKind = Literal["click", "type", "select", "press", "scroll", "back", "goto", "look"]
Refusal = Literal["", "gone", "hidden", "covered", "disabled", "unfit", "outside"]


class BrowserAction(NamedTuple):
    """One input. `text` is what to type, choose, press, or the address to go to."""

    op: ActionKind
    ref: int = 0
    text: str = ""


class ActionResult(NamedTuple):
    """The page after an action, and why nothing was done if so.

    `navigated` is whether a new document was loaded, `note` what else happened (a download, a
    refused address), `untrusted` the number of clicks and submits that no input made.
    """

    page: PageObservation
    refusal: Refusal = ""
    reason: str = ""
    navigated: bool = False
    note: str = ""
    untrusted: int = 0


class BrowserExchange(NamedTuple):
    """One request of the browser and its answer, as the interceptor saw them."""

    method: str
    url: str
    kind: str
    request_headers: tuple[tuple[str, str], ...]
    request_body: bytes
    status: int
    response_headers: tuple[tuple[str, str], ...]
    response_body: bytes
    denied: bool = False


class BrowserTarget(NamedTuple):
    """What a driver opens: the app, its hosts, the first address, and the window."""

    app: ASGIApp
    hosts: frozenset[str]
    start: str
    width: int = 1280
    height: int = 720


class Driver(Protocol):
    """Drives one page at a time."""

    def open(self, target: BrowserTarget) -> ActionResult:
        """Open a fresh context on a site and go to its start."""

    def serve(self, app: ASGIApp) -> None:
        """Answer by another app from now on."""

    def act(self, action: BrowserAction) -> ActionResult:
        """Send one input and return the page once it has settled."""

    def exchanges(self) -> Sequence[BrowserExchange]:
        """Return every request since `open`, in order."""

    def picture(self) -> bytes:
        """Return a JPEG of the window."""

    def snapshot(self) -> bytes:
        """Return the DOM with its layout-free attributes, as canonical JSON."""

    def tree(self) -> bytes:
        """Return the accessibility tree, roles and names, as canonical JSON."""

    def facts(self) -> Mapping[str, Any]:
        """Return binary, version and flags of the browser."""

    def close(self) -> None:
        """Close the context; may be called twice."""


# --- interceptor ----------------------------------------------------------------------


FAVICON = "/favicon.ico"  # asked for by some binaries and not by others: kept out
_NO_CONTENT = 204
_DOCUMENT = "Document"
_ERROR = 500


class Channel(Protocol):
    """Sends a command of the browser's debugging protocol."""

    async def send(self, method: str, params: dict[str, Any]) -> Any:
        """Send a command.

        Args:
            method: its name.
            params: its parameters.
        Returns: The command's result.
        """


class AppResponse(NamedTuple):
    """A response of the app."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Interceptor:
    """The requests of one page, answered by one app."""

    def __init__(self, channel: Channel, target: BrowserTarget) -> None:
        self._channel = channel
        self._hosts = target.hosts
        self.app = target.app
        self.exchanges: list[BrowserExchange] = []
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
            event = {**event, "request": _without_form(event["request"])}
        request = event["request"]
        parts = urlsplit(request["url"])
        if parts.hostname not in self._hosts:
            await self._deny(event, main=main)
            return
        if parts.path == FAVICON and not main:
            await self._fulfil(event, AppResponse(_NO_CONTENT, (), b""))
            return
        body = _body(request)
        try:
            reply = await call_app(self.app, request, body)
        except Exception as error:  # noqa: BLE001  # any fault of the app is the harness'
            self.fault = self.fault or error
            reply = AppResponse(_ERROR, (("content-type", "text/plain"),), b"fault")
        self._note(event, body, reply)
        if main and _replaces_nothing(reply):
            self.stayed += 1
            self.note = _download_note(reply)
            reply = AppResponse(_NO_CONTENT, (), b"")
        await self._fulfil(event, reply)

    async def _deny(self, event: Mapping[str, Any], *, main: bool) -> None:
        """Refuse a request for a foreign host; the page stays as it is."""
        request = event["request"]
        self._note(event, _body(request), AppResponse(0, (), b""), denied=True)
        if main:
            self.stayed += 1
            self.note = f"{request['url']} is no address of this site: refused."
            await self._fulfil(event, AppResponse(_NO_CONTENT, (), b""))
        else:
            await self._channel.send(
                "Fetch.failRequest",
                {"requestId": event["requestId"], "errorReason": "BlockedByClient"},
            )

    async def _fulfil(self, event: Mapping[str, Any], reply: AppResponse) -> None:
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
        self, event: Mapping[str, Any], body: bytes, reply: AppResponse, *, denied: bool = False
    ) -> None:
        request = event["request"]
        self.exchanges.append(
            BrowserExchange(
                method=request["method"],
                url=request["url"],
                kind=event.get("resourceType", ""),
                request_headers=_common_headers(request["headers"]),
                request_body=body,
                status=reply.status,
                response_headers=reply.headers,
                response_body=reply.body,
                denied=denied,
            )
        )


# Headers that say which browser this is, not what was asked.
_PRIVATE = (
    *("user-agent", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"),
    "accept",  # which images a browser reads
)


def _common_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers that are the same in every browser, in order of name."""
    named = ((name.lower(), value) for name, value in headers.items())
    return tuple(sorted(pair for pair in named if pair[0] not in _PRIVATE))


def _without_form(request: Mapping[str, Any]) -> dict[str, Any]:
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


def _replaces_nothing(reply: AppResponse) -> bool:
    """Return whether a document's answer leaves the page where it is."""
    if reply.status in (_NO_CONTENT, 205):
        return True
    return any(
        name == "content-disposition" and value.startswith("attachment")
        for name, value in reply.headers
    )


def _download_note(reply: AppResponse) -> str:
    """Return the note on a response that replaced no page."""
    if not reply.body:
        return "The site answered without a new page."
    text = reply.body.decode("utf-8", "replace")
    return f"A file was downloaded ({len(reply.body)} bytes):\n{text[:1500]}"


async def call_app(app: ASGIApp, request: Mapping[str, Any], body: bytes) -> AppResponse:
    """Send one request to an app.

    Args:
        app: the app.
        request: method, url and headers, as the browser tells them.
        body: the request's body.
    Returns: The app's response.
    """
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
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return AppResponse(int(start["status"]), headers, content)


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
