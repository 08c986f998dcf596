"""Files of a run directory on the acting side: leaves, shards, traces, blobs.

A leaf line, frame or blob that is half written is never read as whole. Leaves can be
made again from the shards alone.
"""

import fcntl
import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import zstandard

from owa_bench.canonical import chain_start, chain_step, document_digest
from owa_bench.errors import RunDirectoryError, TraceError
from owa_bench.records.events import DECODER, ENCODER, AnyEvent
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import (
    Closing,
    Leaf,
    Segment,
    Trace,
    attempt_id,
    replay_line,
)

_MAGIC = b"\x28\xb5\x2f\xfd"
# Compressed bytes fed at a time: zstd makes up to 32,768 of one.
_CHUNK = 1 << 12
# A frame closes at 256 KiB; one event may be longer, a bomb is longer still.
_LONGEST_FRAME = 1 << 28
_CLOSING_START = b'{"closing":'
_SHARD = re.compile(r"[0-9]{5,9}\.jsonl\.zst")
_ATTEMPT = re.compile(r"([0-9]{6,9})\.([0-9]{1,9})")
_LEAF_DECODER = msgspec.json.Decoder(Leaf)


class ShardFrame(NamedTuple):
    """A whole frame: where it lies and what it says; `closing` ends an attempt."""

    offset: int
    length: int
    segment: Segment
    lines: tuple[bytes, ...]
    closing: Closing | None


def append_leaves(layout: RunLayout, leaves: Iterable[Leaf]) -> None:
    """Append leaves and sync them; several processes may, one after the other.

    A line that another process left half written is closed off first.

    Args:
        layout: The run directory.
        leaves: The leaves.
    """
    lines = _leaf_lines(leaves)
    with layout.leaves.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file.fileno()).st_size
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            lines = b"\n" + lines
        file.write(lines)
        os.fsync(file.fileno())


def leaf_of(
    closing: Closing,
    index: int,
    attempt: int,
    shard: str,
    frames: Iterable[tuple[int, int]],
) -> Leaf:
    """Return the leaf of an attempt.

    Args:
        closing: The attempt's closing line.
        index: Its plan entry.
        attempt: Which attempt at it, from 0.
        shard: Name of the shard.
        frames: Offset and length of its frames, in bytes.

    Returns:
        The leaf.
    """
    return Leaf(
        attempt_id=attempt_id(index, attempt),
        index=index,
        attempt=attempt,
        status=closing.status,
        count=closing.count,
        head=closing.head,
        replay=closing.replay,
        shard=shard,
        frames=tuple(frames),
        timed=closing.timed,
        memory=closing.memory,
    )


def read_leaves(layout: RunLayout) -> tuple[Leaf, ...]:
    """Return the leaves on record; a half-written last line is not one.

    Raises:
        TraceError: Any other line is not a leaf.
    """
    if not layout.leaves.exists():
        return ()
    leaves = []
    lines = layout.leaves.read_bytes().split(b"\n")[:-1]
    for number, line in enumerate(lines, 1):
        try:
            leaves.append(_LEAF_DECODER.decode(line))
        except msgspec.MsgspecError as error:
            raise TraceError(
                f"Line {number} of {layout.leaves} is not a leaf: {error}. "
                "`owa-bench run --resume` makes the file again from the shards."
            ) from error
    return tuple(leaves)


def rebuild_leaves(layout: RunLayout) -> tuple[Leaf, ...]:
    """Return the leaves by the shards alone, and write them to `leaves.jsonl`.

    Only for a run that nobody is writing; files that a killed writer left half done
    are removed.

    Raises:
        TraceError: A frame is damaged, out of order or twice there.
    """
    leaves = leaves_of_shards(layout)
    for part in layout.blobs.glob(".*"):
        part.unlink()
    write_whole(layout.leaves, _leaf_lines(leaves))
    return leaves


def leaves_of_shards(layout: RunLayout) -> tuple[Leaf, ...]:
    """Return the leaves by the shards alone, by index, then attempt.

    An attempt without a closing line has status "unfinished".

    Raises:
        TraceError: A frame is damaged, out of order or twice there.
    """
    digest = plan_digest(layout)
    leaves = [leaf for path in shard_paths(layout) for leaf in _leaves_of(path, digest)]
    leaves.sort(key=lambda leaf: (leaf.index, leaf.attempt))
    for earlier, later in itertools.pairwise(leaves):
        if earlier.attempt_id == later.attempt_id:
            raise TraceError(
                f"Attempt {later.attempt_id} is in {earlier.shard} and {later.shard}."
            )
    return tuple(leaves)


def shard_paths(layout: RunLayout) -> tuple[Path, ...]:
    """Return the shards in order of number."""
    paths = layout.shards.glob("*.jsonl.zst")
    return tuple(sorted(path for path in paths if _SHARD.fullmatch(path.name)))


def next_shard(layout: RunLayout) -> int:
    """Return the lowest number above every shard there is."""
    numbers = [int(path.name.partition(".")[0]) for path in shard_paths(layout)]
    return 1 + max(numbers, default=-1)


def scan(path: Path) -> Iterator[ShardFrame]:
    """Yield the whole frames of a shard; a torn one at its end is left out.

    Raises:
        TraceError: Whole frames follow a damaged one.
    """
    data = path.read_bytes()
    offset = 0
    while offset < len(data):
        frame = _frame_at(data, offset)
        if frame is None:
            _refuse_if_more(path, data, offset)
            return
        length, text = frame
        yield _parsed(path, offset, length, text)
        offset += length


def read_trace(layout: RunLayout, leaf: Leaf) -> Trace:
    """Return one attempt as its leaf says it was written.

    Args:
        layout: The run directory.
        leaf: The attempt's leaf.

    Returns:
        The attempt's events.

    Raises:
        TraceError: Shard and leaf do not agree.
    """
    lines: list[bytes] = []
    closing: Closing | None = None
    path = layout.shards / leaf.shard
    try:
        with path.open("rb") as file:
            for part, (offset, length) in enumerate(leaf.frames):
                file.seek(offset)
                raw = _frame_at(file.read(length), 0)
                if raw is None:
                    raise _broken(path, offset, "is not whole")
                frame = _parsed(path, offset, length, raw[1])
                if frame.segment != Segment(attempt_id=leaf.attempt_id, part=part):
                    raise _broken(path, offset, f"is not part {part} of its leaf")
                lines += frame.lines
                closing = frame.closing
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error}.") from error
    head = closing.head if closing else leaf.head
    if len(lines) != leaf.count or head != leaf.head:
        raise TraceError(f"Attempt {leaf.attempt_id} does not hold what its leaf says.")
    return Trace(leaf, tuple(map(_event, lines)))


def plan_digest(layout: RunLayout) -> str:
    """Return the digest of the run's plan.

    Raises:
        RunDirectoryError: There is no readable plan.
    """
    try:
        return document_digest(msgspec.json.decode(layout.plan.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunDirectoryError(
            f"{layout.root} is no run directory: its plan.json cannot be read ({why}). "
            "`owa-bench run --out DIR` makes one."
        ) from error


def read_blob(layout: RunLayout, name: str) -> bytes:
    """Return a stored blob.

    Args:
        layout: The run directory.
        name: The blob's SHA-256 in hex.

    Returns:
        Its bytes.

    Raises:
        TraceError: It is missing or does not hash to its name.
    """
    try:
        data = (layout.blobs / name).read_bytes()
    except OSError as error:
        raise TraceError(
            f"Blob {name} is not there; transcripts may have been off."
        ) from error
    if hashlib.sha256(data).hexdigest() != name:
        raise TraceError(f"Blob {name} does not hold what its name says.")
    return data


def part_of(path: Path) -> Path:
    """Return the file that `path` is written as before it is whole."""
    return path.with_name(f".{path.name}.part")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is whole or not there, and synced.

    Args:
        path: The file.
        data: Its bytes.
    """
    part = part_of(path)
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _leaf_lines(leaves: Iterable[Leaf]) -> bytes:
    """Return the lines of leaves."""
    return b"".join(ENCODER.encode(leaf) + b"\n" for leaf in leaves)


def _frame_at(data: bytes, offset: int) -> tuple[int, bytes] | None:
    """Return (length, text) of the whole frame at `offset`, None if there is none."""
    reader = zstandard.ZstdDecompressor().decompressobj()
    pieces: list[bytes] = []
    size, place = 0, offset
    try:
        while not reader.eof:
            chunk = data[place : place + _CHUNK]
            if not chunk or size > _LONGEST_FRAME:
                return None
            pieces.append(reader.decompress(chunk))
            size += len(pieces[-1])
            place += len(chunk)
    except zstandard.ZstdError:
        return None
    return place - len(reader.unused_data) - offset, b"".join(pieces)


def _refuse_if_more(path: Path, data: bytes, offset: int) -> None:
    """Raise if a whole frame lies behind the broken one at `offset`."""
    place = data.find(_MAGIC, offset + 1)
    while place >= 0:
        if _frame_at(data, place) is not None:
            raise _broken(path, offset, "is damaged and whole frames follow it")
        place = data.find(_MAGIC, place + 1)


def _parsed(path: Path, offset: int, length: int, text: bytes) -> ShardFrame:
    """Return the frame of a decompressed text."""
    if not text.endswith(b"\n"):
        raise _broken(path, offset, "does not end with a newline")
    first, *lines = text[:-1].split(b"\n")
    closing = None
    try:
        segment = msgspec.json.decode(first, type=Segment)
        if lines and lines[-1].startswith(_CLOSING_START):
            closing = msgspec.json.decode(lines.pop(), type=Closing)
    except msgspec.MsgspecError as error:
        raise _broken(
            path, offset, f"has a bad first or last line ({error})"
        ) from error
    return ShardFrame(offset, length, segment, tuple(lines), closing)


def _leaves_of(path: Path, digest: str) -> list[Leaf]:
    """Return the leaves of one shard's attempts."""
    attempts: dict[str, list[ShardFrame]] = {}
    for frame in scan(path):
        frames = attempts.setdefault(frame.segment.attempt_id, [])
        closed = bool(frames) and frames[-1].closing is not None
        if closed or frame.segment.part != len(frames):
            raise _broken(path, frame.offset, "is out of order in its attempt")
        frames.append(frame)
    return [_leaf(path, name, frames, digest) for name, frames in attempts.items()]


def _leaf(path: Path, name: str, frames: list[ShardFrame], digest: str) -> Leaf:
    """Return an attempt's leaf, hashed anew from its lines."""
    index, attempt = _numbers(path, name)
    head = chain_start(digest, name)
    replay = hashlib.sha256()
    lines = [line for frame in frames for line in frame.lines]
    for line in lines:
        head = chain_step(head, line)
        replayed = replay_line(_event(line))
        if replayed is not None:
            replay.update(replayed + b"\n")
    computed = Closing(
        closing=name,
        status="unfinished",
        count=len(lines),
        head=head.hex(),
        replay=replay.hexdigest(),
    )
    closing = frames[-1].closing or computed
    if (closing.count, closing.head, closing.replay) != (
        computed.count,
        computed.head,
        computed.replay,
    ):
        raise TraceError(f"Attempt {name} in {path} does not hash to its closing line.")
    places = [(frame.offset, frame.length) for frame in frames]
    return leaf_of(closing, index, attempt, path.name, places)


def _numbers(path: Path, name: str) -> tuple[int, int]:
    """Return plan index and attempt number; only the recorder's way to write them."""
    numbers = _ATTEMPT.fullmatch(name)
    if numbers is not None:
        index, attempt = map(int, numbers.groups())
        if attempt_id(index, attempt) == name:
            return index, attempt
    raise TraceError(f"{path} holds `{name}`, which names no attempt.")


def _event(line: bytes) -> AnyEvent:
    """Return the event of a line."""
    try:
        return DECODER.decode(line)
    except msgspec.MsgspecError as error:
        raise TraceError(f"A line of a shard is no event: {error}.") from error


def _broken(path: Path, offset: int, what: str) -> TraceError:
    """Return the error for the frame at `offset`."""
    return TraceError(f"The frame at byte {offset} of {path} {what}.")
