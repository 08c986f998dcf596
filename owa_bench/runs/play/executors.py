"""Executors: play work items in this process, in worker processes, or on a cluster.

Episodes do not know of each other, but for those that a lane keeps, which one thread at a time
plays; so the traces are the same whatever the executor and its number of workers and threads. A
worker that dies takes its open attempts with it: they stay unfinished, and another worker plays
them again.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_messages
from pathlib import Path
from typing import Protocol

import msgspec

from owa_bench.errors import InfrastructureFailure
from owa_bench.hosting.transports import AgentTransport
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import Leaf
from owa_bench.runs.plan.budget import RunTally, totals
from owa_bench.runs.play.loop import AttemptResult
from owa_bench.runs.play.work_items import WorkItem, WorkQueue
from owa_bench.runs.play.worker import END, Worker, WorkerConfig, WorkerMessage
from owa_bench.runs.store import files

_LOG = logging.getLogger(__name__)
OnDone = Callable[[AttemptResult], None]
Stopped = Callable[[int], bool]
# Workers that die one after the other before they are ready: the machine's fault.
MAX_STARTUP_FAILURES = 3


class Executor(Protocol):
    """Plays work items; every attempt of theirs is closed or open on disk then."""

    def __call__(
        self,
        items: Iterable[WorkItem],
        config: WorkerConfig,
        tally: RunTally,
        on_done: OnDone,
        stopped: Stopped,
    ) -> bool:
        """Play every item.

        Args:
            items: What to play.
            config: The configuration of the first worker; others get the next shards.
            tally: What the run has used so far.
            on_done: Called for every closed attempt, from the caller's thread.
            stopped: Whether nothing more of a plan entry's arm is played.
        Returns: Whether a worker died.
        Raises: InfrastructureFailure: A worker reports one, or none can work.
        """


def play_here(
    items: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    stopped: Stopped,
    *,
    client: Callable[[], AgentTransport] | None = None,
) -> bool:
    """Play every item in this process; what stops it leaves open attempts unfinished.

    Args:
        items: What to play.
        config: The worker's configuration.
        tally: What the run has used so far.
        on_done: Called for every closed attempt, from this thread.
        stopped: Whether nothing more of a plan entry's arm is played.
        client: Connects agents that play from outside.
    Returns: False: no worker died.
    """
    waiting = WorkQueue(items, lanes_first=config.concurrency > 1, stopped=stopped)
    layout = RunLayout(Path(config.run))
    with Worker(config, client=client) as worker:
        if config.concurrency > 1:
            _play_in_threads(worker, waiting, config, tally, on_done)
        while item := waiting.pop():
            item = item.dispatched(layout, tally.spent)
            waiting.put_back(worker.play(item, on_done))
    return False


def _play_in_threads(
    worker: Worker, items: WorkQueue, config: WorkerConfig, tally: RunTally, on_done: OnDone
) -> None:
    """Play items in threads, and report from this one."""
    results: deque[AttemptResult] = deque()
    running: set[Future[WorkItem]] = set()
    layout = RunLayout(Path(config.run))
    pool = ThreadPoolExecutor(config.concurrency)
    try:
        while items or running:
            while len(running) < config.concurrency and (item := items.pop()):
                item = item.dispatched(layout, tally.spent)
                running.add(pool.submit(worker.play, item, results.append))
            ended, running = wait(running, return_when=FIRST_COMPLETED, timeout=0.5)
            while results:
                on_done(results.popleft())
            for future in ended:
                items.put_back(future.result())
    except BaseException:
        worker.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# --- workers elsewhere ----------------------------------------------------------------


class WorkerLink(Protocol):
    """The way to one worker that is not in this thread.

    `lost`: it died with its machine, by no fault of what it played.
    """

    lost: bool

    def give(self, item: WorkItem) -> None:
        """Send an item; a dead worker is noticed when it is listened to."""

    def finish(self) -> None:
        """Tell an idle worker to end."""

    def receive(self) -> Sequence[WorkerMessage]:
        """Return its next messages; EOFError: it has died."""

    def stop(self) -> None:
        """End a busy worker at once."""

    def wait(self) -> str:
        """Wait until it has ended; return how, "" for in order."""


class WorkerHosts(Protocol):
    """Where the workers of a pool are started."""

    def start(self, config: WorkerConfig) -> WorkerLink:
        """Start a worker that writes the configuration's shard."""

    def wait(self, links: Collection[WorkerLink]) -> Iterable[WorkerLink]:
        """Wait for messages; return the workers that have some, or have died."""


@dataclass(slots=True, eq=False)
class _PoolWorker:
    """One worker, the number of its shard and the items it was given."""

    link: WorkerLink
    shard: int
    items: dict[int, WorkItem] = field(default_factory=dict)
    ready: bool = False


class WorkerPool:
    """The workers of a run and the items that wait."""

    def __init__(
        self,
        items: Iterable[WorkItem],
        config: WorkerConfig,
        tally: RunTally,
        on_done: OnDone,
        stopped: Stopped,
        hosts: WorkerHosts,
    ) -> None:
        self.deaths = 0
        self._config = config
        self._layout = RunLayout(Path(config.run))
        self._items = WorkQueue(items, lanes_first=True, stopped=stopped)
        self._tally = tally
        self._on_done = on_done
        self._hosts = hosts
        self._shard = config.shard
        self._startup_failures = 0
        self._unbegun = Counter[int]()
        self._workers: dict[WorkerLink, _PoolWorker] = {}

    def play(self, workers: int) -> None:
        """Return when every item is done and the workers have ended."""
        try:
            for _ in range(min(workers, max(1, len(self._items)))):
                self.start_worker()
            while self._items or any(w.items for w in self._workers.values()):
                self.dispatch()
                for link in self._hosts.wait(self._workers):
                    self.read(self._workers[link])
        finally:
            self.shutdown()

    def start_worker(self) -> None:
        """Start a worker with a shard of its own."""
        config = msgspec.structs.replace(self._config, shard=self._shard)
        self._shard += 1
        link = self._hosts.start(config)
        self._workers[link] = _PoolWorker(link, config.shard)

    def dispatch(self) -> None:
        """Give waiting items to workers with a free thread, one each in turn."""
        for _ in range(self._config.concurrency):
            for worker in self._workers.values():
                free = len(worker.items) < self._config.concurrency
                if free and (item := self._items.pop()):
                    item = item.dispatched(self._layout, self._tally.spent)
                    worker.items[item.number] = item
                    worker.link.give(item)

    def read(self, worker: _PoolWorker) -> None:
        """Take the messages of a worker, or note that it has died."""
        try:
            messages = worker.link.receive()
        except EOFError:
            self.handle_exit(worker)
            return
        for message in messages:
            self._take(worker, message)

    def _take(self, worker: _PoolWorker, message: WorkerMessage) -> None:
        if message.error is not None:
            raise InfrastructureFailure(f"a worker cannot go on: {message.error}")
        worker.ready = True
        if message.item is not None and message.result is not None:
            item = worker.items[message.item]
            worker.items[message.item] = item.after(message.result.leaf)
            self._on_done(message.result)
        elif message.item is not None:
            self._items.put_back(worker.items.pop(message.item))

    def handle_exit(self, worker: _PoolWorker) -> None:
        """Take the items of a dead worker back and start another."""
        del self._workers[worker.link]
        how = worker.link.wait() or "in order"
        self.deaths += 1
        if not worker.link.lost:
            self._startup_failures = 0 if worker.ready else self._startup_failures + 1
        if self._startup_failures >= MAX_STARTUP_FAILURES:
            raise InfrastructureFailure(f"workers die before they are ready ({how})")
        again = "a worker died (%s); its %d open attempts are played again"
        _LOG.warning(again, how, len(worker.items))
        left = [*worker.items.values()]
        if worker.ready:  # else none of them has begun
            left = [*self._left_by(worker, how)]
        self._items.put_first(reversed(left))
        self.start_worker()

    def _left_by(self, worker: _PoolWorker, how: str) -> Iterator[WorkItem]:
        """Yield what is left of the items of a worker that died."""
        open_items = [item for item in worker.items.values() if item.attempts]
        names = {item.attempts[0].name for item in open_items}
        leaves = files.shard_leaves(self._layout, worker.shard, names, self._plan_digest)
        for item in worker.items.values():
            leaf = leaves.get(item.attempts[0].name) if item.attempts else None
            if leaf is not None and leaf.status != "unfinished":  # only its message was lost
                self._on_done(self._result_of(leaf))
                yield item.after(leaf)
            elif leaf is not None:
                yield item.after_exit(died=not worker.link.lost)
            else:  # nothing has begun: the number is free, and no agent is to blame
                if item.attempts and not worker.link.lost:
                    self._count_unbegun(item, how)
                yield item

    @cached_property
    def _plan_digest(self) -> str:
        return files.plan_digest(self._layout)

    def _result_of(self, leaf: Leaf) -> AttemptResult:
        """Return the result of an attempt as its record has it."""
        trace = files.read_trace(self._layout, leaf)
        spent = totals(trace.events, self._config.prices)
        return AttemptResult(leaf=leaf, end=trace.end, spent=spent)

    def _count_unbegun(self, item: WorkItem, how: str) -> None:
        """Count a death before an attempt began; refuse to go on after several at one entry."""
        index = item.attempts[0].index
        self._unbegun[index] += 1
        if self._unbegun[index] >= MAX_STARTUP_FAILURES:
            raise InfrastructureFailure(
                f"{self._unbegun[index]} workers died before entry {index} began ({how})"
            )

    def shutdown(self) -> None:
        """End every worker: idle ones in order, busy ones at once."""
        for worker in self._workers.values():
            if worker.items:
                worker.link.stop()
            else:
                worker.link.finish()
        for worker in self._workers.values():
            how = worker.link.wait()
            if how and not worker.items:
                self.deaths += 1
                _LOG.warning("a worker did not end in order (%s)", how)


# --- worker processes on this machine -------------------------------------------------

_MESSAGE = msgspec.json.Decoder(WorkerMessage)


def play_in_workers(
    items: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    stopped: Stopped,
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
        stopped: Whether nothing more of a plan entry's arm is played.
        workers: Number of processes.
        lock: Descriptor of the run's lock. Workers hold it too, so that a run is not resumed while
            a worker of a killed parent still writes.
    Returns: Whether a worker died.
    Raises: InfrastructureFailure: A worker reports one, or none can work.
    """
    pool = WorkerPool(items, config, tally, on_done, stopped, ProcessHosts(lock))
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

        Raises: EOFError: The process has died.
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
        Returns: The process.
        """
        ours, theirs = multiprocessing.Pipe()
        descriptor = theirs.fileno()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own module
                [sys.executable, "-m", "owa_bench.runs.play.worker", str(descriptor)],
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
        Returns: Some of them.
        """
        by_connection = {link.connection: link for link in links if isinstance(link, WorkerProcess)}
        ready = wait_for_messages(list(by_connection))
        return [by_connection[each] for each in ready if isinstance(each, Connection)]
