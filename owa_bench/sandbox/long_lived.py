"""Long-lived jobs: a process with pipes and a loopback, watched until it is closed."""

import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from socket import create_connection, socket
from typing import IO, NamedTuple, Self

from owa_bench.sandbox.job import Result, SandboxJob
from owa_bench.sandbox.loopback import SandboxLoopback
from owa_bench.sandbox.supervision import POLL_S, Command, started

WATCH_S = 0.1


class PreparedJob(NamedTuple):
    """A job that a backend is ready to start, and its check of how the job ended."""

    command: Command
    checked: Callable[[Result], Result]


class SandboxProcess:
    """A job that lives until it ends, breaks a limit, goes unused or is closed.

    `limits.wall_s` counts from its last use: an access of `stdin` or `stdout`, or a connection.
    Standard error becomes `Result.output`; `job.stdin` is not used. The job dies with the thread
    that opens it.
    """

    def __init__(self, prepared: AbstractContextManager[PreparedJob], job: SandboxJob) -> None:
        self._job = job
        with ExitStack() as stack:
            self._command, self._checked = stack.enter_context(prepared)
            self._watcher = stack.enter_context(started(self._command, job, stderr=subprocess.PIPE))
            self._resources = stack.pop_all()
        self._loopback: SandboxLoopback | None = None
        self._result: Result | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def stdin(self) -> IO[bytes]:
        """The job's standard input; buffered, so flush it."""
        self._use()
        assert self._watcher.process.stdin is not None  # noqa: S101  a pipe was asked for
        return self._watcher.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The job's standard output."""
        self._use()
        assert self._watcher.process.stdout is not None  # noqa: S101  a pipe was asked for
        return self._watcher.process.stdout

    @property
    def alive(self) -> bool:
        """Whether the job runs."""
        return self._thread.is_alive()

    def connect(self, port: int, deadline_s: float = 5.0) -> socket:
        """Return a connection to a port of the job's loopback, once it listens there.

        A job under `subprocess` has this machine's loopback, any other its own.

        Args:
            port: The port.
            deadline_s: Seconds to wait for it.
        Raises:
            ConnectionRefusedError: Nothing listens there by then.
            PermissionError: This process may not enter the job's network namespace; let the job
                listen on a Unix socket in its work directory.
        """
        until = time.perf_counter() + deadline_s
        while True:
            self._use()
            try:
                return self._connection(port)
            except ConnectionRefusedError as error:
                if time.perf_counter() > until or not self.alive:
                    raise ConnectionRefusedError(
                        f"nothing listens on port {port} of the job in {deadline_s} s"
                    ) from error
                time.sleep(POLL_S)

    def close(self) -> Result:
        """Kill the job with everything it started and return how it ended.

        Its `limit` is the one that ended it before, None if none did.

        Raises: InfrastructureFailure: No sandbox could be built.
        """
        if self._result is None:
            self._watcher.stopping = True
            self._thread.join()
            with self._resources:
                if self._loopback is not None:
                    self._loopback.close()
                self._result = self._checked(self._watcher.result())
        return self._result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connection(self, port: int) -> socket:
        if self._command.inside is None:
            return create_connection(("127.0.0.1", port))
        if self._loopback is None:
            pid = self._command.inside()
            if pid is None:
                raise ConnectionRefusedError("the sandbox is not built yet")
            self._loopback = SandboxLoopback(pid)
        return self._loopback.connect(port)

    def _use(self) -> None:
        self._watcher.deadline = time.perf_counter() + self._job.limits.wall_s

    def _follow(self) -> None:
        try:
            self._watcher.follow(self._watcher.process.stderr, None, WATCH_S)
        finally:
            self._watcher.end()
            self._watcher.drain(self._watcher.process.stderr)
