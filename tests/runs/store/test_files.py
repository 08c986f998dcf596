import threading

import msgspec
import pytest
import zstandard

from owa_bench.errors import RunDirectoryError, TraceError
from owa_bench.records.shards import scan
from owa_bench.records.trace import Leaf
from owa_bench.runs.store import files
from owa_bench.runs.store.files import (
    append_leaves,
    next_shard,
    plan_digest,
    read_leaves,
    read_trace,
    rebuild_leaves,
)
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder


def leaf_of(index: int) -> Leaf:
    return Leaf(
        attempt_id=f"{index:06d}.0",
        index=index,
        attempt=0,
        status="complete",
        count=2,
        head="a" * 64,
        replay="b" * 64,
        shard="00000.jsonl.zst",
        frames=((0, 10),),
    )


@pytest.fixture
def played(layout, start, subgoal, end) -> tuple[Leaf, ...]:
    """Three complete attempts in shard 0, three frames each."""
    leaves = []
    with Recorder(ShardFiles(layout, 0), plan_digest(layout), b"k", True) as made:
        for index in range(3):
            writer = made.episode(index, 0)
            writer.emit(start(index))
            for step in range(1_010):
                writer.emit(subgoal(step))
            writer.emit(end())
            leaves.append(writer.close("complete", memory=str(index)))
    return tuple(leaves)


def test_leaves_are_made_again_from_the_shards_alone(layout, played) -> None:
    before = layout.leaves.read_bytes()
    layout.leaves.unlink()
    assert rebuild_leaves(layout) == played == read_leaves(layout)
    assert layout.leaves.read_bytes() == before


def test_no_leaves_yet_is_no_error(layout) -> None:
    assert read_leaves(layout) == () == rebuild_leaves(layout)


@pytest.mark.parametrize("cut", [1, 2, 10, 100])
def test_half_written_last_leaf_is_not_a_leaf(layout, cut: int) -> None:
    append_leaves(layout, [leaf_of(0), leaf_of(1)])
    layout.leaves.write_bytes(layout.leaves.read_bytes()[:-cut])
    assert read_leaves(layout) == (leaf_of(0),)


def test_leaf_appended_behind_a_torn_one_stands_on_its_own_line(layout) -> None:
    append_leaves(layout, [leaf_of(0)])
    layout.leaves.write_bytes(layout.leaves.read_bytes() + b'{"attempt_id":"00')
    append_leaves(layout, [leaf_of(2)])
    assert layout.leaves.read_bytes().split(b"\n")[2] == files.ENCODER.encode(leaf_of(2))
    with pytest.raises(TraceError, match=r"Line 2 .* --resume"):
        read_leaves(layout)


def test_leaf_that_a_lingering_worker_writes_again_counts_once(layout) -> None:
    append_leaves(layout, [leaf_of(0), leaf_of(1)])
    append_leaves(layout, [leaf_of(0)])
    assert read_leaves(layout) == (leaf_of(0), leaf_of(1))


def test_damaged_leaf_line_is_named(layout) -> None:
    append_leaves(layout, [leaf_of(0), leaf_of(1)])
    layout.leaves.write_bytes(layout.leaves.read_bytes().replace(b'"index":0', b'"x":0'))
    with pytest.raises(TraceError, match="Line 1"):
        read_leaves(layout)


def test_writers_append_leaves_side_by_side(layout) -> None:
    def append_many(number: int) -> None:
        for index in range(25):
            append_leaves(layout, [leaf_of(number * 25 + index)])

    writers = [threading.Thread(target=append_many, args=(i,)) for i in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(leaf.index for leaf in read_leaves(layout)) == list(range(100))


# --- torn and damaged shards ----------------------------------------------------------


def test_shard_torn_at_any_byte_gives_only_whole_frames(layout, played) -> None:
    path = layout.shard(0)
    whole, found = path.read_bytes(), list(scan(path))
    ends = [frame.offset + frame.length for frame in found]
    for cut in sorted({*range(0, len(whole), 997), *ends, *(e - 1 for e in ends)}):
        path.write_bytes(whole[:cut])
        assert list(scan(path)) == [f for f, e in zip(found, ends, strict=True) if e <= cut]


def test_torn_attempt_is_unfinished_and_its_whole_frames_count(layout, played) -> None:
    path, last = layout.shard(0), played[2].frames[-1]
    path.write_bytes(path.read_bytes()[: sum(last) - 1])
    leaves = rebuild_leaves(layout)
    assert leaves[:2] == played[:2]
    assert (leaves[2].status, leaves[2].count) == ("unfinished", 1_001)
    assert leaves[2].head != played[2].head
    assert len(read_trace(layout, leaves[2]).events) == 1_001
    with pytest.raises(TraceError, match="not whole"):
        read_trace(layout, played[2])


def test_zeros_behind_the_last_frame_are_a_torn_frame(layout, played) -> None:
    path = layout.shard(0)
    path.write_bytes(path.read_bytes() + bytes(4096))
    assert rebuild_leaves(layout) == played


def test_damage_that_whole_frames_follow_is_no_torn_frame(layout, played) -> None:
    path = layout.shard(0)
    data = bytearray(path.read_bytes())
    offset, length = played[0].frames[1]
    data[offset + length // 2] ^= 1
    path.write_bytes(bytes(data))
    statuses = [leaf.status for leaf in rebuild_leaves(layout)]
    assert statuses == ["unreadable", "complete", "complete"]
    with pytest.raises(TraceError):
        read_trace(layout, played[0])
    assert len(read_trace(layout, played[1]).events) == 1_012


def test_frames_out_of_order_or_twice_are_refused(layout, played) -> None:
    path = layout.shard(0)
    data = path.read_bytes()
    cuts = [data[o : o + n] for o, n in (f[:2] for f in scan(path))]
    for order in ([1, 0, 2], [0, 2], [0, 1, 1, 2], [0, 1, 2, 2]):
        path.write_bytes(b"".join(cuts[i] for i in order))
        with pytest.raises(TraceError, match="out of order"):
            rebuild_leaves(layout)


def test_attempt_in_two_shards_is_refused(layout, played) -> None:
    layout.shard(1).write_bytes(layout.shard(0).read_bytes())
    with pytest.raises(TraceError, match=r"00000\.jsonl\.zst and 00001"):
        rebuild_leaves(layout)


def test_changed_event_does_not_hash_to_the_closing_line(layout, played) -> None:
    path = layout.shard(0)
    frames = list(scan(path))
    edited = [line.replace(b'"depth":1', b'"depth":2') for line in frames[1].lines]
    text = b"\n".join((files.ENCODER.encode(frames[1].segment), *edited, b""))
    offset, length = frames[1].offset, frames[1].length
    data = path.read_bytes()
    forged = zstandard.ZstdCompressor().compress(text)
    path.write_bytes(data[:offset] + forged + data[offset + length :])
    with pytest.raises(TraceError, match="does not hash to its closing line"):
        rebuild_leaves(layout)


@pytest.mark.parametrize("change", [{"count": 3}, {"head": "0" * 64}])
def test_leaf_that_says_something_else_is_refused(layout, played, change) -> None:
    with pytest.raises(TraceError, match="does not hold what its leaf says"):
        read_trace(layout, msgspec.structs.replace(played[0], **change))


def test_leaf_that_points_at_another_attempt_is_refused(layout, played) -> None:
    other = msgspec.structs.replace(played[0], frames=played[1].frames)
    with pytest.raises(TraceError, match="is not part 0"):
        read_trace(layout, other)
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(layout, msgspec.structs.replace(played[0], shard="00009.jsonl.zst"))


def test_event_longer_than_a_frame_comes_back_whole(layout, start, call) -> None:
    big = call(1, target="x" * 3_000_000)
    with Recorder(ShardFiles(layout, 0), plan_digest(layout), b"k", True) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        writer.emit(big)
        leaf = writer.close("infrastructure")
    assert read_trace(layout, leaf).events[1] == big
    assert rebuild_leaves(layout) == (leaf,)


# --- resume ---------------------------------------------------------------------------


def test_next_shard_is_above_every_shard(layout) -> None:
    assert next_shard(layout) == 0
    layout.shards.mkdir()
    for number in (0, 3):
        layout.shard(number).touch()
    assert next_shard(layout) == 4


def test_directory_without_a_plan_is_no_run(layout) -> None:
    layout.plan.unlink()
    with pytest.raises(RunDirectoryError, match=r"plan\.json"):
        rebuild_leaves(layout)
