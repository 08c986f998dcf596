"""Sandboxed agents: limits, and what they leave behind."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from owa_bench.errors import AgentRaised
from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.isolation import agent_view
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.sandbox.first_process import ProgramLimits
from tests.builders.sandboxes import needs_namespaces

HERE = Path(__file__).parents[1] / "builders"
QUICK_S = 60.0
LIMITS = ProgramLimits(memory=512 << 20, processes=20, cpu_s=1)
pytestmark = needs_namespaces


@pytest.fixture(scope="module")
def fork_server():
    with ForkServer() as made:
        yield made


def act(fork_server, name, memory):
    """Return the first move of an agent in the sandbox."""
    origin = load_agent(f"hostile_agents:{name}", folder=HERE).origin
    launcher = AgentLauncher(fork_server, limits=LIMITS)
    connection = launcher.connect(origin, memory)
    brief = Brief(text="t", goal={})
    try:
        terms = ResetRequest(brief=brief, tools=(), memory_dir=connection.memory_dir)
        connection.reset(terms, QUICK_S)
        return connection.act({"text": ""}, {}, QUICK_S)
    finally:
        connection.end()


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ForkBomb", "more (processes|memory) than its limit|temporarily unavailable"),
        ("Eater", "more memory than its limit"),
        ("Glutton", "MemoryError"),
        ("Spinner", "SIGXCPU|SIGKILL"),
        ("Sparse", "File too large"),
        ("Deep", "its folder broke its quota"),
    ],
)
def test_an_agent_that_breaks_a_limit_is_ended(fork_server, tmp_path, name, words):
    with pytest.raises(AgentRaised, match=words):
        act(fork_server, name, tmp_path)
    # Deeper than pytest's own clean-up can go.
    subprocess.run(["rm", "-rf", *tmp_path.iterdir()], check=True)


def test_of_a_home_folder_the_agents_file_alone_is_seen(tmp_path, monkeypatch):
    (tmp_path / "agent.py").touch()
    (tmp_path / "private").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    origin = load_agent(f"{sys.executable} agent.py", folder=tmp_path).origin
    view = agent_view(origin, "bubblewrap", "", ())
    inside = [place for _, place in view.read_only if place.startswith(str(tmp_path))]
    assert inside == [str(tmp_path / "agent.py")]
    assert view.folder == str(tmp_path)


def test_nothing_outlives_the_agent(fork_server, tmp_path):
    act(fork_server, "Stayer", tmp_path)
    file = tmp_path / "alive"
    last = file.read_text()
    time.sleep(0.3)
    assert file.read_text() == last
