"""Runs one command under limits: starts it, feeds it, watches its tree, ends it.

Limits of one process are set by `prlimit` before the command starts, so no code of
ours runs between fork and exec and threads of the harness are safe. Memory and process
count are those of the whole tree, looked at every few milliseconds; `ceiling` bounds
what may happen between two looks.
"""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from owa_bench.errors import MissingPartError
from owa_bench.sandbox import tree
from owa_bench.sandbox.ceiling import ceiling
from owa_bench.sandbox.job import LimitHit, Limits, Result

POLL_S = 0.02
ADDRESS_SPACE_FACTOR = 8  # a backstop between two looks at resident memory
OPEN_FILES = 256
CHUNK = 65536
SIGNAL_BASE = 128
_BY_SIGNAL: Mapping[int, LimitHit] = {
    SIGNAL_BASE + signal.SIGXCPU: "cpu",
    SIGNAL_BASE + signal.SIGXFSZ: "file",
}


def limited(argv: Sequence[str], limits: Limits) -> list[str]:
    """Return `argv` behind the `prlimit` call that sets the limits of a process."""
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
    """Run `argv` in its own session and return how it ended.

    `spare` processes of the tree belong to the backend and are not counted.
    """
    started = time.perf_counter()
    with ceiling(limits.processes + spare) as prefix:
        process = subprocess.Popen(  # noqa: S603  running commands is what this is for
            [*prefix, *limited(argv, limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        watch = _Watch(process, limits, deadline=started + limits.wall_s, spare=spare)
        try:
            limit = watch.follow(stdin)
        finally:
            exit_code, cpu_s = watch.end()
    return Result(
        exit_code=exit_code,
        output=bytes(watch.output[: limits.output]),
        wall_s=time.perf_counter() - started,
        cpu_s=cpu_s,
        limit=limit or _BY_SIGNAL.get(exit_code),
    )


class _Watch:
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
        self._next_look = 0.0
        self._seen: set[int] = {process.pid}
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
            limit = self._broken()
            if limit is not None or (ended and not readers):
                return limit
            if not readers and not writers:
                time.sleep(POLL_S)

    def end(self) -> tuple[int, float]:
        """Kill what is left of the tree; return the exit code and CPU seconds."""
        self._look()
        tree.kill(
            self._seen if self._exit is None else self._seen - {self._process.pid}
        )
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
                shown = SIGNAL_BASE - code if code < 0 else code
                self._exit = (shown, used.ru_utime + used.ru_stime)
        return self._exit is not None

    def _broken(self) -> LimitHit | None:
        """Return the limit that the command breaks now, if any."""
        if len(self.output) > self._limits.output:
            return "output"
        now = time.perf_counter()
        if now > self._deadline:
            return "wall"
        if now < self._next_look:
            return None
        self._next_look = now + POLL_S
        count, memory = self._look()
        if count - self._spare > self._limits.processes:
            return "processes"
        return "memory" if memory > self._limits.memory else None

    def _look(self) -> tuple[int, int]:
        """Return the processes alive in the tree and their resident bytes."""
        entries = tree.below(self._process.pid)
        self._seen = {self._process.pid, *entries}
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
