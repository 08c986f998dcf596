"""Fork server processes: `python -m owa_bench.run.agents.fork_template FD`.

The root process has imported the package and runs no agent's code. For each agent it
forks a process that imports that agent, and that one forks a fresh process per
episode, which costs milliseconds. Requests are JSON datagrams over a Unix socket with
the pipes attached; each gets one reply. A process whose socket closes kills what it
forked and exits, so no agent outlives its worker.
"""

import contextlib
import ctypes
import gc
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Iterable
from typing import Literal, NoReturn

import msgspec

from owa_bench.run.agents.protocol import AgentFactory, agent_factory, describe, serve
from owa_bench.run.agents.spec import Origin

MESSAGE_BYTES = 1 << 16
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a fork server process: fork one of its kind or an agent, or kill.

    Descriptors attached: for "template" the control socket; for "agent" and "command"
    the pipes of requests, replies and prints.
    """

    verb: Literal["template", "agent", "command", "kill"]
    origin: Origin | None = None
    pid: int = 0
    patience_s: float = 0.0


class ForkReply(msgspec.Struct, frozen=True, kw_only=True):
    """The process a request made, how a killed one had ended, or what went wrong."""

    pid: int = 0
    status: str = ""
    error: str = ""


_REQUEST = msgspec.json.Decoder(ForkRequest)


class ForkTemplate:
    """One fork server process: answers requests until its socket closes."""

    def __init__(self, control: socket.socket, make: AgentFactory | None) -> None:
        self._control = control
        self._make = make
        self._children: set[int] = set()

    def serve_requests(self) -> None:
        """Answer every request; on return every child is dead."""
        try:
            while True:
                data, pipes, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 3)
                if not data:
                    return
                reply = self._reply(_REQUEST.decode(data), pipes)
                close_all(pipes)
                self._control.send(msgspec.json.encode(reply))
        except OSError:  # the worker has exited
            return
        finally:
            for pid in tuple(self._children):
                self._kill(pid)

    def _reply(self, request: ForkRequest, pipes: list[int]) -> ForkReply:
        if request.verb == "kill":
            status = self._kill(request.pid, request.patience_s)
            return ForkReply(pid=request.pid, status=status)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._run_child(request, pipes, parent)
        self._children.add(pid)
        return ForkReply(pid=pid)

    def _run_child(
        self, request: ForkRequest, pipes: list[int], parent: int
    ) -> NoReturn:
        """Run the forked child to its end."""
        status = 1
        try:
            self._control.close()
            os.setsid()
            if sys.platform == "linux":  # be killed when the template dies
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died before the line above
                os._exit(status)
            if request.verb == "template" and request.origin is not None:
                status = run_template(pipes[0], request.origin)
            elif request.verb == "command" and request.origin is not None:
                _exec_command(request.origin, pipes)
            elif self._make is not None:
                status = _run_agent(self._make, pipes)
        finally:
            os._exit(status)

    def _kill(self, pid: int, patience_s: float = 0.0) -> str:
        """Kill a child with its process group; return in words how it had ended.

        The child is reaped last, so its number cannot be another process' by then.
        """
        if pid not in self._children:
            return "was no child"
        self._children.discard(pid)
        until = time.monotonic() + patience_s
        while not (ended := _has_ended(pid)) and time.monotonic() < until:
            time.sleep(0.002)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if not ended:
            return ""
        if code < 0:
            return f"killed by signal {signal.Signals(-code).name}"
        return f"exit code {code}"


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors; those that are closed already are left out."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def run_template(descriptor: int, origin: Origin | None) -> int:
    """Import an agent, report how that went, and answer requests.

    Args:
        descriptor: The control socket.
        origin: The agent to import; None for the root process.

    Returns:
        The exit code.
    """
    control = socket.socket(fileno=descriptor)
    make = None
    reply = ForkReply(pid=os.getpid())
    if origin is not None:
        try:
            make = agent_factory(origin)
        except BaseException as error:  # noqa: BLE001  an import may even exit
            reply = ForkReply(error=describe(error))
    gc.freeze()
    control.send(msgspec.json.encode(reply))
    if not reply.error:
        ForkTemplate(control, make).serve_requests()
    return 0


def _run_agent(make: AgentFactory, pipes: list[int]) -> int:
    """Play one episode over the pipes; what the agent prints goes to the third."""
    requests, replies, prints = pipes
    empty = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((empty, prints, prints)):
        os.dup2(source, target)
    os.close(prints)
    os.close(empty)
    for descriptor in (requests, replies):
        os.set_inheritable(descriptor, False)
    with open(requests, "rb") as reader, open(replies, "wb") as writer:
        serve(make, reader, writer)
    sys.stdout.flush()
    return 0


def _exec_command(origin: Origin, pipes: list[int]) -> NoReturn:
    """Replace this process by the program of a command line."""
    words = shlex.split(origin.target)
    for target, descriptor in enumerate(pipes):
        os.dup2(descriptor, target)
    os.closerange(3, max(*pipes, 64) + 1)
    if origin.folders:
        os.chdir(origin.folders[0])
    os.execvp(words[0], words)  # noqa: S606  the command is what the user asked for


def _has_ended(pid: int) -> bool:
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, flags) is not None


if __name__ == "__main__":
    run_template(int(sys.argv[1]), None)
