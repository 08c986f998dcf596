"""Processes that fork agents: `python -m owa_bench.run.agents.fork_template FD`.

The root template has imported the package and runs no agent's code. For each agent it
forks a template that imports that agent, and that one forks a fresh process per
episode, which costs milliseconds. Orders come as JSON datagrams over a Unix socket with
the pipes attached; each gets one answer. A template whose socket closes kills what it
forked and leaves, so no agent outlives its worker.
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
from typing import Literal, NoReturn

import msgspec

from owa_bench.run.agents.agent_spec import Origin
from owa_bench.run.agents.building import AgentFactory, agent_factory
from owa_bench.run.agents.runner import describe, serve

REQUEST_LIMIT = 1 << 16
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a template is asked: fork a template or an episode, or kill a process.

    The pipes attached: "template": the control socket; "agent" and "command":
    requests, replies, noise.
    """

    verb: Literal["template", "agent", "command", "kill"]
    origin: Origin | None = None
    pid: int = 0
    patience_s: float = 0.0


class ForkReply(msgspec.Struct, frozen=True, kw_only=True):
    """The process an order made, how a killed one had ended, or what went wrong."""

    pid: int = 0
    status: str = ""
    error: str = ""


_REQUEST = msgspec.json.Decoder(ForkRequest)


class ForkTemplate:
    """One template process: obeys orders until its socket closes."""

    def __init__(self, control: socket.socket, make: AgentFactory | None) -> None:
        self._control = control
        self._make = make
        self._children: set[int] = set()

    def serve_requests(self) -> None:
        """Answer every order; on return, every child is dead."""
        try:
            while True:
                data, pipes, _, _ = socket.recv_fds(self._control, REQUEST_LIMIT, 3)
                if not data:
                    return
                answer = self._answer(_REQUEST.decode(data), pipes)
                for descriptor in pipes:
                    os.close(descriptor)
                self._control.send(msgspec.json.encode(answer))
        except OSError:  # the worker has gone
            return
        finally:
            for pid in tuple(self._children):
                self._kill(pid)

    def _answer(self, request: ForkRequest, pipes: list[int]) -> ForkReply:
        if request.verb == "kill":
            status = self._kill(request.pid, request.patience_s)
            return ForkReply(pid=request.pid, status=status)
        pid = os.fork()
        if pid == 0:
            self._live(request, pipes)
        self._children.add(pid)
        return ForkReply(pid=pid)

    def _live(self, request: ForkRequest, pipes: list[int]) -> NoReturn:
        """Be the forked child, to its end."""
        status = 1
        try:
            self._control.close()
            os.setsid()
            _die_with_parent()
            if request.verb == "template" and request.origin is not None:
                status = run_template(pipes[0], request.origin)
            elif request.verb == "command" and request.origin is not None:
                _become(request.origin, pipes)
            elif self._make is not None:
                status = _play(self._make, pipes)
        finally:
            os._exit(status)

    def _kill(self, pid: int, patience_s: float = 0.0) -> str:
        """Kill a child with all it started; return in words how it had ended.

        It is not reaped before, so its number cannot be another process' by then.
        `patience_s` is how long an end already under way is waited for.
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
        return _in_words(status) if ended else ""


def run_template(descriptor: int, origin: Origin | None) -> int:
    """Import the agent of `origin` if there is one, say how it went, obey orders."""
    control = socket.socket(fileno=descriptor)
    make = None
    answer = ForkReply(pid=os.getpid())
    if origin is not None:
        try:
            make = agent_factory(origin)
        except BaseException as error:  # noqa: BLE001  an import may even exit
            answer = ForkReply(error=describe(error))
    gc.freeze()
    control.send(msgspec.json.encode(answer))
    if not answer.error:
        ForkTemplate(control, make).serve_requests()
    return 0


def _play(make: AgentFactory, pipes: list[int]) -> int:
    """Play one episode over the pipes; prints go to the third."""
    requests, replies, noise = pipes
    _silence(noise)
    for descriptor in (requests, replies):
        os.set_inheritable(descriptor, False)
    with open(requests, "rb") as reader, open(replies, "wb") as writer:
        serve(make, reader, writer)
    sys.stdout.flush()
    return 0


def _silence(noise: int) -> None:
    """Point the standard streams away from the protocol."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(noise, 1)
    os.dup2(noise, 2)
    os.close(noise)
    os.close(empty)


def _become(origin: Origin, pipes: list[int]) -> NoReturn:
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


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its template dies; elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _in_words(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"killed by signal {signal.Signals(-code).name}"
    return f"exit code {code}"


if __name__ == "__main__":
    run_template(int(sys.argv[1]), None)
