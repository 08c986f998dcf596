"""Sandbox backends by name: child processes, bubblewrap, Docker.

`ProcessSandbox` is for trusted code: it bounds time, memory, processes, output and disk and passes
on no environment, but the job sees the machine's files and network.

Under the other two the job sees an empty root with its binds read-only, its own /proc, a bare /dev,
an empty /tmp and its work directory at /work. It runs as nobody, without capabilities and without
the right to make further user namespaces.
"""

import abc
import contextlib
import dataclasses
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from owa_bench.errors import InfrastructureFailure, MissingPartError, UnknownNameError
from owa_bench.sandbox.job import Result, SandboxJob
from owa_bench.sandbox.long_lived import PreparedJob, SandboxProcess
from owa_bench.sandbox.namespaces import NOBODY, TMP_BYTES, SandboxView
from owa_bench.sandbox.supervision import (
    HEADROOM,
    OPEN_FILES,
    SIGNAL_BASE,
    TASKS_PER_PROCESS,
    Command,
    run_limited,
)
from owa_bench.sandbox.views import IMAGE, bubblewrap_options, docker_options, make_image

PATH = "/usr/local/bin:/usr/bin:/bin"
WORK = "/work"
_ENVIRONMENT = {"PATH": PATH, "HOME": "/tmp", "PWD": WORK}  # noqa: S108  its own /tmp
NOT_STARTED = 127
KILLED = SIGNAL_BASE + signal.SIGKILL
_STATUS_BYTES = 1 << 16
_INIT = "/run/init"


class Sandbox(Protocol):
    """A place to run a job."""

    name: str

    def run(self, job: SandboxJob) -> Result:
        """Run `job` to its end or its first limit and return how it ended."""

    def open(self, job: SandboxJob) -> SandboxProcess:
        """Start `job` and return it, to be closed by the caller."""


class _Backend(abc.ABC):
    """Running and opening a job that a backend prepares."""

    def run(self, job: SandboxJob) -> Result:
        """Run `job` to its end or its first limit and return how it ended."""
        with self._prepared(job) as (command, checked):
            return checked(run_limited(command, job))

    def open(self, job: SandboxJob) -> SandboxProcess:
        """Start `job` and return it, to be closed by the caller."""
        return SandboxProcess(self._prepared(job), job)

    @abc.abstractmethod
    def _prepared(self, job: SandboxJob) -> AbstractContextManager[PreparedJob]:
        """Hold what the job needs while it runs; yield its command and its check."""


class ProcessSandbox(_Backend):
    """Runs jobs as children of this process: limits alone, no binds, nothing hidden."""

    name = "subprocess"

    @contextlib.contextmanager
    def _prepared(self, job: SandboxJob) -> Iterator[PreparedJob]:
        command = Command(job.argv, env={"PATH": PATH, **job.env}, cwd=job.work)
        yield PreparedJob(command, lambda result: result)


def _view(job: SandboxJob) -> SandboxView:
    """Return what a job sees: its binds, and its work directory as its folder."""
    pairs = [
        (bind.writable, (os.fspath(bind.source), bind.target or str(bind.source)))
        for bind in dict.fromkeys(job.binds)
    ]
    return SandboxView(
        read_only=tuple(pair for writable, pair in pairs if not writable),
        writable=(
            *(pair for writable, pair in pairs if writable),
            (os.path.abspath(job.work), WORK),
        ),
        hidden=job.hidden,
        environment=tuple({**_ENVIRONMENT, **job.env}.items()),
        folder=WORK,
    )


# --- bubblewrap -----------------------------------------------------------------------


class _Status(msgspec.Struct, rename="kebab"):
    """A line of bwrap's status descriptor."""

    child_pid: int | None = None
    exit_code: int | None = None


class BubblewrapSandbox(_Backend):
    """Runs jobs under `bwrap`; MissingPartError when it is not installed."""

    name = "bubblewrap"

    def __init__(self) -> None:
        program = shutil.which("bwrap")
        if program is None:
            raise MissingPartError("bubblewrap", "apt-get install bubblewrap")
        self._program = program

    @contextlib.contextmanager
    def _prepared(self, job: SandboxJob) -> Iterator[PreparedJob]:
        with tempfile.TemporaryFile() as status, tempfile.TemporaryFile() as options:
            # On its command line the job could read this machine's paths in /proc/1.
            alone = ("--as-pid-1",) if job.first else ()
            for option in (*bubblewrap_options(_view(job)), *alone):
                options.write(os.fsencode(option) + b"\0")
            options.seek(0)
            descriptors = (status.fileno(), options.fileno())
            command = Command(
                argv=[
                    self._program,
                    *("--json-status-fd", str(descriptors[0])),
                    *("--args", str(descriptors[1])),
                    "--",
                    *job.argv,
                ],
                env={"PATH": PATH},
                cwd=job.work,
                spare=0 if job.first else 1,  # the first process of the namespace
                pass_fds=descriptors,
                inside=_once(functools.partial(_child_pid, descriptors[0])),
            )
            yield PreparedJob(command, functools.partial(_checked, descriptors[0]))


def _once(function: Callable[[], int | None]) -> Callable[[], int | None]:
    """Return a function that asks another until it has an answer, and keeps that."""
    answers: list[int] = []

    def answer() -> int | None:
        if not answers and (value := function()):
            answers.append(value)
        return answers[0] if answers else None

    return answer


def _statuses(descriptor: int) -> list[_Status]:
    """Return the whole lines of bwrap's status, without moving where it writes."""
    text = os.pread(descriptor, _STATUS_BYTES, 0)
    lines = text[: text.rfind(b"\n") + 1].splitlines()
    return [msgspec.json.decode(line, type=_Status) for line in lines]


def _child_pid(descriptor: int) -> int | None:
    """Return the first process of the namespace as seen from outside."""
    return next((s.child_pid for s in _statuses(descriptor) if s.child_pid), None)


def _checked(descriptor: int, result: Result) -> Result:
    """Return `result`; raise InfrastructureFailure if no sandbox could be built."""
    statuses = _statuses(descriptor)
    killed = result.limit is not None or result.exit_code == KILLED
    if killed or any(s.exit_code is not None for s in statuses):
        return result
    begun = any(s.child_pid is not None for s in statuses)
    if begun and b"execvp" in result.output:
        return dataclasses.replace(result, exit_code=NOT_STARTED)
    reason = result.output.decode(errors="replace").strip()
    raise InfrastructureFailure(
        f"bubblewrap could not build the sandbox: {reason or 'no reason given'}."
        " If user namespaces are forbidden here, allow them with:"
        " sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )


# --- Docker ---------------------------------------------------------------------------


class _State(msgspec.Struct, rename="pascal"):
    """The end of a container, as `docker inspect` tells it."""

    pid: int
    error: str
    exit_code: int
    # Go's spelling
    killed_for_memory: bool = msgspec.field(name="OOMKilled", default=False)


class DockerSandbox(_Backend):
    """Runs jobs in containers of an image of empty folders, on this machine.

    Started by root, a job runs as nobody, and its work directory is nobody's for that time;
    otherwise it runs as this user.
    """

    name = "docker"

    def __init__(self) -> None:
        make_image()
        init = shutil.which("docker-init")
        if init is None:
            raise MissingPartError("docker-init", "apt-get install docker.io")
        self._init = os.path.realpath(init)
        self._program = shutil.which("docker") or "docker"

    @contextlib.contextmanager
    def _prepared(self, job: SandboxJob) -> Iterator[PreparedJob]:
        view = _view(job)
        view = view._replace(read_only=(*view.read_only, (self._init, _INIT)))
        limits = job.limits
        options = docker_options(
            view,
            memory=limits.memory + 2 * TMP_BYTES,  # /tmp and /dev/shm count
            tasks=limits.processes * TASKS_PER_PROCESS + HEADROOM,
        )
        for limit in (
            f"cpu={limits.cpu_s}:{limits.cpu_s + 1}",
            *(f"fsize={limits.file}", f"nofile={OPEN_FILES}", "core=0"),
        ):
            options += ["--ulimit", limit]
        with _given_away(job.work) as user:
            program, *words = job.argv if job.first else (_INIT, "--", *job.argv)
            options += ["--user", user, "--entrypoint", program, IMAGE]
            container = self._docker("create", *options, *words)
            with self._removed(container):
                command = Command(
                    argv=[self._program, *_START, container],
                    env=os.environ,
                    cwd=job.work,
                    spare=0 if job.first else 1,  # docker-init
                    inside=_once(lambda: self._state(container).pid),
                    contained=True,
                )
                yield PreparedJob(command, functools.partial(self._ended, container))

    def _ended(self, container: str, result: Result) -> Result:
        """Return `result`; raise InfrastructureFailure if nothing was started."""
        state = self._state(container)
        if state.error:
            raise InfrastructureFailure(f"Docker could not start a job: {state.error}")
        if result.limit is None and state.killed_for_memory:
            return dataclasses.replace(result, limit="memory")
        return result

    def _state(self, container: str) -> _State:
        text = self._docker("inspect", "--format", "{{json .State}}", container)
        return msgspec.json.decode(text, type=_State)

    @contextlib.contextmanager
    def _removed(self, container: str) -> Iterator[None]:
        """Remove a container at the end, or when this process dies."""
        script = 'read -r _; exec "$0" rm --force --volumes "$1"'
        remover = subprocess.Popen(  # noqa: S603
            ["sh", "-c", script, self._program, container],  # noqa: S607
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            remover.communicate()

    def _docker(self, *words: str) -> str:
        """Return what a docker command prints; InfrastructureFailure if it fails."""
        done = subprocess.run(  # noqa: S603
            [self._program, *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise InfrastructureFailure(f"docker {words[0]}: {done.stderr.strip()}")
        return done.stdout.strip()


_START = ("start", "--attach", "--interactive")


@contextlib.contextmanager
def _given_away(work: Path) -> Iterator[str]:
    """Yield the user of a container; root's work directory is nobody's meanwhile."""
    if os.geteuid() != 0:
        yield f"{os.getuid()}:{os.getgid()}"
        return
    owner = work.stat()
    _change_owner(work, NOBODY, NOBODY)
    try:
        yield f"{NOBODY}:{NOBODY}"
    finally:
        _change_owner(work, owner.st_uid, owner.st_gid)


def _change_owner(work: Path, user: int, group: int) -> None:
    os.chown(work, user, group)
    for folder, names, files in os.walk(work):
        for name in (*names, *files):
            os.chown(os.path.join(folder, name), user, group, follow_symlinks=False)


# --- by name --------------------------------------------------------------------------

BACKENDS: Mapping[str, Callable[[], Sandbox]] = {
    ProcessSandbox.name: ProcessSandbox,
    BubblewrapSandbox.name: BubblewrapSandbox,
    DockerSandbox.name: DockerSandbox,
}


def get(name: str) -> Sandbox:
    """Return the backend `name`; MissingPartError when the machine lacks it."""
    if name not in BACKENDS:
        raise UnknownNameError("sandbox", name, BACKENDS)
    return BACKENDS[name]()
