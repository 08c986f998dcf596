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
from owa_bench.run.agents.agent_spec import Origin
from owa_bench.run.agents.building import AgentFactory, agent_factory
from owa_bench.run.agents.exchange import PipeClosed
from owa_bench.run.agents.fork_server import AgentProcess, ForkServer
from owa_bench.run.agents.protocol import (
    AgentReply,
    AgentRequest,
    ResetRequest,
    act_request,
    as_move,
    read_reply,
    write_reply,
    write_request,
)
from owa_bench.run.agents.remote import HttpExchange
from owa_bench.run.agents.runner import AgentRunner, describe

_LOG = logging.getLogger(__name__)
# A process that closed its pipes is given this long to be seen dead, for the reason.
_PATIENCE_S = 0.25


class Transport(Protocol):
    """Carries one request to an agent and its reply back."""

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the agent's reply."""

    def end(self) -> None:
        """End the agent at once, whatever it is doing; may be called twice."""


class AgentConnection:
    """One agent during one episode; every call has a deadline in seconds."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def reset(self, terms: ResetRequest, deadline_s: float) -> None:
        """Begin an episode, or a later session of it."""
        self._transport.ask(AgentRequest(reset=terms), deadline_s)

    def act(
        self,
        observation: Any,
        info: Mapping[str, Any],
        deadline_s: float,
        *,
        numbers: bool = False,
    ) -> Move:
        """Return the agent's next move, checked; `numbers` may be actions."""
        reply = self._transport.ask(act_request(observation, info), deadline_s)
        return as_move(reply, numbers=numbers)

    def close(self, deadline_s: float) -> None:
        """Let the agent write down what it remembers, then end it.

        The episode has ended by then, so a failure here is logged and changes nothing.
        """
        try:
            self._transport.ask(AgentRequest(close={}), deadline_s)
        except AgentFailure as failure:
            _LOG.warning("an agent failed in close(): %s", failure)
        finally:
            self._transport.end()

    def end(self) -> None:
        """End the agent at once; after `close` it does nothing."""
        self._transport.end()


class NoTransport:
    """The line of an empty seat."""

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Refuse: nobody sits here."""
        raise InfrastructureFailure("no agent has been started")

    def end(self) -> None:
        """End nothing."""


class PipeTransport:
    """A line to a process of the agent's own."""

    def __init__(self, process: AgentProcess) -> None:
        self._process: AgentProcess | None = process

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the reply; an agent whose process died raised."""
        if self._process is None:
            raise AgentRaised("the agent's process has ended")
        try:
            transport = self._process.exchange.ask(write_request(request), deadline_s)
        except PipeClosed as error:
            raise AgentRaised(self._end_reason(self._process)) from error
        return read_reply(transport)

    def end(self) -> None:
        """Kill the process and all it started."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _end_reason(self, process: AgentProcess) -> str:
        """Return how the process ended and its last words, for the reason."""
        tail = process.exchange.tail
        status = process.kill(_PATIENCE_S) or "it closed its pipes"
        self._process = None
        words = f"; its last words: {tail}" if tail else ""
        return f"the agent's process ended: {status}{words}"


class HttpTransport:
    """A line to an agent behind an address."""

    def __init__(self, url: str) -> None:
        self._remote = HttpExchange(url)

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the reply."""
        return read_reply(self._remote.ask(request, deadline_s))

    def end(self) -> None:
        """Close the connection; what the service does then is its own affair."""
        self._remote.close()


class LocalTransport:
    """A line to an agent in this process."""

    def __init__(self, make: AgentFactory) -> None:
        self._runner = AgentRunner(make)

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the reply; a deadline missed is only noticed afterwards."""
        begun = time.monotonic()
        try:
            reply = write_reply(self._runner.answer(request))
        except (Exception, SystemExit) as error:
            raise AgentRaised(describe(error)) from error
        if time.monotonic() - begun > deadline_s:
            raise AgentTimeout(f"no reply within {deadline_s:g} s")
        return read_reply(reply)

    def end(self) -> None:
        """Forget the agent."""


class AgentLauncher:
    """Starts hosts for one worker; `client` seats an agent that plays from outside."""

    def __init__(
        self,
        fork_server: ForkServer,
        *,
        in_process: bool = False,
        client: Callable[[], Transport] | None = None,
    ) -> None:
        self._fork_server = fork_server
        self._in_process = in_process
        self._client = client
        self._factories: dict[Origin, AgentFactory] = {}

    def connect(self, origin: Origin) -> AgentConnection:
        """Return a host for one episode of the agent of `origin`."""
        if origin.kind == "http":
            return AgentConnection(HttpTransport(origin.target))
        if origin.kind == "client":
            return AgentConnection(self._client() if self._client else NoTransport())
        if self._in_process and origin.kind != "command":
            return AgentConnection(LocalTransport(self._factory(origin)))
        return AgentConnection(PipeTransport(self._fork_server.start(origin)))

    def _factory(self, origin: Origin) -> AgentFactory:
        if origin not in self._factories:
            try:
                self._factories[origin] = agent_factory(origin)
            except AgentFailure:
                raise
            except (Exception, SystemExit) as error:
                raise AgentRaised(f"importing the agent: {describe(error)}") from error
        return self._factories[origin]
