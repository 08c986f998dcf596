"""Workers: play work items one after the other, in this process or in one of their own.

A worker process is `python -m owa_bench.run.play.worker FD`. Its connection brings the
configuration and then work items, one JSON message each; it sends one for every closed
attempt and one for every item done. An empty message ends it when its items are done;
the end of the connection means that the parent has died, and ends it at once. It leaves
interrupts to its parent.
"""

import contextlib
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import Leaf
from owa_bench.run.agents.agent_process import AgentLauncher
from owa_bench.run.agents.fork_server import ForkServer
from owa_bench.run.agents.spec import load_agent
from owa_bench.run.agents.transports import AgentTransport
from owa_bench.run.gateway.options import GatewayOptions, environment_secrets
from owa_bench.run.plan.plan import read_plan
from owa_bench.run.play.episode_setup import EnvPool
from owa_bench.run.play.history import read_history
from owa_bench.run.play.loop import AttemptResult, WorkerContext, play_episode
from owa_bench.run.store.files import plan_digest
from owa_bench.run.store.memory import CopiedMemory, FreshMemory, LaneMemory
from owa_bench.run.store.output import ShardFiles
from owa_bench.run.store.recorder import Recorder
from owa_bench.seeding import redact_key

# `Plan.attempt_rule`: attempts of an entry that the harness may fail before it is left.
MAX_FAILURES = 3
END = b""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt still to be made at a plan entry.

    `failures` are attempts before it that the harness failed; attempts that a kill left
    unfinished are not among them. `died`: the worker of the attempt before died.
    """

    index: int
    number: int
    failures: int = 0
    died: bool = False

    def again(self) -> "Attempt | None":
        """Return the attempt after the harness failed this one; None: no more."""
        failures = self.failures + 1
        if failures >= MAX_FAILURES:
            return None
        return Attempt(index=self.index, number=self.number + 1, failures=failures)


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts that one thread makes in order: at one entry, or at all of a lane.

    `memory` is the digest of the snapshot a lane goes on from; `spent` what the run
    had used when the item was dispatched.
    """

    number: int
    attempts: tuple[Attempt, ...]
    lane: str | None = None
    memory: str | None = None
    spent: Mapping[str, float] = {}

    def after(self, leaf: Leaf) -> "WorkItem":
        """Return what is left of the item when its first attempt has closed."""
        first, *rest = self.attempts
        again = None if leaf.status == "complete" else first.again()
        left = (again, *rest) if again else tuple(rest)
        return replace(self, attempts=left, memory=leaf.memory or self.memory)

    def after_exit(self) -> "WorkItem":
        """Return what is left when the worker exited in the first attempt."""
        first, *rest = self.attempts
        again = replace(first, number=first.number + 1, died=True)
        return replace(self, attempts=(again, *rest))


def pending(plan: Plan, leaves: Iterable[Leaf]) -> tuple[WorkItem, ...]:
    """Return what is still to be played, in plan order of the first entry.

    Args:
        plan: The plan.
        leaves: The attempts on record.

    Returns:
        An item per entry or lane that is not complete.
    """
    numbers = Counter[int]()
    failures = Counter[int]()
    complete: dict[int, Leaf] = {}
    for leaf in leaves:
        numbers[leaf.index] = max(numbers[leaf.index], leaf.attempt + 1)
        failures[leaf.index] += leaf.status == "infrastructure"
        if leaf.status == "complete":
            complete[leaf.index] = leaf
    attempts: dict[tuple[str | None, int | None], list[Attempt]] = {}
    memories: dict[str | None, str | None] = {}
    for entry in plan.entries:
        index, lane = entry.index, entry.lane
        if index in complete:
            if lane is not None and entry.phase != "checkpoint":
                memories[lane] = complete[index].memory
        elif failures[index] < MAX_FAILURES:
            item = (None, index) if lane is None else (lane, None)
            attempts.setdefault(item, []).append(
                Attempt(index=index, number=numbers[index], failures=failures[index])
            )
    return tuple(
        WorkItem(
            number=number, attempts=tuple(waiting), lane=lane, memory=memories.get(lane)
        )
        for number, ((lane, _), waiting) in enumerate(attempts.items())
    )


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a worker; crosses the connection to a worker process.

    `root` is the master in hex, any verifier's nonce mixed in. `folder` is where
    relative agents are found; no sandboxed agent sees `hidden`.
    """

    run: str
    shard: int
    root: str
    folder: str
    concurrency: int = 1
    wire: bool = False
    hidden: tuple[str, ...] = ()
    lease: str = ""
    gateway: GatewayOptions = GatewayOptions()


class Worker:
    """Plays work items, from one thread or several; a context manager."""

    def __init__(
        self, config: WorkerConfig, client: Callable[[], AgentTransport] | None = None
    ) -> None:
        self._layout = RunLayout(Path(config.run))
        self._open = ExitStack()
        root = bytes.fromhex(config.root)
        plan = read_plan(self._layout)
        folder = Path(config.folder)
        self._fork_server = self._open.enter_context(ForkServer())
        recorder = Recorder(
            ShardFiles(self._layout, config.shard, config.lease),
            plan_digest(self._layout),
            redact_key(root),
            plan.transcripts,
            environment_secrets(os.environ, config.gateway.model_key_env),
        )
        self._open.enter_context(recorder)
        gateway = config.gateway.gateway(plan.budget.act_s)
        if gateway is not None:
            self._open.enter_context(gateway)
        envs = EnvPool(plan, wire=config.wire)
        self._open.callback(envs.close)
        self._frozen = {arm.name for arm in plan.arms if arm.frozen}
        self.context = WorkerContext(
            plan=plan,
            root=root,
            agents={
                arm.name: load_agent(arm.agent, folder=folder) for arm in plan.arms
            },
            launcher=AgentLauncher(
                self._fork_server,
                hidden=config.hidden,
                client=client,
                gateway=gateway,
                variables=config.gateway.passed(),
            ),
            recorder=recorder,
            envs=envs,
        )

    def play(self, item: WorkItem, on_done: Callable[[AttemptResult], None]) -> None:
        """Make an item's attempts in order, each again while the harness fails it.

        Args:
            item: What to play.
            on_done: Called for every closed attempt.
        """
        with ExitStack() as stack:
            lane = None
            if item.lane is not None:
                root = self.context.root
                lane = LaneMemory(self._layout, item.lane, root, item.memory)
                stack.callback(lane.close)
            for attempt in item.attempts:
                waiting: Attempt | None = attempt
                while waiting is not None:
                    result = self._attempt(waiting, lane, item.spent)
                    on_done(result)
                    if result.leaf.status == "complete":
                        break
                    if lane is not None:
                        lane.rewind()
                    waiting = waiting.again()

    def stop(self) -> None:
        """Stop from another thread: open attempts stay unfinished."""
        self.context.stopping.set()
        self._fork_server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _attempt(
        self, attempt: Attempt, lane: LaneMemory | None, spent: Mapping[str, float]
    ) -> AttemptResult:
        entry = self.context.plan.entries[attempt.index]
        number = attempt.number
        history = read_history(self._layout, attempt.index, number, died=attempt.died)
        with self._memory(entry, lane) as memory:
            return play_episode(
                self.context, entry, number, memory, spent, history=history
            )

    def _memory(
        self, entry: PlanEntry, lane: LaneMemory | None
    ) -> FreshMemory | LaneMemory:
        """Return the memory an entry is played with."""
        if lane is None or entry.arm in self._frozen:
            return FreshMemory()
        return CopiedMemory(lane) if entry.phase == "checkpoint" else lane


# --- a worker process -----------------------------------------------------------------


class WorkerMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message from a worker process: ready, an attempt closed, or an error.

    `item` is the number of the work item; without a result it is done.
    """

    item: int | None = None
    result: AttemptResult | None = None
    error: str | None = None


class _Parent:
    """The connection to the parent; whole messages from any thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: WorkerMessage) -> None:
        """Send a message; a parent that has died needs none."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.send_bytes(msgspec.json.encode(message))


def main(descriptor: int) -> None:
    """Play work items until the connection says to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(descriptor, False)
    os.dup2(2, 1)  # prints of envs go where logs go
    connection = Connection(descriptor)
    parent = _Parent(connection)
    config = msgspec.json.decode(connection.recv_bytes(), type=WorkerConfig)
    with Worker(config) as worker, ThreadPoolExecutor(config.concurrency) as threads:
        signal.signal(signal.SIGTERM, lambda *_: _exit_at_once(worker))
        parent.send(WorkerMessage())
        try:
            while (message := connection.recv_bytes()) != END:
                item = msgspec.json.decode(message, type=WorkItem)
                threads.submit(_play, worker, item, parent)
        except (EOFError, OSError):  # the parent died, and somebody may resume its run
            _exit_at_once(worker)


def _play(worker: Worker, item: WorkItem, parent: _Parent) -> None:
    """Play an item and say so; what goes wrong is the parent's to judge."""
    number = item.number
    try:
        worker.play(
            item, lambda result: parent.send(WorkerMessage(item=number, result=result))
        )
        parent.send(WorkerMessage(item=number))
    except BaseException as error:  # noqa: BLE001  a thread has no other way to report
        if not worker.context.stopping.is_set():
            parent.send(WorkerMessage(error=f"{type(error).__name__}: {error}"))


def _exit_at_once(worker: Worker) -> None:
    """Exit at once: agents are killed, what is on disk stays."""
    worker.stop()
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
