"""A worker process: `python -m owa_bench.run.play.worker_process`.

Its standard input brings the bench and then jobs, one JSON line each; its standard
output takes a line for every closed attempt and one for every job done. An empty line
ends it when its jobs are done; the end of the input means that the parent has died, and
ends it at once. It leaves interrupts to its parent.
"""

import contextlib
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import msgspec

from owa_bench.run.play.attempts import Done, WorkItem
from owa_bench.run.play.worker import Worker, WorkerConfig

END = b"\n"


class WorkerMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker tells: it is ready, an attempt closed, a job is done, an error."""

    ready: bool = False
    done: Done | None = None
    job: int | None = None
    error: str | None = None


class MessagePipe:
    """The worker's end of its standard output; whole lines from any thread."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._lock = threading.Lock()

    def tell(self, line: WorkerMessage) -> None:
        """Write one line; a parent that has gone needs none."""
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._output.write(msgspec.json.encode(line) + b"\n")
            self._output.flush()


def main() -> None:
    """Play jobs until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wire = MessagePipe(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # prints of envs stay out of the protocol
    lines = sys.stdin.buffer
    config = msgspec.json.decode(lines.readline(), type=WorkerConfig)
    with (
        Worker(config) as worker,
        ThreadPoolExecutor(config.concurrency) as threads,
    ):
        signal.signal(signal.SIGTERM, lambda *_: _leave(worker))
        wire.tell(WorkerMessage(ready=True))
        for line in lines:
            if line == END:
                return
            job = msgspec.json.decode(line, type=WorkItem)
            threads.submit(_play, worker, job, wire)
        _leave(worker)  # the parent has died, and somebody may resume its run


def _play(worker: Worker, job: WorkItem, wire: MessagePipe) -> None:
    """Play a job and say so; what goes wrong is the parent's to judge."""
    try:
        worker.play(job, lambda done: wire.tell(WorkerMessage(done=done)))
        wire.tell(WorkerMessage(job=job.number))
    except BaseException as error:  # noqa: BLE001  a thread has nobody else to tell
        if not worker.context.stopping.is_set():
            wire.tell(WorkerMessage(error=f"{type(error).__name__}: {error}"))


def _leave(worker: Worker) -> None:
    """Stop at once: agents are killed, what is on disk stays."""
    worker.stop()
    os._exit(1)


if __name__ == "__main__":
    main()
