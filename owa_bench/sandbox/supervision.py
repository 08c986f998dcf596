"""Commands under limits: started, fed, watched with their process trees, ended.

Limits of one process are set by `prlimit` before the command starts, so no code of ours runs
between fork and exec and threads of the harness are safe. Memory and process count are those of the
whole tree, read from /proc every few milliseconds; the work directory is measured in a tenth of the
time at most, and once more at the end.

Between two readings a fork bomb can fill the machine's process table, so there is a ceiling above
the limit: the watcher names the breach, the kernel bounds it. Root gets a control group with
`pids.max`, anybody else `RLIMIT_NPROC`, from which root is exempt. Where root may not make control
groups (most containers) there is only the watcher.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from owa_bench.errors import MissingPartError
from owa_bench.sandbox.first_process import ProgramLimits, folder_fault
from owa_bench.sandbox.job import LimitHit, Limits, Result, SandboxJob
from owa_bench.sandbox.process_tree import deleted_bytes, kill, process_tree

POLL_S = 0.02
DISK_POLL_S = 0.1
DISK_SHARE = 10  # a reading of the work directory takes at most one part in this many
DEEPEST = 64  # folders inside one another in a work directory
ADDRESS_SPACE_FACTOR = 8  # a backstop between two looks at resident memory
OPEN_FILES = 256
# Threads count as tasks: room for a numeric library's pool in each process.
TASKS_PER_PROCESS = 8
HEADROOM = 64
REMOVAL_ATTEMPTS = 100  # of a control group, POLL_S apart
_ENTER = 'echo $$ > "$0" && unset PWD OLDPWD && exec "$@"'
_HIERARCHIES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # v1, v2
CHUNK = 65536
SIGNAL_BASE = 128
_BY_SIGNAL: Mapping[int, LimitHit] = {
    SIGNAL_BASE + signal.SIGXCPU: "cpu",
    SIGNAL_BASE + signal.SIGXFSZ: "file",
}


def with_limits(argv: Sequence[str], limits: Limits) -> list[str]:
    """Return a command that dies with this process, each process of it limited.

    Args:
        argv: The command.
        limits: Of the job.
    Raises: MissingPartError: the machine has no setpriv or prlimit.
    """
    setpriv, prlimit = shutil.which("setpriv"), shutil.which("prlimit")
    if setpriv is None or prlimit is None:
        raise MissingPartError("setpriv or prlimit", "apt-get install util-linux")
    return [
        *(setpriv, "--pdeathsig", "KILL", prlimit),
        f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}",
        f"--as={limits.memory * ADDRESS_SPACE_FACTOR}",
        f"--fsize={limits.file}",
        f"--nofile={OPEN_FILES}",
        "--core=0",
        *argv,
    ]


class Command(NamedTuple):
    """A job as a backend starts it.

    `spare` processes of its tree belong to the backend and are not counted. `inside` returns the
    first process of the sandbox, None until there is one; without it the command itself is the job.
    `contained`: it runs elsewhere, under limits set there.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    spare: int = 0
    pass_fds: tuple[int, ...] = ()
    inside: Callable[[], int | None] | None = None
    contained: bool = False


def run_limited(command: Command, job: SandboxJob) -> Result:
    """Run a command in its own session to its end or its first limit.

    Args:
        command: The job's command as its backend starts it.
        job: Its limits, input and work directory.
    Returns: How it ended.
    """
    with started(command, job, stderr=subprocess.STDOUT) as watcher:
        watcher.follow(watcher.process.stdout, job.stdin)
    return watcher.result()


@contextlib.contextmanager
def started(command: Command, job: SandboxJob, *, stderr: int) -> Iterator["Watcher"]:
    """Start a command under the limits of its job; end it with its tree.

    Args:
        command: The command.
        job: The job.
        stderr: Where its errors go, as for `subprocess.Popen`.
    Yields: Its watcher.
    """
    with contextlib.ExitStack() as stack:
        argv = list(command.argv)
        if not command.contained:
            ceiling = task_ceiling(job.limits.processes + command.spare)
            argv = [*stack.enter_context(ceiling), *with_limits(argv, job.limits)]
        process = subprocess.Popen(  # noqa: S603  running commands is what this is for
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=dict(command.env),
            cwd=command.cwd,
            start_new_session=True,
            pass_fds=command.pass_fds,
        )
        watcher = Watcher(process, command, job)
        try:
            yield watcher
        finally:
            watcher.end()
            watcher.close_pipes()


class Watcher:
    """One running command: its output, its tree and what it has used.

    `deadline` may be moved and `stopping` set by another thread while it follows.
    """

    def __init__(
        self, process: "subprocess.Popen[bytes]", command: Command, job: SandboxJob
    ) -> None:
        self.process = process
        self.output = bytearray()
        self.deadline = time.perf_counter() + job.limits.wall_s
        self.stopping = False
        self._started = time.perf_counter()
        self._wall_s = 0.0
        self._command = command
        self._limits = job.limits
        self._work = job.work
        self._device = job.work.stat().st_dev
        self._next_reading = self._next_disk_reading = 0.0
        self._pids: set[int] = set()
        self._cpu_s = 0.0
        self._exit: tuple[int, float] | None = None
        self._limit: LimitHit | None = None

    def follow(self, source: IO[bytes] | None, stdin: bytes | None, poll_s: float = POLL_S) -> None:
        """Feed and read the command until it ends, breaks a limit or is to stop.

        Args:
            source: The pipe that is read into `output`.
            stdin: Bytes for its standard input; None: that is somebody else's.
            poll_s: Seconds between two readings of its tree.
        """
        sink = None if stdin is None else self.process.stdin
        readers: list[IO[bytes]] = [source] if source else []
        writers: list[IO[bytes]] = [sink] if sink else []
        left = memoryview(stdin or b"")
        if sink:
            os.set_blocking(sink.fileno(), False)
        while not self.stopping:
            ended = self._poll()
            ready, writable, _ = select.select(readers, writers, [], poll_s)
            if writable:
                left = _feed(writable[0], left)
                writers = [] if writable[0].closed else writers
            if ready:
                chunk = os.read(ready[0].fileno(), CHUNK)
                self.output += chunk
                readers = readers if chunk else []
            elif ended:
                return
            self._limit = self._broken_limit(poll_s)
            if self._limit is not None or (ended and not readers):
                return
            if not readers and not writers:
                time.sleep(poll_s)

    def end(self) -> None:
        """Kill what is left of the tree and keep how it ended."""
        if self._wall_s:
            return
        self._read_tree()
        alive = set() if self._exit else {self.process.pid}
        kill(alive | (self._pids - {self.process.pid}))
        while self._exit is None:
            self._poll(block=True)
        if self._limit is None and self._disk_broken():
            self._limit = "disk"
        self._wall_s = time.perf_counter() - self._started

    def drain(self, source: IO[bytes] | None) -> None:
        """Read what the ended command left in a pipe, up to the limit of output."""
        if source is None:
            return
        os.set_blocking(source.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while len(self.output) < self._limits.output:
                chunk = os.read(source.fileno(), CHUNK)
                if not chunk:
                    return
                self.output += chunk

    def close_pipes(self) -> None:
        """Close the command's pipes."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def result(self) -> Result:
        """Return how the command ended; after `end`."""
        exit_code, cpu_s = self._exit or (SIGNAL_BASE + signal.SIGKILL, 0.0)
        return Result(
            exit_code=exit_code,
            output=bytes(self.output[: self._limits.output]),
            wall_s=self._wall_s,
            cpu_s=max(cpu_s, self._cpu_s),
            limit=self._limit or _BY_SIGNAL.get(exit_code),
        )

    def _poll(self, *, block: bool = False) -> bool:
        """Return whether the command has ended; keep its code and CPU time."""
        if self._exit is None:
            flags = 0 if block else os.WNOHANG
            pid, status, used = os.wait4(self.process.pid, flags)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.process.returncode = code
                exit_code = SIGNAL_BASE - code if code < 0 else code
                own = not self._command.contained
                self._exit = (exit_code, own * (used.ru_utime + used.ru_stime))
        return self._exit is not None

    def _broken_limit(self, poll_s: float) -> LimitHit | None:
        """Return the limit that the command breaks now, if any."""
        if len(self.output) > self._limits.output:
            return "output"
        now = time.perf_counter()
        if now > self.deadline:
            return "wall"
        if now < self._next_reading:
            return None
        self._next_reading = now + poll_s
        count, memory = self._read_tree()
        if count - self._command.spare > self._limits.processes:
            return "processes"
        if memory > self._limits.memory:
            return "memory"
        if now < self._next_disk_reading:
            return None
        broken = self._disk_broken()
        cost = time.perf_counter() - now
        self._next_disk_reading = now + max(DISK_POLL_S, DISK_SHARE * cost)
        return "disk" if broken else None

    def _read_tree(self) -> tuple[int, int]:
        """Return the processes alive in the tree and their resident bytes."""
        inside = self._command.inside
        root = inside() if inside else self.process.pid
        entries = process_tree(root) if root else {}
        self._pids = set(entries)
        self._cpu_s = max(self._cpu_s, sum(entry.cpu_s for entry in entries.values()))
        return len(entries), sum(entry.memory for entry in entries.values())

    def _disk_broken(self) -> bool:
        """Return whether the work directory, or what was deleted in it, is too much."""
        quota = ProgramLimits(
            folder_bytes=self._limits.disk,
            folder_entries=self._limits.entries,
            folder_depth=DEEPEST,
        )
        if folder_fault(os.fspath(self._work), quota):
            return True
        return deleted_bytes(self._pids, self._device) > self._limits.disk


def _feed(sink: IO[bytes], left: memoryview) -> memoryview:
    """Write some of `left` to the command; close the pipe when all is written."""
    try:
        left = left[os.write(sink.fileno(), left[:CHUNK]) :] if left else left
    except BlockingIOError:
        return left
    except BrokenPipeError:
        left = left[:0]
    if not left:
        sink.close()
    return left


# --- the ceiling ----------------------------------------------------------------------


@contextlib.contextmanager
def task_ceiling(processes: int) -> Iterator[list[str]]:
    """Yield the command prefix that puts a job under a ceiling; empty if none can be.

    `processes` are those the watcher allows, its backend's own among them.
    """
    tasks = processes * TASKS_PER_PROCESS + HEADROOM
    if os.geteuid() != 0:
        yield _resource_limit(tasks)
        return
    group = _new_group(tasks)
    if group is None:
        yield []
        return
    try:
        yield ["sh", "-c", _ENTER, str(group / "cgroup.procs")]
    finally:
        _remove_group(group)


def _resource_limit(tasks: int) -> list[str]:
    """Return the prefix that sets RLIMIT_NPROC above what the user runs already."""
    prlimit = shutil.which("prlimit")
    running = sum(_threads(entry) for entry in Path("/proc").glob("[0-9]*"))
    return [prlimit, f"--nproc={running + tasks}"] if prlimit else []


def _threads(entry: Path) -> int:
    """Return how many tasks of this user's a /proc entry stands for."""
    try:
        mine = entry.stat().st_uid == os.getuid()
        return len(os.listdir(entry / "task")) if mine else 0
    except OSError:  # it ended meanwhile
        return 0


def _new_group(tasks: int) -> Path | None:
    """Return a new control group of at most `tasks` tasks, None if none can be."""
    for hierarchy in _HIERARCHIES:
        if not (hierarchy / "cgroup.procs").exists():
            continue
        with contextlib.suppress(OSError):
            group = Path(tempfile.mkdtemp(prefix="owa-", dir=hierarchy))
            try:
                (group / "pids.max").write_text(str(tasks))
            except OSError:  # the controller is not enabled here
                group.rmdir()
            else:
                return group
    return None


def _remove_group(group: Path) -> None:
    """Kill what is left in a group and remove it as soon as the kernel allows."""
    for _ in range(REMOVAL_ATTEMPTS):
        with contextlib.suppress(OSError):
            kill(map(int, (group / "cgroup.procs").read_text().split()))
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(POLL_S)
