"""Frames of zstd in a file of a run: read within bounds, padded where they are dense.

Whoever reads a run directory pays for what its files unpack to. So the frames of a directory may
unpack to `FLOOR` bytes and to `DENSEST` times the bytes on the disk, where each line or blob counts
at least `LEAST_WEIGHT` bytes, and each frame at least `FRAME_WEIGHT`. The writer holds to that
whatever an agent says: beside a denser frame it writes a skippable frame of zeros (RFC 8878,
section 3.1.2), which every zstd reader passes over.

Source: docs/traces.md#hash-chain.
"""

import io
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard

from owa_bench.errors import CheckFailure, TraceError

FLOOR = 1 << 27  # bytes [D]
DENSEST = 32  # traces pack to a fifth, transcripts to a quarter [D]
LEAST_WEIGHT = 512  # bytes; a line packs to some 44 [D]
FRAME_WEIGHT = 1 << 14  # bytes that a frame counts at least [D]
_FAULT_WEIGHT = 1 << 16  # bytes that a damaged frame counts at least [D]
_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x50\x2a\x4d\x18"
_SKIPPABLE_HEAD = 8  # bytes: the magic number, then a length
# Compressed bytes decoded at a time: zstd makes up to 32,768 of one.
_CHUNK = 1 << 9
_SEARCHED = 1 << 20


class RawFrame(NamedTuple):
    """The content of a frame as far as it reads, and its place in the file.

    `whole`: the file does not end inside it. `fault` says why it has no content.
    """

    offset: int
    length: int
    content: bytes
    whole: bool
    fault: str = ""


class DecodingRoom:
    """What the frames of a directory may still unpack to.

    Args:
        size: Bytes of all its files of one kind.
    Attributes:
        left: Bytes.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.left = FLOOR + DENSEST * size

    @property
    def parts(self) -> int:
        """Lines or blobs that there is room for."""
        return self.left // LEAST_WEIGHT

    def take(self, content: int, parts: int, *, damaged: bool = False) -> None:
        """Count a frame.

        Args:
            content: Bytes that it unpacked to.
            parts: Its lines or blobs.
            damaged: Whether it does not read.
        Raises: CheckFailure: There is no room left.
        """
        self.left -= max(weight_of(content, parts), _FAULT_WEIGHT if damaged else 0)
        if self.left < 0:
            raise CheckFailure(
                f"the files of {self._size:,} bytes must unpack to at most {FLOOR:,} "
                f"bytes and {DENSEST} times their own, a line or blob counting at "
                f"least {LEAST_WEIGHT} and a frame {FRAME_WEIGHT}: no run is denser"
            )


def weight_of(content: int, parts: int) -> int:
    """Return the bytes that a frame counts.

    Args:
        content: Bytes that it unpacks to.
        parts: Its lines or blobs.
    Returns: Bytes, at least so many for the frame and for each part.

    >>> weight_of(100, 2), weight_of(100, 64)
    (16384, 32768)
    """
    return max(content, LEAST_WEIGHT * parts, FRAME_WEIGHT)


def padding(length: int, weight: int) -> bytes:
    """Return what a writer appends to a frame, so that it is not too dense.

    Args:
        length: Bytes of the frame.
        weight: As `weight_of` gives it.
    Returns: A skippable frame; empty behind a frame that needs none.

    >>> len(padding(500, 16384)), padding(512, 16384)
    (12, b'')
    """
    lacking = -(-weight // DENSEST) - length
    if lacking <= 0:
        return b""
    zeros = bytes(max(0, lacking - _SKIPPABLE_HEAD))
    return _SKIPPABLE + len(zeros).to_bytes(4, "little") + zeros


def frame_at(file: BinaryIO, offset: int, most: int) -> RawFrame | None:
    """Return the first frame at or behind a place, skippable ones passed over.

    One with a fault reaches to the next place where a frame begins.

    Args:
        file: Open for reading.
        offset: The place, in bytes.
        most: Bytes that it may unpack to.
    Returns: The frame, None at the end of the file.
    """
    head = _head(file, offset)
    while head and _SKIPPABLE.startswith(head[: len(_SKIPPABLE)]):
        size = int.from_bytes(head[len(_SKIPPABLE) :], "little")
        offset += _SKIPPABLE_HEAD + size
        head = _head(file, offset)
    if not head:
        return None
    frame = _decoded(file, offset, most)
    if not frame.fault:
        return frame
    return frame._replace(length=_next_magic(file, offset + 1) - offset)


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it; a pipe, a device or a folder would hang or never end.

    Raises: TraceError: It is no regular file or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TraceError(f"{path} must be a regular file.")
        return path.open("rb")
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from error


def _head(file: BinaryIO, offset: int) -> bytes:
    file.seek(offset)
    return file.read(_SKIPPABLE_HEAD)


def _decoded(file: BinaryIO, offset: int, most: int) -> RawFrame:
    """Return what lies at a place, its length that of what was read."""
    file.seek(offset)
    reader = zstandard.ZstdDecompressor().decompressobj()
    content, length, fault = bytearray(), 0, ""
    try:
        while not reader.eof and not fault and (chunk := file.read(_CHUNK)):
            if not length and not _MAGIC.startswith(chunk[: len(_MAGIC)]):
                fault = "no frame begins there"
                break
            content += reader.decompress(chunk)
            length += len(chunk)
            if len(content) > most:
                fault = f"a frame must unpack to at most {most} bytes, got more"
    except zstandard.ZstdError as error:
        fault = str(error)
    length -= len(reader.unused_data)
    return RawFrame(offset, length, bytes(content), reader.eof, fault)


def _next_magic(file: BinaryIO, offset: int) -> int:
    """Return where the next frame may begin, or the end of the file."""
    size = file.seek(0, io.SEEK_END)
    while offset < size:
        file.seek(offset)
        data = file.read(_SEARCHED + len(_MAGIC) - 1)
        if (place := data.find(_MAGIC)) >= 0:
            return offset + place
        offset += _SEARCHED
    return size
