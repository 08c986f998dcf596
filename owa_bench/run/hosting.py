"""Where an agent lives during one episode, with a deadline on everything it does.

    child     a fresh process forked from a template that has imported the agent
    command   the same, replaced by the program of a command line
    remote    an address that is posted to
    here      the harness' own process: fast, and deadlines are only noticed after
    client    outside, asking for what it wants to see (`owa-bench serve`)

Every host raises AgentRaised or AgentTimeout for what is the agent's fault, and
InfrastructureFailure when the harness cannot start it.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from owa_bench.errors import (
    AgentFailure,
    AgentRaised,
    AgentTimeout,
    InfrastructureFailure,
)
from owa_bench.interfaces import Move
from owa_bench.run.agent_spec import Origin
from owa_bench.run.building import Maker, maker
from owa_bench.run.exchange import Closed
from owa_bench.run.forking import Child, Nursery
from owa_bench.run.messages import (
    Reply,
    Request,
    Reset,
    act_request,
    as_move,
    read_reply,
    write_reply,
    write_request,
)
from owa_bench.run.remote import RemoteLine
from owa_bench.run.serving import Seat, describe

_LOG = logging.getLogger(__name__)
# A process that closed its pipes is given this long to be seen dead, for the reason.
_PATIENCE_S = 0.25


class Line(Protocol):
    """Carries one request to an agent and its reply back."""

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """Return the agent's reply."""

    def end(self) -> None:
        """End the agent at once, whatever it is doing; may be called twice."""


class Host:
    """One agent during one episode; every call has a deadline in seconds."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def reset(self, terms: Reset, deadline_s: float) -> None:
        """Begin an episode, or a later session of it."""
        self._line.ask(Request(reset=terms), deadline_s)

    def act(
        self,
        observation: Any,
        info: Mapping[str, Any],
        deadline_s: float,
        *,
        numbers: bool = False,
    ) -> Move:
        """Return the agent's next move, checked; `numbers` may be actions."""
        reply = self._line.ask(act_request(observation, info), deadline_s)
        return as_move(reply, numbers=numbers)

    def close(self, deadline_s: float) -> None:
        """Let the agent write down what it remembers, then end it.

        The episode has ended by then, so a failure here is logged and changes nothing.
        """
        try:
            self._line.ask(Request(close={}), deadline_s)
        except AgentFailure as failure:
            _LOG.warning("an agent failed in close(): %s", failure)
        finally:
            self._line.end()

    def end(self) -> None:
        """End the agent at once; after `close` it does nothing."""
        self._line.end()


class NoLine:
    """The line of an empty seat."""

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """Refuse: nobody sits here."""
        raise InfrastructureFailure("no agent has been started")

    def end(self) -> None:
        """End nothing."""


class ProcessLine:
    """A line to a process of the agent's own."""

    def __init__(self, child: Child) -> None:
        self._child: Child | None = child

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """Return the reply; an agent whose process died raised."""
        if self._child is None:
            raise AgentRaised("the agent's process has ended")
        try:
            line = self._child.exchange.ask(write_request(request), deadline_s)
        except Closed as error:
            raise AgentRaised(self._obituary(self._child)) from error
        return read_reply(line)

    def end(self) -> None:
        """Kill the process and all it started."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _obituary(self, child: Child) -> str:
        """Return how the process ended and its last words, for the reason."""
        tail = child.exchange.tail
        status = child.kill(_PATIENCE_S) or "it closed its pipes"
        self._child = None
        words = f"; its last words: {tail}" if tail else ""
        return f"the agent's process ended: {status}{words}"


class ServiceLine:
    """A line to an agent behind an address."""

    def __init__(self, url: str) -> None:
        self._remote = RemoteLine(url)

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """Return the reply."""
        return read_reply(self._remote.ask(request, deadline_s))

    def end(self) -> None:
        """Close the connection; what the service does then is its own affair."""
        self._remote.close()


class LocalLine:
    """A line to an agent in this process."""

    def __init__(self, make: Maker) -> None:
        self._seat = Seat(make)

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """Return the reply; a deadline missed is only noticed afterwards."""
        begun = time.monotonic()
        try:
            reply = write_reply(self._seat.answer(request))
        except (Exception, SystemExit) as error:
            raise AgentRaised(describe(error)) from error
        if time.monotonic() - begun > deadline_s:
            raise AgentTimeout(f"no reply within {deadline_s:g} s")
        return read_reply(reply)

    def end(self) -> None:
        """Forget the agent."""


class Hosting:
    """Starts hosts for one worker; `client` seats an agent that plays from outside."""

    def __init__(
        self,
        nursery: Nursery,
        *,
        in_process: bool = False,
        client: Callable[[], Line] | None = None,
    ) -> None:
        self._nursery = nursery
        self._in_process = in_process
        self._client = client
        self._makers: dict[Origin, Maker] = {}

    def seat(self, origin: Origin) -> Host:
        """Return a host for one episode of the agent of `origin`."""
        if origin.kind == "http":
            return Host(ServiceLine(origin.target))
        if origin.kind == "client":
            return Host(self._client() if self._client else NoLine())
        if self._in_process and origin.kind != "command":
            return Host(LocalLine(self._maker(origin)))
        return Host(ProcessLine(self._nursery.start(origin)))

    def _maker(self, origin: Origin) -> Maker:
        if origin not in self._makers:
            try:
                self._makers[origin] = maker(origin)
            except AgentFailure:
                raise
            except (Exception, SystemExit) as error:
                raise AgentRaised(f"importing the agent: {describe(error)}") from error
        return self._makers[origin]
