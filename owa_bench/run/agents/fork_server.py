"""The worker's side of the fork templates: fresh agent processes in milliseconds."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from owa_bench.errors import AgentRaised, AgentTimeout, InfrastructureFailure
from owa_bench.run.agents.agent_spec import Origin
from owa_bench.run.agents.exchange import PipeExchange
from owa_bench.run.agents.fork_template import REQUEST_LIMIT, ForkReply, ForkRequest

# Importing a large library the first time takes tens of seconds on a small machine.
IMPORT_DEADLINE_S = 120.0
_ORDER_DEADLINE_S = 30.0
_REPLY = msgspec.json.Decoder(ForkReply)


class AgentProcess(NamedTuple):
    """An agent process and its pipes."""

    pid: int
    exchange: PipeExchange
    template: "ForkServerClient"

    def kill(self, patience_s: float = 0.0) -> str:
        """Kill the process with all it started; how it had ended before, if it had."""
        status = self.template.kill(self.pid, patience_s)
        self.exchange.close()
        return status


class ForkServerClient:
    """One template process as its worker sees it; orders are taken one at a time."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lock = threading.Lock()

    def request(self, request: ForkRequest, pipes: tuple[int, ...] = ()) -> ForkReply:
        """Return the template's answer; InfrastructureFailure if it is dead."""
        with self._lock:
            try:
                self._control.settimeout(_ORDER_DEADLINE_S)
                socket.send_fds(
                    self._control, [msgspec.json.encode(request)], list(pipes)
                )
                return self._receive()
            except OSError as error:
                raise InfrastructureFailure(
                    f"an agent's fork template does not answer: {error}"
                ) from error

    def greeting(self, deadline_s: float) -> ForkReply:
        """Return the first answer of a new template.

        Errors: AgentTimeout if its import takes longer; AgentRaised if the import
        killed the process.
        """
        self._control.settimeout(deadline_s)
        try:
            return self._receive()
        except TimeoutError as error:
            raise AgentTimeout(
                f"importing the agent took more than {deadline_s:g} s"
            ) from error
        except OSError as error:
            raise AgentRaised("importing the agent ended its process") from error

    def kill(self, pid: int, patience_s: float = 0.0) -> str:
        """Kill a process this template forked; how it had ended before, if it had."""
        request = ForkRequest(verb="kill", pid=pid, patience_s=patience_s)
        try:
            return self.request(request).status
        except InfrastructureFailure:  # the template took its children with it
            return "its fork template died"

    def close(self) -> None:
        """Hang up: the template kills what it forked and leaves."""
        with self._lock:
            self._control.close()

    def _receive(self) -> ForkReply:
        data = self._control.recv(REQUEST_LIMIT)
        if not data:
            raise ConnectionError("the socket is closed")
        return _REPLY.decode(data)


class ForkServer:
    """Everything a worker needs to start agent processes; a context manager."""

    def __init__(self, *, import_deadline_s: float = IMPORT_DEADLINE_S) -> None:
        self._import_deadline_s = import_deadline_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._root: ForkServerClient | None = None
        self._agents: dict[Origin, ForkServerClient | AgentRaised | AgentTimeout] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, origin: Origin) -> AgentProcess:
        """Return a fresh process for one episode of the agent.

        Errors: AgentRaised or AgentTimeout if the agent cannot be imported;
        InfrastructureFailure if no process can be started.
        """
        try:
            return self._start(origin)
        except InfrastructureFailure:
            self._forget(origin)
            return self._start(origin)

    def close(self) -> None:
        """End every template, and with them every agent process."""
        with self._lock:
            for link in self._agents.values():
                if isinstance(link, ForkServerClient):
                    link.close()
            self._agents.clear()
            if self._root is not None:
                self._root.close()
                self._root = None
            if self._process is not None:
                self._process.wait()
                self._process = None

    def _start(self, origin: Origin) -> AgentProcess:
        verb = "command" if origin.kind == "command" else "agent"
        link = self._link(origin)
        theirs, ours = _pipes()
        try:
            answer = link.request(
                ForkRequest(verb=verb, origin=origin),  # type: ignore[arg-type]
                theirs,
            )
        except InfrastructureFailure:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        requests, replies, noise = ours
        exchange = PipeExchange(requests=requests, replies=replies, noise=noise)
        return AgentProcess(answer.pid, exchange, link)

    def _link(self, origin: Origin) -> ForkServerClient:
        """Return the template that forks this agent: commands use the root."""
        with self._lock:
            if origin.kind == "command":
                return self._root_link()
            if origin not in self._agents:
                self._agents[origin] = self._new_template(origin)
            link = self._agents[origin]
        if isinstance(link, ForkServerClient):
            return link
        raise type(link)(*link.args)

    def _new_template(
        self, origin: Origin
    ) -> ForkServerClient | AgentRaised | AgentTimeout:
        """Return a template that has imported the agent, or why there is none."""
        root = self._root_link()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            pid = root.request(
                ForkRequest(verb="template", origin=origin), (theirs.fileno(),)
            ).pid
        link = ForkServerClient(ours)
        try:
            greeting = link.greeting(self._import_deadline_s)
        except (AgentRaised, AgentTimeout) as failure:
            link.close()
            root.kill(pid)
            return failure
        if not greeting.error:
            return link
        link.close()
        root.kill(pid)
        return AgentRaised(f"importing the agent: {greeting.error}")

    def _root_link(self) -> ForkServerClient:
        if self._root is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603  our own module
                    [
                        sys.executable,
                        "-W",
                        "ignore",
                        "-m",
                        "owa_bench.run.agents.fork_template",
                        str(theirs.fileno()),
                    ],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                )
            self._root = ForkServerClient(ours)
            self._root.greeting(self._import_deadline_s)
        return self._root

    def _forget(self, origin: Origin) -> None:
        """Drop templates that no longer answer, so that the next start makes new."""
        with self._lock:
            link = self._agents.pop(origin, None)
            if isinstance(link, ForkServerClient):
                link.close()
            if self._process is not None and self._process.poll() is not None:
                if self._root is not None:
                    self._root.close()
                self._root = self._process = None


def _pipes() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the agent's and the harness' ends of: requests, replies, noise."""
    made: list[int] = []
    try:
        for _ in range(3):
            made += os.pipe()
    except OSError:
        for descriptor in made:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        raise
    theirs = (made[0], made[3], made[5])
    ours = (made[1], made[2], made[4])
    return theirs, ours
