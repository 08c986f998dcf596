"""Site over loopback: for the `wire` transport, and for a person's own browser.

A person's browser resolves every name under `localhost` to this machine, so each host of the
sandbox (`harbour.test`) is served as `harbour.localhost`, with the addresses in pages and redirects
rewritten. No grader can be reached there.
"""

import asyncio
import contextlib
import http.client
import re
import time
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from owa_bench.envs.changesurf.server.app import SiteServer
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.records.instance import SimulatedClock, Timeline
from owa_bench.shells.loopback import KEY_HEADER, LoopbackServer

_ANSWER_S = 30.0
_HOP_HEADERS = frozenset({"connection", "transfer-encoding", "date"})
_OWN_HEADERS = frozenset({"host", "content-length", "connection", "accept-encoding"})


class ForwardingApp:
    """An app that hands every request to a loopback server: the `wire` transport."""

    def __init__(self, server: LoopbackServer) -> None:
        self._port = server.port
        self._key = server.key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the app behind the socket does."""
        body = (await receive()).get("body", b"")
        status, headers, answer = await asyncio.to_thread(self._ask, scope, body)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _ask(self, scope: Scope, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Return status, headers and body of the server's answer."""
        target = scope["raw_path"].decode()
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S)
        with contextlib.closing(connection):
            connection.putrequest(
                scope["method"], target, skip_host=True, skip_accept_encoding=True
            )
            connection.putheader("host", scope["server"][0])
            connection.putheader(KEY_HEADER, self._key)
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

    def __init__(self, app: ASGIApp, port: int, before: Callable[[], None] = lambda: None) -> None:
        self._app = app
        self._port = port
        self._before = before

    def address(self, url: str) -> str:
        """Return where a person finds an address of the sandbox."""
        return re.sub(r"https://([\w.-]+)\.test", rf"http://\1.localhost:{self._port}", url)

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

    server: LoopbackServer
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
    Returns: The served site.
    """
    world: SiteWorld = timeline.worlds[0]
    site = SiteServer(world, instance=timeline.instance)
    server = LoopbackServer(site.app, port)
    clock = _RealTimeClock(site, timeline)
    people = LocalhostApp(site.app, server.port, clock)
    server.app = people
    lines = [world.spec.goal.text, f"Today is {world.spec.today}."]
    lines += [f"{label}: {value}" for label, value in site.credentials]
    address = people.address(site.start_url)
    return HostedSite(server, site, address, "\n".join(lines), clock)
