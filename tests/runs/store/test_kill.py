"""SIGKILL at random moments: at most the open frame is lost, and resume heals it."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from owa_bench.records import shards
from owa_bench.records.events import ENCODER
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import counted_leaves, replay_root
from owa_bench.runs.store import files
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import FRAME_BYTES, FRAME_LINES, Recorder
from owa_bench.seeding import stream

SCRIPT = Path(__file__).parents[2] / "builders" / "killed_writer.py"
LONGEST_LINE = 151_000
# A whole run says about 350,000 bytes, so that three kills always hit it playing.
SAID_BY_A_THIRD = 110_000


def script():
    spec = importlib.util.spec_from_file_location("killed_writer", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Said(NamedTuple):
    """What the writer had said when it died."""

    written: dict[str, tuple[int, int]]
    closed: dict[str, str]
    done: bool


def run_and_kill(layout: RunLayout, after: int | None) -> Said:
    """Run the writer and kill it once it has said `after` bytes (None: never)."""
    command = [sys.executable, str(SCRIPT), str(layout.root)]
    # a small pipe holds the writer back, so it cannot be done before it is killed
    with subprocess.Popen(command, stdout=subprocess.PIPE, pipesize=4096) as child:
        said = b""
        while after is not None and len(said) <= after:
            part = child.stdout.read1(4096)
            assert part, "the writer ended before it was killed"
            said += part
        if after is not None:
            child.send_signal(signal.SIGKILL)
        said += child.stdout.read()
        assert child.wait(timeout=240) == (0 if after is None else -signal.SIGKILL)
    lines = said.decode().splitlines()
    parted = [line.split() for line in lines]
    return Said(
        written={w[1]: (int(w[2]), int(w[3])) for w in parted if w[0] == "written"},
        closed={w[1]: w[2] for w in parted if w[0] == "closed"},
        done=lines[-1] == "done",
    )


def check_nothing_closed_is_lost(layout: RunLayout, said: Said) -> None:
    """Compare the shard with what the writer said before it died."""
    found: dict[str, list[shards.ShardFrame]] = {}
    for path in files.shard_paths(layout):
        for frame in shards.scan(path):
            found.setdefault(frame.segment.attempt_id, []).append(frame)
    for attempt_id, (emitted, frames) in said.written.items():
        kept = found[attempt_id]
        assert len(kept) >= frames
        lines = [line for frame in kept for line in frame.lines]
        index, attempt = map(int, attempt_id.split("."))
        expected = [ENCODER.encode(event) for event in script().events(index, attempt)]
        assert lines == expected[: len(lines)]
        lost = expected[len(lines) : emitted]
        assert len(lost) < FRAME_LINES
        assert sum(map(len, lost)) < FRAME_BYTES + LONGEST_LINE
    leaves = {leaf.attempt_id: leaf for leaf in files.leaves_of_shards(layout)}
    for attempt_id, head in said.closed.items():
        assert leaves[attempt_id].status == "complete"
        assert leaves[attempt_id].head == head


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> dict[int, str]:
    """The replay digests that every attempt must end at."""
    layout = RunLayout(tmp_path_factory.mktemp("whole"))
    layout.plan.write_text("{}")
    with Recorder(ShardFiles(layout, 0), files.plan_digest(layout), b"k", False) as recorder:
        for index in range(40):
            script().play(recorder, [(index, 0)])
    return {leaf.index: leaf.replay for leaf in files.read_leaves(layout)}


def kill_and_resume(layout, plan, moments: list[int], expected) -> None:
    """Kill at each moment in turn, then play to the end; compare all the way."""
    for moment in moments:
        said = run_and_kill(layout, moment)
        assert not said.done
        check_nothing_closed_is_lost(layout, said)
    assert run_and_kill(layout, None).done
    leaves = files.read_leaves(layout)
    assert set(leaves) == set(files.leaves_of_shards(layout))
    best = counted_leaves(plan, leaves)
    assert [leaf.replay for leaf in best] == [expected[e.index] for e in plan.entries]
    assert len(files.shard_paths(layout)) == len(moments) + 1
    begun = {leaf.attempt_id for leaf in leaves}
    assert {f"{index:06d}.0" for index in expected} <= begun


def test_killed_writer_loses_at_most_its_open_frames(layout, toy_plan, uninterrupted) -> None:
    kill_and_resume(layout, toy_plan, [100, 60_000], uninterrupted)


@pytest.mark.slow
def test_resumed_run_has_the_replay_root_of_an_uninterrupted_one(
    layout, toy_plan, tmp_path
) -> None:
    run_and_kill(layout, 90_000)
    run_and_kill(layout, None)
    whole = RunLayout(tmp_path / "whole")
    whole.root.mkdir()
    whole.plan.write_bytes(layout.plan.read_bytes())
    run_and_kill(whole, None)
    first, second = files.read_leaves(layout), files.read_leaves(whole)
    assert len(first) >= len(second)
    assert replay_root(toy_plan, first) == replay_root(toy_plan, second)


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_killed_at_thirty_random_moments(layout, toy_plan, uninterrupted, number: int) -> None:
    rng = stream(number, "kill")
    moments = rng.integers(0, SAID_BY_A_THIRD, size=3).tolist()
    kill_and_resume(layout, toy_plan, moments, uninterrupted)
