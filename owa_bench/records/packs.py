"""Packs: the blobs of one shard in one file, their encoder and their reader.

    pack    zstd frames, one after the other
    frame   records, one after the other: `FRAME_BYTES` and at most one record more
    record  4 bytes, the blob's length, little-endian; then the blob

A blob's name is its SHA-256 and stands in no pack: the reader hashes what it reads, so an edited
blob is not there under its name. Names would be a third of a pack's bytes. A writer flushes whole
zstd blocks, so a frame that a kill left open reads up to its last whole record. A reader of one
blob reads its whole pack once, then the blob's frame: `PackReader` keeps the places.

Source: docs/traces.md#hash-chain.
"""

import io
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard

from owa_bench.canonical import sha256
from owa_bench.errors import CheckFailure, RunDirectoryError, TraceError
from owa_bench.records.frames import DecodingRoom, frame_at, open_regular, padding, weight_of
from owa_bench.records.layout import RunLayout

FRAME_BYTES = 1 << 22
LARGEST_BLOB = 1 << 26
# Measured on ToolQuest: 2.4 KB an episode and 6.5 us a blob; level 1 2.9 KB, 2.0 us,
# level 9 2.2 KB, 11.7 us.
_LEVEL = 6
_COUNT_BYTES = 4
_FRAME_LIMIT = FRAME_BYTES + LARGEST_BLOB + 2 * _COUNT_BYTES


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
        # Of the open frame: bytes of content and on the disk, and blobs.
        self._frame_size = self._length = self._blobs = 0
        self.waiting_size = 0

    def add(self, blob: bytes) -> None:
        """Take a blob of at most `LARGEST_BLOB` bytes; `flush` gives its bytes."""
        self._waiting += (len(blob).to_bytes(_COUNT_BYTES, "little"), blob)
        self.waiting_size += len(blob) + _COUNT_BYTES
        self._blobs += 1

    def flush(self) -> bytes:
        """Return what makes every blob so far readable; empty if none is new."""
        if not self._waiting:
            return b""
        if self._frame_size + self.waiting_size >= FRAME_BYTES:
            return self.finish()
        return self._flushed(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        """Return what ends the open frame, with the blobs that wait."""
        if not self._frame_size and not self._waiting:
            return b""
        data = self._flushed(zstandard.COMPRESSOBJ_FLUSH_FINISH)
        data += padding(self._length, weight_of(self._frame_size, self._blobs))
        self._frame_size = self._length = self._blobs = 0
        self._stream = self._compressor.compressobj()
        return data

    def _flushed(self, mode: int) -> bytes:
        """Return the bytes of the blobs that wait."""
        data = self._stream.compress(b"".join(self._waiting)) + self._stream.flush(mode)
        self._frame_size += self.waiting_size
        self._length += len(data)
        self._waiting.clear()
        self.waiting_size = 0
        return data


class PackReader:
    """The blobs of one pack. Every blob that it returns hashes to its name.

    Attributes:
        path: The pack.
        places: Place of each whole blob by its SHA-256 in hex.
        torn: Bytes at the end that a killed writer left, which hold no whole blob.
        fault: What does not read, "" for nothing; blobs behind it are not in `places`.
    Args:
        path: The pack.
        room: What all packs may unpack to; None: that of this one.
    Raises: TraceError: The pack is no regular file, or cannot be opened.
    """

    def __init__(self, path: Path, room: DecodingRoom | None = None) -> None:
        self.path = path
        self.places: dict[str, BlobPlace] = {}
        self.torn = 0
        self.fault = ""
        self._last: tuple[int, bytes] = (-1, b"")
        with open_regular(path) as file:
            size = file.seek(0, io.SEEK_END)
            self._scan(file, DecodingRoom(size) if room is None else room)

    def read(self, name: str) -> bytes:
        """Return a blob.

        Args:
            name: Its SHA-256 in hex.
        Raises: TraceError: The pack does not hold it (any more).
        """
        place = self.places.get(name)
        if place is None:
            raise TraceError(f"Blob {name} is not in {self.path}.")
        if self._last[0] != place.frame:
            with open_regular(self.path) as file:
                frame = frame_at(file, place.frame, _FRAME_LIMIT)
                self._last = (place.frame, frame.content if frame else b"")
        data = self._last[1][place.start : place.start + place.length]
        if sha256(data) != name:
            raise TraceError(f"Blob {name} in {self.path} does not hash to its name.")
        return data

    def _scan(self, file: BinaryIO, room: DecodingRoom) -> None:
        """Find the places of all blobs, or up to the first bytes that do not read."""
        offset = 0
        while frame := None if self.fault else frame_at(file, offset, _FRAME_LIMIT):
            end, blobs = self._place(frame.offset, frame.content, room.parts)
            if frame.fault:
                self.fault = f"the frame at byte {frame.offset}: {frame.fault}"
            elif frame.whole and end != len(frame.content):
                self.fault = f"the frame at byte {frame.offset} ends inside a blob"
            elif not frame.whole:
                self.torn = len(frame.content) - end or frame.length
            try:
                room.take(len(frame.content), blobs, damaged=bool(frame.fault))
            except CheckFailure as error:
                self.fault = str(error)
            offset = frame.offset + frame.length

    def _place(self, offset: int, content: bytes, most: int) -> tuple[int, int]:
        """Take the whole records of a frame; return where they end and how many."""
        at = count = 0
        while count <= most and at + _COUNT_BYTES <= len(content):
            start = at + _COUNT_BYTES
            length = int.from_bytes(content[at:start], "little")
            if start + length > len(content):
                break
            at = start + length
            name = sha256(content[start:at])
            self.places.setdefault(name, BlobPlace(offset, start, length))
            count += 1
        return at, count


class Transcripts:
    """The blobs of a run, whatever shard they lie in; packs are read when asked for."""

    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout

    @cached_property
    def packs(self) -> tuple[PackReader, ...]:
        """The packs in order of number; TraceError if one cannot be opened."""
        return read_packs(self._layout)

    def read(self, name: str) -> bytes:
        """Return a blob of the run.

        Args:
            name: Its SHA-256 in hex.
        Raises: TraceError: No pack holds it.
        """
        for pack in self.packs:
            if name in pack.places:
                return pack.read(name)
        why = "transcripts may have been off"
        if read_pruned(self._layout):
            why = "transcripts were pruned"
        raise TraceError(f"Blob {name} is not there; {why}.")


def read_packs(layout: RunLayout) -> tuple[PackReader, ...]:
    """Return the packs of a run in order of number, which share their room.

    Raises: TraceError: One cannot be opened.
    """
    paths = [*pack_paths(layout)]
    room = DecodingRoom(sum(path.stat().st_size for path in paths if path.is_file()))
    return tuple(PackReader(path, room) for path in paths)


def pack_paths(layout: RunLayout) -> Iterator[Path]:
    """Yield the packs of a run in order of number."""
    yield from sorted(layout.blobs.glob("*.pack"))


def read_pruned(layout: RunLayout) -> dict[str, int]:
    """Return the bytes of each pack that was pruned, by name.

    Raises: RunDirectoryError: `pruned.json` does not read.
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
