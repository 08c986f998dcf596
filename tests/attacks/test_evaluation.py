"""Attacks from inside `owa-bench evaluate`: a bundle that looks for doors; images."""

import io
import json
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from owa_bench.errors import AgentTimeout, UsageError
from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.isolation import hosting_of
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from tests.builders.docker_daemon import docker_daemon
from tests.builders.sandboxes import needs_sandbox

pytestmark = pytest.mark.slow
HERE = Path(__file__).parents[1] / "builders"
SHELL_AGENT = Path(__file__).parents[2] / "examples" / "agents" / "json_lines.sh"
BATTERY = """
name = "short"
underpowered = true

[[suite]]
name = "toolquest"
families = ["restock"]
tiers = [1]
interventions = [0, "protocol"]
"""
DEAF = "while :; do sleep 1 || read -r _; done\n"  # no `sleep` there: a busy loop


def evaluate(folder, monkeypatch, agent):
    """Play an agent as an evaluator does; return the run and how its attempts ended."""
    monkeypatch.setenv("OWA_BENCH_HOME", str(folder / "data"))
    monkeypatch.setenv("SECRET", "canary-of-the-harness")
    (folder / "short.toml").write_text(BATTERY)
    command = [sys.executable, "-m", "owa_bench", "evaluate", str(agent)]
    command += ["--battery", "short.toml", "--out", "run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    layout = RunLayout(folder / "run")
    leaves = files.read_leaves(layout)
    return layout, [files.read_trace(layout, leaf).end for leaf in leaves]


@needs_sandbox
@pytest.mark.parametrize("how", ["probe_agent.py", f"{sys.executable} probe_agent.py"])
def test_a_bundle_finds_no_door(tmp_path, monkeypatch, how):
    targets = {"data": str(tmp_path / "data"), "run": str(tmp_path / "run")}
    targets |= {"port": 9, "word": "canary-of-the-harness"}
    with tarfile.open(tmp_path / "agent.tar", "w") as archive:
        archive.add(HERE / "probe_agent.py", "probe_agent.py")
        for name, text in (
            ("targets.json", json.dumps(targets)),
            ("agent.toml", f'agent = "{how}"\n'),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    _, ends = evaluate(tmp_path, monkeypatch, "agent.tar")
    assert ends
    for end in ends:
        assert "open doors: []" in end.reason
        assert (end.q_state, end.success) == (0.0, False)


@pytest.fixture(scope="module")
def docker(tmp_path_factory):
    with docker_daemon(tmp_path_factory.mktemp("docker")):  # its sockets' paths are short
        yield


def image_of(folder, script):
    """Return the digest of an image that holds a shell and a script to run."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "memory", "proc", "dev", "sys", "run", "etc"):
        (root / name).mkdir(parents=True)
    shell = Path("/bin/sh").resolve()
    linked = subprocess.check_output(["ldd", shell], text=True).split()
    for path in [word for word in linked if word.startswith("/")]:
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path[1:])
    shutil.copy(shell, root / "bin" / "sh")
    (root / "agent.sh").write_text(script)
    with tarfile.open(folder / "root.tar", "w") as archive:
        archive.add(root, ".")
    start = 'ENTRYPOINT ["/bin/sh", "/agent.sh"]'
    command = ["docker", "import", "--change", start, folder / "root.tar"]
    return subprocess.check_output(command, text=True).strip()


def containers():
    return subprocess.check_output(["docker", "ps", "-aq"], text=True).split()


def test_an_image_is_played_by_its_digest(tmp_path, monkeypatch, docker):
    image = image_of(tmp_path, SHELL_AGENT.read_text())
    layout, ends = evaluate(tmp_path, monkeypatch, image)
    assert {end.outcome for end in ends} == {"finished"}
    plan = read_plan(layout)
    assert plan.verifier_nonce.startswith(f"image {image} ")
    assert [arm.hosting for arm in plan.arms] == ["docker"]
    other = load_agent("sha256:" + "0" * 64)
    with pytest.raises(UsageError, match="Docker holds no image"):
        hosting_of(other.origin, "auto", in_process=False)
    with pytest.raises(UsageError, match="must be played with `--sandbox docker`"):
        hosting_of(load_agent(image).origin, "none", in_process=False)


def test_an_image_that_never_ends_is_removed_with_its_episode(tmp_path, docker):
    origin = load_agent(image_of(tmp_path, DEAF)).origin
    terms = ResetRequest(brief=Brief(text="t", goal={}), tools=(), memory_dir="")
    with ForkServer() as fork_server:
        connection = AgentLauncher(fork_server).connect(origin, hosting="docker")
        with pytest.raises(AgentTimeout):
            connection.reset(terms, 5.0)
        assert containers()
        connection.end()
        until = time.monotonic() + 30
        while containers():
            assert time.monotonic() < until
            time.sleep(0.2)
