"""Executors: play work items in this process or in worker processes, with threads.

Episodes do not know of each other (lanes apart, which one thread plays whole), so the
traces are the same whatever the number of workers and threads. A worker process that
dies takes its open attempts with it: they stay unfinished, and another worker plays
them again.
"""

import contextlib
import logging
import multiprocessing
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_messages

import msgspec

from owa_bench.errors import InfrastructureFailure
from owa_bench.run.agents.transports import AgentTransport
from owa_bench.run.plan.budget import RunTally
from owa_bench.run.play.loop import AttemptResult
from owa_bench.run.play.worker import END, Worker, WorkerConfig, WorkerMessage, WorkItem

_LOG = logging.getLogger(__name__)
OnDone = Callable[[AttemptResult], None]
# Workers that die one after the other before they are ready: the machine's fault.
MAX_STARTUP_FAILURES = 3
_MESSAGE = msgspec.json.Decoder(WorkerMessage)


def play_here(
    items: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    client: Callable[[], AgentTransport] | None = None,
) -> None:
    """Play every item in this process; what stops it leaves open attempts unfinished.

    Args:
        items: What to play.
        config: The worker's configuration.
        tally: What the run has used so far.
        on_done: Called for every closed attempt, from this thread.
        client: Connects agents that play from outside.
    """
    with Worker(config, client) as worker:
        if config.concurrency > 1:
            _play_in_threads(worker, deque(items), config.concurrency, tally, on_done)
            return
        for item in items:
            worker.play(_with_spent(item, tally), on_done)


def play_in_workers(
    items: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    *,
    workers: int,
    lock: int,
) -> bool:
    """Play every item in worker processes.

    Args:
        items: What to play.
        config: The configuration of the first worker; others get shards of their own.
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
    pool = WorkerPool(config, deque(items), tally, on_done, lock)
    try:
        pool.play(workers)
    finally:
        pool.shutdown()
    return pool.deaths > 0


def _play_in_threads(
    worker: Worker,
    items: deque[WorkItem],
    threads: int,
    tally: RunTally,
    on_done: OnDone,
) -> None:
    """Play items in threads, and report from this one."""
    results: deque[AttemptResult] = deque()
    running: set[Future[None]] = set()
    pool = ThreadPoolExecutor(threads)
    try:
        while items or running:
            while items and len(running) < threads:
                item = _with_spent(items.popleft(), tally)
                running.add(pool.submit(worker.play, item, results.append))
            ended, running = wait(running, return_when=FIRST_COMPLETED, timeout=0.5)
            while results:
                on_done(results.popleft())
            for future in ended:
                future.result()
    except BaseException:
        worker.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _with_spent(item: WorkItem, tally: RunTally) -> WorkItem:
    return msgspec.structs.replace(item, spent=dict(tally.spent))


@dataclass(slots=True, eq=False)
class _WorkerProcess:
    """One worker process and the items it was given."""

    process: subprocess.Popen[bytes]
    connection: Connection
    items: dict[int, WorkItem] = field(default_factory=dict)
    ready: bool = False

    def send(self, message: bytes) -> None:
        """Send a message; a dead worker is noticed when it is read from."""
        with contextlib.suppress(OSError):
            self.connection.send_bytes(message)


class WorkerPool:
    """The worker processes of a run and the items that wait."""

    def __init__(
        self,
        config: WorkerConfig,
        items: deque[WorkItem],
        tally: RunTally,
        on_done: OnDone,
        lock: int,
    ) -> None:
        self.deaths = 0
        self._config = config
        self._items = items
        self._tally = tally
        self._on_done = on_done
        self._lock = lock
        self._shard = config.shard
        self._startup_failures = 0
        self._workers: dict[Connection, _WorkerProcess] = {}

    def play(self, workers: int) -> None:
        """Return when every item is done."""
        for _ in range(min(workers, max(1, len(self._items)))):
            self.start_worker()
        while self._items or any(worker.items for worker in self._workers.values()):
            self.dispatch()
            for connection in wait_for_messages(list(self._workers)):
                if isinstance(connection, Connection):
                    self.read(self._workers[connection])

    def start_worker(self) -> None:
        """Start a worker process with a shard of its own."""
        ours, theirs = multiprocessing.Pipe()
        descriptor = theirs.fileno()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own module
                [sys.executable, "-m", "owa_bench.run.play.worker", str(descriptor)],
                stdin=subprocess.DEVNULL,
                pass_fds=(descriptor, self._lock),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        worker = self._workers[ours] = _WorkerProcess(process, ours)
        config = msgspec.structs.replace(self._config, shard=self._shard)
        worker.send(msgspec.json.encode(config))
        self._shard += 1

    def dispatch(self) -> None:
        """Give waiting items to workers with a free thread, one each in turn."""
        for _ in range(self._config.concurrency):
            for worker in self._workers.values():
                if self._items and len(worker.items) < self._config.concurrency:
                    item = _with_spent(self._items.popleft(), self._tally)
                    worker.items[item.number] = item
                    worker.send(msgspec.json.encode(item))

    def read(self, worker: _WorkerProcess) -> None:
        """Take one message of a worker, or note that it has exited."""
        try:
            message = _MESSAGE.decode(worker.connection.recv_bytes())
        except (EOFError, OSError):
            self.handle_exit(worker)
            return
        if message.error is not None:
            raise InfrastructureFailure(f"a worker cannot go on: {message.error}")
        worker.ready = True
        if message.item is not None and message.result is not None:
            item = worker.items[message.item]
            worker.items[message.item] = item.after(message.result.leaf)
            self._on_done(message.result)
        elif message.item is not None:
            worker.items.pop(message.item)

    def handle_exit(self, worker: _WorkerProcess) -> None:
        """Take the items of a dead worker back and start another."""
        del self._workers[worker.connection]
        worker.connection.close()
        code = worker.process.wait()
        self.deaths += 1
        self._startup_failures = 0 if worker.ready else self._startup_failures + 1
        if self._startup_failures >= MAX_STARTUP_FAILURES:
            raise InfrastructureFailure(
                f"worker processes die before they are ready (exit code {code})"
            )
        _LOG.warning(
            "a worker died (exit code %d); its %d open attempts are played again",
            code,
            len(worker.items),
        )
        left = [item for item in worker.items.values() if item.attempts]
        if worker.ready:  # else none of them has begun
            left = [item.after_exit() for item in left]
        self._items.extendleft(reversed(left))
        self.start_worker()

    def shutdown(self) -> None:
        """End every worker: idle ones in order, busy ones at once."""
        for worker in self._workers.values():
            if worker.items:
                worker.process.terminate()
                worker.connection.close()
            else:
                worker.send(END)
        for worker in self._workers.values():
            code = worker.process.wait()
            worker.connection.close()
            if code and not worker.items:
                self.deaths += 1
                _LOG.warning("a worker did not end in order (exit code %d)", code)
