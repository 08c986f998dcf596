"""A request and its reply over two pipes, by a deadline; the rest is noise.

The agent's prints go to a third pipe, so they cannot stand in the protocol's way. They
are drained while the reply is awaited and only their tail is kept.
"""

import os
import select
import time
from typing import Final

from owa_bench.errors import AgentRaised, AgentTimeout

_CHUNK: Final = 1 << 16
# A reply longer than this is nonsense; no move of any suite comes near it.
REPLY_LIMIT: Final = 16 << 20
TAIL_BYTES: Final = 600


class PipeClosed(AgentRaised):
    """The agent's process closed its side: it died or left."""


class PipeExchange:
    """The harness' ends of an agent's three pipes."""

    def __init__(self, *, requests: int, replies: int, noise: int) -> None:
        self._requests = requests
        self._replies = replies
        self._noise: int | None = noise
        self._unread = bytearray()
        self._tail = b""
        for descriptor in (requests, replies, noise):
            os.set_blocking(descriptor, False)

    @property
    def tail(self) -> str:
        """The last words of the agent's prints, on one line."""
        self._drain()
        return " ".join(self._tail.decode(errors="replace").split())

    def ask(self, request: bytes, deadline_s: float) -> bytes:
        """Send a line and return the next one.

        Errors: AgentTimeout if it does not come in `deadline_s`; Closed if the agent
        left; AgentRaised if the reply has no end.
        """
        until = time.monotonic() + deadline_s
        unsent = memoryview(request)
        while True:
            line = self._take_line()
            if line is not None:
                return line
            ready = self._wait(until, deadline_s, sending=bool(unsent))
            if self._requests in ready:
                unsent = unsent[self._send(unsent) :]
            if self._noise in ready:
                self._drain()
            if self._replies in ready:
                self._receive()

    def close(self) -> None:
        """Close the harness' ends."""
        for descriptor in (self._requests, self._replies, self._noise):
            if descriptor is not None:
                os.close(descriptor)
        self._noise = None

    def _take_line(self) -> bytes | None:
        end = self._unread.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _wait(self, until: float, deadline_s: float, *, sending: bool) -> set[int]:
        """Return the descriptors that are ready before the deadline."""
        left = until - time.monotonic()
        if left <= 0:
            raise AgentTimeout(f"no reply within {deadline_s:g} s")
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        if self._noise is not None:
            poll.register(self._noise, select.POLLIN)
        if sending:
            poll.register(self._requests, select.POLLOUT)
        return {descriptor for descriptor, _ in poll.poll(left * 1000.0 + 1.0)}

    def _send(self, unsent: memoryview) -> int:
        try:
            return os.write(self._requests, unsent[:_CHUNK])
        except BlockingIOError:
            return 0
        except BrokenPipeError as error:
            raise PipeClosed("the agent's process left") from error

    def _receive(self) -> None:
        try:
            data = os.read(self._replies, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            raise PipeClosed("the agent's process left")
        self._unread += data
        if len(self._unread) > REPLY_LIMIT:
            raise AgentRaised(f"a reply has at most {REPLY_LIMIT} bytes")

    def _drain(self) -> None:
        while self._noise is not None:
            try:
                data = os.read(self._noise, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                os.close(self._noise)
                self._noise = None
                return
            self._tail = (self._tail + data)[-TAIL_BYTES:]
