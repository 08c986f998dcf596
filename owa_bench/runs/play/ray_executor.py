"""Ray executor: workers are actors on the nodes of a cluster.

Every node is asked first whether it can play the plan; one that cannot is named and not used. An
actor gets the plan, the agents' files and, by the work item, seeds; its records come back as one
stream of messages, and only this process writes to the run directory. An actor that died, or whose
node did, is replaced on a node with fewer deaths. When this process dies its actors' messages reach
nobody, and the cluster ends them.
"""

import contextlib
import logging
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.errors import InfrastructureFailure, UsageError, extra, needs
from owa_bench.hosting.archives import pack_agents
from owa_bench.hosting.spec import AgentHandle, load_agent
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan
from owa_bench.runs.plan.budget import RunTally
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.play.executors import OnDone, Stopped, WorkerLink, WorkerPool
from owa_bench.runs.play.node_worker import (
    GivenItem,
    LaneSnapshot,
    LeafCommit,
    NodeMessage,
    NodeOrder,
    NodeWorker,
    ShardBytes,
    WorkerReport,
    node_faults,
)
from owa_bench.runs.play.work_items import WorkItem
from owa_bench.runs.play.worker import WorkerConfig, WorkerMessage
from owa_bench.runs.store.memory import SnapshotFiles
from owa_bench.runs.store.memory_folder import EMPTY
from owa_bench.runs.store.output import ShardFiles
from owa_bench.seeding import fresh_bytes

_LOG = logging.getLogger(__name__)
_READY_S = 120.0  # in which a node must say whether it can play
_NODE_S = 5.0  # in which the cluster sees that a dead worker's machine is gone
_LOOK_S = 0.2  # between two looks at that machine
_MESSAGES = msgspec.msgpack.Decoder(list[NodeMessage])


def play_on_ray(
    items: Iterable[WorkItem],
    config: WorkerConfig,
    tally: RunTally,
    on_done: OnDone,
    stopped: Stopped,
    *,
    workers: int,
    address: str,
) -> bool:
    """Play every item in actors on a cluster's nodes (an `Executor`).

    Args:
        items: What to play.
        config: The configuration of the first worker.
        tally: What the run has used so far.
        on_done: Called for every closed attempt.
        stopped: Whether nothing more of a plan entry's arm is played.
        workers: Number of actors.
        address: The cluster; "": that of RAY_ADDRESS, else one started here.
    Returns: Whether a worker died.
    Raises:
        MissingPartError: Ray is not installed.
        UsageError: No node can play the plan.
        InfrastructureFailure: A worker reports one, or none can work.
    """
    ray = _connected(address, workers)
    try:
        layout = RunLayout(Path(config.run))
        plan, folder = read_plan(layout), Path(config.folder)
        agents = pack_agents(_agents(plan, folder), folder)
        config = _with_url(config)
        hosts = RayHosts(ray, layout, agents, _variables(config))
        pool = WorkerPool(items, config, tally, on_done, stopped, hosts)
        pool.play(workers)
    finally:
        ray.shutdown()
    return pool.deaths > 0


def _agents(plan: Plan, folder: Path) -> list[AgentHandle]:
    return [load_agent(arm.agent, folder=folder) for arm in plan.arms]


def _with_url(config: WorkerConfig) -> WorkerConfig:
    """Return a configuration whose model is at this machine's address on every node."""
    url = config.gateway.model_url or os.environ.get("OPENAI_BASE_URL", "")
    gateway = msgspec.structs.replace(config.gateway, model_url=url)
    return msgspec.structs.replace(config, gateway=gateway)


def _variables(config: WorkerConfig) -> tuple[str, ...]:
    """Return the variables that must be set on a node because they are here."""
    names = (*config.gateway.secret_variables, *config.gateway.pass_env)
    return tuple(name for name in names if name in os.environ)


def _connected(address: str, workers: int) -> Any:
    """Return the library, connected; nothing is reported to its makers.

    It reads its settings when it is imported. The token of a cluster that is started here is for
    this session alone and written nowhere.
    """
    cluster = address or os.environ.get("RAY_ADDRESS")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not cluster and "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = fresh_bytes().hex()
    with needs("Ray", extra("ray")):
        import ray
    if not cluster:
        level = logging.WARNING
        ray.init(num_cpus=workers, include_dashboard=False, logging_level=level)
        return ray
    try:
        ray.init(address=cluster, logging_level=logging.WARNING)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UsageError(f"There is no Ray cluster at {cluster}: {error}.") from error
    return ray


def _last_line(error: BaseException) -> str:
    """Return the last cause that an error of the library names, in a line."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else ""


class RayHosts:
    """The nodes of a cluster that can play the plan.

    Args:
        ray: The library, connected.
        layout: The run directory.
        agents: The archive of the agents' files.
        variables: Environment variables that a node must have.
    Raises: UsageError: No node can.
    """

    def __init__(
        self, ray: Any, layout: RunLayout, agents: bytes, variables: Sequence[str]
    ) -> None:
        self._ray = ray
        self._layout = layout
        self._plan = ray.put(layout.plan.read_bytes())
        self._agents = ray.put(agents)
        self._deaths = Counter[str]()
        self._actors = Counter[str]()
        self._nodes = self._ready_nodes(variables)

    def start(self, config: WorkerConfig) -> "RayWorker":
        """Start an actor on the node with the fewest deaths, then the least load.

        Args:
            config: The worker's configuration.
        Returns: The way to it.
        """
        alive = self._live_nodes()
        nodes = [node for node in self._nodes if node in alive]
        if not nodes:
            raise InfrastructureFailure("every node that could play has died")
        node = min(
            nodes,
            key=lambda each: (
                self._deaths[each],
                self._actors[each] / alive[each]["Resources"]["CPU"],
            ),
        )
        self._actors[node] += 1
        output = ShardFiles(self._layout, config.shard, config.lease)
        order = NodeOrder(config=config, shard=output.name, head=output.size)
        terms = self._ray.remote(
            num_cpus=0,
            concurrency_groups={"items": 1, "messages": 1},
            scheduling_strategy=self._on(node),
        )
        actor = terms(NodeWorker).remote(msgspec.msgpack.encode(order), self._plan, self._agents)
        return RayWorker(self, actor, node, output)

    def wait(self, links: Collection[WorkerLink]) -> Sequence[WorkerLink]:
        """Wait for messages; return the workers that have some, or have died.

        One that has died is returned when it is known whether its machine is gone too; others
        do not wait for that.

        Args:
            links: The workers.
        Returns: Some of them.
        """
        workers = [link for link in links if isinstance(link, RayWorker)]
        dead = [worker for worker in workers if worker.died_at is not None]
        streams = {worker.stream: worker for worker in workers if worker.died_at is None}
        ready: list[Any] = []
        while not ready:
            if judged := [worker for worker in dead if self._is_judged(worker)]:
                return judged
            if streams:
                timeout = _LOOK_S if dead else None
                ready, _ = self._ray.wait(list(streams), fetch_local=False, timeout=timeout)
            else:
                time.sleep(_LOOK_S)
        return [streams[stream] for stream in ready]

    def ended(self, node: str, *, died: bool) -> None:
        """Count the end of a worker.

        Args:
            node: Its node.
            died: Whether it did not end in order.
        """
        self._actors[node] -= 1
        self._deaths[node] += died

    def snapshots(self, lane: str) -> SnapshotFiles:
        """Return the snapshots of a lane in the run directory."""
        return SnapshotFiles(self._layout, lane)

    def take(self, stream: Any) -> list[NodeMessage]:
        """Return the next messages of a stream.

        Raises: EOFError: It has ended, or its actor has.
        """
        try:
            return _MESSAGES.decode(self._ray.get(next(stream)))
        except (StopIteration, self._ray.exceptions.RayError) as error:
            raise EOFError(_last_line(error)) from error

    def is_lost(self, node: str) -> bool:
        """Return whether a machine is gone, as far as the cluster has seen."""
        return node not in self._live_nodes()

    def kill(self, actor: Any) -> None:
        """End an actor at once."""
        self._ray.kill(actor)

    def _is_judged(self, worker: "RayWorker") -> bool:
        """Return whether it is known if a dead worker's machine is gone too."""
        late = time.monotonic() - (worker.died_at or 0.0) >= _NODE_S
        return late or self.is_lost(worker.node)

    def _live_nodes(self) -> dict[str, Any]:
        """Return the nodes that are alive and have processors, by their id."""
        nodes = (node for node in self._ray.nodes() if node["Alive"])
        return {n["NodeID"]: n for n in nodes if n["Resources"].get("CPU")}

    def _on(self, node: str) -> Any:
        strategies = self._ray.util.scheduling_strategies
        return strategies.NodeAffinitySchedulingStrategy(node, soft=False)

    def _ready_nodes(self, variables: Sequence[str]) -> list[str]:
        """Return the nodes that can play; name those that cannot."""
        check = self._ray.remote(node_faults)
        checks = {
            node: check.options(
                num_cpus=0, max_retries=0, scheduling_strategy=self._on(node)
            ).remote(self._plan, self._agents, variables)
            for node in self._live_nodes()
        }
        ready, refused = [], []
        for node, answer in checks.items():
            try:
                faults = self._ray.get(answer, timeout=_READY_S)
            except self._ray.exceptions.RayError as error:
                faults = [_last_line(error)]
            if not faults:
                ready.append(node)
            else:
                refused.append(f"{self._name(node)}: {'; '.join(faults)}")
                _LOG.warning("node %s is not used", refused[-1])
        if not ready:
            raise UsageError("No node of the cluster can play this plan. " + " | ".join(refused))
        return ready

    def _name(self, node: str) -> str:
        alive = self._live_nodes()
        host = alive[node]["NodeManagerHostname"] if node in alive else "?"
        return f"{host} ({node[:8]})"


class RayWorker:
    """One actor, and the shard that its records are written to here.

    Attributes:
        node: The node that it is on.
        died_at: When it was seen to have died, None while it lives.
    """

    def __init__(self, hosts: RayHosts, actor: Any, node: str, output: ShardFiles) -> None:
        # A worker goes on yielding when this process has taken what it yielded before.
        self.stream = actor.messages.options(
            num_returns="streaming",
            concurrency_group="messages",
            _generator_backpressure_num_objects=1,
        ).remote()
        self._hosts = hosts
        self._actor = actor
        self._output = output
        self._how = ""
        self.node = node
        self.died_at: float | None = None
        self.lost = False

    def give(self, item: WorkItem) -> None:
        """Send an item, with the snapshots of its lane that it needs."""
        snapshots: dict[str, bytes] = {}
        reverted = () if item.reverts is None else (item.states[item.reverts],)
        for digest in {item.memory or EMPTY, *reverted}:
            # of an empty folder there may be none
            with contextlib.suppress(FileNotFoundError):
                snapshots[digest] = self._hosts.snapshots(item.lane or "").read(digest)
        self._send(GivenItem(item=item, snapshots=snapshots))

    def finish(self) -> None:
        """Tell the worker to end."""
        self._send(None)

    def receive(self) -> list[WorkerMessage]:
        """Write what the worker recorded; return what it says.

        Returns: Its messages; none at the first call after it died.
        Raises:
            EOFError: It has ended, or has died before.
            InfrastructureFailure: Its records cannot be written.
        """
        if self.died_at is not None:
            self.lost = self._hosts.is_lost(self.node)
            raise EOFError(self._how)
        try:
            messages = self._hosts.take(self.stream)
        except EOFError as error:
            self._how = str(error)
            if not self._how:
                raise
            self.died_at = time.monotonic()
            return []
        try:
            told = [self._record_message(message) for message in messages]
        except OSError as error:
            raise InfrastructureFailure(f"The run directory cannot be written: {error}.") from error
        return [message for message in told if message is not None]

    def stop(self) -> None:
        """Kill the actor."""
        self._how = "stopped"
        self._hosts.kill(self._actor)

    def wait(self) -> str:
        """Take what still comes; return how the actor ended, "" for in order."""
        while not self._how:
            try:
                self.receive()
            except EOFError:
                break
        self._output.commit(())
        self._output.close()
        self._hosts.ended(self.node, died=bool(self._how))
        self._hosts.kill(self._actor)
        return self._how

    def _send(self, given: GivenItem | None) -> None:
        data = b"" if given is None else msgspec.msgpack.encode(given)
        self._actor.give.options(concurrency_group="items").remote(data)

    def _record_message(self, message: NodeMessage) -> WorkerMessage | None:
        """Write a record down; return what the worker says of itself."""
        match message:
            case ShardBytes():
                self._output.append(message.frame, message.blobs)
            case LeafCommit():
                self._output.commit(message.leaves)
            case LaneSnapshot():
                snapshots = self._hosts.snapshots(message.lane)
                snapshots.write(message.digest, message.sealed, message.kept)
            case WorkerReport():
                return message.message
        return None
