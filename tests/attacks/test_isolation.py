"""An agent that looks for the harness finds nothing of it, on real runs."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from owa_bench.sandbox import namespaces
from tests.builders.docker_daemon import docker_daemon
from tests.builders.sandboxes import needs_sandbox

HERE = Path(__file__).parents[1] / "builders"
ALL = "['escrow', 'key', 'plan', 'run', 'memory', 'environment', 'network']"
WORD = "canary-of-the-harness"


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def run(tmp_path, port, sandbox, agents=("probe_agent.py", "python probe_agent.py")):
    """Play one episode of each agent in its own folder; return the run's layout."""
    out, data = tmp_path / "runs" / "probe", tmp_path / "data"
    shutil.copy(HERE / "probe_agent.py", tmp_path)
    targets = {"data": str(data), "run": str(out), "port": port, "word": WORD}
    (tmp_path / "targets.json").write_text(json.dumps(targets))
    command = [sys.executable, "-m", "owa_bench", "run", "--suite", "toolquest"]
    command += ["--family", "reconcile", "--tier", "1", "--episodes", "1"]
    command += ["--sandbox", sandbox, "--out", str(out)]
    for agent in agents:
        command += ["--agent", agent.replace("python ", f"{sys.executable} ")]
    env = {**os.environ, "OWA_BENCH_HOME": str(data), "SECRET": WORD}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return RunLayout(out), done


@pytest.mark.slow
@needs_sandbox
def test_what_an_agent_leaves_in_its_memory_does_not_stop_the_run(tmp_path):
    shutil.copy(HERE / "hostile_agents.py", tmp_path)
    names = ("Pipe", "Deep", "Remover", "Sparse")
    command = [sys.executable, "-m", "owa_bench", "run", "--suite", "toolquest"]
    command += ["--family", "reconcile", "--tier", "1", "--episodes", "1"]
    command += ["--delta", "0", "--interventions", "0", "--days", "2", "--out", "run"]
    for name in names:
        command += ["--agent", f"hostile_agents:{name}"]
    env = {**os.environ, "OWA_BENCH_HOME": str(tmp_path / "data")}
    owa = command[:3]
    steps = ("verify run", "escrow reveal run", "replay run")
    for step in (command, *([*owa, *words.split()] for words in steps)):
        done = subprocess.run(step, cwd=tmp_path, env=env, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
    layout = RunLayout(tmp_path / "run")
    plan, leaves = read_plan(layout), files.read_leaves(layout)
    assert [leaf.status for leaf in leaves] == ["complete"] * len(plan.entries)
    said = {}
    for leaf in leaves:
        entry, end = plan.entries[leaf.index], files.read_trace(layout, leaf).end
        if entry.phase == "practice" and "frozen" not in entry.arm:
            assert end.outcome == "agent_raised"
            said[entry.arm] = end.reason
    assert "holds 'pipe', which is no plain file" in said["Pipe"]
    assert "holds 'link', which is no plain file" in said["Remover"]
    assert "32 deep" in said["Deep"]


SETS_A_TIME = """
import os

class Toucher:
    def reset(self, brief, tools, memory_dir):
        touched = []
        for name in ("null", "zero", "full", "random", "urandom"):
            try:
                os.utime(f"/dev/{name}", (1, 1))
            except OSError:
                continue
            touched.append(name)
        self.touched, self.acted = touched, False

    def act(self, observation, info):
        if self.acted:
            raise RuntimeError(f"touched: {self.touched}")
        self.acted = True
        return '{"tool": "vault", "arguments": {}}'

    def close(self):
        pass
"""


@pytest.mark.slow
@needs_sandbox
def test_no_forked_agent_can_set_the_times_of_devices(tmp_path, port):
    """The attack on inodes that all sandboxes share; the control: without a sandbox."""
    (tmp_path / "toucher.py").write_text(SETS_A_TIME)
    before = {name: os.stat(f"/dev/{name}").st_mtime for name in namespaces.DEVICES}
    try:
        for sandbox, touched in (("namespaces", []), ("none", [*before])):
            place = tmp_path / sandbox
            place.mkdir()
            shutil.copy(tmp_path / "toucher.py", place)
            layout, _ = run(place, port, sandbox, agents=("toucher.py",))
            [reason] = reasons(layout).values()
            assert f"touched: {touched}" in reason
    finally:
        for name, time in before.items():
            os.utime(f"/dev/{name}", (time, time))


def reasons(layout):
    leaves = files.read_leaves(layout)
    traces = [files.read_trace(layout, leaf) for leaf in leaves]
    return {trace.start.arm: trace.end.reason for trace in traces}


@pytest.mark.slow
@needs_sandbox
def test_no_door_is_open_forked_or_under_bubblewrap(tmp_path, port):
    layout, _ = run(tmp_path, port, "namespaces")
    found = reasons(layout)
    assert len(found) == 2
    for reason in found.values():
        assert "open doors: []" in reason
    assert {arm.hosting for arm in read_plan(layout).arms} == {"sandboxed"}


@pytest.fixture
def docker(tmp_path):
    with docker_daemon(tmp_path):
        yield


@pytest.mark.slow
def test_no_door_is_open_in_a_container(tmp_path, port, docker):
    layout, _ = run(tmp_path, port, "docker")
    found = reasons(layout)
    assert len(found) == 2
    for reason in found.values():
        assert "open doors: []" in reason
    assert {arm.hosting for arm in read_plan(layout).arms} == {"docker"}


@pytest.mark.slow
def test_without_a_sandbox_the_same_probe_finds_every_door(tmp_path, port):
    layout, done = run(tmp_path, port, "none")
    found = reasons(layout)
    assert len(found) == 2
    for reason in found.values():
        assert f"open doors: {ALL}" in reason
    assert "network of this machine: V2 at most" in done.stderr
