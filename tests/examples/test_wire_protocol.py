"""docs/wire-protocol.md: a real exchange, its agents play, it names all fields."""

import fnmatch
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from owa_bench.hosting import protocol
from owa_bench.interfaces import Brief
from tests.builders.plugin_package import code_blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "wire-protocol.md"
AGENTS = ROOT / "examples" / "agents"
FLAGS = "--suite toolquest --family restock --tier 1 --delta 0 --interventions 0"


def play(tmp_path, monkeypatch, command, *flags):
    """Play one episode from the folder of the agents; return its row of outcomes."""
    monkeypatch.setenv("OWA_BENCH_HOME", str(tmp_path / "home"))
    out = ("--out", tmp_path / "run", "--json", *flags)
    words = ("run", *FLAGS.split(), "--agent", command, *out)
    said = subprocess.run(
        [sys.executable, "-m", "owa_bench", *map(str, words)],
        cwd=AGENTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    [row] = json.loads(said.stdout)["played"]
    return row


def same(shown, real):
    """Return whether a value is what the page shows; `...` stands for anything."""
    if isinstance(shown, dict):
        rest = dict(real)
        known = [rest.pop(key, None) for key in shown if key != "..."]
        wanted = [value for key, value in shown.items() if key != "..."]
        return ("..." in shown or not rest) and all(map(same, wanted, known))
    if isinstance(shown, str) and "..." in shown:
        return shown == "..." or fnmatch.fnmatch(real, shown.replace("...", "*"))
    return shown == real


def test_the_exchange_of_the_page_happens_again(tmp_path, monkeypatch):
    asked, said = tmp_path / "asked", tmp_path / "said"
    python = shlex.quote(sys.executable)
    pipe = f"tee {asked} | {python} json_lines.py | tee {said}"
    row = play(tmp_path, monkeypatch, shlex.join(["sh", "-c", pipe]), "--sandbox=none")
    assert row["outcomes"] == {"finished": 1}
    [block] = code_blocks(PAGE, "text")
    for mark, file in ((">", asked), ("<", said)):
        lines = [line[2:] for line in block.splitlines() if line[0] == mark]
        real = [json.loads(line) for line in file.read_text().splitlines()]
        # The agent is ended when its last answer is read: `tee` may not have kept it.
        assert len(lines) - 1 <= len(real) <= len(lines)
        for line, value in zip(lines, real, strict=False):
            assert same(json.loads(line), value), (line, value)


@pytest.mark.part(2)
@pytest.mark.parametrize("program", ["python3 json_lines.py", "sh json_lines.sh"])
def test_the_agents_finish_a_real_episode(tmp_path, monkeypatch, program):
    assert play(tmp_path, monkeypatch, program)["outcomes"] == {"finished": 1}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_agent_in_node_finishes_a_real_episode(tmp_path, monkeypatch):
    row = play(tmp_path, monkeypatch, "node json_lines.mjs")
    assert row["outcomes"] == {"finished": 1}


@pytest.mark.slow
def test_the_agent_over_http_finishes_a_real_episode(tmp_path, monkeypatch):
    server = [sys.executable, str(AGENTS / "http_server.py"), "0"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        try:
            row = play(tmp_path, monkeypatch, process.stdout.readline().strip())
        finally:
            process.kill()
    assert row["outcomes"] == {"finished": 1}


def test_every_field_has_its_row():
    page = PAGE.read_text()
    fields = [f"reset.{name}" for name in protocol.ResetRequest.__struct_fields__]
    fields += [f"reset.brief.{name}" for name in Brief.__struct_fields__]
    fields += [f"act.{name}" for name in protocol.ActRequest.__struct_fields__]
    fields += protocol.AgentRequest.__struct_fields__
    fields += protocol.AgentReply.__struct_fields__
    lacking = {field for field in fields if f"`{field}`" not in page}
    assert lacking <= {"reset.brief"}  # its own fields are there
