"""Fork servers: fresh agent processes in milliseconds; none outlives its worker.

ForkServer         starts agent processes for one worker
ForkServerClient   the connection to one fork server process (`fork_template`)
AgentProcess       one agent process and the worker's ends of its pipes
"""

import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import NamedTuple, Self

import msgspec

from owa_bench.errors import AgentRaised, AgentTimeout, InfrastructureFailure
from owa_bench.hosting.fork_template import (
    MESSAGE_BYTES,
    ForkReply,
    ForkRequest,
    SandboxName,
    close_all,
)
from owa_bench.hosting.spec import Origin
from owa_bench.sandbox.first_process import ProgramLimits
from owa_bench.sandbox.namespaces import SandboxView
from owa_bench.sandbox.root_image import ImageReference
from owa_bench.sandbox.supervision import task_ceiling
from owa_bench.sandbox.views import FIX, PASSED_ON

# Importing a large library the first time takes tens of seconds on a small machine.
IMPORT_DEADLINE_S = 120.0
_REPLY_DEADLINE_S = 30.0
# Of all agents of one worker: far above what they need, below what a machine has.
_PROCESSES = 1024
_REPLY = msgspec.json.Decoder(ForkReply)


class Pipes(NamedTuple):
    """Descriptors of an agent process: requests, replies, and what it prints."""

    requests: int
    replies: int
    prints: int


class AgentProcess(NamedTuple):
    """An agent process, the worker's ends of its pipes, and what forked it."""

    pid: int
    pipes: Pipes
    server: "ForkServerClient"

    def kill(self, patience_s: float = 0.0) -> ForkReply:
        """Kill the process with all it started; return how it had ended, if it had."""
        reply = self.server.kill(self.pid, patience_s)
        close_all(self.pipes)
        return reply


class ForkServerClient:
    """Connection to one fork server process; one request at a time."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._lock = threading.Lock()

    def request(self, request: ForkRequest, descriptors: tuple[int, ...] = ()) -> ForkReply:
        """Send a request and return the reply.

        Args:
            request: What to fork or kill.
            descriptors: Open descriptors the new process gets.
        Returns: The reply of the fork server process.
        Raises: InfrastructureFailure: The process is dead.
        """
        with self._lock:
            try:
                self._control.settimeout(_REPLY_DEADLINE_S)
                data = msgspec.json.encode(request)
                socket.send_fds(self._control, [data], list(descriptors))
                return self._receive()
            except OSError as error:
                raise InfrastructureFailure(
                    f"an agent's fork server does not answer: {error}"
                ) from error

    def wait_ready(self, deadline_s: float) -> ForkReply:
        """Return the first message of a new process: it is ready, or why it is not.

        Raises:
            AgentTimeout: Its imports take longer than `deadline_s`.
            AgentRaised: They ended the process.
        """
        self._control.settimeout(deadline_s)
        try:
            return self._receive()
        except TimeoutError as error:
            raise AgentTimeout(f"importing the agent took more than {deadline_s:g} s") from error
        except OSError as error:
            raise AgentRaised("importing the agent ended its process") from error

    def kill(self, pid: int, patience_s: float = 0.0) -> ForkReply:
        """Kill a process that this server forked, with all it started.

        Args:
            pid: The process.
            patience_s: Seconds to wait for an end that is already under way.
        Returns: How the process had ended before it was killed, "" if it had not, and the seconds
            of CPU that it and its own used.
        """
        request = ForkRequest(verb="kill", pid=pid, patience_s=patience_s)
        try:
            return self.request(request)
        except InfrastructureFailure:  # the server took its children with it
            return ForkReply(pid=pid, status="its fork server died")

    def close(self) -> None:
        """Close the socket: the process kills what it forked and exits."""
        with self._lock:
            self._control.close()

    def _receive(self) -> ForkReply:
        data = self._control.recv(MESSAGE_BYTES)
        if not data:
            raise ConnectionError("the socket is closed")
        return _REPLY.decode(data)


class ForkServer:
    """Starts agent processes for one worker; a context manager.

    With an image its processes see that in place of the machine's shared files.
    """

    def __init__(
        self, image: ImageReference | None = None, *, import_deadline_s: float = IMPORT_DEADLINE_S
    ) -> None:
        self.image = image
        self._import_deadline_s = import_deadline_s
        self._lock = threading.Lock()
        self._ceiling = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._root: ForkServerClient | None = None
        self._agents: dict[Origin, ForkServerClient | AgentRaised | AgentTimeout] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self,
        origin: Origin,
        sandbox: SandboxName = "none",
        view: SandboxView = SandboxView(),  # noqa: B008  a tuple of tuples
        limits: ProgramLimits = ProgramLimits(),  # noqa: B008  the same
    ) -> AgentProcess:
        """Return a fresh process for one episode of the agent.

        Its first line of replies says that the agent's code is imported, or why it cannot be; a
        command line's says nothing of the kind.

        Args:
            origin: The agent.
            sandbox: What holds the process; "none" only takes the environment and the folder of
                `view`.
            view: What it sees.
            limits: What it may use.
        Returns: The process and its pipes.
        Raises:
            AgentRaised: What its processes share cannot be imported.
            AgentTimeout: That takes too long.
            InfrastructureFailure: No process can be started.
        """
        request = ForkRequest(
            verb="agent", origin=origin, sandbox=sandbox, view=view, limits=limits
        )
        try:
            return self._start(request, origin)
        except InfrastructureFailure:
            self._discard(origin)
            return self._start(request, origin)

    def close(self) -> None:
        """End every fork server process, and with them every agent process."""
        with self._lock:
            for client in (*self._agents.values(), self._root):
                if isinstance(client, ForkServerClient):
                    client.close()
            self._agents.clear()
            self._root = None
            if self._process is not None:
                self._process.wait()
                self._process = None
            self._ceiling.close()

    def _start(self, request: ForkRequest, origin: Origin) -> AgentProcess:
        client = self._client(origin)
        theirs, ours = _pipe_pairs()
        try:
            reply = client.request(request, theirs)
        except InfrastructureFailure:
            close_all(ours)
            raise
        finally:
            close_all(theirs)
        if reply.error:
            close_all(ours)
            raise InfrastructureFailure(f"an agent cannot be sandboxed here: {reply.error}. {FIX}.")
        return AgentProcess(reply.pid, ours, client)

    def _client(self, origin: Origin) -> ForkServerClient:
        """Return the server that forks this agent: commands use the root."""
        with self._lock:
            if origin.kind == "command":
                return self._root_client()
            if origin not in self._agents:
                self._agents[origin] = self._import_agent(origin)
            client = self._agents[origin]
        if isinstance(client, ForkServerClient):
            return client
        raise type(client)(*client.args)

    def _import_agent(self, origin: Origin) -> ForkServerClient | AgentRaised | AgentTimeout:
        """Return a server that has imported the agent, or why there is none."""
        root = self._root_client()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            request = ForkRequest(verb="template", origin=origin)
            pid = root.request(request, (theirs.fileno(),)).pid
        client = ForkServerClient(ours)
        failure: AgentRaised | AgentTimeout
        try:
            error = client.wait_ready(self._import_deadline_s).error
            if not error:
                return client
            failure = AgentRaised(f"importing the agent: {error}")
        except (AgentRaised, AgentTimeout) as raised:
            failure = raised
        client.close()
        root.kill(pid)
        return failure

    def _root_client(self) -> ForkServerClient:
        if self._root is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            module, descriptor = "owa_bench.hosting.fork_template", theirs.fileno()
            prefix = self._ceiling.enter_context(task_ceiling(_PROCESSES))
            command = [sys.executable, "-P", "-W", "ignore", "-m", module]
            command.append(str(descriptor))
            if self.image is not None:
                command = self.image.command(command)
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603  our own module
                    [*prefix, *command],
                    pass_fds=(descriptor,),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env=_root_environment(),
                )
            self._root = ForkServerClient(ours)
            self._root.wait_ready(self._import_deadline_s)
        return self._root

    def _discard(self, origin: Origin) -> None:
        """Drop servers that no longer answer, so that the next start makes new ones."""
        with self._lock:
            client = self._agents.pop(origin, None)
            if isinstance(client, ForkServerClient):
                client.close()
            if self._process is not None and self._process.poll() is not None:
                if self._root is not None:
                    self._root.close()
                self._root = self._process = None
                self._ceiling.close()


def _root_environment() -> dict[str, str]:
    """Return what the root process sees: its memory is every agent's at first."""
    names = ("PATH", *PASSED_ON, *(n for n in os.environ if n.startswith("DOCKER_")))
    return {
        **{name: os.environ[name] for name in names if name in os.environ},
        "HOME": "/nonexistent",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def _pipe_pairs() -> tuple[Pipes, Pipes]:
    """Return the agent's and the worker's ends of three pipes."""
    opened: list[int] = []
    try:
        for _ in range(3):
            opened += os.pipe()
    except OSError:
        close_all(opened)
        raise
    return Pipes(opened[0], opened[3], opened[5]), Pipes(opened[1], opened[2], opened[4])
