"""Ray: nodes that share nothing with the driver, killed nodes, a killed driver."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from owa_bench.records.events import Intervention
from owa_bench.records.layout import RunLayout
from owa_bench.reports.check.integrity_checks import check_attempts
from owa_bench.reports.read.bundle import read
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from tests.builders import plugin_package, ray_cluster
from tests.runs.play.test_seats import TERMS, Crew

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the [ray] extra"),
]
MIXED = ("--suite", "multicrew", "--family", "contract", "--tier", 1, "--episodes", 2)
TOOLS = ("--suite", "toolquest", "--family", "reconcile,restock", "--tier", "1,2")
PLANS = {
    "seats": (*TERMS, "--agent", "crew:Team"),
    "long": (*TERMS, "--crews", "1,2", "--episodes", 36, "--agent", "crew:Team"),
    "mixed": (*MIXED, "--seat", "design=list_scheduler", "--seat", "*=fifo"),
    "tools": (*TOOLS, "--episodes", 2, "--agent", "fixed", "--agent", "agentic"),
    "days": (*TOOLS[:4], "--tier", 1, "--days", 2, "--agent", "self_improving"),
}


@pytest.fixture(scope="module")
def short():
    """Return a folder with a short name: sockets lie below it."""
    with tempfile.TemporaryDirectory(prefix="o") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def crew(short):
    """Return the driver's folder, with a stranger's suite and agents in it."""
    (short / "driver").mkdir()
    with contextlib.chdir(short / "driver"):
        made = Crew(short / "driver")
        made.env = ray_cluster.environment(short / "ray", made.env)
        yield made


@pytest.fixture(scope="module")
def planned(crew):
    """Return a function that gives the folder of a plan by its name."""

    def plan(name):
        out = crew.folder / f"plan-{name}"
        if not out.exists():
            words = [str(word) for word in PLANS[name]]
            crew.owa("run", *words, "--plan-only", "--out", out)
        return out

    return plan


@pytest.fixture(scope="module")
def address(short, crew):
    """Return the address of a head and two nodes."""
    nodes = [short / "a", short / "b"]
    with ray_cluster.running(short / "ray", nodes, crew.env) as (address, _):
        yield address


def root_of(crew, out):
    summary = json.loads(crew.owa("run", "--resume", "--out", out, "--json"))
    assert summary["missing"] == 0
    return summary["replay_root"]


def on(address, workers=2):
    return ("--executor", "ray", "--ray-address", address, "--workers", workers)


def driver(crew, out, *how):
    """Start a driver in a process that can be killed."""
    words = ("run", "--resume", "--out", out, *map(str, how))
    return subprocess.Popen(
        [sys.executable, "-m", "owa_bench", *map(str, words)],
        env=crew.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until(condition, patience_s=120.0):
    until = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def closed(layout):
    return layout.leaves.exists() and len(files.read_leaves(layout))


@pytest.mark.parametrize("name", ["seats", "mixed", "tools", "days"])
def test_one_replay_root_here_in_workers_and_on_two_nodes(crew, planned, address, name):
    plan = planned(name)
    here = crew.play(plan, f"{name}-here")
    workers = crew.play(plan, f"{name}-workers", "--workers", 2)
    nodes = crew.play(plan, f"{name}-nodes", *on(address))
    assert len(files.shard_paths(nodes)) == 2
    roots = {root_of(crew, layout.root) for layout in (here, workers, nodes)}
    assert len(roots) == 1


def test_a_killed_nodes_episodes_are_played_again(crew, planned, short):
    out = crew.folder / "killed-node"
    shutil.copytree(planned("long"), out)
    layout = RunLayout(out)
    nodes = [short / "k0", short / "k1"]
    with ray_cluster.running(short / "ray", nodes, crew.env) as (address, kill):
        playing = driver(crew, out, *on(address))
        wait_until(lambda: closed(layout) >= 4 or playing.poll() is not None)
        assert playing.poll() is None
        kill(0)
        _, errors = playing.communicate(timeout=400)
    assert playing.returncode == 0, errors
    assert "a worker died" in errors
    statuses = [leaf.status for leaf in files.rebuild_leaves(layout)]
    assert statuses.count("complete") == len(read_plan(layout).entries)
    assert set(statuses) <= {"complete", "unfinished"}
    here = crew.play(planned("long"), "killed-here")
    assert root_of(crew, out) == root_of(crew, here.root)


def test_what_a_killed_drivers_workers_play_on_reaches_nobody(crew, planned, address):
    out = crew.folder / "killed-driver"
    shutil.copytree(planned("long"), out)
    playing = driver(crew, out, *on(address))
    layout = RunLayout(out)
    wait_until(lambda: closed(layout) >= 4 or playing.poll() is not None)
    os.killpg(playing.pid, signal.SIGKILL)
    playing.communicate()
    left = {path: path.stat().st_size for path in files.shard_paths(layout)}
    crew.owa("run", "--resume", "--out", out, *on(address, 1))
    assert {path: path.stat().st_size for path in left} == left
    here = crew.play(planned("long"), "driver-here")
    assert root_of(crew, out) == root_of(crew, here.root)


HOSTILE = """
import os, signal

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

class KillsAtOnce:
    def reset(self, *_): pass
    def act(self, *_): kill()

class AsksAndKills:
    def reset(self, *_): self.asked = 0
    def act(self, *_):
        if self.asked == 2:
            kill()
        self.asked += 1
        return {"tool": "ask_supervisor", "arguments": {"question": "what now?"}}
"""


def play_hostile(crew, address, name, *terms):
    """Play an agent that kills its actor; return its attempts."""
    (crew.folder / "hostile.py").write_text(HOSTILE)
    words = ("--suite", "toolquest", "--family", "restock", "--tier", 1, "--delta", 0, *terms)
    out = crew.folder / name
    crew.owa(
        "run", "--agent", f"hostile:{name}", "--in-process", "--out", out, *words, *on(address)
    )
    layout = RunLayout(out)
    faults = check_attempts(read(out)).faults
    assert {kind: found for kind, found in faults.items() if found} == {}
    return [files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)]


def test_an_agent_that_kills_its_actor_hides_no_attempt(crew, address):
    """The attack: end the actor before the record of the attempt has left the node."""
    found = play_hostile(crew, address, "KillsAtOnce", "--episodes", 2, "--interventions", 0)
    ends = [(t.leaf.attempt, t.leaf.status, t.start.worker_deaths) for t in found]
    assert ends == [(0, "unfinished", 0), (1, "unfinished", 1), (2, "complete", 2)] * 2
    assert {t.end.reason for t in found[2::3]} == {"2 workers died under this entry"}


def test_an_agent_that_kills_its_actor_hides_no_help(crew, address):
    """The attack: take the hints, end the actor before they are on record, and ask again."""
    first, second, last = play_hostile(crew, address, "AsksAndKills", "--interventions", 3)
    assert [each.kind for each in first.of(Intervention)] == ["hint"] * 2
    told = [(each.source, each.kind) for each in second.of(Intervention)]
    assert told == [("harness", "hint")] * 2 + [("env", "hint"), ("env", "refused")]
    assert [each.source for each in last.of(Intervention)] == ["harness"] * 3


def test_nothing_of_the_driver_lies_on_a_node(crew, planned, address, short):
    """No master, key, plan or run directory in a node's folder or a log."""
    layout = crew.play(planned("seats"), "bare", *on(address))
    home = Path(crew.env["OWA_BENCH_HOME"])
    master = escrow.find(home, read_plan(layout).commitment).master
    searched = 0
    for folder in short.iterdir():
        if folder == crew.folder:
            continue
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                searched += 1
                data = path.read_bytes()
                assert master.hex().encode() not in data, path
                assert master not in data, path
                assert path.name not in {"plan.json", "auth_token"}, path
    assert searched > 10


def test_a_node_that_lacks_the_suite_is_named_and_not_used(crew, planned, short):
    """The nodes start without the package: no node is left, and nothing is played."""
    bare = {**crew.env, "PYTHONPATH": ""}
    out = crew.folder / "lacking"
    shutil.copytree(planned("seats"), out)
    nodes = [short / "la", short / "lb"]
    with ray_cluster.running(short / "ray", nodes, bare) as (address, _):
        words = ("run", "--resume", "--out", out, *on(address))
        done = plugin_package.owa(crew.env, *words)
    assert done.returncode == 2
    assert "No node of the cluster can play this plan" in done.stderr
    assert "relay" in done.stderr
    assert not closed(RunLayout(out))
