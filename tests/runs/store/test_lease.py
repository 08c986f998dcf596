"""Leases: what is written to a run after its session was over is refused by name."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from owa_bench.errors import RunDirectoryError
from owa_bench.records.layout import RunLayout
from owa_bench.runs.play import batch
from owa_bench.runs.store import files
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import Recorder
from owa_bench.runs.store.resuming import RunLease

KEY = b"k" * 32


def opened(layout, shard, lease):
    output = ShardFiles(layout, shard, lease.token)
    return Recorder(output, files.plan_digest(layout), KEY, transcripts=False)


def record(recorder, start, index):
    recorder.episode(index, 0).emit(start(index=index))


def test_sessions_one_after_the_other_are_accepted(layout, start):
    for shard in range(3):
        lease = RunLease(layout)
        with opened(layout, shard, lease) as recorder:
            record(recorder, start, shard)
        lease.close()
    assert len(files.leaves_of_shards(layout)) == 3


def test_what_a_killed_session_left_is_accepted(layout, start):
    first = RunLease(layout)
    with opened(layout, 0, first) as recorder:
        record(recorder, start, 0)
    second = RunLease(layout)  # the first never closed
    second.close()


def test_a_worker_that_writes_on_to_its_shard_is_refused(layout, start):
    outlived = opened(layout, 0, RunLease(layout))
    record(outlived, start, 0)
    size = files.shard_paths(layout)[0].stat().st_size
    later = RunLease(layout)
    record(outlived, start, 1)
    outlived.close()
    with pytest.raises(RunDirectoryError, match=rf"00000.* must have the {size} bytes"):
        later.close()
    with pytest.raises(RunDirectoryError, match=rf"`truncate -s {size}`"):
        RunLease(layout)
    with files.shard_paths(layout)[0].open("r+b") as file:
        file.truncate(size)
    RunLease(layout).close()
    assert [leaf.index for leaf in files.leaves_of_shards(layout)] == [0]


def test_a_shard_under_an_earlier_lease_is_refused(layout, start):
    earlier = RunLease(layout)
    later = RunLease(layout)
    with opened(layout, 0, later) as recorder:
        record(recorder, start, 0)
    with opened(layout, 1, earlier) as recorder:
        record(recorder, start, 1)
    for refused in (later.close, lambda: RunLease(layout)):
        with pytest.raises(RunDirectoryError, match=r"00001\..*lease"):
            refused()
    files.shard_paths(layout)[1].unlink()
    later.close()


def test_a_run_from_before_leases_goes_on(layout, start):
    output = ShardFiles(layout, 0)
    with Recorder(output, files.plan_digest(layout), KEY, transcripts=False) as made:
        record(made, start, 0)
    RunLease(layout).close()


@pytest.mark.slow
def test_a_worker_that_outlives_its_killed_driver_is_refused(tmp_path, run_options, small):
    """The worker has no lock, as one on another machine; its driver dies by SIGKILL."""
    run = tmp_path / "run"
    batch.play(small("fixed", "noop", episodes=2), run, run_options, plan_only=True)
    path = Path(__file__).parents[2] / "builders" / "outliving_worker.py"
    words = [sys.executable, path, "drive", run, run_options.home]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, env=env) as driver:
        wait_for(tmp_path / "begun")
        driver.kill()
    whole = batch.resume(run, run_options)
    assert whole.missing == 0
    size = (RunLayout(run).shard(0)).stat().st_size
    (tmp_path / "go").touch()
    wait_for(tmp_path / "ended")
    with pytest.raises(RunDirectoryError, match=f"truncate -s {size}"):
        batch.resume(run, run_options)
    os.truncate(RunLayout(run).shard(0), size)
    assert batch.resume(run, run_options) == whole


def wait_for(path):
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.02)
