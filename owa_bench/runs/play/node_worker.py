"""Workers on other machines: checks of a node, and one worker that sends its records.

A node shares nothing with the driver: no run directory, no data folder, no working directory, no
master. The plan and the agents' files are sent to it. What its worker records goes back as messages
in the order of writing, and the driver alone writes. Nothing here needs the library that carries
the messages.
"""

import os
import queue
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec

from owa_bench.canonical import document_digest
from owa_bench.errors import OwaError
from owa_bench.hosting.archives import unpack_agents
from owa_bench.hosting.isolation import require_hosting, require_root
from owa_bench.hosting.spec import load_agent
from owa_bench.records.plan import Arm, Plan
from owa_bench.records.trace import Leaf
from owa_bench.runs.plan.plan import refuse_unready
from owa_bench.runs.play.work_items import WorkItem
from owa_bench.runs.play.worker import (
    Worker,
    WorkerConfig,
    WorkerMessage,
    play_and_tell,
    with_image,
)
from owa_bench.runs.store.directory import environment, explained
from owa_bench.runs.store.keys import data_folder


class NodeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a node's worker is started with; its shard begins with `head` bytes."""

    config: WorkerConfig
    shard: str
    head: int


class GivenItem(msgspec.Struct, frozen=True, kw_only=True):
    """A work item, with the snapshots of its lane that it needs, by digest."""

    item: WorkItem
    snapshots: Mapping[str, bytes] = {}


class ShardBytes(msgspec.Struct, frozen=True, tag=True):
    """Bytes for the shard and its pack."""

    frame: bytes
    blobs: bytes


class LeafCommit(msgspec.Struct, frozen=True, tag=True):
    """Everything so far is to be made durable, then the leaves appended."""

    leaves: tuple[Leaf, ...]


class LaneSnapshot(msgspec.Struct, frozen=True, tag=True):
    """A sealed snapshot of a lane; those in `kept` stay too."""

    lane: str
    digest: str
    sealed: bytes
    kept: tuple[str, ...]


class WorkerReport(msgspec.Struct, frozen=True, tag=True):
    """What the worker says of itself and its items."""

    message: WorkerMessage


NodeMessage = ShardBytes | LeafCommit | LaneSnapshot | WorkerReport


# --- readiness ------------------------------------------------------------------------


def node_faults(plan: bytes, agents: bytes, variables: Sequence[str]) -> list[str]:
    """Return why a plan cannot be played on this machine.

    Args:
        plan: The plan's file.
        agents: The archive of the agents' files.
        variables: Names of environment variables that must be set.
    Returns: What is missing or another than in the plan, in words; empty: nothing.
    """
    decoded = msgspec.json.decode(plan, type=Plan)
    faults = [f"{n} is not set there" for n in variables if n not in os.environ]
    with tempfile.TemporaryDirectory(prefix="owa-agents-") as folder:
        unpack_agents(agents, Path(folder))
        faults += [_arm_fault(arm, Path(folder)) for arm in decoded.arms]
    try:
        faults += explained(decoded)
        refuse_unready(decoded)
    except OwaError as error:
        faults.append(str(error))
    here = dict(environment())
    faults += [
        f"{name} must be {version}, got {here.get(name, 'none')}"
        for name, version in decoded.environment
        if here.get(name) != version
    ]
    return [fault for fault in faults if fault]


def _arm_fault(arm: Arm, folder: Path) -> str:
    """Return why an arm's agent cannot be played here as the plan has it."""
    try:
        agent = load_agent(arm.agent, folder=folder)
        for member in agent.members:
            require_hosting(member.origin, arm.hosting)
        require_root(arm.root)
    except OwaError as error:
        return str(error)
    if agent.fingerprint != arm.fingerprint:
        return f"agent {arm.agent} is not the one of the plan"
    return ""


# --- the worker -----------------------------------------------------------------------


class NodeWorker:
    """One worker on a node.

    Args:
        order: Bytes of a `NodeOrder`.
        plan: The plan's file.
        agents: The archive of the agents' files.
    """

    def __init__(self, order: bytes, plan: bytes, agents: bytes) -> None:
        self._order = msgspec.msgpack.decode(order, type=NodeOrder)
        self._plan = plan
        self._agents = agents
        self._items = queue.SimpleQueue[bytes]()
        self._messages = Messages()

    def give(self, item: bytes) -> None:
        """Take the bytes of a `GivenItem`; empty: end when the items are done."""
        self._items.put(item)

    def messages(self) -> Iterator[bytes]:
        """Play what is given; yield the messages, several at a time.

        It goes on when the driver has taken what was yielded.

        Yields: Bytes of a list of `NodeMessage`.
        """
        threading.Thread(target=self._work, daemon=True).start()
        yield from self._messages.batches()

    def _work(self) -> None:
        try:
            self._play_items()
        except BaseException as error:  # noqa: BLE001  a thread has no other way
            self._tell(WorkerMessage(error=f"{type(error).__name__}: {error}"))
        self._messages.end()

    def _play_items(self) -> None:
        with ExitStack() as stack:
            made = tempfile.TemporaryDirectory(prefix="owa-agents-")
            folder = stack.enter_context(made)
            unpack_agents(self._agents, Path(folder))
            config = self._order.config
            hidden = (*config.hidden, os.fspath(data_folder()))
            config = msgspec.structs.replace(config, folder=folder, hidden=hidden)
            store = NodeStore(self._plan, self._order, self._messages)
            config = with_image(config, store.plan)
            worker = stack.enter_context(Worker(config, store))
            threads = stack.enter_context(ThreadPoolExecutor(config.concurrency))
            self._tell(WorkerMessage())
            self._messages.settle()
            while data := self._items.get():
                given = msgspec.msgpack.decode(data, type=GivenItem)
                store.given[given.item.number] = given
                threads.submit(play_and_tell, worker, given.item, self._tell)

    def _tell(self, message: WorkerMessage) -> None:
        self._messages.put(WorkerReport(message))


class Messages:
    """Messages of a worker in the order of writing, from any thread."""

    def __init__(self) -> None:
        self._waiting = queue.SimpleQueue[NodeMessage | threading.Event | None]()

    def put(self, message: NodeMessage) -> None:
        """Add a message."""
        self._waiting.put(message)

    def end(self) -> None:
        """Add the end: no message follows."""
        self._waiting.put(None)

    def settle(self) -> None:
        """Return when the driver has taken the messages so far."""
        taken = threading.Event()
        self._waiting.put(taken)
        taken.wait()

    def batches(self) -> Iterator[bytes]:
        """Yield what waits until the end; to be resumed when the batch before was taken.

        Yields: Bytes of a list of `NodeMessage`.
        """
        ended = False
        while not ended:
            waiting = [self._waiting.get()]
            while not self._waiting.empty():
                waiting.append(self._waiting.get())
            ended = None in waiting
            told = [each for each in waiting if isinstance(each, NodeMessage)]
            if told:
                yield msgspec.msgpack.encode(told)
            for each in waiting:
                if isinstance(each, threading.Event):
                    each.set()


class NodeStore:
    """The store of a node's worker; what is written becomes messages."""

    def __init__(self, plan: bytes, order: NodeOrder, messages: "Messages") -> None:
        self.plan = msgspec.json.decode(plan, type=Plan)
        self.plan_digest = document_digest(msgspec.json.decode(plan))
        self.given: dict[int, GivenItem] = {}
        self._order = order
        self._messages = messages

    def output(self) -> "SentOutput":
        """Return the output of the recorder."""
        return SentOutput(self._order, self._messages)

    def snapshots(self, item: WorkItem) -> "SentSnapshots":
        """Return the snapshots of an item's lane."""
        given = self.given[item.number]
        return SentSnapshots(given, self._messages)


class SentOutput:
    """A `ShardOutput` that sends the bytes."""

    def __init__(self, order: NodeOrder, messages: "Messages") -> None:
        self.name = order.shard
        self.size = order.head
        self._messages = messages
        self._dirty = False

    def append(self, frame: bytes, blobs: bytes) -> None:
        """Send a frame, and the blobs before it.

        Args:
            frame: Bytes of one frame.
            blobs: Bytes for the pack.
        """
        self._messages.put(ShardBytes(frame, blobs))
        self.size += len(frame)
        self._dirty = True

    def settle(self) -> None:
        """Return when the driver has taken what was sent."""
        self._messages.settle()

    def commit(self, leaves: Sequence[Leaf]) -> None:
        """Have everything so far made durable, then the leaves appended."""
        if leaves or self._dirty:
            self._messages.put(LeafCommit(tuple(leaves)))
        self._dirty = False

    def close(self) -> None:
        """Do nothing: the driver closes the files."""


class SentSnapshots:
    """Snapshots of one lane: in memory here, sent to the driver."""

    def __init__(self, given: GivenItem, messages: "Messages") -> None:
        self._lane = given.item.lane or ""
        self._sealed = dict(given.snapshots)
        self._messages = messages

    def read(self, digest: str) -> bytes:
        """Return a snapshot; OSError if it was not sent here."""
        if digest not in self._sealed:
            raise FileNotFoundError(digest)
        return self._sealed[digest]

    def write(self, digest: str, sealed: bytes, kept: Collection[str]) -> None:
        """Send a snapshot.

        Args:
            digest: Digest of the folder.
            sealed: Its sealed content.
            kept: Digests of those that stay.
        """
        stay = {name: data for name, data in self._sealed.items() if name in kept}
        self._sealed = {**stay, digest: sealed}
        self._messages.put(LaneSnapshot(self._lane, digest, sealed, tuple(sorted(kept))))
