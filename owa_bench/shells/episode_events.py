"""Records of an episode: sinks for events, drift events, progress in the task DAG."""

from collections.abc import Callable

import msgspec

from owa_bench import interfaces
from owa_bench.canonical import sha256
from owa_bench.records import events
from owa_bench.records.events import Event, Subgoal, SubgoalGraph
from owa_bench.records.instance import Timeline

# --- sinks: discarding, and in memory -------------------------------------------------


class NullSink:
    """Keeps nothing; `active` is False, so that no event is built for it."""

    active = False

    def emit(self, event: Event) -> None:
        """Forget the event."""

    def blob(self, data: bytes) -> str:
        """Return the SHA-256 of `data`, which is not kept."""
        return sha256(data)

    def secret(self, name: str, value: str) -> None:
        """Forget the secret. Args: name, value: as `Sink`."""


class ListSink:
    """Keeps events, blobs and secrets in memory, as they came: for tests and replay."""

    active = True

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.blobs: dict[str, bytes] = {}
        self.secrets: dict[str, str] = {}

    def emit(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)

    def blob(self, data: bytes) -> str:
        """Keep `data` and return its SHA-256."""
        digest = sha256(data)
        self.blobs[digest] = data
        return digest

    def secret(self, name: str, value: str) -> None:
        """Keep the secret by name. Args: name, value: as `Sink`."""
        self.secrets[name] = value


# --- drift ----------------------------------------------------------------------------


def drift_events(timeline: Timeline, index: int) -> list[events.Event]:
    """Return the events of the changes that lead into a world.

    Args:
        timeline: The episode's.
        index: Of the world.
    Returns: One Drift per change, in order.
    """
    return [
        events.Drift(at_ms=timeline.starts[index], **msgspec.structs.asdict(change))
        for change in timeline.changes[index]
    ]


# --- progress: nodes solved, and the flows into them ----------------------------------


def depth_of(oracle: interfaces.Oracle, world: interfaces.World) -> int:
    """Return the depth of a world's DAG.

    Args:
        oracle: The suite's.
        world: One of its worlds.
    Returns: Nodes on the longest path, 0 without a node.
    """
    return max((node.depth for node in oracle.subgoals(world)), default=0)


class NodeProgress:
    """The nodes of one episode's first world, and what has been reached of them.

    What is reached at reset is credited to nobody: no event tells of it.
    """

    def __init__(
        self, oracle: interfaces.Oracle, world: interfaces.World, state: interfaces.State
    ) -> None:
        self._oracle = oracle
        self.nodes = {node.name: node for node in oracle.subgoals(world)}
        self._needed = {n for node in self.nodes.values() for n in node.prerequisites}
        self._solved = oracle.solved(world, state)
        self._gained = set(self._solved)
        self._served_at = dict.fromkeys(self._products(world, state, self._solved), 0)

    def graph(self) -> tuple[SubgoalGraph, ...]:
        """Return the event of the nodes that are still to be solved; none of a task without."""
        left = [node for node in self.nodes.values() if node.name not in self._solved]
        if not left:
            return ()
        return (SubgoalGraph(nodes=tuple((node.name, node.prerequisites) for node in left)),)

    def gain(self, names: frozenset[str]) -> bool:
        """Return whether a name is among these that was not gained before."""
        new = not names <= self._gained
        self._gained |= names
        return new

    def solve(
        self, world: interfaces.World, state: interfaces.State, step: int
    ) -> tuple[Subgoal, ...]:
        """Return an event for each node solved since last asked, in DAG order.

        Args:
            world: The world that holds now.
            state: The session's state after the step.
            step: Number of the step.
        Returns: The events, with the flows into each node.
        """
        reached = self._oracle.solved(world, state)
        for name in self._products(world, state, reached) - self._served_at.keys():
            self._served_at[name] = step
        solved = reached - self._solved
        self._solved |= solved
        if not solved:
            return ()
        return tuple(
            Subgoal(
                step=step,
                node=node.name,
                depth=node.depth,
                prerequisites=node.prerequisites,
                flows=tuple(filter(self._flows_into(node.name, step), node.prerequisites)),
                final=node.name not in self._needed,
            )
            for node in self.nodes.values()
            if node.name in solved
        )

    def _products(
        self, world: interfaces.World, state: interfaces.State, solved: frozenset[str]
    ) -> frozenset[str]:
        products = self._oracle.products(world, state)
        return solved if products is None else products

    def _flows_into(self, node: str, step: int) -> Callable[[str], bool]:
        """Return whether a product was there before the act that solves a node now.

        And not later than the first part of the node's own: what is fetched once the work is under
        way was not needed for it.
        """
        begun, served = self._served_at[node], self._served_at
        return lambda name: name in served and served[name] < step and served[name] <= begun
