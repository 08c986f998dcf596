"""SIGKILLs spread over a whole run: nothing is lost, and the root is the same.

Each process is forked from one that has imported the command line.
"""

import multiprocessing
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from benchmarks import record_runs
from owa_bench.records import shards
from owa_bench.records.layout import RunLayout
from owa_bench.runs.play import batch
from owa_bench.runs.store import files
from tests.builders.slices import WHOLE

KILLS = 50 if WHOLE else 15
MASTER = b"\x7b" * 32
TERMS = "--suite toolquest --family restock,reconcile --tier 1 --delta 0,1"
TERMS += f" --episodes {KILLS} --interventions 0 --agent agentic --in-process"
TERMS += " --no-transcripts"


FORKS = multiprocessing.get_context("forkserver")


def call(place: Path, name: str, resume: bool) -> None:
    """Play a run, always under one master, in a process group of its own."""
    os.setsid()
    os.environ["OWA_BENCH_HOME"] = str(place / "home")
    with (place / "said").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    words = ["--resume", "--in-process"] if resume else TERMS.split()
    record_runs.call(MASTER, ["run", "--out", str(place / name), *words])


def start(place: Path, name: str, *, resume: bool) -> BaseProcess:
    """Start a process that plays a run from its begin, or goes on with it."""
    FORKS.set_forkserver_preload([__name__, "owa_bench.cli.app"])
    child = FORKS.Process(target=call, args=(place, name, resume))
    child.start()
    return child


def complete(layout: RunLayout) -> int:
    """Return how many attempts the shards hold whole."""
    if not layout.shards.exists():
        return 0
    leaves = files.leaves_of_shards(layout)
    return sum(leaf.status == "complete" for leaf in leaves)


def whole_in(path: Path) -> int:
    """Return how many attempts one shard holds whole: it is asked all the time."""
    if not path.exists():
        return 0
    return sum(frame.closing is not None for frame in shards.scan(path))


def kill_after_one(place: Path, later: float, *, resume: bool) -> int:
    """Play until one more attempt is whole, kill, and return how many are in all.

    Args:
        place: Where the run is.
        later: Seconds between that attempt and the kill.
        resume: Whether the run goes on.
    """
    layout = RunLayout(place / "killed")
    shard = layout.shard(files.next_shard(layout) if layout.shards.exists() else 0)
    child = start(place, "killed", resume=resume)
    until = time.monotonic() + 60.0
    while not whole_in(shard):
        assert child.is_alive(), "the run ended before it was killed"
        assert time.monotonic() < until, "the run stands still"
        time.sleep(0.01)
    time.sleep(later)  # into the next attempt
    assert child.pid
    os.killpg(child.pid, signal.SIGKILL)
    child.join()
    return complete(layout)


@pytest.mark.slow
def test_many_kills_lose_nothing(tmp_path: Path) -> None:
    def play(name: str, *, resume: bool) -> None:
        child = start(tmp_path, name, resume=resume)
        child.join()
        assert child.exitcode == 0, (tmp_path / "said").read_text()

    play("whole", resume=False)
    played = 0
    for kill in range(KILLS):
        found = kill_after_one(tmp_path, 0.03 * (kill % 4), resume=kill > 0)
        assert found > played, "an attempt was whole before this kill and is not now"
        played = found
    play("killed", resume=True)
    whole, killed = (batch.summary(RunLayout(tmp_path / name)) for name in ("whole", "killed"))
    assert killed.missing == 0
    assert killed.replay_root == whole.replay_root
    leaves = files.read_leaves(RunLayout(tmp_path / "killed"))
    broken = [leaf.index for leaf in leaves if leaf.status != "complete"]
    assert len(broken) == len(set(broken)), "an entry was hit twice"
    assert broken, "no kill hit an attempt of which a frame was whole"
