"""Connections to agents during one episode, with a deadline on every request.

Every agent plays in a sandboxed process of its own unless the plan says otherwise (`hosting.py`).
AgentRaised and AgentTimeout are for what is the agent's fault, InfrastructureFailure when the
harness cannot start it.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owa_bench.errors import (
    AgentFailure,
    AgentRaised,
    InfrastructureFailure,
    error_line,
    error_record,
)
from owa_bench.hosting.fork_server import IMPORT_DEADLINE_S, AgentProcess, ForkServer
from owa_bench.hosting.fork_template import SandboxName
from owa_bench.hosting.gateway.session import (
    INNER_PORT,
    GatewayRecord,
    GatewaySession,
    ProviderBlame,
)
from owa_bench.hosting.isolation import (
    IN_PROCESS,
    MEMORY,
    REMOTE,
    SANDBOXED,
    agent_view,
    sandbox_of,
)
from owa_bench.hosting.protocol import (
    AgentFactory,
    AgentRequest,
    ResetRequest,
    act_request,
    agent_factory,
    as_move,
)
from owa_bench.hosting.spec import Origin
from owa_bench.hosting.transports import (
    AgentTransport,
    CountsUse,
    LocalTransport,
    NoTransport,
    PipeTransport,
)
from owa_bench.interfaces import Move
from owa_bench.records.events import Resource, fixed
from owa_bench.records.plan import PRIVATE
from owa_bench.sandbox.first_process import ProgramLimits
from owa_bench.sandbox.namespaces import SandboxView
from owa_bench.sandbox.views import joined

if TYPE_CHECKING:
    from owa_bench.hosting.gateway.server import ModelGateway

_LOG = logging.getLogger(__name__)


class AgentConnection:
    """One agent during one episode; every call has a deadline in seconds.

    `memory_dir` is the agent's folder as the agent sees it, "" if it has none; `session` is its own
    at the model gateway.
    """

    def __init__(
        self, transport: AgentTransport, memory_dir: str = "", session: GatewaySession | None = None
    ) -> None:
        self._transport = transport
        self._session = session
        self._cpu_s = 0.0
        self.memory_dir = memory_dir

    def reset(self, terms: ResetRequest, deadline_s: float) -> None:
        """Begin an episode, or a later session of it.

        Args:
            terms: What the agent is told.
            deadline_s: Seconds it has.
        """
        self._transport.ask(AgentRequest(reset=terms), deadline_s)

    def act(
        self, observation: Any, info: Mapping[str, Any], deadline_s: float, *, numbers: bool = False
    ) -> Move:
        """Return the agent's next move, checked.

        Args:
            observation: The env's observation.
            info: Its info.
            deadline_s: Seconds the agent has.
            numbers: Whether a number, or a list of them, is an action too.
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
            self.end()

    def end(self) -> None:
        """End the agent at once; after `close` it does nothing."""
        self._cpu_s += self._transport.end()

    def take_cpu(self, step: int, seat: str) -> list[Resource]:
        """Return what an ended agent used since the last call, if anything.

        That is its CPU seconds and what its transport counted (`CountsUse`).

        Args:
            step: Number of the last action.
            seat: The agent's seat.
        Returns: One event for each meter that is not 0.
        """
        used = {"cpu_s": fixed(self._cpu_s)}
        self._cpu_s = 0.0
        if isinstance(self._transport, CountsUse):
            used |= self._transport.take_use()
        return [
            Resource(step=step, source="harness", role=seat, meter=meter, amount=amount)
            for meter, amount in used.items()
            if amount
        ]

    def provider_blame(self, patience_s: float = 0.0) -> ProviderBlame | None:
        """Return why the model's provider is to blame for the last request, if it is.

        Args:
            patience_s: A request that is open for longer is the provider's lateness; 0: open ones
                are left out.
        """
        return self._session.blame(patience_s) if self._session else None

    @property
    def asked_model(self) -> bool:
        """Whether the agent asked a model through the gateway."""
        return self._session is not None and self._session.requests > 0

    def take_requests(self) -> list[GatewayRecord]:
        """Return what the agent asked of the gateway since the last call."""
        return self._session.take() if self._session else []

    def end_requests(self) -> list[GatewayRecord]:
        """Return the same, and let the agent ask for no more."""
        return self._session.close() if self._session else []


class AgentLauncher:
    """Connects the agents of one worker; `client` connects one that plays outside.

    `hidden` are folders that no sandboxed agent sees, wherever they lie; `variables` what agents
    get of the harness' environment; `private` forks those with a private root.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        *,
        hidden: tuple[str, ...] = (),
        limits: ProgramLimits = ProgramLimits(),  # noqa: B008  a tuple
        client: Callable[[], AgentTransport] | None = None,
        gateway: "ModelGateway | None" = None,
        variables: Mapping[str, str] | None = None,
        private: ForkServer | None = None,
    ) -> None:
        self._private = private
        self._gateway = gateway
        self._variables = variables or {}
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
        scope: str = "",
        root: str = "",
        *,
        hides: bool = False,
    ) -> AgentConnection:
        """Return a connection to an agent, for one episode.

        Args:
            origin: The agent.
            memory: Its folder; None: it has none.
            hosting: How its process is held, as the plan says (`hosting.HOSTINGS`).
            scope: Run, entry, seat and sitting, which part the cache of model replies.
            root: Whose root the sandbox has, as the plan says.
            hides: Whether a model's replies hide what tells of other sessions.
        Returns: The connection; its `memory_dir` is where the agent finds its folder.
        """
        place = "" if memory is None or hosting == REMOTE else str(memory)
        if origin.kind == "http":
            from owa_bench.hosting.http_transport import HttpTransport

            return AgentConnection(HttpTransport(origin.target), place)
        if origin.outside:
            transport = self._client() if self._client else NoTransport()
            return AgentConnection(transport, place)
        session = self._gateway.open(scope, hides=hides) if self._gateway else None
        sandbox = sandbox_of(origin, hosting, root)
        variables = dict(self._variables)
        if self._gateway and session:
            sandboxed = sandbox != "none"
            variables |= self._gateway.environment(session, sandboxed=sandboxed)
        if hosting == IN_PROCESS and origin.kind != "command":
            local = LocalTransport(self._factory(origin), variables)
            return AgentConnection(local, place, session)
        view = agent_view(origin, sandbox, place, self._hidden)
        added = SandboxView(environment=tuple(variables.items()), folder=view.folder)
        if sandbox != "none":
            place = MEMORY if place else view.folder
            if self._gateway:
                service = (INNER_PORT, self._gateway.socket_path)
                added = added._replace(services=(service,))
        view = joined(view, added)
        limits = self._limits._replace(folder=MEMORY if place == MEMORY else "")
        process = self._start(origin, sandbox, view, limits, root)
        transport = self._imported(origin, PipeTransport(process))
        return AgentConnection(transport, place, session)

    def _start(
        self,
        origin: Origin,
        sandbox: SandboxName,
        view: SandboxView,
        limits: ProgramLimits,
        root: str,
    ) -> AgentProcess:
        """Start a process of the agent in the root that the plan says."""
        if root != PRIVATE:
            return self._fork_server.start(origin, sandbox, view, limits)
        if self._private is None or self._private.image is None:
            raise InfrastructureFailure("no image of the root has been made")
        view = view._replace(layers=self._private.image.layers)
        return self._private.start(origin, sandbox, view, limits)

    def model_answers(self, model: str) -> bool:
        """Return whether the model's provider answers a plain request.

        Args:
            model: Its name in the request that failed.
        """
        return self._gateway is not None and self._gateway.answers(model)

    def _imported(self, origin: Origin, transport: PipeTransport) -> AgentTransport:
        """Return the transport of a process once it has imported the agent."""
        if origin.kind == "command":
            return transport
        try:
            if known := self._unimportable.get(origin):
                raise type(known)(str(known), known.record)
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
                words = f"importing the agent: {error_line(error)}"
                raise AgentRaised(words, error_record(error)) from error
        return self._factories[origin]
