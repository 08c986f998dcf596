import os
import threading
import time

import pytest

from owa_bench.canonical import chain_start, chain_step, sha256
from owa_bench.errors import InfrastructureFailure, RunDirectoryError
from owa_bench.records import shards
from owa_bench.records.events import ENCODER, Intervention
from owa_bench.records.layout import RunLayout
from owa_bench.records.packs import PackReader, Transcripts
from owa_bench.records.shards import scan
from owa_bench.runs.store import files, recorder
from owa_bench.runs.store.files import read_leaves, read_trace
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder

KEY = b"redact key"


def opened(layout: RunLayout, shard: int = 0, **options) -> Recorder:
    digest = files.plan_digest(layout)
    return Recorder(ShardFiles(layout, shard), digest, KEY, options.get("transcripts", True))


@pytest.fixture
def still(monkeypatch) -> None:
    """Keep the background from closing frames and committing."""
    monkeypatch.setattr(recorder, "COMMIT_S", 3600.0)


def fill(writer, call, count: int) -> None:
    for step in range(count):
        writer.emit(call(step))


def frames(layout: RunLayout, shard: int = 0) -> list[shards.ShardFrame]:
    return list(scan(layout.shard(shard)))


def test_attempt_reads_back_as_it_was_written(layout, start, call, end) -> None:
    events = [start(), *(call(i) for i in range(1, 6)), end()]
    with opened(layout) as made:
        writer = made.episode(0, 0)
        for event in events:
            writer.emit(event)
        leaf = writer.close("complete", memory="m" * 64)
    assert read_leaves(layout) == (leaf,)
    assert read_trace(layout, leaf).events == tuple(events)
    assert (leaf.attempt_id, leaf.index, leaf.attempt) == ("000000.0", 0, 0)
    assert (leaf.status, leaf.count, leaf.memory) == ("complete", 7, "m" * 64)
    assert leaf.shard == "00000.jsonl.zst"


def test_head_is_the_chain_over_the_exact_lines(layout, start, call, end) -> None:
    events = [start(), call(1), call(2), end()]
    with opened(layout) as made:
        writer = made.episode(3, 1)
        for event in events:
            writer.emit(event)
        leaf = writer.close("complete")
    head = chain_start(files.plan_digest(layout), "000003.1")
    for line in [line for frame in frames(layout) for line in frame.lines]:
        head = chain_step(head, line)
    assert leaf.head == head.hex()
    assert frames(layout)[-1].closing.head == leaf.head


def test_replay_digest_leaves_out_what_differs_between_runs(layout, start, call, end) -> None:
    leaves = []
    with opened(layout) as made:
        for attempt, wall in ((0, 0.5), (1, 60.0)):
            writer = made.episode(0, attempt)
            writer.emit(start(attempt=attempt))
            writer.emit(call(1))
            writer.emit(end(wall_s=wall))
            leaves.append(writer.close("complete"))
    assert leaves[0].replay == leaves[1].replay
    assert leaves[0].head != leaves[1].head


def test_first_event_is_on_disk_at_once(layout, start) -> None:
    with opened(layout) as made:
        made.episode(0, 0).emit(start())
        assert [frame.segment.attempt_id for frame in frames(layout)] == ["000000.0"]


@pytest.mark.usefixtures("still")
def test_frame_closes_at_a_thousand_lines(layout, start, subgoal) -> None:
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        fill(writer, subgoal, 999)
        assert len(frames(layout)) == 1
        writer.emit(subgoal(999))
        assert [len(frame.lines) for frame in frames(layout)] == [1, 1000]


@pytest.mark.usefixtures("still")
def test_frame_closes_at_256_kib(layout, start, call) -> None:
    big = "x" * (recorder.FRAME_BYTES // 4)
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        for i in range(3):
            writer.emit(call(i, target=big))
        assert len(frames(layout)) == 1
        writer.emit(call(4, target=big))
        assert len(frames(layout)) == 2


def test_frame_closes_after_a_second_without_a_further_event(
    layout, start, call, monkeypatch
) -> None:
    monkeypatch.setattr(recorder, "FRAME_S", 0.05)
    monkeypatch.setattr(recorder, "COMMIT_S", 0.02)
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        writer.emit(call(1))
        deadline = time.monotonic() + 60
        while len(frames(layout)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [len(frame.lines) for frame in frames(layout)] == [1, 1]


def test_every_frame_belongs_to_one_attempt(layout, start, call, end) -> None:
    with opened(layout) as made:
        writers = [made.episode(index, 0) for index in range(3)]
        for index, writer in enumerate(writers):
            writer.emit(start(index))
        for step in range(1, 4):
            for writer in writers:
                writer.emit(call(step))
        for writer in writers:
            writer.emit(end())
        leaves = [writer.close("complete") for writer in reversed(writers)]
    assert {f.segment.attempt_id for f in frames(layout)} == {leaf.attempt_id for leaf in leaves}
    for leaf in leaves:
        assert read_trace(layout, leaf).start.index == leaf.index


def test_threads_write_side_by_side(layout, start, call, end) -> None:
    leaves = []

    def play(index: int) -> None:
        writer = made.episode(index, 0)
        writer.emit(start(index))
        for step in range(300):
            writer.emit(call(step))
        writer.emit(end())
        leaves.append(writer.close("complete"))

    with opened(layout) as made:
        threads = [threading.Thread(target=play, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(read_leaves(layout)) == 8
    for leaf in leaves:
        trace = read_trace(layout, leaf)
        assert [event.step for event in trace.events[1:-1]] == list(range(300))
    assert set(files.rebuild_leaves(layout)) == set(leaves)


def test_shard_is_never_appended_to(layout) -> None:
    opened(layout).close()
    with pytest.raises(RunDirectoryError, match="new number"):
        opened(layout)


def test_complete_needs_an_end(layout, start) -> None:
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        with pytest.raises(InfrastructureFailure, match="no episode_end"):
            writer.close("complete")
        assert writer.close("infrastructure").status == "infrastructure"


def test_closed_attempt_takes_nothing_more(layout, start) -> None:
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        leaf = writer.close("infrastructure")
        assert writer.close("unfinished") == leaf
        with pytest.raises(InfrastructureFailure, match="closed"):
            writer.emit(start())


def test_open_attempt_is_closed_as_unfinished(layout, start) -> None:
    with opened(layout) as made:
        made.episode(5, 2).emit(start(5, 2))
    (leaf,) = read_leaves(layout)
    assert (leaf.attempt_id, leaf.status, leaf.count) == ("000005.2", "unfinished", 1)


def test_attempt_without_any_event_has_a_leaf(layout) -> None:
    with opened(layout) as made:
        leaf = made.episode(1, 0).close("infrastructure")
    assert (leaf.count, leaf.status) == (0, "infrastructure")
    assert files.rebuild_leaves(layout) == (leaf,)


def test_timed_end_marks_the_leaf(layout, start, end) -> None:
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        writer.emit(end(timed=True))
        assert writer.close("complete").timed
    assert files.rebuild_leaves(layout)[0].timed


# --- order of writes ------------------------------------------------------------------


@pytest.mark.usefixtures("still")
def test_frames_are_durable_before_the_leaf_is_written(layout, start, end, monkeypatch) -> None:
    order = []
    real_write, real_fdatasync, real_fsync = os.write, os.fdatasync, os.fsync

    def write(descriptor: int, data) -> int:
        order.append("frame")
        return real_write(descriptor, data)

    def fdatasync(descriptor: int) -> None:
        order.append("fdatasync")
        assert not layout.leaves.exists()
        real_fdatasync(descriptor)

    def fsync(descriptor: int) -> None:
        order.append("fsync leaves")
        assert layout.leaves.read_bytes().endswith(b"\n")
        real_fsync(descriptor)

    with opened(layout) as made:
        monkeypatch.setattr(os, "write", write)
        monkeypatch.setattr(os, "fdatasync", fdatasync)
        monkeypatch.setattr(os, "fsync", fsync)
        writer = made.episode(0, 0)
        writer.emit(start())
        writer.emit(end())
        writer.close("complete")
        made.commit()
        assert order == ["frame", "frame", "fdatasync", "fsync leaves"]
        made.commit()
        assert len(order) == 4


@pytest.mark.usefixtures("still")
def test_one_sync_serves_every_attempt_closed_before_it(layout, start, end, monkeypatch) -> None:
    syncs = []
    monkeypatch.setattr(os, "fdatasync", syncs.append)
    with opened(layout) as made:
        for index in range(20):
            writer = made.episode(index, 0)
            writer.emit(start(index))
            writer.emit(end())
            writer.close("complete")
        made.commit()
        assert len(syncs) == 1
        assert len(read_leaves(layout)) == 20


@pytest.mark.usefixtures("still")
def test_full_disk_stops_the_writer_and_nothing_reads_back_as_whole(
    layout, start, subgoal, monkeypatch
) -> None:
    made = opened(layout)
    writer = made.episode(0, 0)
    writer.emit(start())
    real = os.write

    def half(descriptor: int, data) -> int:
        if len(data) > 40:
            return real(descriptor, data[:40])
        raise OSError(28, "No space left on device")

    fill(writer, subgoal, recorder.FRAME_LINES - 1)
    monkeypatch.setattr(os, "write", half)
    with pytest.raises(InfrastructureFailure, match="No space left"):
        writer.emit(subgoal(1))
    monkeypatch.undo()
    with pytest.raises(InfrastructureFailure, match="cannot be written"):
        made.close()
    (leaf,) = files.rebuild_leaves(layout)
    assert (leaf.status, leaf.count) == ("unfinished", 1)


def test_failure_of_the_background_commit_reaches_the_next_writer(
    layout, start, call, monkeypatch
) -> None:
    monkeypatch.setattr(recorder, "COMMIT_S", 0.01)

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    made = opened(layout)
    monkeypatch.setattr(os, "fdatasync", fail)
    writer = made.episode(0, 0)
    writer.emit(start())
    made._clock.join(5)
    with pytest.raises(InfrastructureFailure, match="Input/output"):
        fill(writer, call, recorder.FRAME_LINES)
    with pytest.raises(InfrastructureFailure):
        made.close()


# --- blobs ----------------------------------------------------------------------------


def test_blob_is_kept_once_under_the_digest_of_its_redacted_bytes(layout) -> None:
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.secret("key", "hunter2hunter2")
        name = writer.blob(b"the key is hunter2hunter2")
        assert writer.blob(b"the key is hunter2hunter2") == name
    data = Transcripts(layout).read(name)
    assert sha256(data) == name
    assert b"hunter2" not in data
    assert [path.name for path in layout.blobs.iterdir()] == ["00000.pack"]
    assert list(PackReader(layout.pack(0)).places) == [name]


def test_without_transcripts_the_digest_is_the_same_and_nothing_is_kept(layout) -> None:
    with opened(layout, transcripts=False) as made:
        writer = made.episode(0, 0)
        writer.secret("key", "hunter2hunter2")
        name = writer.blob(b"the key is hunter2hunter2")
    with opened(layout, 1) as made:
        writer = made.episode(1, 0)
        writer.secret("key", "hunter2hunter2")
        assert writer.blob(b"the key is hunter2hunter2") == name
    assert [path.name for path in layout.blobs.iterdir()] == ["00001.pack"]


def test_blobs_are_written_before_the_frame_that_names_them(layout, start) -> None:
    order = []

    class Output(ShardFiles):
        def append(self, frame: bytes, blobs: bytes = b"") -> None:
            super().append(frame, blobs)
            order.append((bool(frame), bool(blobs)))
            if self.size:
                assert sha256(b"page") in PackReader(layout.pack(0)).places

    digest = files.plan_digest(layout)
    with Recorder(Output(layout, 0), digest, KEY, True) as made:
        writer = made.episode(0, 0)
        writer.blob(b"page")
        writer.emit(start())
        writer.close("infrastructure")
    assert order == [(True, True), (True, False), (False, True)]


@pytest.mark.usefixtures("still")
def test_the_first_event_and_help_are_settled_before_the_agent_goes_on(layout, start, call) -> None:
    settled = []

    class Output(ShardFiles):
        def settle(self) -> None:
            settled.append([len(frame.lines) for frame in frames(layout)])

    digest = files.plan_digest(layout)
    given = Intervention(step=2, source="env", kind="hint", question="", answer="", minutes=1.0)
    with Recorder(Output(layout, 0), digest, KEY, True) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        assert settled == [[1]]
        writer.emit(call(1))
        assert settled == [[1]]
        writer.emit(given)
        assert settled == [[1], [1, 2]]
        writer.close("unfinished")
    assert len(settled) == 2


@pytest.mark.usefixtures("still")
def test_full_disk_in_a_pack_write_names_no_blob_that_is_not_there(
    layout, start, call, monkeypatch
) -> None:
    made = opened(layout)
    writer = made.episode(0, 0)
    writer.blob(b"first")
    writer.emit(start())
    late = writer.blob(bytes(range(256)) * 8)
    writer.emit(call(1, response=late))
    real = os.write

    def half(descriptor: int, data) -> int:
        if len(data) > 40:
            return real(descriptor, data[:40])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(InfrastructureFailure, match="No space left"):
        writer.close("infrastructure")
    monkeypatch.undo()
    with pytest.raises(InfrastructureFailure, match="cannot be written"):
        made.close()
    (leaf,) = files.rebuild_leaves(layout)
    assert (leaf.status, leaf.count) == ("unfinished", 1)
    pack = PackReader(layout.pack(0))
    assert list(pack.places) == [sha256(b"first")]
    assert (pack.fault, pack.torn > 0) == ("", True)


def test_blob_too_large_for_a_reader_is_refused(layout, monkeypatch) -> None:
    monkeypatch.setattr(recorder, "LARGEST_BLOB", 10)
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.blob(b"x" * 10)
        with pytest.raises(InfrastructureFailure, match="at most 10 bytes, got 11"):
            writer.blob(b"x" * 11)


def test_resumed_run_reads_blobs_of_every_pack(layout) -> None:
    for shard in (0, 1):
        with opened(layout, shard) as made:
            made.episode(shard, 0).blob(b"page %d" % shard)
    run = Transcripts(layout)
    assert [run.read(sha256(b"page %d" % i)) for i in (0, 1)] == [b"page 0", b"page 1"]
    assert files.next_shard(layout) == 2


def test_secret_learnt_later_stands_in_the_lines_before(layout, start, call) -> None:
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        writer.emit(call(1, target="hunter2hunter2"))
        writer.secret("key", "hunter2hunter2")
        writer.emit(call(2, target="hunter2hunter2"))
        leaf = writer.close("infrastructure")
    targets = [event.target for event in read_trace(layout, leaf).events[1:]]
    assert targets[0] == "hunter2hunter2"
    assert targets[1].startswith("{secret:key:")


def test_secret_of_one_episode_says_nothing_of_another(layout) -> None:
    with opened(layout) as made:
        one, two = made.episode(0, 0), made.episode(1, 0)
        one.secret("key", "hunter2hunter2")
        assert two.blob(b"hunter2hunter2") == sha256(b"hunter2hunter2")


def test_canaries_appear_nowhere_in_the_run_directory(layout, start, call, end) -> None:
    canary = "CANARY-0123456789-abcdef"
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.secret("canary", canary)
        writer.emit(start(categories=(canary,)))
        writer.emit(call(1, target=f"https://x/?k={canary}", headers=(canary,)))
        writer.blob(f"body {canary}".encode())
        writer.emit(end(reason=canary))
        writer.close("complete")
    places = [path for path in layout.root.rglob("*") if path.is_file()]
    assert len(places) == 4
    for path in places:
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = b"".join(b"\n".join(frame.lines) for frame in scan(path))
        if path.suffix == ".pack":
            pack = PackReader(path)
            data = b"".join(map(pack.read, pack.places))
            assert b"{secret:canary:" in data
        assert canary.encode() not in data


def test_lines_hold_what_was_emitted_and_no_more(layout, start, call) -> None:
    with opened(layout) as made:
        writer = made.episode(0, 0)
        writer.emit(start())
        writer.emit(call(1))
        writer.close("infrastructure")
    lines = [line for frame in frames(layout) for line in frame.lines]
    assert lines == [ENCODER.encode(start()), ENCODER.encode(call(1))]
