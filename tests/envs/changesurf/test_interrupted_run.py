"""A run that is stopped in the middle of an episode: no browser stays, all goes on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.reports import verify
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.store import files

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

COMMAND = (
    *(sys.executable, "-m", "owa_bench", "run", "--suite", "changesurf"),
    *("--family", "depot/buy", "--tier", "1", "--delta", "0", "--episodes", "4"),
    *("--agent", "lexicon", "--interventions", "0"),
)
PATIENCE_S = 240.0  # on a machine that many share


def descendants(pid: int) -> set[int]:
    """Return every process below `pid`, as /proc has it now."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(after[1])
    found = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def running(pids: set[int]) -> set[int]:
    """Return those that still run; one that waits to be collected does not."""
    alive = set()
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if stat.rpartition(")")[2].split()[0] not in ("Z", "X"):
            alive.add(pid)
    return alive


def browsers(pids: set[int]) -> set[int]:
    """Return the processes of a Chromium."""
    found = set()
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"--remote-debugging-pipe" in words or b"--type=" in words:
            found.add(pid)
    return found


def until(done, patience_s: float = PATIENCE_S) -> bool:
    limit = time.monotonic() + patience_s
    while time.monotonic() < limit:
        if done():
            return True
        time.sleep(0.02)
    return False


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(folder: Path, workers: str) -> Iterator[tuple[subprocess.Popen[bytes], set[int]]]:
    """Start a run and yield it with its processes, in the middle of an episode."""
    environment = {**os.environ, "OWA_BENCH_HOME": str(folder / "home")}
    child = subprocess.Popen(
        [*COMMAND, "--out", str(folder / "run"), "--workers", workers],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_heed_ctrl_c,  # tests in the background are started deaf to it
    )
    try:
        layout = RunLayout(folder / "run")
        assert until(lambda: layout.leaves.exists() and layout.leaves.read_bytes())
        assert until(lambda: browsers(descendants(child.pid)))
        assert child.poll() is None, child.stderr.read()
        yield child, descendants(child.pid)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stderr.close()


@pytest.mark.part(2)
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_leaves_no_process_and_goes_on(tmp_path, stop, workers):
    with started(tmp_path, workers) as (child, family):
        assert browsers(family)
        if stop == signal.SIGINT:
            os.killpg(child.pid, stop)  # as a terminal does
        else:
            child.send_signal(stop)
        code = child.wait(PATIENCE_S)
        assert until(lambda: not running(family)), browsers(running(family))
        said = child.stderr.read().decode()
    if stop == signal.SIGINT:
        assert code == 130, said
        assert "--resume" in said
        assert "Traceback" not in said
    environment = {**os.environ, "OWA_BENCH_HOME": str(tmp_path / "home")}
    goes_on = [*COMMAND[:4], "--out", str(tmp_path / "run"), "--resume"]
    subprocess.run(goes_on, env=environment, check=True, capture_output=True)
    layout = RunLayout(tmp_path / "run")
    leaves = files.read_leaves(layout)
    whole = [leaf for leaf in leaves if leaf.status == "complete"]
    assert sorted(leaf.index for leaf in whole) == [0, 1, 2, 3]
    assert {leaf.status for leaf in leaves} <= {"complete", "unfinished"}
    assert all(check.ok for check in verify.verify(layout.root))
    escrow.reveal(tmp_path / "home", layout)
    assert replay.replay_run(layout).passed
