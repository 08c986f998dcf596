"""Attempts of a run: events read back, leaves, the two roots, message sketches.

*Evidence root*: over every attempt, scored or not, in plan order, then attempt number.
It belongs to one run. *Replay root*: over the replay digests of the attempts that
count, in plan order, those under a wall or CPU limit left out. It is equal under any
worker count, transport, order and resume. Source: `docs/traces.md#hash-chain`.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, TypeVar

import msgspec
import numpy as np

from owa_bench.canonical import tree_root
from owa_bench.errors import TraceError
from owa_bench.records.events import (
    ENCODER,
    VOLATILE_METERS,
    AnyEvent,
    Egress,
    EpisodeEnd,
    EpisodeStart,
    Event,
    Evidence,
    Execution,
    Intervention,
    MemoryChange,
    ModelCall,
    Outcome,
    PlainQuestion,
    Resource,
    SubgoalGraph,
)
from owa_bench.records.plan import Plan

# What fails an attempt that is played again: the harness, or the model's provider.
# "unreadable" is found by a reader and never written: the evidence of the attempt is
# damaged. It counts as a failure of quality 0 and is never played again.
Status = Literal["complete", "unfinished", "infrastructure", "provider", "unreadable"]
PLAYED: frozenset[Status] = frozenset({"complete", "unreadable"})
FAILED: frozenset[Status] = frozenset({"infrastructure", "provider"})
EventT = TypeVar("EventT", bound=Event)
SKETCH_BITS = 64
_SHINGLE_CACHE = 65_536
_SHINGLE = 4  # characters of a message that vote together on the bits of its sketch
# Where the harness is their source, no replay sees them again.
_OF_HARNESS = (ModelCall, PlainQuestion, Egress, Resource, Intervention, MemoryChange)
# No replay compares these, whatever their source: no score rests on them.
_NEVER_REPLAYED = (Evidence, SubgoalGraph)
# The kinds whose replay line is not always their own line.
REPLAY_VARIES: frozenset[type[Event]] = frozenset(
    {*_OF_HARNESS, *_NEVER_REPLAYED, EpisodeStart, EpisodeEnd, Execution}
)
# Their reason is text from the agent's process, with paths, times and addresses.
_AGENT_REASONS: frozenset[Outcome] = frozenset({"agent_raised", "agent_timeout"})


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a zstd frame: which attempt the frame belongs to, and its place.

    Not an event and not in the chain; the chain orders the events, this finds them.
    """

    attempt_id: str
    part: int


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """Last line of an attempt's last frame; beyond the chain, like `Segment`.

    Its first key tells it from an event (`{"closing": ...`); without one the attempt is unfinished.
    Holds what a leaf needs that the events alone do not say.
    """

    closing: str
    status: Status
    count: int
    head: str
    replay: str
    timed: bool = False
    memory: str | None = None


class Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `leaves.jsonl`: one attempt, whether it counts or not.

    `head` is the last chain value, `replay` the replay digest (both hex). `frames` are (offset,
    length) in the shard, in order. Rebuildable from the shards.
    """

    attempt_id: str
    index: int
    attempt: int
    status: Status
    count: int
    head: str
    replay: str
    shard: str
    frames: tuple[tuple[int, int], ...]
    timed: bool = False
    memory: str | None = None


@dataclass(frozen=True)
class Trace:
    """One complete attempt: `events[0]` is its start, `events[-1]` its end."""

    leaf: Leaf
    events: tuple[AnyEvent, ...]

    @property
    def start(self) -> EpisodeStart:
        """The terms of the episode; TraceError without any."""
        first = self.events[0] if self.events else None
        if not isinstance(first, EpisodeStart):
            raise TraceError(f"Attempt {self.leaf.attempt_id} does not begin with episode_start.")
        return first

    @property
    def end(self) -> EpisodeEnd:
        """The result of the episode; TraceError without any."""
        last = self.events[-1] if self.events else None
        if not isinstance(last, EpisodeEnd):
            raise TraceError(f"Attempt {self.leaf.attempt_id} does not close with episode_end.")
        return last

    def of(self, kind: type[EventT]) -> Iterator[EventT]:
        """Yield the events of one kind in order."""
        return iter(self._by_kind.get(kind, ()))  # type: ignore[arg-type]

    @cached_property
    def _by_kind(self) -> dict[type[AnyEvent], list[AnyEvent]]:
        """The events by kind: many readers ask each for one. No kind is another's subclass."""
        groups: dict[type[AnyEvent], list[AnyEvent]] = {}
        for event in self.events:
            groups.setdefault(type(event), []).append(event)
        return groups


def attempt_id(index: int, attempt: int) -> str:
    """Return the name of an attempt.

    Args:
        index: Of the plan's entry.
        attempt: Number of the attempt at it, from 0.
    Returns: "000012.0" for the first attempt at entry 12.
    """
    return f"{index:06d}.{attempt}"


def leaf_bytes(leaf: Leaf) -> bytes:
    """Return what the evidence tree hashes: identity, status, count and head.

    Where the frames lie is left out, so that a shard may be copied or re-packed.
    """
    parts = (leaf.attempt_id, leaf.status, str(leaf.count), leaf.head, leaf.memory or "")
    return "|".join(parts).encode()


def replay_line(event: Event) -> bytes | None:
    """Return the bytes of an event that must be equal in every replay.

    Wall and CPU time, worker, attempt, hosting and an agent process's error text are left out; None
    for an event that is nothing but such a measurement, a picture, the graph of subgoals, or
    something that the harness alone saw: a model's reply, a connection, earlier help, what changed
    in a memory folder.
    """
    if type(event) not in REPLAY_VARIES:  # most of them
        return ENCODER.encode(event)
    if isinstance(event, _OF_HARNESS) and event.source == "harness":
        return None
    if isinstance(event, _NEVER_REPLAYED):
        return None
    if isinstance(event, Resource) and event.meter in VOLATILE_METERS:
        return None
    if isinstance(event, EpisodeStart):
        event = msgspec.structs.replace(event, attempt=0, hosting="", root="", worker_deaths=0)
    elif isinstance(event, EpisodeEnd):
        reason = "" if event.outcome in _AGENT_REASONS else event.reason
        event = msgspec.structs.replace(event, wall_s=0.0, reason=reason)
    elif isinstance(event, Execution):
        event = msgspec.structs.replace(event, wall_s=0.0, cpu_s=0.0)
    return ENCODER.encode(event)


def plan_order(plan: Plan, leaves: Iterable[Leaf]) -> tuple[Leaf, ...]:
    """Return all attempts in plan order, then by attempt number.

    Args:
        plan: The run's plan.
        leaves: In any order.
    Raises: TraceError: an attempt belongs to no entry of the plan.
    """
    place = {entry.index: i for i, entry in enumerate(plan.entries)}
    known = tuple(leaves)
    for leaf in known:
        if leaf.index not in place:
            raise TraceError(f"Attempt {leaf.attempt_id} is of no entry of the plan.")
    return tuple(sorted(known, key=lambda leaf: (place[leaf.index], leaf.attempt)))


def counted_leaves(plan: Plan, leaves: Iterable[Leaf]) -> tuple[Leaf | None, ...]:
    """Return the attempt that counts for each plan entry: the last complete one.

    One that does not read counts before any other: losing it wins nothing.

    Args:
        plan: The run's plan.
        leaves: In any order.
    Returns: One leaf per entry of the plan, None where no attempt is complete.
    Raises: TraceError: an attempt belongs to no entry of the plan.
    """
    order = plan_order(plan, leaves)
    last = {leaf.index: leaf for leaf in order if leaf.status == "complete"}
    last |= {leaf.index: leaf for leaf in order if leaf.status == "unreadable"}
    return tuple(last.get(entry.index) for entry in plan.entries)


def evidence_root(plan: Plan, leaves: Iterable[Leaf]) -> str:
    """Return the tree root over every attempt.

    Args:
        plan: The run's plan.
        leaves: In any order.
    Returns: 64 hex digits.
    """
    return tree_root([leaf_bytes(leaf) for leaf in plan_order(plan, leaves)])


def replay_root(plan: Plan, leaves: Iterable[Leaf]) -> str:
    """Return the tree root over what must be equal in every replay.

    Args:
        plan: The run's plan.
        leaves: In any order.
    Returns: 64 hex digits.
    """
    chosen = [leaf for leaf in counted_leaves(plan, leaves) if leaf is not None]
    kept = (x for x in chosen if not x.timed and x.status != "unreadable")
    return tree_root([bytes.fromhex(leaf.replay) for leaf in kept])


def sketch(text: str) -> str:
    """Return the SimHash of a text as 16 hexadecimal digits: close for close texts.

    Each run of four characters votes on every bit with its own hash; case and white space do not
    count. Source: M. Charikar, STOC 2002.

    >>> sketch_distance(sketch("table 3 is ready"), sketch("Table 3 is  ready"))
    0
    """
    plain = " ".join(text.lower().split())
    count = max(1, len(plain) - _SHINGLE + 1)
    hashes = b"".join([_shingle_hash(plain[i : i + _SHINGLE]) for i in range(count)])
    bits = np.unpackbits(np.frombuffer(hashes, np.uint8).reshape(count, -1), axis=1)
    return np.packbits(2 * bits.sum(axis=0, dtype=np.int64) > count).tobytes().hex()


@lru_cache(_SHINGLE_CACHE)
def _shingle_hash(shingle: str) -> bytes:
    """Return the hash of a shingle, SKETCH_BITS long; the same ones come often."""
    size = SKETCH_BITS // 8
    return hashlib.blake2b(shingle.encode(), digest_size=size).digest()


def sketch_distance(one: str, other: str) -> int:
    """Return in how many bits two sketches differ.

    Args:
        one: A sketch, "" for none.
        other: Another.
    Returns: 0 to 64; 64 where one is missing.

    >>> sketch_distance("", sketch("x")), sketch_distance("0f", "0e")
    (64, 1)
    """
    if not one or not other:
        return SKETCH_BITS
    return (int(one, 16) ^ int(other, 16)).bit_count()
