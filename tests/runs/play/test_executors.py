"""Workers and threads: the same traces whatever their number, and nothing lost."""

import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from owa_bench.errors import InfrastructureFailure
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.request import RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files

FAST = {"deltas": (0.0, 1.0), "episodes": 2}
AGENTS = ("fixed", "random", "odd_agents:Raises")


@pytest.fixture
def planned(tmp_path, run_options, small):
    """Return a function that gives a fresh copy of one plan to play."""
    whole = tmp_path / "plan"

    def copy(name, **changes):
        if not whole.exists():
            request = small(*changes.pop("agents", AGENTS), **{**FAST, **changes})
            batch.play(request, whole, run_options, plan_only=True)
        shutil.copytree(whole, tmp_path / name)
        return tmp_path / name

    return copy


def with_options(run_options, **changes):
    return RunOptions(
        **{name: getattr(run_options, name) for name in RunOptions.__slots__} | changes
    )


def replay_root(folder, run_options, **changes):
    summary = batch.resume(folder, with_options(run_options, **changes))
    assert summary.missing == 0
    return summary.replay_root


@pytest.mark.slow
def test_one_replay_root_whatever_plays_it(planned, run_options):
    roots = {
        "one thread": replay_root(planned("a"), run_options),
        "threads": replay_root(planned("b"), run_options, concurrency=3),
        "processes": replay_root(planned("c"), run_options, workers=2, in_process=False, wire=True),
    }
    assert len(set(roots.values())) == 1, roots


@pytest.mark.slow
@pytest.mark.part(2)
@pytest.mark.parametrize(
    "how", [{"workers": 4, "in_process": False}, {"workers": 2, "wire": True, "concurrency": 2}]
)
def test_one_replay_root_of_a_larger_plan(planned, run_options, how):
    wide = {"families": (), "tiers": (1, 3), "agents": ("agentic", "fixed", "oracle")}
    expected = replay_root(planned("expected", **wide), run_options)
    assert replay_root(planned("other"), run_options, **how) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{}, {"concurrency": 3}, {"workers": 2}], ids=["here", "threads", "workers"]
)
def test_an_interrupt_leaves_a_run_to_resume(planned, run_options, how):
    seen = []

    def interrupt(progress):
        seen.append(progress.done)
        if len(seen) == 3:
            raise KeyboardInterrupt

    stopped = planned("stopped")
    with pytest.raises(KeyboardInterrupt):
        batch.resume(stopped, with_options(run_options, progress=interrupt, **how))
    kept = files.rebuild_leaves(RunLayout(stopped))
    assert sum(leaf.status == "complete" for leaf in kept) >= 3
    assert not any(leaf.status == "infrastructure" for leaf in kept)
    assert replay_root(stopped, run_options) == replay_root(planned("whole"), run_options)


@pytest.mark.slow
def test_a_dead_workers_attempts_are_played_again(planned, run_options, tmp_path, monkeypatch):
    monkeypatch.setenv("OWA_TEST_MARK", str(tmp_path / "mark"))
    folder = planned("run", agents=("odd_agents:KillsItsWorker",))
    replay_root(folder, run_options, workers=2)
    leaves = files.read_leaves(RunLayout(folder))
    statuses = sorted(leaf.status for leaf in leaves)
    assert statuses.count("complete") == 4
    assert "unfinished" in statuses
    assert "infrastructure" not in statuses


@pytest.mark.slow
def test_leaves_a_dying_worker_did_not_write_are_found_in_its_shard(
    planned, run_options, monkeypatch, tmp_path
):
    # The recorder writes leaves up to half a second late: kill the worker before.
    monkeypatch.setenv("OWA_TEST_MARK", str(tmp_path / "mark"))
    agents = ("odd_agents:Quiet", "odd_agents:KillsItsWorker")
    folder = planned("run", agents=agents)
    summary = batch.resume(folder, with_options(run_options, workers=2))
    assert (summary.complete, summary.missing) == (8, 0)
    on_record = files.read_leaves(RunLayout(folder))
    assert files.rebuild_leaves(RunLayout(folder)) == on_record


def test_workers_that_cannot_start_end_the_run(planned, run_options, monkeypatch):
    run = planned("run")  # planning tries agents, in processes too
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InfrastructureFailure, match="die before they are ready"):
        replay_root(run, run_options, workers=2)


class _Meeting(BaseHTTPRequestHandler):
    """Answers `act` only when all episodes of the run wait for it at once."""

    barrier = threading.Barrier(8)

    def do_POST(self):
        request = self.rfile.read(int(self.headers["content-length"]))
        body = b"{}"
        if b'"act"' in request:
            self.barrier.wait(timeout=60)
            body = b'{"action": {"tool": "finish", "arguments": {}}}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"concurrency": 8}, {"concurrency": 4, "workers": 2}])
def test_slow_agents_are_waited_for_together(planned, run_options, how):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Meeting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        agent = f"http://127.0.0.1:{server.server_port}/"
        folder = planned("run", agents=(agent,), episodes=4)
        batch.resume(folder, with_options(run_options, **how))
        layout = RunLayout(folder)
        ends = [files.read_trace(layout, leaf).end for leaf in files.read_leaves(layout)]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [end.outcome for end in ends] == ["finished"] * 8


_PLAYER = """
import sys
from pathlib import Path
from owa_bench.runs.play import batch
from owa_bench.runs.plan.request import RunOptions
home, run, folder = map(Path, sys.argv[1:])
print("begun", flush=True)
batch.resume(run, RunOptions(home=home, folder=folder, workers=2))
"""


@pytest.mark.slow
def test_after_kills_at_odd_moments_the_root_is_the_same(planned, run_options):
    whole = replay_root(planned("whole", episodes=6), run_options)
    killed = planned("killed")
    for pause in (0.6, 1.0, 1.4, 1.9):
        player = subprocess.Popen(
            [sys.executable, "-c", _PLAYER, run_options.home, killed, run_options.folder],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        with player:
            player.stdout.readline()
            time.sleep(pause)
            player.send_signal(signal.SIGKILL)
    assert replay_root(killed, run_options) == whole
