"""Packs: the blobs of one shard in one file, their encoder and their reader.

    pack    zstd frames, one after the other
    frame   records, one after the other: `FRAME_BYTES` and at most one record more
    record  4 bytes, the blob's length, little-endian; then the blob

A blob's name is its SHA-256 and stands in no pack: the reader hashes what it reads, so
an edited blob is not there under its name. Names would be a third of a pack's bytes.
A writer flushes whole zstd blocks, so a frame that a kill left open reads up to its
last whole record. A reader of one blob reads its whole pack once, then the blob's
frame: `PackReader` keeps the places.

Source: docs/traces.md#hash-chain.
"""

import io
import stat
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard

from owa_bench.canonical import sha256
from owa_bench.errors import RunDirectoryError, TraceError
from owa_bench.records.layout import RunLayout

FRAME_BYTES = 1 << 22
LARGEST_BLOB = 1 << 26
# Measured on ToolQuest: 2.4 KB an episode and 6.5 us a blob; level 1 2.9 KB, 2.0 us,
# level 9 2.2 KB, 11.7 us.
_LEVEL = 6
_MAGIC = b"\x28\xb5\x2f\xfd"
_COUNT_BYTES = 4
# Compressed bytes decoded at a time: zstd makes up to 32,768 of one.
_CHUNK = 1 << 11
_FRAME_LIMIT = FRAME_BYTES + LARGEST_BLOB + 2 * _COUNT_BYTES
# What a whole pack may unpack to, in bytes: a floor, and so much for each of its bytes.
_FLOOR, _RATIO = 1 << 30, 1000


class BlobPlace(NamedTuple):
    """Where a blob lies: its frame in the pack, its bytes in the frame's content."""

    frame: int
    start: int
    length: int


class PrunedPacks(msgspec.Struct, frozen=True, kw_only=True):
    """The file `pruned.json`: bytes of each pack that was dropped, by the pack's name.

    The events keep the digests of the blobs that were in them.
    """

    packs: dict[str, int]


class PackEncoder:
    """The bytes of one pack as blobs are added; its owner writes them in order."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self._stream = self._compressor.compressobj()
        self._waiting: list[bytes] = []
        self._frame_size = 0
        self.waiting_size = 0

    def add(self, blob: bytes) -> None:
        """Take a blob of at most `LARGEST_BLOB` bytes; `flush` gives its bytes."""
        self._waiting += (len(blob).to_bytes(_COUNT_BYTES, "little"), blob)
        self.waiting_size += len(blob) + _COUNT_BYTES

    def flush(self) -> bytes:
        """Return what makes every blob so far readable; empty if none is new."""
        if not self._waiting:
            return b""
        data = self._stream.compress(b"".join(self._waiting))
        self._frame_size += self.waiting_size
        self._waiting.clear()
        self.waiting_size = 0
        if self._frame_size >= FRAME_BYTES:
            return data + self.finish()
        return data + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        """Return what ends the open frame, with the blobs that wait."""
        data = self._stream.compress(b"".join(self._waiting))
        if not self._frame_size and not self._waiting:
            return b""
        self._waiting.clear()
        self._frame_size = self.waiting_size = 0
        data += self._stream.flush()
        self._stream = self._compressor.compressobj()
        return data


class PackReader:
    """The blobs of one pack. Every blob that it returns hashes to its name.

    Attributes:
        path: The pack.
        places: Place of each whole blob by its SHA-256 in hex.
        torn: Bytes at the end that a killed writer left, which hold no whole blob.
        fault: What does not read, "" for nothing; blobs behind it are not in `places`.

    Raises:
        TraceError: The pack is no regular file, or cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, BlobPlace] = {}
        self.torn = 0
        self.fault = ""
        self._last: tuple[int, bytes] = (-1, b"")
        with open_regular(path) as file:
            self._scan(file)

    def read(self, name: str) -> bytes:
        """Return a blob.

        Args:
            name: Its SHA-256 in hex.

        Returns:
            Its bytes.

        Raises:
            TraceError: The pack does not hold it (any more).
        """
        place = self.places.get(name)
        if place is None:
            raise TraceError(f"Blob {name} is not in {self.path}.")
        if self._last[0] != place.frame:
            with open_regular(self.path) as file:
                self._last = (place.frame, _decode(file, place.frame).content)
        data = self._last[1][place.start : place.start + place.length]
        if sha256(data) != name:
            raise TraceError(f"Blob {name} in {self.path} does not hash to its name.")
        return data

    def _scan(self, file: BinaryIO) -> None:
        """Find the places of all blobs, or up to the first bytes that do not read."""
        size = file.seek(0, io.SEEK_END)
        room = _FLOOR + _RATIO * size
        offset = 0
        while offset < size and not self.fault:
            frame = _decode(file, offset)
            end = self._place(offset, frame.content)
            self.fault = frame.fault
            if frame.whole and end != len(frame.content):
                self.fault = f"the frame at byte {offset} ends inside a blob"
            if not frame.whole and not frame.fault:
                self.torn = len(frame.content) - end or frame.length
            room -= len(frame.content)
            if room < 0:
                self.fault = f"unpacks to over {_RATIO} times its {size} bytes"
            offset += frame.length

    def _place(self, offset: int, content: bytes) -> int:
        """Take the whole records of a frame and return where they end."""
        at = 0
        while at + _COUNT_BYTES <= len(content):
            start = at + _COUNT_BYTES
            length = int.from_bytes(content[at:start], "little")
            if start + length > len(content):
                break
            at = start + length
            name = sha256(content[start:at])
            self.places.setdefault(name, BlobPlace(offset, start, length))
        return at


class Transcripts:
    """The blobs of a run, whatever shard they lie in; packs are read when asked for."""

    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout

    @cached_property
    def packs(self) -> tuple[PackReader, ...]:
        """The packs in order of number; TraceError if one cannot be opened."""
        return tuple(map(PackReader, pack_paths(self._layout)))

    def read(self, name: str) -> bytes:
        """Return a blob of the run.

        Args:
            name: Its SHA-256 in hex.

        Returns:
            Its bytes.

        Raises:
            TraceError: No pack holds it.
        """
        for pack in self.packs:
            if name in pack.places:
                return pack.read(name)
        why = "transcripts may have been off"
        if read_pruned(self._layout):
            why = "transcripts were pruned"
        raise TraceError(f"Blob {name} is not there; {why}.")


def pack_paths(layout: RunLayout) -> Iterator[Path]:
    """Yield the packs of a run in order of number."""
    yield from sorted(layout.blobs.glob("*.pack"))


def read_pruned(layout: RunLayout) -> dict[str, int]:
    """Return the bytes of each pack that was pruned, by name.

    Raises:
        RunDirectoryError: `pruned.json` does not read.
    """
    try:
        data = layout.pruned.read_bytes()
        return msgspec.json.decode(data, type=PrunedPacks).packs
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise RunDirectoryError(
            f"{layout.pruned} must name the packs that were pruned, got: {error}."
        ) from error


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it; a pipe, a device or a folder would hang or never end.

    Raises:
        TraceError: It is no regular file or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TraceError(f"{path} must be a regular file.")
        return path.open("rb")
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from error


class _Frame(NamedTuple):
    """The content of a frame as far as it reads, and its compressed length."""

    content: bytes
    length: int
    whole: bool
    fault: str


def _decode(file: BinaryIO, offset: int) -> _Frame:
    """Return the frame at `offset`; the file ends inside one that is not whole."""
    file.seek(offset)
    reader = zstandard.ZstdDecompressor().decompressobj()
    content, length = bytearray(), 0
    try:
        while not reader.eof and (chunk := file.read(_CHUNK)):
            if not length and not _MAGIC.startswith(chunk[: len(_MAGIC)]):
                return _Frame(b"", len(chunk), False, f"no frame at byte {offset}")
            content += reader.decompress(chunk)
            length += len(chunk)
            if len(content) > _FRAME_LIMIT:
                why = f"the frame at byte {offset} unpacks to over {_FRAME_LIMIT} bytes"
                return _Frame(b"", length, False, why)
    except zstandard.ZstdError as error:
        why = f"the frame at byte {offset} does not read: {error}"
        return _Frame(bytes(content), length, False, why)
    length -= len(reader.unused_data)
    return _Frame(bytes(content), length, reader.eof, "")
