"""A site over loopback: for the `wire` transport, and for a person's own browser.

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
from collections.abc import MutableMapping
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from owa_bench.errors import InfrastructureFailure

_START_S = 10.0
_ANSWER_S = 30.0
_HOP_HEADERS = frozenset({"connection", "transfer-encoding", "date"})
_OWN_HEADERS = frozenset({"host", "content-length", "connection", "accept-encoding"})


class Loopback:
    """Serves an app on a port of 127.0.0.1 from a thread of its own."""

    def __init__(self, app: ASGIApp, port: int = 0) -> None:
        self.app = app
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
                msg = f"The loopback server did not start within {_START_S:.0f} s."
                raise InfrastructureFailure(msg)
            time.sleep(0.0005)

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def join(self) -> None:
        """Serve until the thread ends."""
        self._thread.join()

    def close(self) -> None:
        """Tell the server to stop; it closes its socket as it goes."""
        self._server.should_exit = True
        self._thread.join(_START_S)


class Forwarding:
    """An app that hands every request to a loopback server: the `wire` transport."""

    def __init__(self, server: Loopback) -> None:
        self._port = server.port

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


class ForPeople:
    """An app whose sandbox hosts go by names that any browser finds on loopback."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._port = port

    def address(self, url: str) -> str:
        """Return where a person finds an address of the sandbox."""
        return re.sub(
            r"https://([\w.-]+)\.test", rf"http://\1.localhost:{self._port}", url
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with every address rewritten."""
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
