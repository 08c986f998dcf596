"""Workers: play work items one after the other, in this process or in one of their own.

A worker gets seeds by the work item, never the master. It is told its items in JSON messages, and
sends one for every closed attempt and one for every item done; an empty message ends it when its
items are done.

A worker process is `python -m owa_bench.runs.play.worker FD`; its connection brings the
configuration first. The end of the connection means that the parent has died, and ends it at once.
It leaves interrupts to its parent.
"""

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol, Self

import msgspec

from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.gateway.options import GatewayOptions, environment_secrets
from owa_bench.hosting.isolation import image_of
from owa_bench.hosting.spec import load_agent
from owa_bench.hosting.transports import AgentTransport
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import PRIVATE, Plan, PlanEntry
from owa_bench.records.price_card import PriceCard
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.play.episode_setup import EnvPool
from owa_bench.runs.play.loop import AttemptResult, WorkerContext, play_episode
from owa_bench.runs.play.work_items import WorkItem
from owa_bench.runs.resolve import Resolver
from owa_bench.runs.store.files import plan_digest
from owa_bench.runs.store.memory import (
    CopiedMemory,
    FreshMemory,
    LaneMemory,
    SnapshotFiles,
    Snapshots,
)
from owa_bench.runs.store.memory_folder import RevertedWindow
from owa_bench.runs.store.output import ShardFiles, ShardOutput
from owa_bench.runs.store.recorder import Recorder
from owa_bench.sandbox.root_image import ImageReference

END = b""


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a worker; crosses the connection to a worker process.

    `run` is the run directory and `shard` the number of the shard it writes there under `lease`.
    `redact_key` marks what stands in a secret's place. `folder` is where relative agents are found;
    no sandboxed agent sees `hidden`. `prices` are the plan's price card, `image` what private roots
    are made from.
    """

    run: str
    shard: int
    lease: str
    redact_key: bytes
    folder: str
    concurrency: int = 1
    wire: bool = False
    hidden: tuple[str, ...] = ()
    gateway: GatewayOptions = GatewayOptions()
    prices: PriceCard | None = None
    image: ImageReference | None = None


def with_image(config: WorkerConfig, plan: Plan) -> WorkerConfig:
    """Return a configuration with the root image that a plan's arms need.

    Args:
        config: How a worker of this machine plays.
        plan: The plan.
    Returns: The configuration itself where no arm needs one.
    Raises: InfrastructureFailure: It does not fit into memory.
    """
    folder = Path(config.folder)
    origins = [
        member.origin
        for arm in plan.arms
        if arm.root == PRIVATE
        for member in load_agent(arm.agent, folder=folder).members
    ]
    if not origins:
        return config
    image = image_of(origins, config.hidden)
    return msgspec.structs.replace(config, image=image)


class WorkerStore(Protocol):
    """Where a worker finds its plan, and where its records go."""

    plan: Plan
    plan_digest: str

    def output(self) -> ShardOutput:
        """Return the output of the worker's recorder."""

    def snapshots(self, item: WorkItem) -> Snapshots:
        """Return the memory snapshots of an item's lane."""


class RunStore:
    """A run directory on this machine."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._layout = RunLayout(Path(config.run))
        self.plan = read_plan(self._layout)
        self.plan_digest = plan_digest(self._layout)

    def output(self) -> ShardOutput:
        """Return the worker's own shard, new."""
        return ShardFiles(self._layout, self._config.shard, self._config.lease)

    def snapshots(self, item: WorkItem) -> Snapshots:
        """Return the files of an item's lane."""
        return SnapshotFiles(self._layout, item.lane or "")


class Worker:
    """Plays work items, from one thread or several; a context manager.

    Args:
        config: How it plays.
        store: The run; None for the directory that the configuration names.
        client: Connects agents that play from outside.
    """

    def __init__(
        self,
        config: WorkerConfig,
        store: WorkerStore | None = None,
        client: Callable[[], AgentTransport] | None = None,
    ) -> None:
        self._store = store = store or RunStore(config)
        self._open = ExitStack()
        plan = store.plan
        folder = Path(config.folder)
        self._fork_server = self._open.enter_context(ForkServer())
        self._private = self._open.enter_context(ForkServer(config.image))
        recorder = Recorder(
            store.output(),
            store.plan_digest,
            config.redact_key,
            plan.transcripts,
            environment_secrets(os.environ, config.gateway.secret_variables),
        )
        self._open.enter_context(recorder)
        gateway = config.gateway.gateway(plan.budget.act_s, plan.model_fields)
        if gateway is not None:
            self._open.enter_context(gateway)
        envs = EnvPool(plan, wire=config.wire)
        self._open.callback(envs.close)
        self._frozen = {arm.name for arm in plan.arms if arm.frozen}
        self.context = WorkerContext(
            plan=plan,
            agents={arm.name: load_agent(arm.agent, folder=folder) for arm in plan.arms},
            launcher=AgentLauncher(
                self._fork_server,
                hidden=config.hidden,
                client=client,
                gateway=gateway,
                variables=config.gateway.agent_variables(),
                private=self._private,
            ),
            recorder=recorder,
            envs=envs,
            resolver=Resolver(plan),
            prices=config.prices,
        )

    def play(self, item: WorkItem, on_done: Callable[[AttemptResult], None]) -> WorkItem:
        """Make an item's attempts in order, up to the first that the harness fails.

        Args:
            item: What to play.
            on_done: Called for every closed attempt.
        Returns: What is left of the item.
        """
        with ExitStack() as stack:
            lane = None
            if item.lane is not None:
                snapshots = self._store.snapshots(item)
                lane = LaneMemory(snapshots, item.lane_key, item.memory)
                stack.callback(lane.close)
            while item.attempts:
                result = self._attempt(item, lane)
                item = item.after(result.leaf)
                on_done(result)
                if result.leaf.status != "complete":
                    break
        return item

    def stop(self) -> None:
        """Stop from another thread: open attempts stay unfinished."""
        self.context.stopping.set()
        self._fork_server.close()
        self._private.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _attempt(self, item: WorkItem, lane: LaneMemory | None) -> AttemptResult:
        """Make an item's first attempt."""
        attempt = item.attempts[0]
        entry = self.context.plan.entries[attempt.index]
        with self._memory(entry, item, lane) as memory:
            return play_episode(self.context, entry, attempt, memory, item.spent)

    def _memory(
        self, entry: PlanEntry, item: WorkItem, lane: LaneMemory | None
    ) -> FreshMemory | LaneMemory:
        """Return the memory an entry is played with."""
        if lane is None or entry.arm in self._frozen:
            return FreshMemory()
        lane.copied = tuple(item.states.values())
        if entry.keeps_memory:
            return lane
        without = None
        if item.reverts is not None and entry.window is not None:
            since, until = entry.window[0], entry.morning or 0
            without = RevertedWindow(since, until, item.states[item.reverts])
        return CopiedMemory(lane, without)


# --- a worker process -----------------------------------------------------------------


class WorkerMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message from a worker elsewhere: ready, an attempt closed, or an error.

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
        gc.freeze()  # what was imported stays: no collection looks at it again
        parent.send(WorkerMessage())
        try:
            while (message := connection.recv_bytes()) != END:
                item = msgspec.json.decode(message, type=WorkItem)
                threads.submit(play_and_tell, worker, item, parent.send)
        except (EOFError, OSError):  # the parent died, and somebody may resume its run
            _exit_at_once(worker)


def play_and_tell(worker: Worker, item: WorkItem, send: Callable[[WorkerMessage], None]) -> None:
    """Play an item and say so; what goes wrong is the driver's to judge.

    Args:
        worker: The worker.
        item: What to play.
        send: Takes the messages, from any thread.
    """
    number = item.number
    try:
        worker.play(item, lambda result: send(WorkerMessage(item=number, result=result)))
        send(WorkerMessage(item=number))
    except BaseException as error:  # noqa: BLE001  a thread has no other way to report
        if not worker.context.stopping.is_set():
            send(WorkerMessage(error=f"{type(error).__name__}: {error}"))


def _exit_at_once(worker: Worker) -> None:
    """Exit at once: agents are killed, what is on disk stays."""
    worker.stop()
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
