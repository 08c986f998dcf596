"""Attempts read from the shards alone: frames located, lines hashed, events decoded.

A shard is a row of independent zstd frames. Each frame opens with a `Segment` line
that names its attempt; the lines after it are events, and the last frame of a closed
attempt ends with a `Closing` line. Nothing here trusts what the recorder listed.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import zstandard

from owa_bench.canonical import chain_start, chain_step
from owa_bench.errors import TraceError
from owa_bench.records.events import DECODER, AnyEvent, EpisodeEnd
from owa_bench.records.trace import Closing, Leaf, Segment, attempt_id, replay_line

# Compressed bytes decoded at a time: zstd makes up to 32,768 of one.
_CHUNK = 1 << 12
# A frame closes at 256 KiB of events; one giant event may exceed that, this never.
_FRAME_LIMIT = 1 << 27
_MAGIC = b"\x28\xb5\x2f\xfd"
_CLOSING = b'{"closing":'
_LONGEST_NAME = 20


class TraceFrame(NamedTuple):
    """The place of one frame in its shard, and the part of an attempt that it holds."""

    shard: str
    offset: int
    length: int
    attempt_id: str
    part: int


class ShardIndex(NamedTuple):
    """The frames of one shard; `torn` counts the bytes of an open frame at its end."""

    frames: tuple[TraceFrame, ...]
    torn: int
    faults: tuple[str, ...]


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


def index_shard(path: Path) -> ShardIndex:
    """Return every readable frame of a shard, in file order.

    Bytes that are no frame are named as a fault; reading goes on at the next frame.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        return ShardIndex((), 0, (f"{path.name} cannot be read: {error.strerror}",))
    frames: list[TraceFrame] = []
    faults: list[str] = []
    offset = 0
    while offset < len(data):
        try:
            body, length = _decompress(data, offset)
            segment = msgspec.json.decode(body.partition(b"\n")[0], type=Segment)
            place = (path.name, offset, length)
            frames.append(TraceFrame(*place, segment.attempt_id, segment.part))
        except _TornError:
            return ShardIndex(tuple(frames), len(data) - offset, tuple(faults))
        except (zstandard.ZstdError, TraceError, msgspec.DecodeError) as error:
            faults.append(f"{path.name}: the frame at {offset} does not read: {error}")
            following = data.find(_MAGIC, offset + 1)
            length = (following if following > 0 else len(data)) - offset
        offset += length
    return ShardIndex(tuple(frames), 0, tuple(faults))


def frame_lines(folder: Path, frame: TraceFrame) -> list[bytes]:
    """Return the lines of a frame after its `Segment`, without their newlines.

    Args:
        folder: the folder of the shards.
        frame: the frame to read.

    Returns:
        One entry a line.

    Raises:
        TraceError: the frame ends inside a line or unpacks to too many bytes.
        zstandard.ZstdError: the frame does not decompress.
    """
    with (folder / frame.shard).open("rb") as shard:
        shard.seek(frame.offset)
        body, _ = _decompress(shard.read(frame.length), 0)
    rows = body.split(b"\n")
    if rows[-1]:
        raise TraceError(
            f"{frame.shard}: the frame at {frame.offset} ends inside a line."
        )
    return rows[1:-1]


class _TornError(Exception):
    """The file ends inside a frame: the writer died, or somebody cut it off."""


def _decompress(data: bytes, offset: int) -> tuple[bytes, int]:
    """Return the body of the frame at `offset` and its compressed length."""
    reader = zstandard.ZstdDecompressor().decompressobj()
    body = bytearray()
    at = offset
    while at < len(data):
        body += reader.decompress(data[at : at + _CHUNK])
        at = min(at + _CHUNK, len(data))
        if len(body) > _FRAME_LIMIT:
            raise TraceError(
                f"a frame must unpack to at most {_FRAME_LIMIT} bytes, got more."
            )
        if reader.eof:
            return bytes(body), at - offset - len(reader.unused_data)
    raise _TornError


def is_attempt_id(name: str) -> bool:
    """Return whether a name is the recorder's "<plan index>.<attempt>".

    Only the recorder's own spelling is accepted: `3.0` beside `000003.0` would be a
    second attempt of the same number.
    """
    index, dot, attempt = name.partition(".")
    numbers = bool(dot) and index.isdecimal() and attempt.isdecimal()
    if not numbers or len(name) > _LONGEST_NAME:
        return False
    return attempt_id(int(index), int(attempt)) == name


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
    head = chain_start(plan_digest, name)
    for row in rows:
        head = chain_step(head, row)
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
        except (TraceError, zstandard.ZstdError) as error:
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
