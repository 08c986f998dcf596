"""A command in a git clone: the example plays a project, and a spy sees nothing."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.runs.store.files import leaves_of_shards, read_trace
from owa_bench.sandbox import views
from tests.builders.docker_daemon import docker_daemon

pytestmark = [pytest.mark.project, pytest.mark.slow]
EXAMPLES = Path(__file__).parents[2] / "examples" / "agents"
RUN = (
    *("--suite", "projforge", "--family", "billing", "--tier", "1", "--delta", "0"),
    *("--interventions", "0"),
)


def owa(home, folder, *words):
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, "-m", "owa_bench", *map(str, words)],
        cwd=folder,
        env={**os.environ, **environment, "OWA_BENCH_HOME": str(home), "TMPDIR": str(home)},
        capture_output=True,
        text=True,
        timeout=280,
    )


def played(tmp_path, folder, *words):
    """Play a run with some agent; return its directory and its first trace."""
    home, out = tmp_path / "home", tmp_path / "run"
    home.mkdir()
    done = owa(home, folder, "run", *RUN, "--episodes", "1", *words, "--out", out)
    assert done.returncode == 0, done.stderr
    layout = RunLayout(out)
    return home, out, read_trace(layout, leaves_of_shards(layout)[0])


@pytest.fixture(autouse=True)
def _bubblewrap():
    if fault := views.bubblewrap_fault():
        pytest.skip(f"bubblewrap: {fault}")


@pytest.mark.part(4)
def test_the_example_plays_a_project_by_files_and_git_and_is_replayed(tmp_path):
    agent = "clone:python3 clone_developer.py"
    home, out, trace = played(tmp_path, EXAMPLES, "--agent", agent)
    assert trace.end.outcome == "finished"
    assert trace.end.q_state > 0.9
    actions = [
        json.loads(event.action)["tool"] for event in trace.events if hasattr(event, "action")
    ]
    assert {"git_push", "git_fetch", "ci", "release"} <= set(actions)
    assert not {"write", "patch", "git_commit"} & set(actions)
    assert owa(home, EXAMPLES, "escrow", "reveal", out).returncode == 0
    again = owa(home, EXAMPLES, "replay", out)
    assert again.returncode == 0, again.stdout + again.stderr


SPY = """import os, subprocess, time
seen = [path for path in (RUN, HOME) if os.path.exists(path) and os.listdir(path)]
mine = os.path.dirname(os.getcwd())
folders = [f"/tmp/{name}" for name in os.listdir("/tmp") if "project-" in name]
seen += [name for name in folders if name != mine]
seen += [pid for pid in os.listdir("/proc") if pid.isdecimal() and int(pid) > 40]
remote = subprocess.run(["git", "remote", "-v"], capture_output=True, text=True).stdout
seen += [] if f"{mine}/origin.git" in remote else [remote]
open(os.path.join(os.environ["MEMORY"], "seen"), "w").write(repr(seen))
killed = subprocess.Popen(["owa-tool", "run_tests", "branch="])
time.sleep(0.2)
killed.kill()  # as a shell's time limit does; the next call is answered all the same
subprocess.run(["owa-tool", "finish", f"p={1.0 if seen else 0.25}"])
"""


@pytest.mark.parametrize("sandbox", ["namespaces", "docker"])
def test_a_command_sees_its_clone_and_nothing_of_the_harness(tmp_path, sandbox):
    folder = tmp_path / "agent"
    folder.mkdir()
    places = f"RUN, HOME = {str(tmp_path / 'run')!r}, {str(tmp_path / 'home')!r}\n"
    (folder / "spy.py").write_text(places + SPY)
    words = ("--agent", "clone:python3 spy.py", "--sandbox", sandbox)
    with ExitStack() as stack:
        if sandbox == "docker":  # the path of its socket is short
            place = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))
            stack.enter_context(docker_daemon(Path(place)))
        _, _, trace = played(tmp_path, folder, *words)
    assert (trace.end.outcome, trace.end.stated) == ("finished", 0.25)


def test_a_command_that_only_fails_ends_the_episode_with_its_words(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "broken.py").write_text("raise SystemExit('no key given')\n")
    _, _, trace = played(tmp_path, folder, "--agent", "clone:python3 broken.py")
    assert trace.end.outcome == "agent_raised"
    assert "no key given" in trace.end.reason
