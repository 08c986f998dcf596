"""Leaves and traces of a run directory: written, read back, made again from shards.

A leaf line or frame that is half written is never read as whole. Leaves can be made again from the
shards alone. Shards are read by `records.shards`, blobs by `records.packs`.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

import msgspec

from owa_bench.canonical import chain_lines, chain_start, text_digest
from owa_bench.errors import RunDirectoryError, TraceError
from owa_bench.records.bounds import MOST_FAULTS, decode_document, lines_of, refuse_hostile_files
from owa_bench.records.events import DECODER, ENCODER, AnyEvent
from owa_bench.records.layout import RunLayout
from owa_bench.records.shards import ShardFrame, TraceFrame, broken, index_shards, read_frame
from owa_bench.records.trace import Closing, Leaf, Segment, Trace, attempt_id, replay_line
from owa_bench.runs.store import disk

_SHARD = re.compile(r"[0-9]{5,9}\.jsonl\.zst")
_ATTEMPT = re.compile(r"([0-9]{6,9})\.([0-9]{1,9})")
_NO_LEAF = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_LEAF_DECODER = msgspec.json.Decoder(Leaf)


def append_leaves(layout: RunLayout, leaves: Iterable[Leaf]) -> None:
    """Append leaves and sync them; several processes may, one after the other.

    A line that another process left half written is closed off first.

    Args:
        layout: The run directory.
        leaves: The leaves.
    """
    lines = _leaf_lines(leaves)
    with layout.leaves.open("a+b", buffering=0) as file:
        disk.lock(file.fileno(), layout.leaves)
        size = os.fstat(file.fileno()).st_size
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            lines = b"\n" + lines
        file.write(lines)
        disk.sync(file.fileno(), layout.leaves)


def leaf_of(
    closing: Closing, index: int, attempt: int, shard: str, frames: Iterable[tuple[int, int]]
) -> Leaf:
    """Return the leaf of an attempt.

    Args:
        closing: The attempt's closing line.
        index: Its plan entry.
        attempt: Which attempt at it, from 0.
        shard: Name of the shard.
        frames: Offset and length of its frames, in bytes.
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
    """Return the leaves on record, each once; a half-written last line is not one.

    A worker that outlived its driver writes a leaf again that a resumed run had already read from
    the shard.

    Raises: TraceError: Any other line is not a leaf.
    """
    leaves = []
    for number, line in enumerate(lines_of(layout.leaves), 1):
        try:
            leaves.append(_LEAF_DECODER.decode(line))
        except _NO_LEAF as error:
            raise TraceError(
                f"Line {number} of {layout.leaves} is not a leaf: {error}. "
                "`owa-bench run --resume` makes the file again from the shards."
            ) from error
    return tuple(dict.fromkeys(leaves))


def rebuild_leaves(layout: RunLayout) -> tuple[Leaf, ...]:
    """Return the leaves by the shards alone, and write them to `leaves.jsonl`.

    Only for a run that nobody is writing.

    Raises: TraceError: A frame is out of order or twice there.
    """
    leaves = leaves_of_shards(layout)
    write_whole(layout.leaves, _leaf_lines(leaves))
    return leaves


def leaves_of_shards(layout: RunLayout) -> tuple[Leaf, ...]:
    """Return the leaves by the shards alone, by index, then attempt.

    An attempt without a closing line has status "unfinished"; one of which a frame is damaged has
    status "unreadable".

    Raises: TraceError: A frame is out of order or twice there.
    """
    digest = plan_digest(layout)
    found, shards = index_shards(shard_paths(layout))
    damaged = {shard.name for shard in shards if shard.damaged}
    faulty = {shard.name for shard in shards if shard.faults}
    recorded = {name: leaf for name, leaf in _recorded(layout).items() if leaf.shard in faulty}
    leaves = [
        _leaf(layout, name, frames, digest, recorded.get(name), damaged)
        for name, frames in found.items()
    ]
    leaves += [
        msgspec.structs.replace(leaf, status="unreadable")
        for name, leaf in recorded.items()
        if name not in found
    ]
    leaves.sort(key=lambda leaf: (leaf.index, leaf.attempt))
    return tuple(leaves)


def shard_paths(layout: RunLayout) -> tuple[Path, ...]:
    """Return the shards in order of number."""
    paths = layout.shards.glob("*.jsonl.zst")
    return tuple(sorted(path for path in paths if _SHARD.fullmatch(path.name)))


def next_shard(layout: RunLayout) -> int:
    """Return the lowest number above every shard there is."""
    numbers = [int(path.name.partition(".")[0]) for path in shard_paths(layout)]
    return 1 + max(numbers, default=-1)


def shard_leaves(
    layout: RunLayout, shard: int, names: Set[str], plan_digest: str
) -> dict[str, Leaf]:
    """Return the leaves of those attempts of which a shard holds a whole frame, by their id.

    Args:
        layout: The run directory.
        shard: Number of the shard; nobody writes it any more.
        names: The ids that are asked for.
        plan_digest: With which every attempt's chain begins.
    Raises: TraceError: A frame is out of order or twice there.
    """
    found, _ = index_shards([layout.shard(shard)])
    return {
        name: _leaf(layout, name, found[name], plan_digest, None, frozenset())
        for name in names & found.keys()
    }


def read_trace(layout: RunLayout, leaf: Leaf) -> Trace:
    """Return one attempt as its leaf says it was written.

    Args:
        layout: The run directory.
        leaf: The attempt's leaf.
    Returns: The attempt's events.
    Raises: TraceError: Shard and leaf do not agree.
    """
    lines: list[bytes] = []
    closing: Closing | None = None
    path = layout.shards / leaf.shard
    for part, place in enumerate(leaf.frames):
        frame = read_frame(path, *place)
        if frame.segment != Segment(attempt_id=leaf.attempt_id, part=part):
            raise broken(path, frame.offset, f"is not part {part} of its leaf")
        lines += frame.lines
        closing = frame.closing
    head = closing.head if closing else leaf.head
    if len(lines) != leaf.count or head != leaf.head:
        raise TraceError(f"Attempt {leaf.attempt_id} does not hold what its leaf says.")
    return Trace(leaf, tuple(map(_event, lines)))


def plan_digest(layout: RunLayout) -> str:
    """Return the digest of the run's plan.

    Raises:
        RunDirectoryError: There is no readable plan.
        CheckFailure: It holds files that no run holds.
    """
    if layout.plan.exists():
        refuse_hostile_files(layout)
    try:
        text = layout.plan.read_bytes()
        decode_document(text)
        return text_digest(text)
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunDirectoryError(
            f"{layout.root} is no run directory: its plan.json cannot be read ({why}). "
            "`owa-bench run --out DIR` makes one."
        ) from error


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
        disk.sync(file.fileno(), part)
    part.replace(path)


def _leaf_lines(leaves: Iterable[Leaf]) -> bytes:
    """Return the lines of leaves."""
    return b"".join(ENCODER.encode(leaf) + b"\n" for leaf in leaves)


def _recorded(layout: RunLayout) -> dict[str, Leaf]:
    """Return the leaves on record by attempt; lines that are none are left out."""
    leaves, faults = {}, 0
    for line in lines_of(layout.leaves):
        try:
            leaf = _LEAF_DECODER.decode(line)
        except _NO_LEAF:
            faults += 1
            if faults == MOST_FAULTS:
                break
            continue
        if leaf.attempt_id == attempt_id(leaf.index, leaf.attempt):
            leaves[leaf.attempt_id] = leaf
    return leaves


def _leaf(
    layout: RunLayout,
    name: str,
    places: Sequence[TraceFrame],
    digest: str,
    recorded: Leaf | None,
    damaged: Set[str],
) -> Leaf:
    """Return an attempt's leaf, hashed anew from its lines."""
    path = layout.shards / places[0].shard
    index, attempt = _numbers(path, name)
    if places[-1].shard != places[0].shard:
        raise TraceError(f"Attempt {name} is in {places[0].shard} and {places[-1].shard}.")
    frames = [read_frame(path, place.offset, place.length) for place in places]
    holed = path.name in damaged or recorded is not None
    if not holed:
        _refuse_disorder(path, frames)
    lines = [line for frame in frames for line in frame.lines]
    head = chain_lines(chain_start(digest, name), lines)
    replay, readable = _replay_digest(lines)
    computed = Closing(
        closing=name, status="unfinished", count=len(lines), head=head.hex(), replay=replay
    )
    closing = frames[-1].closing or computed
    same = (closing.count, closing.head, closing.replay) == (
        computed.count,
        computed.head,
        computed.replay,
    )
    leaf_places = [(frame.offset, frame.length) for frame in frames]
    leaf = leaf_of(closing, index, attempt, path.name, leaf_places)
    if readable and same and (not holed or frames[-1].closing or leaf == recorded):
        return leaf
    if readable and not holed:
        raise TraceError(f"Attempt {name} in {path} does not hash to its closing line.")
    kept = leaf if recorded is None else recorded
    return msgspec.structs.replace(kept, status="unreadable")


def _refuse_disorder(path: Path, frames: Sequence[ShardFrame]) -> None:
    """Refuse frames that are not the parts of one attempt, each once."""
    for part, frame in enumerate(frames):
        closed = part > 0 and frames[part - 1].closing is not None
        if closed or frame.segment.part != part:
            raise broken(path, frame.offset, "is out of order in its attempt")


def _replay_digest(lines: Iterable[bytes]) -> tuple[str, bool]:
    """Return the replay digest of lines, and whether each of them is an event."""
    replay = hashlib.sha256()
    try:
        for line in lines:
            replayed = replay_line(_event(line))
            if replayed is not None:
                replay.update(replayed + b"\n")
    except TraceError:
        return replay.hexdigest(), False
    return replay.hexdigest(), True


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
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"A line of a shard is no event: {error}.") from error
