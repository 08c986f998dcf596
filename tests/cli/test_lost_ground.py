"""Clocks that jump, unwritable directories, a worker that dies: a clear line each."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from owa_bench.runs.play import batch

FLAGS = "--suite toolquest --family restock --tier 1 --delta 0 --agent noop"


def test_a_clock_that_jumps_back_is_told_and_moves_no_root(owa, monkeypatch):
    """The plan is made by a clock that is a year ahead; the witness' clock is right."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=365)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "datetime", Ahead)
        assert owa(f"run --out x {FLAGS} --plan-only").code == 0
    assert owa("keygen verifier").code == 0
    assert owa("witness x --nonce 0123456789 --key verifier").code == 0
    assert owa("run --out x --resume").code == 0
    assert owa("report x").code == 0
    said = owa("verify x")
    assert said.code == 0
    ahead = str(datetime.now(UTC).year + 1)
    shown = re.sub(r"\s+", " ", said.out)
    assert re.search(rf"before the plan was made \({ahead}.*\): a clock is off", shown)


@pytest.mark.parametrize("words", ["run --out {} " + FLAGS, "view run --out {}"])
def test_a_directory_that_cannot_be_written_is_named(owa, run, words):
    said = owa(words.format("/proc/owa"))
    assert said.code == 2
    assert said.err.count("\n") <= 2
    assert "/proc/" in said.err


def workers_of(parent):
    """Return the processes of a run that play episodes."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parts = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
            if int(parts[1]) == parent and b"play.worker" in command:
                found.append(int(folder.name))
    return found


@pytest.mark.slow
def test_a_worker_that_the_system_kills_is_told_and_nothing_is_lost(tmp_path, place):
    """What the kernel does to a worker when memory runs out."""
    command = [sys.executable, "-m", "owa_bench", "run", *FLAGS.split()]
    command += ["--episodes", "80", "--workers", "2", "--out", "x"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as playing:
        until = time.monotonic() + 60
        leaves = Path("x", "leaves.jsonl")
        while not leaves.exists() or not leaves.read_bytes():
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(workers_of(playing.pid)[0], signal.SIGKILL)
        _, errors = playing.communicate(timeout=300)
    assert playing.returncode == 0, errors
    assert "a worker died (SIGKILL: perhaps memory ran out" in errors
    owa = command[:3]
    assert subprocess.run([*owa, "escrow", "reveal", "x"], check=False).returncode == 0
    assert subprocess.run([*owa, "replay", "x"], check=False).returncode == 0
