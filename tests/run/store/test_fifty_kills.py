"""Fifty SIGKILLs spread over a whole run: nothing is lost, and the root is the same."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from owa_bench.records import shards
from owa_bench.records.layout import RunLayout
from owa_bench.run.play import batch
from owa_bench.run.store import files

ROOT = Path(__file__).parents[3]
KILLS = 50
TERMS = "--suite toolquest --family restock,reconcile --tier 1 --delta 0,1"
TERMS += " --episodes 70 --interventions 0 --agent agentic --in-process"
TERMS += " --no-transcripts"


def command(place: Path, name: str, *, resume: bool) -> list[str]:
    """Return the command that plays a run, always under one master."""
    words = ["--resume"] if resume else TERMS.split()
    recorder = str(ROOT / "benchmarks" / "record_runs.py")
    words += ["--in-process"] if resume else []
    return [
        *(sys.executable, recorder, "--under", "7b" * 32, "run"),
        *("--out", str(place / name), *words),
    ]


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
    environment = os.environ | {"OWA_BENCH_HOME": str(place / "home")}
    with subprocess.Popen(
        command(place, "killed", resume=resume),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        until = time.monotonic() + 60.0
        while not whole_in(shard):
            assert child.poll() is None, "the run ended before it was killed"
            assert time.monotonic() < until, "the run stands still"
            time.sleep(0.01)
        time.sleep(later)  # into the next attempt
        os.killpg(child.pid, signal.SIGKILL)
    return complete(layout)


@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    environment = os.environ | {"OWA_BENCH_HOME": str(tmp_path / "home")}

    def play(name: str, *, resume: bool) -> None:
        words = command(tmp_path, name, resume=resume)
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    play("whole", resume=False)
    played = 0
    for kill in range(KILLS):
        found = kill_after_one(tmp_path, 0.02 * (kill % 4), resume=kill > 0)
        assert found > played, "an attempt was whole before this kill and is not now"
        played = found
    play("killed", resume=True)
    whole, killed = (
        batch.summary(RunLayout(tmp_path / name)) for name in ("whole", "killed")
    )
    assert killed.missing == 0
    assert killed.replay_root == whole.replay_root
    leaves = files.read_leaves(RunLayout(tmp_path / "killed"))
    broken = [leaf.index for leaf in leaves if leaf.status != "complete"]
    assert len(broken) == len(set(broken)), "an entry was hit twice"
    assert broken, "no kill hit an attempt of which a frame was whole"
