"""The frames of a shard, found without any help from the one who wrote it.

A shard is a row of independent zstd frames. Each frame opens with a `Segment` line
that names its attempt; the lines after it are events, and the last frame of a closed
attempt ends with a `Closing` line.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec
import zstandard

from owa_bench.errors import TraceError
from owa_bench.records.trace import Segment

# Compressed bytes fed at a time: zstd makes up to 32,768 of one.
_FEED = 1 << 12
# A frame closes at 256 KiB of events; one giant event may exceed that, this never.
_FRAME_LIMIT = 1 << 27
_MAGIC = b"\x28\xb5\x2f\xfd"


class Frame(NamedTuple):
    """Where one frame lies in its shard, and which part of which attempt it is."""

    shard: str
    offset: int
    length: int
    attempt_id: str
    part: int


class ShardIndex(NamedTuple):
    """The frames of one shard; `torn` counts the bytes of an open frame at its end."""

    frames: tuple[Frame, ...]
    torn: int
    faults: tuple[str, ...]


def index(path: Path) -> ShardIndex:
    """Return every readable frame of a shard, in file order.

    Bytes that are no frame are named as a fault; reading goes on at the next frame.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        fault = f"{path.name} cannot be read: {error.strerror}"
        return ShardIndex((), 0, (fault,))
    frames: list[Frame] = []
    faults: list[str] = []
    offset = 0
    while offset < len(data):
        try:
            body, length = _decompress(data, offset)
            frames.append(_named(path.name, offset, length, body))
        except _TornError:
            return ShardIndex(tuple(frames), len(data) - offset, tuple(faults))
        except (zstandard.ZstdError, TraceError, msgspec.DecodeError) as error:
            faults.append(f"{path.name}: the frame at {offset} does not read: {error}")
            following = data.find(_MAGIC, offset + 1)
            length = (following if following > 0 else len(data)) - offset
        offset += length
    return ShardIndex(tuple(frames), 0, tuple(faults))


def lines(folder: Path, frame: Frame) -> list[bytes]:
    """Return the lines of a frame after its `Segment`, without their newlines."""
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
    pieces: list[bytes] = []
    size = 0
    at = offset
    while at < len(data):
        piece = reader.decompress(data[at : at + _FEED])
        at = min(at + _FEED, len(data))
        pieces.append(piece)
        size += len(piece)
        if size > _FRAME_LIMIT:
            raise TraceError(
                f"a frame must unpack to at most {_FRAME_LIMIT} bytes, got more."
            )
        if reader.eof:
            return b"".join(pieces), at - offset - len(reader.unused_data)
    raise _TornError


def _named(shard: str, offset: int, length: int, body: bytes) -> Frame:
    """Return the frame with what its first line says."""
    first, _, _ = body.partition(b"\n")
    segment = msgspec.json.decode(first, type=Segment)
    return Frame(shard, offset, length, segment.attempt_id, segment.part)
