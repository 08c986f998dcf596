"""Attempts read from the shards alone: lines hashed, events decoded.

Nothing here trusts what the recorder listed.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.canonical import chain_lines, chain_start
from owa_bench.errors import TraceError
from owa_bench.records.events import DECODER, AnyEvent, EpisodeEnd, EpisodeStart
from owa_bench.records.plan import PlanEntry
from owa_bench.records.shards import TraceFrame, frame_lines
from owa_bench.records.trace import Closing, Leaf, Status, replay_line

_CLOSING = b'{"closing":'
# What an episode's start must repeat of its plan entry.
TERMS = (
    *("arm", "pair", "repeat", "lane", "day", "session", "delta"),
    *("role_cap", "muted", "control", "tools_off", "side", "calendar", "phase"),
    *("condition", "window", "world_day"),
)
INSTANCE_TERMS = ("suite", "version", "family", "tier", "repeat")


class AttemptDigests(NamedTuple):
    """Head of an attempt's hash chain and its replay digest, computed from its lines."""

    head: str
    replay: str


@dataclass(frozen=True)
class RecordedAttempt:
    """One attempt as its lines show it.

    `digests` computes head and replay digest; who asks for events alone does not pay for them.
    `closing` is what the recorder wrote. `faults` name what cannot be read.
    """

    attempt_id: str
    frames: tuple[TraceFrame, ...]
    count: int
    digests: Callable[[], AttemptDigests]
    closing: Closing | None
    events: tuple[AnyEvent, ...]
    faults: tuple[str, ...]

    @property
    def head(self) -> str:
        """The head of the hash chain over the lines."""
        return self.leaf.head

    @property
    def status(self) -> Status:
        """What became of it, by its closing line."""
        if self.faults:
            return "unreadable"
        return self.closing.status if self.closing else "unfinished"

    @cached_property
    def leaf(self) -> Leaf:
        """The leaf computed from these lines, whatever `leaves.jsonl` says."""
        closing, digests = self.closing, self.digests()
        last = self.events[-1] if self.events else None
        index, _, attempt = self.attempt_id.partition(".")
        return Leaf(
            attempt_id=self.attempt_id,
            index=int(index),
            attempt=int(attempt),
            status=self.status,
            count=self.count,
            head=digests.head,
            replay=digests.replay,
            shard=self.frames[0].shard if self.frames else "",
            frames=tuple((frame.offset, frame.length) for frame in self.frames),
            timed=isinstance(last, EpisodeEnd) and last.timed,
            memory=closing.memory if closing else None,
        )


def replay_digest(events: Iterable[AnyEvent]) -> str:
    """Return the SHA-256 over the replay lines of `events`, each with its newline."""
    digest = hashlib.sha256()
    for event in events:
        line = replay_line(event)
        if line is not None:
            digest.update(line + b"\n")
    return digest.hexdigest()


def read_attempt(folder: Path, frames: Sequence[TraceFrame], plan_digest: str) -> RecordedAttempt:
    """Return the attempt that its frames hold.

    Args:
        folder: the folder of the shards.
        frames: every frame of the attempt, in file order.
        plan_digest: digest of the plan, with which the hash chain begins.
    Returns: The attempt with everything that cannot be read named in its faults.
    """
    name = frames[0].attempt_id
    rows, faults = _rows(folder, frames)
    closing, rows, more = _split(rows)
    events, wrong = _decode(rows)

    def digests() -> AttemptDigests:
        head = chain_lines(chain_start(plan_digest, name), rows)
        return AttemptDigests(head.hex(), replay_digest(events))

    return RecordedAttempt(
        attempt_id=name,
        frames=tuple(frames),
        count=len(rows),
        digests=digests,
        closing=closing,
        events=events,
        faults=tuple(f"{name}: {fault}" for fault in (*faults, *more, *wrong)),
    )


def lost_attempt(name: str) -> RecordedAttempt:
    """Return an attempt of which no frame reads."""
    return RecordedAttempt(
        attempt_id=name,
        frames=(),
        count=0,
        digests=lambda: AttemptDigests("", ""),
        closing=None,
        events=(),
        faults=(f"{name}: none of its frames reads",),
    )


def failed_start(
    attempt: RecordedAttempt, entry: PlanEntry, starts: Sequence[EpisodeStart]
) -> EpisodeStart | None:
    """Return the start of an attempt that does not read.

    Args:
        attempt: The attempt.
        entry: Its plan entry.
        starts: Those of the run's other attempts.
    Returns: Its own where that reads; else that of the most similar episode, with the terms of its
        entry; None without any of the suite.
    """
    first = next(iter(attempt.events), None)
    if isinstance(first, EpisodeStart):
        return first
    alike = [start for start in starts if start.instance.suite == entry.suite]
    if not alike:
        return None

    def likeness(start: EpisodeStart) -> tuple[bool, ...]:
        instance = start.instance
        return (
            start.pair == entry.pair,
            instance.family == entry.family,
            instance.tier == entry.tier,
            start.delta == entry.delta,
            start.interventions == entry.interventions,
            start.arm == entry.arm,
        )

    nearest = max(alike, key=likeness)
    own = next((start for start in starts if start.arm == entry.arm), nearest)
    terms = {name: getattr(entry, name) for name in TERMS}
    instance = msgspec.structs.replace(
        nearest.instance, **{name: getattr(entry, name) for name in INSTANCE_TERMS}
    )
    return msgspec.structs.replace(
        nearest,
        **terms,
        index=entry.index,
        instance=instance,
        agent=own.agent,
        fingerprint=own.fingerprint,
    )


def failed_end(attempt: RecordedAttempt) -> EpisodeEnd:
    """Return the end of an attempt that does not read: a failure of quality 0."""
    return EpisodeEnd(
        outcome="agent_raised",
        q_state=0.0,
        quality=0.0,
        success=False,
        stated=None,
        failed_attempts=0,
        reason=f"the attempt does not read: {attempt.faults[0]}",
        steps=0,
        simulated_s=0.0,
        wall_s=0.0,
    )


def _rows(folder: Path, frames: Sequence[TraceFrame]) -> tuple[list[bytes], list[str]]:
    """Return the lines of all frames in file order, and what is wrong with them."""
    rows: list[bytes] = []
    faults: list[str] = []
    for place, frame in enumerate(frames):
        if frame.part != place:
            faults.append(f"frame {place} says that it is part {frame.part}")
        if frame.shard != frames[0].shard:
            faults.append(f"frames lie in {frames[0].shard} and in {frame.shard}")
        try:
            rows += frame_lines(folder, frame)
        except TraceError as error:
            faults.append(str(error))
    return rows, faults


def _split(rows: list[bytes]) -> tuple[Closing | None, list[bytes], list[str]]:
    """Return the closing line, the event lines, and the faults of their order."""
    marks = [i for i, row in enumerate(rows) if row.startswith(_CLOSING)]
    if not marks:
        return None, rows, []
    try:
        closing = msgspec.json.decode(rows[marks[0]], type=Closing)
    except msgspec.DecodeError as error:
        return None, rows[: marks[0]], [f"its closing line does not read: {error}"]
    beyond = len(rows) - 1 - marks[0]
    faults = [f"{beyond} lines stand behind its closing line"] if beyond else []
    return closing, rows[: marks[0]] + rows[marks[0] + 1 :], faults


def _decode(rows: Sequence[bytes]) -> tuple[tuple[AnyEvent, ...], list[str]]:
    """Return the events up to the first line that is none, and why that is none."""
    events: list[AnyEvent] = []
    faults: list[str] = []
    for number, row in enumerate(rows):
        try:
            events.append(DECODER.decode(row))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            faults.append(f"line {number} is no event: {error}")
            break
    return tuple(events), faults
