"""Worker processes on this machine, which write to the run directory themselves."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_messages

import msgspec

from owa_bench.run.plan.budget import RunTally
from owa_bench.run.play.executors import OnDone, WorkerLink, WorkerPool
from owa_bench.run.play.work_items import WorkItem
from owa_bench.run.play.worker import END, WorkerConfig, WorkerMessage

_MESSAGE = msgspec.json.Decoder(WorkerMessage)


def play_in_workers(
    items: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    *,
    workers: int,
    lock: int,
) -> bool:
    """Play every item in worker processes (an `Executor`).

    Args:
        items: What to play.
        config: The configuration of the first worker.
        tally: What the run has used so far.
        on_done: Called for every closed attempt.
        workers: Number of processes.
        lock: Descriptor of the run's lock. Workers hold it too, so that a run is not
            resumed while a worker of a killed parent still writes.

    Returns:
        Whether a worker died.

    Raises:
        InfrastructureFailure: A worker reports one, or none can work.
    """
    pool = WorkerPool(items, config, tally, on_done, ProcessHosts(lock))
    pool.play(workers)
    return pool.deaths > 0


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """One worker process and the connection to it."""

    process: subprocess.Popen[bytes]
    connection: Connection
    lost: bool = False

    def give(self, item: WorkItem) -> None:
        """Send an item."""
        self._send(msgspec.json.encode(item))

    def finish(self) -> None:
        """Tell the process to end."""
        self._send(END)

    def receive(self) -> tuple[WorkerMessage]:
        """Return the next message.

        Raises:
            EOFError: The process has died.
        """
        try:
            return (_MESSAGE.decode(self.connection.recv_bytes()),)
        except OSError as error:
            raise EOFError from error

    def stop(self) -> None:
        """End the process at once."""
        self.process.terminate()
        self.connection.close()

    def wait(self) -> str:
        """Wait for the process; return its exit code in words, "" for 0."""
        code = self.process.wait()
        self.connection.close()
        if code == -signal.SIGKILL:
            return "SIGKILL: perhaps memory ran out; fewer --workers need less"
        return f"exit code {code}" if code else ""

    def _send(self, message: bytes) -> None:
        """Send a message; a dead process is noticed when it is read from."""
        with contextlib.suppress(OSError):
            self.connection.send_bytes(message)


class ProcessHosts:
    """This machine; `lock` is the descriptor of the run's lock."""

    def __init__(self, lock: int) -> None:
        self._lock = lock

    def start(self, config: WorkerConfig) -> WorkerProcess:
        """Start a worker process.

        Args:
            config: Its configuration.

        Returns:
            The process.
        """
        ours, theirs = multiprocessing.Pipe()
        descriptor = theirs.fileno()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own module
                [sys.executable, "-m", "owa_bench.run.play.worker", str(descriptor)],
                stdin=subprocess.DEVNULL,
                pass_fds=(descriptor, self._lock),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        worker = WorkerProcess(process, ours)
        with contextlib.suppress(OSError):
            ours.send_bytes(msgspec.json.encode(config))
        return worker

    def wait(self, links: Collection[WorkerLink]) -> list[WorkerLink]:
        """Wait for messages; return the workers that have some, or have died.

        Args:
            links: The workers.

        Returns:
            Some of them.
        """
        by_connection = {
            link.connection: link for link in links if isinstance(link, WorkerProcess)
        }
        ready = wait_for_messages(list(by_connection))
        return [by_connection[each] for each in ready if isinstance(each, Connection)]
