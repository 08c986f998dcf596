"""Shards: the frames of one file of a trace, found, decoded and checked for damage.

A shard is a row of independent zstd frames. The first one holds a `ShardHead` line, if the shard
has one. Each other frame opens with a `Segment` line that names its attempt; the lines after it are
events, and the last frame of a closed attempt ends with a `Closing` line. The acting and the
judging half read shards through this module.

Source: docs/traces.md#hash-chain.
"""

import io
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.errors import CheckFailure, TraceError
from owa_bench.records.frames import DecodingRoom, RawFrame, frame_at, open_regular
from owa_bench.records.trace import Closing, Segment, attempt_id

# Bytes that a frame unpacks to at most. It closes at 256 KiB of lines, the last of
# which has `LARGEST_LINE` at most, and its secrets may be shorter than their marks.
LARGEST_FRAME = 1 << 24
MOST_FRAMES = 500_000  # of the shards of a run [D]
_HEAD = b'{"lease":'
_CLOSING = b'{"closing":'
_HEAD_BYTES = 1 << 12
_LONGEST_NAME = 20


class ShardHead(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a shard: the lease under which its writer was started.

    The driver of a session draws a lease for each shard that it gives out. A shard with another one
    was written by somebody whom the driver did not start, such as a worker that outlived the driver
    before.
    """

    lease: str


class ShardFrame(NamedTuple):
    """A whole frame: where it lies and what it says; `closing` ends an attempt."""

    offset: int
    length: int
    segment: Segment
    lines: tuple[bytes, ...]
    closing: Closing | None


class TraceFrame(NamedTuple):
    """The place of one frame in its shard, and the part of an attempt that it holds."""

    shard: str
    offset: int
    length: int
    attempt_id: str
    part: int


class ShardIndex(NamedTuple):
    """The frames of one shard; `torn` counts the bytes of an open frame at its end.

    `damaged`: whole frames follow one that does not read, which no crash leaves so.
    """

    name: str
    frames: tuple[TraceFrame, ...]
    torn: int
    faults: tuple[str, ...]
    damaged: bool = False


def frames_of(path: Path, room: DecodingRoom | None = None) -> Iterator[RawFrame]:
    """Yield the frames of a shard in file order, its head left out.

    Bytes that are no frame are one frame with a fault; the next magic number begins another.

    Args:
        path: The shard.
        room: What all shards may unpack to; None: that of this one.
    Raises:
        TraceError: The file cannot be read.
        CheckFailure: It unpacks to more than there is room for.
    """
    with open_regular(path) as file:
        if room is None:
            room = DecodingRoom(file.seek(0, io.SEEK_END))
        offset = 0
        while (frame := frame_at(file, offset, LARGEST_FRAME)) is not None:
            lines = frame.content.count(b"\n")
            room.take(len(frame.content), lines, damaged=bool(frame.fault))
            is_head = offset == 0 and frame.content.startswith(_HEAD)
            if frame.fault or not is_head:
                yield frame
            offset = frame.offset + frame.length


def read_lease(path: Path) -> str:
    """Return the lease in a shard's head, "" where it has no head.

    Raises: TraceError: The file cannot be read.
    """
    with open_regular(path) as file:
        frame = frame_at(file, 0, _HEAD_BYTES)
    text = frame.content if frame and not frame.fault else b""
    if not text.startswith(_HEAD):
        return ""
    try:
        return msgspec.json.decode(text, type=ShardHead).lease
    except msgspec.MsgspecError as error:
        raise TraceError(f"The head of {path} does not read: {error}.") from error


def scan(path: Path) -> Iterator[ShardFrame]:
    """Yield the whole frames of a shard; torn and damaged ones are left out.

    Raises: TraceError: A frame that unpacks does not parse.
    """
    for frame in frames_of(path):
        if frame.whole and not frame.fault:
            yield _parsed(path, frame)


def index_shards(
    paths: Iterable[Path],
) -> tuple[dict[str, list[TraceFrame]], tuple[ShardIndex, ...]]:
    """Return the frames of each attempt in file order, and the index of each shard.

    Args:
        paths: The shards, in order.
    Returns: Both; a frame may name what is no attempt (`is_attempt_id`).
    Raises: CheckFailure: They hold more frames, or denser ones, than a run does.
    """
    paths = [*paths]
    room = DecodingRoom(sum(path.stat().st_size for path in paths if path.is_file()))
    frames: dict[str, list[TraceFrame]] = defaultdict(list)
    shards = tuple(index_shard(path, room) for path in paths)
    for shard in shards:
        for frame in shard.frames:
            frames[frame.attempt_id].append(frame)
    return dict(frames), shards


def index_shard(path: Path, room: DecodingRoom | None = None) -> ShardIndex:
    """Return every readable frame of a shard, in file order.

    Bytes that are no frame are named as a fault; reading goes on at the next frame.

    Args:
        path: The shard.
        room: What all shards may unpack to; None: that of this one.
    Raises: CheckFailure: It holds more frames, or denser ones, than a run does.
    """
    frames: list[TraceFrame] = []
    faults: list[str] = []
    torn, damaged = 0, False
    try:
        for frame in frames_of(path, room):
            fault = frame.fault
            if not fault and not frame.whole:
                torn = frame.length
                continue
            try:
                first = frame.content.partition(b"\n")[0]
                segment = None if fault else msgspec.json.decode(first, type=Segment)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                segment, fault = None, str(error)
            if segment is None:
                place = f"{path.name}: the frame at {frame.offset}"
                faults.append(f"{place} does not read: {fault}")
                continue
            damaged = bool(faults)
            part = (segment.attempt_id, segment.part)
            frames.append(TraceFrame(path.name, frame.offset, frame.length, *part))
            if len(frames) > MOST_FRAMES:
                raise CheckFailure(f"it has more than {MOST_FRAMES:,} frames")
    except TraceError as error:
        faults.append(str(error))
    except CheckFailure as error:
        raise CheckFailure(f"{path}: {error}.") from error
    return ShardIndex(path.name, tuple(frames), torn, tuple(faults), damaged)


def read_frame(path: Path, offset: int, length: int) -> ShardFrame:
    """Return one frame of a shard.

    Args:
        path: The shard.
        offset: Where the frame begins, in bytes.
        length: Its length, in bytes.
    Raises: TraceError: There is no whole frame at that place.
    """
    return _parsed(path, _whole_frame(path, offset, length))


def frame_lines(folder: Path, frame: TraceFrame) -> list[bytes]:
    """Return the lines of a frame after its `Segment`, without their newlines.

    Args:
        folder: the folder of the shards.
        frame: the frame to read.
    Returns: One entry a line.
    Raises: TraceError: the frame ends inside a line, or does not decompress.
    """
    found = _whole_frame(folder / frame.shard, frame.offset, frame.length)
    rows = found.content.split(b"\n")
    if rows[-1]:
        raise broken(folder / frame.shard, frame.offset, "ends inside a line")
    return rows[1:-1]


def is_attempt_id(name: str) -> bool:
    """Return whether a name is the recorder's "<plan index>.<attempt>".

    Only the recorder's own spelling is accepted: `3.0` beside `000003.0` would be a second attempt
    of the same number.
    """
    index, dot, attempt = name.partition(".")
    numbers = bool(dot) and index.isdecimal() and attempt.isdecimal()
    if not numbers or len(name) > _LONGEST_NAME:
        return False
    return attempt_id(int(index), int(attempt)) == name


def broken(path: Path, offset: int, what: str) -> TraceError:
    """Return the error for a frame.

    Args:
        path: The shard.
        offset: Where the frame begins, in bytes.
        what: What is wrong with it.
    """
    return TraceError(f"The frame at byte {offset} of {path} {what}.")


def _whole_frame(path: Path, offset: int, length: int) -> RawFrame:
    """Return the frame at a place; TraceError if it is not whole and as long."""
    with open_regular(path) as file:
        frame = frame_at(file, offset, LARGEST_FRAME)
    at_place = frame is not None and (frame.offset, frame.length) == (offset, length)
    if frame is None or not at_place or not frame.whole or frame.fault:
        raise broken(path, offset, "is not whole")
    return frame


def _parsed(path: Path, frame: RawFrame) -> ShardFrame:
    """Return a frame's lines and what its first and last line say."""
    if not frame.content.endswith(b"\n"):
        raise broken(path, frame.offset, "does not end with a newline")
    first, *lines = frame.content[:-1].split(b"\n")
    closing = None
    try:
        segment = msgspec.json.decode(first, type=Segment)
        if lines and lines[-1].startswith(_CLOSING):
            closing = msgspec.json.decode(lines.pop(), type=Closing)
    except msgspec.MsgspecError as error:
        raise broken(path, frame.offset, f"has a bad first or last line ({error})") from error
    return ShardFrame(frame.offset, frame.length, segment, tuple(lines), closing)
