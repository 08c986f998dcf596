"""Who plays the jobs: this process, or worker processes; `concurrency` threads in each.

Episodes do not know of each other (lanes apart, which one thread plays whole), so the
traces are the same whatever the number of workers and threads. A worker that dies takes
its open attempts with it: they stay unfinished, a new worker plays them again.
"""

import contextlib
import logging
import os
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field

import msgspec

from owa_bench.errors import InfrastructureFailure
from owa_bench.run.agents import agent_process
from owa_bench.run.plan.budget import RunTally
from owa_bench.run.play.attempts import Done, WorkItem
from owa_bench.run.play.worker import Worker, WorkerConfig
from owa_bench.run.play.worker_process import END, WorkerMessage

_LOG = logging.getLogger(__name__)
OnDone = Callable[[Done], None]
# Workers that die one after the other before they are ready: the machine's fault.
MAX_STARTUP_FAILURES = 3
_CHUNK = 1 << 16
_MESSAGE = msgspec.json.Decoder(WorkerMessage)


def play_here(
    jobs: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    client: Callable[[], agent_process.Transport] | None = None,
) -> None:
    """Play every job in this process; `client` seats agents that play from outside.

    Errors: whatever stops the process; open attempts are then left unfinished.
    """
    with Worker(config, client) as worker:
        if config.concurrency == 1:
            for job in jobs:
                worker.play(_priced(job, tally), on_done)
            return
        _in_threads(worker, deque(jobs), config.concurrency, tally, on_done)


def play_in_workers(
    jobs: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    *,
    workers: int,
    lock: int,
) -> bool:
    """Play every job in worker processes; return whether one of them died.

    `lock` is the descriptor of the run's lock: workers hold it too, so that a run is
    not resumed while a worker of a killed parent still writes.
    Errors: InfrastructureFailure if a worker reports one, or none can work.
    """
    pool = WorkerPool(config, deque(jobs), tally, on_done, lock)
    try:
        pool.play(workers)
    finally:
        pool.shutdown()
    return pool.deaths > 0


def _in_threads(
    worker: Worker,
    jobs: deque[WorkItem],
    threads: int,
    tally: RunTally,
    on_done: OnDone,
) -> None:
    """Play jobs in threads, and report from this one."""
    reports: deque[Done] = deque()
    running: set[Future[None]] = set()
    pool = ThreadPoolExecutor(threads)
    try:
        while jobs or running:
            while jobs and len(running) < threads:
                job = _priced(jobs.popleft(), tally)
                running.add(pool.submit(worker.play, job, reports.append))
            ended, running = wait(running, return_when=FIRST_COMPLETED, timeout=0.5)
            while reports:
                on_done(reports.popleft())
            for future in ended:
                future.result()
    except BaseException:
        worker.stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _priced(job: WorkItem, tally: RunTally) -> WorkItem:
    return msgspec.structs.replace(job, spent=dict(tally.spent))


@dataclass(slots=True, eq=False)
class _WorkerProcess:
    """One worker process and what it was given."""

    process: subprocess.Popen[bytes]
    jobs: dict[int, WorkItem] = field(default_factory=dict)
    unread: bytearray = field(default_factory=bytearray)
    ready: bool = False

    def send(self, record: msgspec.Struct) -> None:
        """Write one line to the worker; a dead one is noticed when it is read."""
        stream = self.process.stdin
        if stream is None:
            return
        try:
            stream.write(msgspec.json.encode(record) + b"\n")
            stream.flush()
        except BrokenPipeError:
            return

    def hang_up(self) -> None:
        """Tell the worker to end: in order if it has nothing to do, else at once."""
        stream = self.process.stdin
        if stream is None:
            return
        with contextlib.suppress(BrokenPipeError):
            if not self.jobs:
                stream.write(END)
            stream.close()

    def wait(self) -> int:
        """Return the exit code of a worker that is to end."""
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def lines(self) -> Iterator[WorkerMessage] | None:
        """Return the lines that have come, None at the end of the pipe."""
        stream = self.process.stdout
        data = os.read(stream.fileno(), _CHUNK) if stream else b""
        if not data:
            return None
        self.unread += data
        *whole, rest = self.unread.split(b"\n")
        self.unread = bytearray(rest)
        return (_MESSAGE.decode(bytes(line)) for line in whole)


class WorkerPool:
    """The worker processes of a run and the jobs that wait."""

    def __init__(
        self,
        config: WorkerConfig,
        jobs: deque[WorkItem],
        tally: RunTally,
        on_done: OnDone,
        lock: int,
    ) -> None:
        self.deaths = 0
        self._lock = lock
        self._config = config
        self._jobs = jobs
        self._tally = tally
        self._on_done = on_done
        self._shard = config.shard
        self._startup_failures = 0
        self._workers: list[_WorkerProcess] = []
        self._open = ExitStack()
        self._selector = self._open.enter_context(selectors.DefaultSelector())

    def play(self, workers: int) -> None:
        """Return when every job is done."""
        for _ in range(min(workers, max(1, len(self._jobs)))):
            self._start_worker()
        while self._jobs or any(worker.jobs for worker in self._workers):
            self._dispatch()
            for key, _ in self._selector.select():
                self._read(key.data)

    def shutdown(self) -> None:
        """End every worker: idle ones in order, busy ones at once."""
        for worker in self._workers:
            worker.hang_up()
        for worker in self._workers:
            if worker.jobs:
                worker.process.terminate()
            code = worker.wait()
            if code and not worker.jobs:
                self.deaths += 1
                _LOG.warning("a worker did not end in order (exit code %d)", code)
        self._open.close()

    def _start_worker(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "owa_bench.run.play.worker_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._lock,),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        worker = _WorkerProcess(process)
        worker.send(msgspec.structs.replace(self._config, shard=self._shard))
        self._shard += 1
        self._workers.append(worker)
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]

    def _dispatch(self) -> None:
        """Give waiting jobs to workers with a free thread, one each in turn."""
        for _ in range(self._config.concurrency):
            for worker in self._workers:
                if self._jobs and len(worker.jobs) < self._config.concurrency:
                    job = _priced(self._jobs.popleft(), self._tally)
                    worker.jobs[job.number] = job
                    worker.send(job)

    def _read(self, worker: _WorkerProcess) -> None:
        lines = worker.lines()
        if lines is None:
            self._handle_exit(worker)
            return
        for line in lines:
            self._take(worker, line)

    def _take(self, worker: _WorkerProcess, line: WorkerMessage) -> None:
        if line.error is not None:
            raise InfrastructureFailure(f"a worker cannot go on: {line.error}")
        worker.ready = True
        if line.done is not None:
            number = line.done.job
            worker.jobs[number] = worker.jobs[number].after(line.done)
            self._on_done(line.done)
        elif line.job is not None:
            worker.jobs.pop(line.job)

    def _handle_exit(self, worker: _WorkerProcess) -> None:
        """Take the jobs of a dead worker back and hire another."""
        self._selector.unregister(worker.process.stdout)  # type: ignore[arg-type]
        self._workers.remove(worker)
        worker.hang_up()
        code = worker.wait()
        self.deaths += 1
        self._startup_failures = 0 if worker.ready else self._startup_failures + 1
        if self._startup_failures >= MAX_STARTUP_FAILURES:
            raise InfrastructureFailure(
                f"worker processes die before they are ready (exit code {code})"
            )
        _LOG.warning(
            "a worker died (exit code %d); its %d open attempts are played again",
            code,
            len(worker.jobs),
        )
        left = [job.after_death() for job in worker.jobs.values() if job.attempts]
        self._jobs.extendleft(job for job in reversed(left) if job.attempts)
        self._start_worker()
