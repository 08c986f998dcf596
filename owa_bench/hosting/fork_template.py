"""Fork server processes: `python -m owa_bench.hosting.fork_template FD`.

The root process has imported the package. For each agent it forks a template: that imports a
registered agent, which the harness has imported too, or else the installed libraries that the
agent's files name. The template forks a fresh process per episode, which enters the sandbox and
imports any other agent there: no code of theirs runs before. Requests are JSON datagrams over a
Unix socket with the pipes attached; each gets one reply. A process whose socket closes kills what
it forked and exits, so no agent outlives its worker.
"""

import contextlib
import functools
import gc
import importlib
import importlib.util
import os
import re
import select
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import msgspec

from owa_bench.errors import error_line
from owa_bench.hosting import images
from owa_bench.hosting.protocol import (
    AgentFactory,
    AgentReply,
    agent_factory,
    failed_reply,
    serve,
    write_line,
)
from owa_bench.hosting.spec import Origin, source_files
from owa_bench.sandbox import first_process, namespaces, process_tree, views
from owa_bench.sandbox.first_process import REASONS, ProcessTerms, ProgramLimits
from owa_bench.sandbox.namespaces import SandboxView

MESSAGE_BYTES = 1 << 17
SandboxName = Literal["none", "namespaces", "bubblewrap", "docker"]
_SIGNAL_BASE = 128
_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+([A-Za-z_][\w.]*)", re.MULTILINE)
# Of these the template imports what an agent's files name; all depend on by us.
_PRELOADED = {
    *("owa_bench", "numpy", "scipy", "httpx", "gymnasium", "msgspec", "torch"),
    *("stable_baselines3", "sb3_contrib", "sklearn", "numba", "pyarrow"),
}
_OF_MODELS = ("owa_bench.agents.solvers.trained", "stable_baselines3", "sb3_contrib")


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a fork server process: fork one of its kind or an agent, or kill.

    Descriptors attached: for "template" the control socket; for "agent" the pipes of requests,
    replies and prints.
    """

    verb: Literal["template", "agent", "kill"]
    origin: Origin | None = None
    sandbox: SandboxName = "none"
    view: SandboxView = SandboxView()
    limits: ProgramLimits = ProgramLimits()
    pid: int = 0
    patience_s: float = 0.0


class ForkReply(msgspec.Struct, frozen=True, kw_only=True):
    """The process a request made, how a killed one had ended, or what went wrong.

    `cpu_s` are seconds of CPU that a killed one and all it started had used.
    """

    pid: int = 0
    status: str = ""
    cpu_s: float = 0.0
    error: str = ""


_REQUEST = msgspec.json.Decoder(ForkRequest)


class _Child(NamedTuple):
    """A process that was forked.

    `first` is the first process of its sandbox, 0 without one; `group` its control group; `held`:
    it began there and cannot leave it, so that the group counts all its CPU time.
    """

    first: int
    group: str | None
    held: bool


class ForkTemplate:
    """One fork server process: answers requests until its socket closes.

    `children` are the processes it forked.
    """

    def __init__(self, control: socket.socket, make: AgentFactory | None) -> None:
        self._control = control
        self._make = make
        self._children: dict[int, _Child] = {}

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
            return self._kill(request.pid, request.patience_s)
        parent, owner = os.getpid(), (os.geteuid(), os.getegid())
        reader, writer = os.pipe()
        group = process_tree.make_group() if request.verb == "agent" else None
        separated = None
        if request.verb == "agent" and request.sandbox == "namespaces":
            lifeline = os.pidfd_open(parent)  # of this process: an agent must not have it
            separated = namespaces.fork_separated(group)
            if separated == 0:
                os.close(reader)
                self._run_separated(request, pipes, writer, lifeline, owner)
            os.close(lifeline)
        pid = os.fork() if separated is None else separated
        if pid == 0:
            os.close(reader)
            self._run_child(request, pipes, parent, writer, group)
        os.close(writer)
        with open(reader) as told:
            lines = told.read().splitlines()
        first = separated or next((int(line) for line in lines if line.isdigit()), 0)
        self._children[pid] = _Child(first, group, held=separated is not None)
        if error := " ".join(line for line in lines if not line.isdigit()):
            self._kill(pid)
            return ForkReply(error=error)
        return ForkReply(pid=pid)

    def _run_separated(
        self,
        request: ForkRequest,
        pipes: list[int],
        told: int,
        lifeline: int,
        owner: tuple[int, int],
    ) -> NoReturn:
        """Run the first process of new namespaces, which this process forked, to its end.

        Args:
            request: What it is to be.
            pipes: Its descriptors.
            told: Takes what went wrong, if anything; closed when it is up.
            lifeline: Becomes readable when the process that forked it dies.
            owner: User and group of the process that forked it.
        """
        try:
            self._control.close()
            os.setsid()
            namespaces.take_separated(*owner)
        except OSError as error:
            os.write(told, f"{error.strerror or error}\n".encode())
            os._exit(1)
        self._run_first(request, pipes, told, lifeline)

    def _run_child(
        self, request: ForkRequest, pipes: list[int], parent: int, told: int, group: str | None
    ) -> NoReturn:
        """Run the forked child to its end.

        Args:
            request: What it is to be.
            pipes: Its descriptors.
            parent: The process that forked it.
            told: Takes a line with the number of the first process in its sandbox, and one with
                what went wrong, if any; closed when it is up.
            group: The control group it enters, if any.
        """
        status = 1
        try:
            self._control.close()
            os.setsid()
            if sys.platform == "linux":
                namespaces.die_with_parent()
            if os.getppid() != parent:  # it died before the line above
                os._exit(status)
            if group is not None:
                process_tree.join(group)
            if request.verb == "template":
                os.close(told)
                status = run_template(pipes[0], request.origin)
            elif request.sandbox == "namespaces":
                status = self._separate(request, pipes, told)
            else:
                os.close(told)
                status = self._program(request, pipes)()
        finally:
            os._exit(status)

    def _separate(self, request: ForkRequest, pipes: list[int], told: int) -> int:
        """Fork the first process of new namespaces; return how it ended."""
        ended, lifeline = os.pipe()
        try:
            namespaces.separate()
            namespaces.die_with_parent()  # what was asked before does not hold now
            first = os.fork()
        except OSError as error:
            os.write(told, f"{error.strerror or error}\n".encode())
            return 1
        if first == 0:
            os.close(lifeline)
            self._run_first(request, pipes, told, ended)
        os.write(told, f"{first}\n".encode())
        close_all((*pipes, told, ended))
        return _exit_code(os.waitpid(first, 0)[1])

    def _run_first(
        self, request: ForkRequest, pipes: list[int], told: int, lifeline: int
    ) -> NoReturn:
        """Enter the sandbox and supervise the agent there."""
        status = 1
        try:
            try:
                namespaces.enter(request.view)
            except OSError as error:
                os.write(told, f"{error.strerror or error}\n".encode())
                os._exit(status)
            namespaces.die_with_parent()
            if select.select([lifeline], [], [], 0)[0]:  # the parent died before
                os._exit(status)
            os.close(lifeline)
            os.close(told)
            services = tuple(
                (port, namespaces.service_socket(port)) for port, _ in request.view.services
            )
            private = bool(request.view.layers)
            terms = ProcessTerms(request.limits, services, private=private)
            status = first_process.supervise(self._program(request, pipes), terms, close=pipes)
        finally:
            os._exit(status)

    def _program(self, request: ForkRequest, pipes: list[int]) -> Callable[[], int]:
        """Return what the agent's process does."""
        origin, make = request.origin, self._make

        def program() -> int:
            if origin is None:
                return 1
            if origin.kind == "command" or request.sandbox in ("bubblewrap", "docker"):
                _exec_command(request, origin, pipes)
            _take_environment(request.view)
            return _run_agent(make, origin, pipes)

        return program

    def _kill(self, pid: int, patience_s: float = 0.0) -> ForkReply:
        """Kill a child with all it started; return in words how it had ended.

        The child is reaped last, so its number cannot be another process' by then. What is killed
        is counted before, what its parents waited for after.
        """
        if pid not in self._children:
            return ForkReply(pid=pid, status="was no child")
        first, group, held = self._children.pop(pid)
        until = time.monotonic() + patience_s
        while not (ended := _has_ended(pid)) and time.monotonic() < until:
            time.sleep(0.002)
        # Of a sandbox none can leave the tree: no other process needs to be looked at.
        members = process_tree.descendants if first else process_tree.process_tree
        alive_s = 0.0
        if group is None or not held:
            alive_s = sum(entry.cpu_s for entry in members(pid).values())
        if first and not ended:  # its parent waits for it, and exits then
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, signal.SIGKILL)
        else:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        words = _ending(_exit_code(status)) if ended else ""
        counted_s = usage.ru_utime + usage.ru_stime
        cpu_s = max(alive_s, counted_s, process_tree.leave(group))
        return ForkReply(pid=pid, status=words, cpu_s=cpu_s)


def _exit_code(status: int) -> int:
    """Return the exit code of a process, 128 + signal if it was killed."""
    code = os.waitstatus_to_exitcode(status)
    return _SIGNAL_BASE - code if code < 0 else code


def _ending(code: int) -> str:
    if code in REASONS:
        return f"killed: {REASONS[code]}"
    names = {number.value: number.name for number in signal.Signals}
    if name := names.get(code - _SIGNAL_BASE):
        return f"killed by signal {name}"
    return f"exit code {code}"


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors; those that are closed already are left out."""
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def run_template(descriptor: int, origin: Origin | None) -> int:
    """Import what an agent's processes share, and answer requests.

    Args:
        descriptor: The control socket.
        origin: The agent; None for the root process.
    Returns: The exit code.
    """
    control = socket.socket(fileno=descriptor)
    process_tree.remove_old_groups()
    make = None
    reply = ForkReply(pid=os.getpid())
    if origin is not None:
        try:
            if origin.kind == "registry":
                make = agent_factory(origin)
            for name in _named_libraries(origin):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001  an import may even exit
            reply = ForkReply(error=error_line(error))
    gc.freeze()
    control.send(msgspec.json.encode(reply))
    if not reply.error:
        ForkTemplate(control, make).serve_requests()
    return 0


def _named_libraries(origin: Origin) -> Iterator[str]:
    """Yield the modules of installed libraries that an agent's files import."""
    names = set(_OF_MODELS if origin.kind == "model" else ())
    for path in source_files(origin):
        with contextlib.suppress(OSError):
            names |= {name.decode() for name in _IMPORT.findall(path.read_bytes())}
    for name in sorted(names):
        top = name.partition(".")[0]
        spec = importlib.util.find_spec(top) if top in _PRELOADED else None
        place = str(Path(spec.origin).parents[1]) if spec and spec.origin else ""
        if place and (top == "owa_bench" or views.is_installed(place)):
            yield name


def _run_agent(make: AgentFactory | None, origin: Origin, pipes: list[int]) -> int:
    """Play one episode over the pipes; what the agent prints goes to the third.

    The first line written says that the agent is imported, or why it cannot be.
    """
    requests, replies, prints = pipes
    empty = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((empty, prints, prints)):
        os.dup2(source, target)
    os.close(prints)
    os.close(empty)
    for descriptor in (requests, replies):
        os.set_inheritable(descriptor, False)
    with open(requests, "rb") as reader, open(replies, "wb") as writer:
        ready = AgentReply()
        try:
            make = make or agent_factory(origin)
        except BaseException as error:  # noqa: BLE001  an import may even exit
            ready = failed_reply(f"importing the agent: {error_line(error)}", error)
        writer.write(write_line(ready))
        writer.flush()
        if make is not None:
            serve(make, reader, writer)
    sys.stdout.flush()
    return 0


def _exec_command(request: ForkRequest, origin: Origin, pipes: list[int]) -> NoReturn:
    """Replace this process by a command line, or by a Python that plays the agent."""
    for target, descriptor in enumerate(pipes):
        os.dup2(descriptor, target)
    os.closerange(3, max(*pipes, 64) + 1)
    words = shlex.split(origin.target)
    if origin.kind != "command":
        text = msgspec.json.encode(origin).decode()
        words = [sys.executable, "-m", "owa_bench.hosting.fork_template", text]
    if request.sandbox == "bubblewrap":
        words = views.bubblewrap_command(words, request.view, request.limits)
    elif request.sandbox == "docker":  # its client needs the harness' own environment
        if images.is_image(origin.target):
            make = functools.partial(images.image_command, origin.target)
        else:
            make = functools.partial(views.docker_command, words)
        words = make(request.view, request.limits)
    else:
        _take_environment(request.view)
        os.chdir(request.view.folder)
    os.execvp(words[0], words)  # noqa: S606  the command is what the user asked for


def _take_environment(view: SandboxView) -> None:
    os.environ.clear()
    os.environ.update(view.environment)


def _has_ended(pid: int) -> bool:
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, flags) is not None


def main(argument: str) -> int:
    """Serve requests over a descriptor, or play the agent of an origin's JSON here."""
    if argument.isdigit():
        return run_template(int(argument), None)
    origin = msgspec.json.decode(argument, type=Origin)
    return _run_agent(None, origin, [os.dup(number) for number in range(3)])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
