"""One attempt read back: its leaf, its events, and views that scoring needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from owa_bench.errors import TraceError
from owa_bench.records.events import AnyEvent, EpisodeEnd, EpisodeStart

Status = Literal["complete", "unfinished", "infrastructure"]
EventT = TypeVar("EventT")


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a zstd frame: which attempt the frame belongs to, and its place.

    Not an event and not in the chain; the chain orders the events, this finds them.
    """

    attempt_id: str
    part: int


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """Last line of an attempt's last frame; beyond the chain, like `Segment`.

    Its first key tells it from an event (`{"closing": ...`); without one the attempt
    is unfinished. Holds what a leaf needs that the events alone do not say.
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

    `head` is the last chain value, `replay` the replay digest (both hex). `frames` are
    (offset, length) in the shard, in order. Rebuildable from the shards.
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


@dataclass(frozen=True, slots=True)
class Trace:
    """One complete attempt: `events[0]` is its start, `events[-1]` its end."""

    leaf: Leaf
    events: tuple[AnyEvent, ...]

    @property
    def start(self) -> EpisodeStart:
        """The terms of the episode; TraceError without any."""
        first = self.events[0] if self.events else None
        if not isinstance(first, EpisodeStart):
            raise TraceError(
                f"Attempt {self.leaf.attempt_id} does not begin with episode_start."
            )
        return first

    @property
    def end(self) -> EpisodeEnd:
        """What came of the episode; TraceError if that is not said."""
        last = self.events[-1] if self.events else None
        if not isinstance(last, EpisodeEnd):
            raise TraceError(
                f"Attempt {self.leaf.attempt_id} does not close with episode_end."
            )
        return last

    def of(self, kind: type[EventT]) -> Iterator[EventT]:
        """Yield the events of one kind in order."""
        return (event for event in self.events if isinstance(event, kind))


def attempt_id(index: int, attempt: int) -> str:
    """Return the name of an attempt: plan index and attempt number."""
    return f"{index:06d}.{attempt}"


def leaf_bytes(leaf: Leaf) -> bytes:
    """Return what the evidence tree hashes: identity, status, count and head.

    Where the frames lie is left out, so that a shard may be copied or re-packed.
    """
    parts = (
        leaf.attempt_id,
        leaf.status,
        str(leaf.count),
        leaf.head,
        leaf.memory or "",
    )
    return "|".join(parts).encode()
