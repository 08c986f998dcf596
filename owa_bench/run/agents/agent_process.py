"""Connections to agents during one episode, with a deadline on every request.

Every agent plays in a sandboxed process of its own unless the plan says otherwise
(`hosting.py`). AgentRaised and AgentTimeout are for what is the agent's fault,
InfrastructureFailure when the harness cannot start it.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.errors import AgentFailure, AgentRaised
from owa_bench.interfaces import Move
from owa_bench.run.agents.fork_server import IMPORT_DEADLINE_S, ForkServer
from owa_bench.run.agents.hosting import (
    IN_PROCESS,
    MEMORY,
    REMOTE,
    SANDBOXED,
    agent_view,
    sandbox_of,
)
from owa_bench.run.agents.protocol import (
    AgentFactory,
    AgentRequest,
    ResetRequest,
    act_request,
    agent_factory,
    as_move,
    describe,
)
from owa_bench.run.agents.spec import Origin
from owa_bench.run.agents.transports import (
    AgentTransport,
    HttpTransport,
    LocalTransport,
    NoTransport,
    PipeTransport,
)
from owa_bench.sandbox.first_process import ProgramLimits
from owa_bench.sandbox.namespaces import SandboxView
from owa_bench.sandbox.views import joined

_LOG = logging.getLogger(__name__)


class AgentConnection:
    """One agent during one episode; every call has a deadline in seconds.

    `memory_dir` is the agent's folder as the agent sees it, "" if it has none.
    """

    def __init__(self, transport: AgentTransport, memory_dir: str = "") -> None:
        self._transport = transport
        self.memory_dir = memory_dir

    def reset(self, terms: ResetRequest, deadline_s: float) -> None:
        """Begin an episode, or a later session of it.

        Args:
            terms: What the agent is told.
            deadline_s: Seconds it has.
        """
        self._transport.ask(AgentRequest(reset=terms), deadline_s)

    def act(
        self,
        observation: Any,
        info: Mapping[str, Any],
        deadline_s: float,
        *,
        numbers: bool = False,
    ) -> Move:
        """Return the agent's next move, checked.

        Args:
            observation: The env's observation.
            info: Its info.
            deadline_s: Seconds the agent has.
            numbers: Whether a number, or a list of them, is an action too.

        Returns:
            The move.
        """
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


class AgentServices(NamedTuple):
    """What a sandboxed agent reaches beyond its pipes.

    `services` are (port of its loopback, Unix socket outside); `environment` names
    them to it, such as OPENAI_BASE_URL.
    """

    services: tuple[tuple[int, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


class AgentLauncher:
    """Connects the agents of one worker; `client` connects one that plays outside.

    `hidden` are folders that no sandboxed agent sees, wherever they lie.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        *,
        hidden: tuple[str, ...] = (),
        limits: ProgramLimits = ProgramLimits(),  # noqa: B008  a tuple
        client: Callable[[], AgentTransport] | None = None,
    ) -> None:
        self._fork_server = fork_server
        self._hidden = hidden
        self._limits = limits
        self._client = client
        self._factories: dict[Origin, AgentFactory] = {}
        self._unimportable: dict[Origin, AgentFailure] = {}

    def connect(
        self,
        origin: Origin,
        memory: Path | None = None,
        hosting: str = SANDBOXED,
        services: AgentServices = AgentServices(),  # noqa: B008  a tuple
    ) -> AgentConnection:
        """Return a connection to an agent, for one episode.

        Args:
            origin: The agent.
            memory: Its folder; None: it has none.
            hosting: How its process is held, as the plan says (`hosting.HOSTINGS`).
            services: What it reaches besides, in a sandbox.

        Returns:
            The connection; its `memory_dir` is where the agent finds its folder.
        """
        place = "" if memory is None or hosting == REMOTE else str(memory)
        if origin.kind == "http":
            return AgentConnection(HttpTransport(origin.target), place)
        if origin.kind == "client":
            transport = self._client() if self._client else NoTransport()
            return AgentConnection(transport, place)
        if hosting == IN_PROCESS and origin.kind != "command":
            return AgentConnection(LocalTransport(self._factory(origin)), place)
        sandbox = sandbox_of(origin, hosting)
        view = agent_view(origin, sandbox, place, self._hidden)
        if sandbox != "none":
            place = MEMORY if place else view.folder
            added = SandboxView(environment=services.environment, folder=view.folder)
            view = joined(view, added._replace(services=services.services))
        limits = self._limits._replace(folder=MEMORY if place == MEMORY else "")
        process = self._fork_server.start(origin, sandbox, view, limits)
        return AgentConnection(self._imported(origin, PipeTransport(process)), place)

    def _imported(self, origin: Origin, transport: PipeTransport) -> AgentTransport:
        """Return the transport of a process once it has imported the agent."""
        if origin.kind == "command":
            return transport
        try:
            if known := self._unimportable.get(origin):
                raise type(known)(*known.args)
            transport.wait_imported(IMPORT_DEADLINE_S)
        except AgentFailure as failure:
            transport.end()
            self._unimportable[origin] = failure
            raise
        return transport

    def _factory(self, origin: Origin) -> AgentFactory:
        if origin not in self._factories:
            try:
                self._factories[origin] = agent_factory(origin)
            except AgentFailure:
                raise
            except (Exception, SystemExit) as error:
                raise AgentRaised(f"importing the agent: {describe(error)}") from error
        return self._factories[origin]
