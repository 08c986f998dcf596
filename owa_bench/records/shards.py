"""Shards: the frames of one file of a trace, found, decoded and checked for damage.

A shard is a row of independent zstd frames. The first one holds a `ShardHead` line, if
the shard has one. Each other frame opens with a `Segment` line that names its attempt;
the lines after it are events, and the last frame of a closed attempt ends with a
`Closing` line. The acting and the judging half read shards through this module.

Source: docs/traces.md#hash-chain.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import zstandard

from owa_bench.errors import TraceError
from owa_bench.records.packs import open_regular
from owa_bench.records.trace import Closing, Segment, attempt_id

# Compressed bytes decoded at a time: zstd makes up to 32,768 of one.
_CHUNK = 1 << 9
# A frame closes at 256 KiB of events; one giant event may exceed that, this never.
_FRAME_LIMIT = 1 << 27
# Events pack to a fifth, thousands of equal lines to a hundredth; one event of equal
# letters to less: of these `LARGEST_LINE` and a frame's own 256 KiB are free. A frame
# beyond this is there to exhaust its reader.
_DENSEST, _FREE = 1000, 1 << 23
_MAGIC = b"\x28\xb5\x2f\xfd"
_HEAD = b'{"lease":'
_CLOSING = b'{"closing":'
_HEAD_BYTES = 1 << 12
_LONGEST_NAME = 20


class ShardHead(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a shard: the lease under which its writer was started.

    The driver of a session draws a lease for each shard that it gives out. A shard
    with another one was written by somebody whom the driver did not start, such as a
    worker that outlived the driver before.
    """

    lease: str


class Frame(NamedTuple):
    """The text of a frame and its place; `fault` says why it has none.

    `torn`: the file ends inside the frame, because its writer was killed.
    """

    offset: int
    length: int
    text: bytes
    fault: str = ""
    torn: bool = False


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
    """The frames of one shard; `torn` counts the bytes of an open frame at its end."""

    frames: tuple[TraceFrame, ...]
    torn: int
    faults: tuple[str, ...]


def frames_of(path: Path) -> Iterator[Frame]:
    """Yield the frames of a shard in file order, its head left out.

    Bytes that are no frame are one frame with a fault; the next magic number begins
    another.

    Raises:
        TraceError: The file cannot be read.
    """
    with open_regular(path) as file:
        data = file.read()
    offset = 0
    while offset < len(data):
        frame = _decompress(data, offset)
        if not (offset == 0 and frame.text.startswith(_HEAD)):
            yield frame
        offset += frame.length


def read_lease(path: Path) -> str:
    """Return the lease in a shard's head, "" where it has no head.

    Raises:
        TraceError: The file cannot be read.
    """
    with open_regular(path) as file:
        text = _decompress(file.read(_HEAD_BYTES), 0).text
    if not text.startswith(_HEAD):
        return ""
    try:
        return msgspec.json.decode(text, type=ShardHead).lease
    except msgspec.MsgspecError as error:
        raise TraceError(f"The head of {path} does not read: {error}.") from error


def scan(path: Path) -> Iterator[ShardFrame]:
    """Yield the whole frames of a shard; a torn one at its end is left out.

    Raises:
        TraceError: Whole frames follow a damaged one, or a frame does not parse.
    """
    damaged: Frame | None = None
    for frame in frames_of(path):
        if frame.torn or frame.fault:
            damaged = damaged or frame
        elif damaged is not None:
            raise broken(path, damaged.offset, "is damaged and whole frames follow it")
        else:
            yield _parsed(path, frame)


def index_shard(path: Path) -> ShardIndex:
    """Return every readable frame of a shard, in file order.

    Bytes that are no frame are named as a fault; reading goes on at the next frame.
    """
    frames: list[TraceFrame] = []
    faults: list[str] = []
    torn = 0
    try:
        for frame in frames_of(path):
            if frame.torn:
                torn = frame.length
                continue
            fault = frame.fault
            try:
                first = frame.text.partition(b"\n")[0]
                segment = None if fault else msgspec.json.decode(first, type=Segment)
            except msgspec.DecodeError as error:
                segment, fault = None, str(error)
            if segment is None:
                place = f"{path.name}: the frame at {frame.offset}"
                faults.append(f"{place} does not read: {fault}")
                continue
            part = (segment.attempt_id, segment.part)
            frames.append(TraceFrame(path.name, frame.offset, frame.length, *part))
    except TraceError as error:
        faults.append(str(error))
    return ShardIndex(tuple(frames), torn, tuple(faults))


def read_frame(path: Path, offset: int, length: int) -> ShardFrame:
    """Return one frame of a shard.

    Args:
        path: The shard.
        offset: Where the frame begins, in bytes.
        length: Its length, in bytes.

    Returns:
        The frame.

    Raises:
        TraceError: There is no whole frame at that place.
    """
    with open_regular(path) as file:
        file.seek(offset)
        frame = _decompress(file.read(length), 0)
    if frame.torn or frame.fault:
        raise broken(path, offset, "is not whole")
    return _parsed(path, frame._replace(offset=offset))


def frame_lines(folder: Path, frame: TraceFrame) -> list[bytes]:
    """Return the lines of a frame after its `Segment`, without their newlines.

    Args:
        folder: the folder of the shards.
        frame: the frame to read.

    Returns:
        One entry a line.

    Raises:
        TraceError: the frame ends inside a line, or does not decompress.
    """
    with open_regular(folder / frame.shard) as shard:
        shard.seek(frame.offset)
        found = _decompress(shard.read(frame.length), 0)
    rows = found.text.split(b"\n")
    fault = found.fault or ("ends inside a line" if rows[-1] or found.torn else "")
    if fault:
        raise TraceError(f"{frame.shard}: the frame at {frame.offset} {fault}.")
    return rows[1:-1]


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


def broken(path: Path, offset: int, what: str) -> TraceError:
    """Return the error for a frame.

    Args:
        path: The shard.
        offset: Where the frame begins, in bytes.
        what: What is wrong with it.

    Returns:
        The error.
    """
    return TraceError(f"The frame at byte {offset} of {path} {what}.")


def _decompress(data: bytes, offset: int) -> Frame:
    """Return the frame at `offset`; one with a fault reaches to the next magic."""
    reader = zstandard.ZstdDecompressor().decompressobj()
    text = bytearray()
    at = offset
    fault = ""
    try:
        while at < len(data) and not reader.eof and not fault:
            text += reader.decompress(data[at : at + _CHUNK])
            at = min(at + _CHUNK, len(data))
            if len(text) > min(_FRAME_LIMIT, _FREE + _DENSEST * (at - offset)):
                fault = (
                    f"a frame must unpack to at most {_FRAME_LIMIT} bytes, and to "
                    f"{_DENSEST} times its own, got more."
                )
    except zstandard.ZstdError as error:
        fault = str(error)
    if fault:
        following = data.find(_MAGIC, offset + 1)
        end = following if following > 0 else len(data)
        return Frame(offset, end - offset, b"", fault=fault)
    if not reader.eof:
        return Frame(offset, len(data) - offset, b"", torn=True)
    return Frame(offset, at - offset - len(reader.unused_data), bytes(text))


def _parsed(path: Path, frame: Frame) -> ShardFrame:
    """Return a frame's lines and what its first and last line say."""
    if not frame.text.endswith(b"\n"):
        raise broken(path, frame.offset, "does not end with a newline")
    first, *lines = frame.text[:-1].split(b"\n")
    closing = None
    try:
        segment = msgspec.json.decode(first, type=Segment)
        if lines and lines[-1].startswith(_CLOSING):
            closing = msgspec.json.decode(lines.pop(), type=Closing)
    except msgspec.MsgspecError as error:
        raise broken(
            path, frame.offset, f"has a bad first or last line ({error})"
        ) from error
    return ShardFrame(frame.offset, frame.length, segment, tuple(lines), closing)
