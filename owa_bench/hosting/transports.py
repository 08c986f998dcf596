"""Transports: one request to an agent and its reply back, within a deadline.

    PipeTransport    a process forked for the episode, or the program of a command
                     line; in a sandbox unless the plan says otherwise
    HttpTransport    an address; each request is one POST (`http_transport`)
    LocalTransport   this process: fast, and deadlines are only noticed afterwards
    a client's       outside, through `owa-bench serve`
    a person's       outside, through `owa-bench play`
    a reader's       outside, through the files of `owa-bench play --folder`

All raise AgentRaised or AgentTimeout for what is the agent's fault.
"""

import os
import select
import time
from collections.abc import Mapping
from typing import Final, Protocol, runtime_checkable

from owa_bench.errors import (
    RECORD_BYTES,
    AgentRaised,
    AgentTimeout,
    InfrastructureFailure,
    bounded_record,
    error_line,
    error_record,
)
from owa_bench.hosting.fork_server import AgentProcess
from owa_bench.hosting.protocol import (
    AgentFactory,
    AgentReply,
    AgentRequest,
    AgentRunner,
    read_reply,
    write_line,
)

# A process that closed its pipes is given this long to be seen dead, for the reason.
_PATIENCE_S = 0.25
_CHUNK: Final = 1 << 16
# A reply longer than this is nonsense; no move of any suite comes near it.
REPLY_LIMIT: Final = 16 << 20
TAIL_BYTES: Final = 600  # of its prints, in the reason of an episode's end
_PRINTS_BYTES: Final = RECORD_BYTES


class AgentTransport(Protocol):
    """Carries one request to an agent and its reply back."""

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the agent's reply.

        Args:
            request: What the agent is asked.
            deadline_s: Seconds it has.
        Raises:
            AgentTimeout: The reply does not come in time.
            AgentRaised: The agent fails otherwise.
        """

    def end(self) -> float:
        """End the agent at once, whatever it is doing; may be called twice.

        Returns: Seconds of CPU that it used since the last call, as the harness measured them; 0
            where it cannot.
        """


@runtime_checkable
class CountsUse(Protocol):
    """A transport that counts more than the CPU seconds of `end`."""

    def take_use(self) -> Mapping[str, float]:
        """Return amounts by meter since the last call."""


class NoTransport:
    """Transport before any agent has been started."""

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Refuse: nothing is connected.

        Args:
            request: What the agent is asked.
            deadline_s: Seconds it has.
        Returns: The reply.
        """
        raise InfrastructureFailure("no agent has been started")

    def end(self) -> float:
        """End nothing."""
        return 0.0


class LocalTransport:
    """Transport to an agent in this process."""

    def __init__(self, make: AgentFactory, variables: Mapping[str, str] | None = None) -> None:
        self._runner = AgentRunner(make, {**os.environ, **(variables or {})})
        self._cpu_s = 0.0

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the reply; a deadline missed is only noticed afterwards.

        Args:
            request: What the agent is asked.
            deadline_s: Seconds it has.
        """
        begun, begun_cpu = time.monotonic(), time.thread_time()
        try:
            reply = write_line(self._runner.answer(request))
        except (Exception, SystemExit) as error:
            raise AgentRaised(error_line(error), error_record(error)) from error
        finally:
            self._cpu_s += time.thread_time() - begun_cpu
        if time.monotonic() - begun > deadline_s:
            raise late(deadline_s)
        return read_reply(reply)

    def end(self) -> float:
        """Return the CPU seconds of this thread while the agent answered."""
        used_s, self._cpu_s = self._cpu_s, 0.0
        return used_s


class _PipeEnd(AgentRaised):
    """The agent's process closed its side: it died or exited."""


class PipeTransport:
    """Transport to a process of the agent's own, over three pipes.

    What the agent prints goes to the third pipe, so that it cannot stand in the protocol's way; it
    is read while a reply is awaited, and its tail is kept.
    """

    def __init__(self, process: AgentProcess) -> None:
        self._process: AgentProcess | None = process
        self._requests, self._replies, self._prints = process.pipes
        self._prints_open = True
        self._unread = bytearray()
        self._tail = b""
        self._cpu_s = 0.0
        for descriptor in process.pipes:
            os.set_blocking(descriptor, False)

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the reply; an agent whose process died raised.

        Args:
            request: What the agent is asked.
            deadline_s: Seconds it has.
        """
        return self._reply(write_line(request), deadline_s)

    def wait_imported(self, deadline_s: float) -> None:
        """Return when the agent's code is imported.

        Args:
            deadline_s: Seconds that may take.
        Raises:
            AgentRaised: It cannot be imported.
            AgentTimeout: It takes longer.
        """
        try:
            self._reply(b"", deadline_s, "importing the agent ended its process")
        except AgentTimeout as error:
            words = f"importing the agent took more than {deadline_s:g} s"
            raise AgentTimeout(words, error.record) from error

    def _reply(
        self, request: bytes, deadline_s: float, ending: str = "the agent's process ended"
    ) -> AgentReply:
        """Send a line, if any, and return the reply; `ending` says that none comes."""
        if self._process is None:
            raise AgentRaised("the agent's process has ended")
        try:
            return read_reply(self._exchange(request, deadline_s))
        except AgentTimeout as error:
            error.record = self._last_prints()
            raise
        except _PipeEnd as error:
            record = self._last_prints()
            tail = " ".join(self._tail[-TAIL_BYTES:].decode(errors="replace").split())
            status = self._kill(_PATIENCE_S) or "it closed its pipes"
            words = f"; its last words: {tail}" if tail else ""
            raise AgentRaised(f"{ending}: {status}{words}", record) from error

    def end(self) -> float:
        """Kill the process and all it started; return the CPU seconds they used."""
        self._kill()
        used_s, self._cpu_s = self._cpu_s, 0.0
        return used_s

    def _kill(self, patience_s: float = 0.0) -> str:
        """Kill the process; return how it had ended before, if it had."""
        process, self._process = self._process, None
        if process is None:
            return ""
        reply = process.kill(patience_s)
        self._cpu_s += reply.cpu_s
        return reply.status

    def _exchange(self, request: bytes, deadline_s: float) -> bytes:
        """Send a line and return the next one."""
        until = time.monotonic() + deadline_s
        unsent = memoryview(request)
        while (end := self._unread.find(b"\n")) < 0:
            left = until - time.monotonic()
            if left <= 0:
                raise late(deadline_s)
            ready = self._wait(left, sending=bool(unsent))
            if self._requests in ready:
                unsent = unsent[self._send(unsent) :]
            if self._prints in ready:
                self._read_prints()
            if self._replies in ready:
                self._receive()
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _wait(self, left_s: float, *, sending: bool) -> set[int]:
        """Return the descriptors that are ready before the deadline."""
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        if self._prints_open:
            poll.register(self._prints, select.POLLIN)
        if sending:
            poll.register(self._requests, select.POLLOUT)
        return {descriptor for descriptor, _ in poll.poll(left_s * 1000.0 + 1.0)}

    def _send(self, unsent: memoryview) -> int:
        try:
            return os.write(self._requests, unsent[:_CHUNK])
        except BlockingIOError:
            return 0
        except BrokenPipeError as error:
            raise _PipeEnd("the agent's process exited") from error

    def _receive(self) -> None:
        try:
            data = os.read(self._replies, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            raise _PipeEnd("the agent's process exited")
        self._unread += data
        if len(self._unread) > REPLY_LIMIT:
            raise AgentRaised(f"a reply has at most {REPLY_LIMIT} bytes")

    def _read_prints(self) -> None:
        while self._prints_open:
            try:
                data = os.read(self._prints, _CHUNK)
            except BlockingIOError:
                return
            self._prints_open = bool(data)
            self._tail = (self._tail + data)[-_PRINTS_BYTES:]

    def _last_prints(self) -> str:
        """Return what the agent printed last, in whole lines."""
        self._read_prints()
        whole = self._tail
        if len(whole) == _PRINTS_BYTES:  # its first line may have begun before
            whole = whole.partition(b"\n")[2]
        return bounded_record(whole.decode(errors="replace"))


def late(deadline_s: float) -> AgentTimeout:
    """Return the error of an agent that did not answer in these seconds."""
    return AgentTimeout(f"no reply within {deadline_s:g} s")
