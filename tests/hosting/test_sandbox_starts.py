"""Both ways to start a sandbox give the same one: forked in one call, or unshared first."""

import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from owa_bench.hosting import fork_server
from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.sandbox import namespaces, process_tree
from tests.builders.sandboxes import needs_namespaces

pytestmark = needs_namespaces

DEADLINE_S = 60.0
PIPES = ("nothing in", "prints", "errors", "requests", "replies")
BURNT_S = 0.2
AGENT = f'''
import json, os, pathlib, time

import owa_bench


def holds(number):
    """Whether a descriptor is open still; what lists them is gone by now."""
    return os.path.exists("/proc/self/fd/" + number)


def files(folder):
    """Return the modules of a folder of the package that serves cases."""
    place = pathlib.Path(owa_bench.__file__).parent / "company" / folder
    return sorted(path.name for path in place.rglob("*.py")) if place.exists() else []


class Looks:
    """Says what it sees of its sandbox, after some work of a child that it forgets."""

    def reset(self, brief, tools, memory_dir):
        pass

    def act(self, observation, info):
        child = os.fork()
        while time.process_time() < {BURNT_S}:
            pass
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        status = pathlib.Path("/proc/self/status").read_text().splitlines()
        said = dict(line.split(":", 1) for line in status)
        seen = {{
            "number": os.getpid(),
            "parent": os.getppid(),
            "user": os.getuid(),
            "host": os.uname().nodename,
            "group": pathlib.Path("/proc/self/cgroup").read_text().splitlines()[-1],
            "capabilities": said["CapEff"].strip() + said["CapBnd"].strip(),
            "filter": said["Seccomp"].strip(),
            "processes": sorted(n for n in os.listdir("/proc") if n.isdigit()),
            "descriptors": [n for n in os.listdir("/proc/self/fd") if holds(n)],
            "folders": sorted(os.listdir("/")),
            "generators": files("kinds"),
            "languages": files("language"),
        }}
        return {{"text": json.dumps(seen)}}
'''
# A fork server whose machine lacks the one call.
UNSHARING = f"""#!{sys.executable}
import runpy, sys
from owa_bench.sandbox import namespaces
namespaces.fork_separated = lambda group: None
sys.argv[:] = [sys.argv[-2], sys.argv[-1]]
runpy.run_module("owa_bench.hosting.fork_template", run_name="__main__")
"""


def seen(launcher, origin, memory):
    """Return what the agent sees, and the CPU seconds that the harness counted."""
    connection = launcher.connect(origin, memory)
    try:
        brief = Brief(text="t", goal={})
        terms = ResetRequest(brief=brief, tools=(), memory_dir=connection.memory_dir)
        connection.reset(terms, DEADLINE_S)
        action = connection.act({}, {}, DEADLINE_S).action
    finally:
        connection.end()
    [used] = connection.take_cpu(1, "")
    return json.loads(json.loads(action)["text"]), used.amount


@pytest.fixture
def origin(tmp_path):
    (tmp_path / "looks.py").write_text(AGENT)
    return load_agent("looks:Looks", folder=tmp_path).origin


@pytest.fixture
def both(origin, tmp_path, monkeypatch):
    """Return what an agent sees in a sandbox of one call, and in an unshared one."""
    memory = tmp_path / "memory"
    memory.mkdir()
    with ForkServer() as server:
        one = seen(AgentLauncher(server), origin, memory)
    program = tmp_path / "unsharing"
    program.write_text(UNSHARING)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(fork_server.sys, "executable", str(program))
    with ForkServer() as server:
        return one, seen(AgentLauncher(server), origin, memory)


def test_both_see_the_same_and_count_all_work(both):
    (one, one_s), (other, other_s) = both
    assert one == other
    assert len(one["descriptors"]) == len(PIPES)
    assert one["number"] == 2  # behind the first process
    assert set(one["capabilities"]) == {"0"}
    assert one["filter"] == "2"
    assert one["group"] == "0::/"  # no number of another process or episode
    assert min(one_s, other_s) >= 2 * BURNT_S - 0.03  # the kernel counts in hundredths


def test_agents_see_the_language_of_cases_and_no_answer_key(both):
    for one, _ in both:
        assert "policy.py" in one["languages"]
        assert one["generators"] == []


def test_no_group_is_left(both):
    folder = process_tree.groups_folder()
    left = [] if folder is None else list(Path(folder).glob("owa-agent-*"))
    makers = [group.name.split("-")[2] for group in left]
    assert not [maker for maker in makers if not Path("/proc", maker).exists()]


def test_a_process_of_several_threads_is_not_forked_in_one_call():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        forked = namespaces.fork_separated(None)
        if forked == 0:
            os._exit(0)
    finally:
        done.set()
        thread.join()
    assert forked is None
