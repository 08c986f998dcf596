"""One command under limits: started, fed, watched with its process tree, ended.

Limits of one process are set by `prlimit` before the command starts, so no code of
ours runs between fork and exec and threads of the harness are safe. Memory and process
count are those of the whole tree, read from /proc every few milliseconds.

Between two readings a fork bomb can fill the machine's process table, so there is a
ceiling above the limit: the watcher names the breach, the kernel bounds it. Root gets a
control group with `pids.max`, anybody else `RLIMIT_NPROC`, from which root is exempt.
Where root may not make control groups (most containers) there is only the watcher.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from owa_bench.errors import MissingPartError
from owa_bench.sandbox.job import LimitHit, Limits, Result

POLL_S = 0.02
ADDRESS_SPACE_FACTOR = 8  # a backstop between two looks at resident memory
OPEN_FILES = 256
PAGE = os.sysconf("SC_PAGE_SIZE")
# Threads count as tasks: room for a numeric library's pool in each process.
TASKS_PER_PROCESS = 8
HEADROOM = 64
REMOVAL_ATTEMPTS = 100  # of a control group, POLL_S apart
_ENTER = 'echo $$ > "$0" && exec "$@"'
_HIERARCHIES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # v1, v2
CHUNK = 65536
SIGNAL_BASE = 128
_BY_SIGNAL: Mapping[int, LimitHit] = {
    SIGNAL_BASE + signal.SIGXCPU: "cpu",
    SIGNAL_BASE + signal.SIGXFSZ: "file",
}


def with_limits(argv: Sequence[str], limits: Limits) -> list[str]:
    """Return a command behind the `prlimit` call that sets the limits of a process.

    Args:
        argv: The command.
        limits: Of the job.
    Returns: The longer command.
    Raises: MissingPartError: the machine has no prlimit.
    """
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        raise MissingPartError("prlimit", "apt-get install util-linux")
    return [
        prlimit,
        f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}",
        f"--as={limits.memory * ADDRESS_SPACE_FACTOR}",
        f"--fsize={limits.file}",
        f"--nofile={OPEN_FILES}",
        "--core=0",
        *argv,
    ]


def run_limited(
    argv: Sequence[str],
    *,
    limits: Limits,
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes,
    spare: int = 0,
    pass_fds: tuple[int, ...] = (),
) -> Result:
    """Run a command in its own session to its end or its first limit.

    Args:
        argv: The command.
        limits: Of the whole process tree.
        env: The command's whole environment.
        cwd: Its working directory.
        stdin: Bytes for its standard input.
        spare: Processes of the tree that belong to the backend and are not counted.
        pass_fds: Descriptors that stay open.
    Returns: How it ended.
    """
    started = time.perf_counter()
    with task_ceiling(limits.processes + spare) as prefix:
        process = subprocess.Popen(  # noqa: S603  running commands is what this is for
            [*prefix, *with_limits(argv, limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        watcher = _Watcher(
            process, limits, deadline=started + limits.wall_s, spare=spare
        )
        try:
            limit = watcher.follow(stdin)
        finally:
            exit_code, cpu_s = watcher.end()
    return Result(
        exit_code=exit_code,
        output=bytes(watcher.output[: limits.output]),
        wall_s=time.perf_counter() - started,
        cpu_s=cpu_s,
        limit=limit or _BY_SIGNAL.get(exit_code),
    )


class _Watcher:
    """One running command: its pipes, its tree and what it has used."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        limits: Limits,
        *,
        deadline: float,
        spare: int,
    ) -> None:
        self._process = process
        self._limits = limits
        self._deadline = deadline
        self._spare = spare
        self._next_reading = 0.0
        self._pids: set[int] = {process.pid}
        self._exit: tuple[int, float] | None = None
        self.output = bytearray()

    def follow(self, stdin: bytes) -> LimitHit | None:
        """Feed and read the command until it ends or breaks a limit; return which."""
        source, sink = self._process.stdout, self._process.stdin
        readers: list[IO[bytes]] = [source] if source else []
        writers: list[IO[bytes]] = [sink] if sink else []
        left = memoryview(stdin)
        if sink:
            os.set_blocking(sink.fileno(), False)
        while True:
            ended = self._poll()
            ready, writable, _ = select.select(readers, writers, [], POLL_S)
            if writable:
                left = _feed(writable[0], left)
                writers = [] if writable[0].closed else writers
            if ready:
                chunk = os.read(ready[0].fileno(), CHUNK)
                self.output += chunk
                readers = readers if chunk else []
            elif ended:
                return None
            limit = self._broken_limit()
            if limit is not None or (ended and not readers):
                return limit
            if not readers and not writers:
                time.sleep(POLL_S)

    def end(self) -> tuple[int, float]:
        """Kill what is left of the tree; return the exit code and CPU seconds."""
        self._read_tree()
        _kill(self._pids if self._exit is None else self._pids - {self._process.pid})
        while self._exit is None:
            self._poll(block=True)
        for pipe in (self._process.stdout, self._process.stdin):
            if pipe is not None and not pipe.closed:
                pipe.close()
        return self._exit

    def _poll(self, *, block: bool = False) -> bool:
        """Return whether the command has ended; keep its code and CPU time."""
        if self._exit is None:
            flags = 0 if block else os.WNOHANG
            pid, status, used = os.wait4(self._process.pid, flags)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self._process.returncode = code
                exit_code = SIGNAL_BASE - code if code < 0 else code
                self._exit = (exit_code, used.ru_utime + used.ru_stime)
        return self._exit is not None

    def _broken_limit(self) -> LimitHit | None:
        """Return the limit that the command breaks now, if any."""
        if len(self.output) > self._limits.output:
            return "output"
        now = time.perf_counter()
        if now > self._deadline:
            return "wall"
        if now < self._next_reading:
            return None
        self._next_reading = now + POLL_S
        count, memory = self._read_tree()
        if count - self._spare > self._limits.processes:
            return "processes"
        return "memory" if memory > self._limits.memory else None

    def _read_tree(self) -> tuple[int, int]:
        """Return the processes alive in the tree and their resident bytes."""
        entries = process_tree(self._process.pid)
        self._pids = {self._process.pid, *entries}
        return len(entries), sum(entry.memory for entry in entries.values())


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


# --- the process tree -----------------------------------------------------------------


class ProcessEntry(NamedTuple):
    """One process: its parent, its session, its resident memory in bytes."""

    parent: int
    session: int
    memory: int


def process_tree(root: int) -> dict[int, ProcessEntry]:
    """Return `root`, its descendants and the members of its session, by pid."""
    everything = dict(_processes())
    tree: dict[int, ProcessEntry] = {}
    grown = {pid: e for pid, e in everything.items() if root in (pid, e.session)}
    while grown:
        tree |= grown
        grown = {
            pid: entry
            for pid, entry in everything.items()
            if entry.parent in tree and pid not in tree
        }
    return tree


def _processes() -> Iterator[tuple[int, ProcessEntry]]:
    """Yield every process of this machine that is not yet dead, by pid."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = Path("/proc", name, "stat").read_text(errors="replace")
            # Behind the name in parentheses: state, parent, group, session, ..
            fields = text[text.rindex(")") + 2 :].split()
            if fields[0] not in "ZX":
                parent, session, pages = (int(fields[i]) for i in (1, 3, 21))
                yield int(name), ProcessEntry(parent, session, pages * PAGE)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


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
            _kill(map(int, (group / "cgroup.procs").read_text().split()))
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(POLL_S)
