import os

import pytest

from owa_bench.errors import RunDirectoryError
from owa_bench.records.trace import evidence_root, replay_root
from owa_bench.reports.read import bundle
from owa_bench.runs.store import files
from tests.builders.run_directory import make_plan, make_run, write_terms


def test_reads_what_the_recorder_wrote(tmp_path):
    layout = make_run(tmp_path / "run")
    run = bundle.read(layout.root)
    recorded = files.read_leaves(layout)
    assert sorted(run.leaves, key=lambda leaf: leaf.index) == sorted(
        recorded, key=lambda leaf: leaf.index
    )
    assert run.evidence_root == evidence_root(run.plan, recorded)
    assert run.replay_root == replay_root(run.plan, recorded)
    assert [t.start.index for t in run.traces()] == [e.index for e in run.plan.entries]


def test_replay_root_does_not_depend_on_the_number_of_shards(tmp_path):
    one = bundle.read(make_run(tmp_path / "one", shards=1).root)
    three = bundle.read(make_run(tmp_path / "three", shards=3).root)
    assert one.replay_root == three.replay_root


def test_a_run_half_played_says_which_entries_are_missing(tmp_path):
    run = bundle.read(make_run(tmp_path / "run", entries=slice(0, 5)).root)
    assert run.missing == tuple(range(5, len(run.plan.entries)))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda root: (root / "plan.json").unlink(), "holds no plan.json"),
        (lambda root: (root / "protocol.toml").unlink(), "protocol.toml"),
        (lambda root: os.truncate(root / "plan.json", 100), "whole JSON document"),
        (lambda root: (root / "plan.json").write_text("[1]"), "JSON object"),
        (lambda root: (root / "plan.json").write_text("{}"), "must be a plan"),
        (lambda root: (root / "reveal.json").write_text("{}"), "lacks 'master'"),
    ],
)
def test_a_half_written_directory_is_refused_with_a_way_out(tmp_path, spoil, message):
    layout = make_run(tmp_path / "run", make_plan(1))
    spoil(layout.root)
    with pytest.raises(RunDirectoryError, match=message):
        bundle.read(layout.root).reveal()


def test_a_foreign_directory_is_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="no run directory"):
        bundle.read(tmp_path)
    with pytest.raises(RunDirectoryError, match="must exist"):
        bundle.read(tmp_path / "nowhere")


def test_a_plan_without_episodes_yet_is_a_run(tmp_path):
    layout = write_terms(tmp_path / "run", make_plan(1))
    run = bundle.read(layout.root)
    assert run.leaves == ()
    assert len(run.missing) == len(run.plan.entries)


def test_a_counted_attempt_with_a_broken_frame_counts_as_failed(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1), shards=1)
    shard = layout.shard(0)
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 0xFF
    shard.write_bytes(bytes(data))
    run = bundle.read(layout.root)
    assert "does not read" in run.faults[0]
    [lost] = run.unreadable
    [end] = [t.end for t in run.traces() if t.leaf.attempt_id == lost.attempt_id]
    assert (end.quality, end.success) == (0.0, False)
    assert "does not read" in end.reason
