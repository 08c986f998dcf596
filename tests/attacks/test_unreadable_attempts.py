"""An attempt whose evidence is damaged costs itself: the others are judged.

Whoever plays could damage the evidence of a bad episode. It wins nothing: the attempt
counts as a failure of quality 0, is never played again, and fails `verify` for good.
"""

import numpy as np
import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement, verify
from owa_bench.reports.read import bundle
from owa_bench.reports.read.comparison import compare
from owa_bench.runs import replay
from owa_bench.runs.play.work_items import pending
from owa_bench.runs.store import files
from owa_bench.scoring.observe.observables import observe
from tests.attacks.tampering import failing, outside
from tests.builders.run_directory import KEY, MASTER, make_plan, make_run
from tests.conftest import draw_nothing

pytestmark = pytest.mark.part(3)

PLAN = make_plan(2)
BAD = 12  # a bad episode of the agentic arm (see `run_directory.events`)


@pytest.fixture
def run(tmp_path, monkeypatch):
    draw_nothing(monkeypatch)
    return make_run(tmp_path / "run", PLAN)


def spoil(layout: RunLayout, index: int, *parts: int) -> None:
    """Turn bits of some frames of an attempt around, so that zstd refuses them."""
    [leaf] = [x for x in files.read_leaves(layout) if x.index == index]
    path = layout.shards / leaf.shard
    data = bytearray(path.read_bytes())
    for part in parts:
        offset, length = leaf.frames[part]
        for place in range(offset + 6, offset + length):
            data[place] ^= 0x5A
    path.write_bytes(bytes(data))


def garble(layout: RunLayout, index: int, *_: int) -> None:
    """Write an attempt whose second event is of a kind that nobody knows."""

    def edit(lines):
        rows = lines[f"{index:06d}.0"]
        rows[2] = rows[2].replace(b'"event":"', b'"event":"un', 1)

    outside(layout, edit)
    files.rebuild_leaves(layout)


def success(layout: RunLayout, arm: str) -> float:
    """Return the share of an arm's successes, as the report reads it."""
    read = bundle.read(layout.root)
    table = observe(read.traces(), read.prices)
    return float(np.mean(table.u[table.arm == arm]))


WAYS = {
    "its last frame": (spoil, (1,)),
    "its first frame": (spoil, (0,)),
    "all its frames": (spoil, (0, 1)),
    "a line that is no event": (garble, ()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("index", [BAD, 0])
def test_one_unreadable_attempt_keeps_the_others(run, way, index):
    """Index 0 is a good episode: its loss costs the arm."""
    honest = success(run, "fixed")
    own = success(run, "agentic")
    before = {v.arm: v for v in statement.write(run.root, KEY).verdicts}
    harm, parts = WAYS[way]
    harm(run, index, *parts)
    name = f"{index:06d}.0"

    judgement = statement.write(run.root, KEY)
    after = {v.arm: v for v in judgement.verdicts}
    assert after["fixed"].axes == before["fixed"].axes
    assert name in " ".join(after["agentic"].warnings)
    assert success(run, "fixed") == honest
    assert success(run, "agentic") == pytest.approx(own - (index == 0) / 24)

    assert failing(run.root) == {"frames"}
    [frames] = [x for x in verify.verify(run.root) if x.name == "frames"]
    assert f"attempt {name} does not read and counts as a failure" in frames.detail
    assert all(check.ok for check in verify.recompute(run.root))
    assert compare(f"{run.root}:agentic", f"{run.root}:fixed").pairs == 24


@pytest.mark.parametrize("way", WAYS)
def test_it_is_not_played_again(run, way):
    harm, parts = WAYS[way]
    harm(run, BAD, *parts)
    leaves = files.rebuild_leaves(run)
    assert [x.index for x in leaves if x.status == "unreadable"] == [BAD]
    assert len(leaves) == len(PLAN.entries)
    assert pending(PLAN, leaves, MASTER) == ()
    assert files.rebuild_leaves(run) == leaves  # and stays so


def test_a_replay_names_it_and_plays_the_others(run, monkeypatch):
    played = []

    def same(env, plan, entry, trace, root, names):
        played.append(entry.index)
        return replay.AttemptReplay(trace.leaf.attempt_id, "same")

    monkeypatch.setattr(replay, "replay_attempt", same)
    spoil(run, BAD, 1)
    found = replay.replay_run(run)
    assert not found.passed
    assert {x.attempt_id for x in found.attempts if x.outcome == "different"} == {f"{BAD:06d}.0"}
    assert len(played) == len(PLAN.entries) - 1


def test_it_would_win_where_it_were_left_out(run, monkeypatch):
    """The control: a bad episode that is missing raises the arm's share."""
    own = success(run, "agentic")
    monkeypatch.setattr(bundle, "failed_start", lambda *_: None)
    spoil(run, BAD, 0, 1)
    assert success(run, "agentic") > own


def test_a_cut_off_shard_is_a_crash_and_no_damage(run):
    """What a kill leaves is played on: whole frames never follow it."""
    leaf = max(files.read_leaves(run), key=lambda leaf: leaf.frames[-1])
    path = run.shards / leaf.shard
    path.write_bytes(path.read_bytes()[:-7])
    statuses = {x.attempt_id: x.status for x in files.leaves_of_shards(run)}
    assert statuses[leaf.attempt_id] == "unfinished"
