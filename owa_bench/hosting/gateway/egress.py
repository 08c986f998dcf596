"""Egress proxy: tunnels (CONNECT) to the hosts of a list, with their bytes counted."""

import asyncio
import base64
import contextlib
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from owa_bench.hosting.gateway.session import GatewaySession, Tunnel

FindSession = Callable[[str], GatewaySession | None]
_VERB = b"CONNECT "
_HEAD_BYTES = 8_192
_CONNECT_S = 10.0
_CHUNK = 1 << 16


def connect_protocol(find: FindSession, allowed: frozenset[str]) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol, with connections that begin with CONNECT apart.

    Args:
        find: Returns the session of a token.
        allowed: "host:port" of the hosts that may be reached.
    Returns: The class, for `uvicorn.Config(http=..)`.
    """

    class ConnectProtocol(H11Protocol):
        _start: bytes | None = b""

        def data_received(self, data: bytes) -> None:
            if self._start is None:
                super().data_received(data)
                return
            start = self._start = self._start + data
            if start.startswith(_VERB):
                self._hand_over(start)
            elif not _VERB.startswith(start):
                self._start = None
                super().data_received(start)

        def _hand_over(self, start: bytes) -> None:
            self._start = None
            self.connections.discard(self)
            reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader)
            self.transport.set_protocol(protocol)
            protocol.connection_made(self.transport)
            reader.feed_data(start)
            writer = asyncio.StreamWriter(self.transport, protocol, reader, self.loop)
            task = self.loop.create_task(_serve(reader, writer, find, allowed))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    return ConnectProtocol


async def _serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    find: FindSession,
    allowed: frozenset[str],
) -> None:
    """Answer one CONNECT request."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _CONNECT_S)
        except (TimeoutError, asyncio.LimitOverrunError):
            return writer.close()
        host = head[len(_VERB) :].split(b" ")[0].decode("latin-1").lower()
        session = find(_token(head))
        if session is None:
            return await _refuse(writer, "407 Proxy Authentication Required")
        tunnel = Tunnel(host=host, refused=host not in allowed)
        session.begin(tunnel)
        try:
            if tunnel.refused:
                return await _refuse(writer, "403 Forbidden")
            await _tunnel(reader, writer, tunnel)
        finally:
            session.end(tunnel)
    return None


def _token(head: bytes) -> str:
    """Return the password of the Proxy-Authorization header, "" without one."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"proxy-authorization":
            with contextlib.suppress(ValueError):
                coded = value.strip().rpartition(b" ")[2]
                return base64.b64decode(coded).rpartition(b":")[2].decode()
    return ""


async def _refuse(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
    await writer.drain()
    writer.close()


async def _tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tunnel: Tunnel
) -> None:
    """Connect to the host and pass bytes both ways until either side closes."""
    name, _, port = tunnel.host.rpartition(":")
    try:
        far_reader, far_writer = await asyncio.wait_for(
            asyncio.open_connection(name.strip("[]"), int(port)), _CONNECT_S
        )
    except (OSError, TimeoutError):
        return await _refuse(writer, "502 Bad Gateway")
    writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")

    async def pass_on(source: Any, sink: Any, counter: str) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                setattr(tunnel, counter, getattr(tunnel, counter) + len(data))
                sink.write(data)
                await sink.drain()
            if sink.can_write_eof():
                sink.write_eof()

    try:
        await asyncio.gather(
            pass_on(reader, far_writer, "sent"), pass_on(far_reader, writer, "received")
        )
    finally:
        far_writer.close()
        writer.close()
    return None
