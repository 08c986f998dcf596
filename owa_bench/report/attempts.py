"""Attempts read from the shards alone: lines hashed, events decoded.

Nothing here trusts what the recorder listed.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from owa_bench.canonical import chain_lines, chain_start
from owa_bench.errors import TraceError
from owa_bench.records.events import DECODER, AnyEvent, EpisodeEnd
from owa_bench.records.shards import TraceFrame, frame_lines
from owa_bench.records.trace import Closing, Leaf, replay_line

_CLOSING = b'{"closing":'


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One attempt as its lines show it.

    `head`, `count` and `replay` are computed from the lines, `closing` is what the
    recorder wrote. `faults` name what cannot be read.
    """

    attempt_id: str
    frames: tuple[TraceFrame, ...]
    count: int
    head: str
    replay: str
    closing: Closing | None
    events: tuple[AnyEvent, ...]
    faults: tuple[str, ...]

    @property
    def leaf(self) -> Leaf:
        """The leaf computed from these lines, whatever `leaves.jsonl` says."""
        closing = self.closing
        last = self.events[-1] if self.events else None
        index, _, attempt = self.attempt_id.partition(".")
        return Leaf(
            attempt_id=self.attempt_id,
            index=int(index),
            attempt=int(attempt),
            status=closing.status if closing else "unfinished",
            count=self.count,
            head=self.head,
            replay=self.replay,
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


def read_attempt(
    folder: Path, frames: Sequence[TraceFrame], plan_digest: str
) -> RecordedAttempt:
    """Return the attempt that its frames hold.

    Args:
        folder: the folder of the shards.
        frames: every frame of the attempt, in file order.
        plan_digest: digest of the plan, with which the hash chain begins.

    Returns:
        The attempt with everything that cannot be read named in its faults.
    """
    name = frames[0].attempt_id
    rows, faults = _rows(folder, frames)
    closing, rows, more = _split(rows)
    head = chain_lines(chain_start(plan_digest, name), rows)
    events, wrong = _decode(rows)
    return RecordedAttempt(
        attempt_id=name,
        frames=tuple(frames),
        count=len(rows),
        head=head.hex(),
        replay=replay_digest(events),
        closing=closing,
        events=events,
        faults=tuple(f"{name}: {fault}" for fault in (*faults, *more, *wrong)),
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
    """Return the events that decode, and the lines that do not."""
    events: list[AnyEvent] = []
    faults: list[str] = []
    for number, row in enumerate(rows):
        try:
            events.append(DECODER.decode(row))
        except msgspec.DecodeError as error:
            faults.append(f"line {number} is no event: {error}")
    return tuple(events), faults
