"""Site over loopback: for the `wire` transport, and for a person's own browser.

A person's browser resolves every name under `localhost` to this machine, so each host
of the sandbox (`harbour.test`) is served as `harbour.localhost`, with the addresses in
pages and redirects rewritten. No grader can be reached there.
"""

import asyncio
import contextlib
import http.client
import re
import socket
import threading
import time
from collections.abc import Callable, MutableMapping
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from owa_bench.envs.changesurf.server.app import SiteServer
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.errors import InfrastructureFailure
from owa_bench.records.instance import SimulatedClock, Timeline
from owa_bench.seeding import fresh_bytes
from owa_bench.worlds.site import SiteWorld

_KEY = "x-owa-key"
_START_S = 10.0
_ANSWER_S = 30.0
_HOP_HEADERS = frozenset({"connection", "transfer-encoding", "date"})
_OWN_HEADERS = frozenset({"host", "content-length", "connection", "accept-encoding"})


class Loopback:
    """Serves an app on a port of 127.0.0.1 from a thread of its own.

    Where it is `guarded` it answers those alone who send its key: an agent on this
    machine could find the port, and what it did there no browser would have seen.
    """

    def __init__(self, app: ASGIApp, port: int = 0, *, guarded: bool = False) -> None:
        self.app = app
        self.key = fresh_bytes().hex() if guarded else ""
        # With IPPROTO_TCP: without it Nagle's algorithm adds 44 ms to every request.
        self._socket = socket.socket(
            socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
        )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._forward,
            interface="asgi3",
            proxy_headers=False,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise InfrastructureFailure(
                    f"The loopback server did not start within {_START_S:.0f} s."
                )
            time.sleep(0.0005)

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.key:
            named = (_KEY.encode(), self.key.encode())
            if named not in scope["headers"]:
                await Response(status_code=HTTPStatus.FORBIDDEN)(scope, receive, send)
                return
            scope = {**scope, "headers": [h for h in scope["headers"] if h != named]}
        await self.app(scope, receive, send)

    def join(self) -> None:
        """Serve until the thread ends."""
        self._thread.join()

    def close(self) -> None:
        """Tell the server to stop; it closes its socket as it goes."""
        self._server.should_exit = True
        self._thread.join(_START_S)


class ForwardingApp:
    """An app that hands every request to a loopback server: the `wire` transport."""

    def __init__(self, server: Loopback) -> None:
        self._port = server.port
        self._key = server.key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the app behind the socket does."""
        body = (await receive()).get("body", b"")
        status, headers, answer = await asyncio.to_thread(self._ask, scope, body)
        await send(
            {"type": "http.response.start", "status": status, "headers": headers}
        )
        await send({"type": "http.response.body", "body": answer})

    def _ask(
        self, scope: Scope, body: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Return status, headers and body of the server's answer."""
        target = scope["raw_path"].decode()
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode()
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._port, timeout=_ANSWER_S
        )
        with contextlib.closing(connection):
            connection.putrequest(
                scope["method"], target, skip_host=True, skip_accept_encoding=True
            )
            connection.putheader("host", scope["server"][0])
            connection.putheader(_KEY, self._key)
            for name, value in scope["headers"]:
                if name.decode() not in _OWN_HEADERS:
                    connection.putheader(name.decode(), value.decode("latin-1"))
            if body:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body or None)
            reply = connection.getresponse()
            headers = [
                (name.lower().encode(), value.encode("latin-1"))
                for name, value in reply.getheaders()
                if name.lower() not in _HOP_HEADERS
            ]
            return reply.status, headers, reply.read()


class LocalhostApp:
    """An app whose sandbox hosts go by names that any browser finds on loopback."""

    def __init__(
        self, app: ASGIApp, port: int, before: Callable[[], None] = lambda: None
    ) -> None:
        self._app = app
        self._port = port
        self._before = before

    def address(self, url: str) -> str:
        """Return where a person finds an address of the sandbox."""
        return re.sub(
            r"https://([\w.-]+)\.test", rf"http://\1.localhost:{self._port}", url
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with every address rewritten; `before` is called first."""
        self._before()
        host = dict(scope["headers"]).get(b"host", b"").decode().partition(":")[0]
        inner = host.removesuffix(".localhost") + ".test"
        headers = [(n, v) for n, v in scope["headers"] if n != b"host"]
        headers.append((b"host", inner.encode()))
        scope = {**scope, "headers": headers, "scheme": "https", "server": (inner, 443)}
        held: list[MutableMapping[str, Any]] = []

        async def keep(message: MutableMapping[str, Any]) -> None:
            held.append(message)

        await self._app(scope, receive, keep)
        body = b"".join(message.get("body", b"") for message in held[1:])
        body = self.address(body.decode("utf-8", "replace")).encode()
        answers = [
            (n, self.address(v.decode("latin-1")).encode("latin-1"))
            for n, v in held[0]["headers"]
            if n != b"content-length"
        ]
        answers = [(n, _plain_cookie(n, v)) for n, v in answers]
        answers.append((b"content-length", str(len(body)).encode()))
        await send({**held[0], "headers": answers})
        await send({"type": "http.response.body", "body": body})


def _plain_cookie(name: bytes, value: bytes) -> bytes:
    """Return a cookie without the demand for https, which loopback does not speak."""
    if name != b"set-cookie":
        return value
    return re.sub(rb";\s*secure", b"", value, flags=re.IGNORECASE)


class HostedSite(NamedTuple):
    """A served site, and the instructions for its visitor."""

    server: Loopback
    site: SiteServer
    address: str
    instructions: str
    clock: "_RealTimeClock"

    @property
    def state(self) -> SiteState:
        """The visit so far at this moment: the server's own stands at its last request.

        Nothing is set, since a request may be under way in the server's thread.
        """
        state = self.site.state
        now_ms = max(self.clock.now_ms, state.now_ms)
        return msgspec.structs.replace(state, now_ms=now_ms)

    def close(self) -> None:
        """Stop serving and release the site."""
        self.server.close()
        self.site.close()


class _RealTimeClock:
    """Lets a site's simulated clock go with the real one, through its timeline."""

    def __init__(self, site: SiteServer, timeline: Timeline) -> None:
        self._site = site
        self._timeline = timeline
        self._clock = SimulatedClock(timeline.starts)
        self._began = time.monotonic()

    @property
    def now_ms(self) -> int:
        """Milliseconds since the site was opened."""
        return round((time.monotonic() - self._began) * 1000)

    def __call__(self) -> None:
        """Bring the site to now."""
        now_ms = self.now_ms
        for index in self._clock.advance(max(0, now_ms - self._clock.now_ms)):
            self._site.enter(self._timeline.worlds[index])
        self._site.at(now_ms)


def host_site(timeline: Timeline, port: int = 0) -> HostedSite:
    """Serve a site on loopback; its clock is the real one, from now on.

    Args:
        timeline: the worlds.
        port: the port on 127.0.0.1, 0 for a free one.

    Returns:
        The served site.
    """
    world: SiteWorld = timeline.worlds[0]
    site = SiteServer(world, instance=timeline.instance)
    server = Loopback(site.app, port)
    clock = _RealTimeClock(site, timeline)
    people = LocalhostApp(site.app, server.port, clock)
    server.app = people
    lines = [world.spec.goal.text, f"Today is {world.spec.today}."]
    lines += [f"{label}: {value}" for label, value in site.credentials]
    address = people.address(site.start_url)
    return HostedSite(server, site, address, "\n".join(lines), clock)
