"""Clients of other projects play, each in an environment of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement, verify
from owa_bench.runs.store import files, keys
from tests.bridges.client_environments import REPOSITORY, StubModel, environment_of
from tests.bridges.scripts import scripts_of, tasks_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
OLD_CLIENT = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    command, *arguments = sys.argv[1:]
    env = dict(os.environ)
    server = StdioServerParameters(command=command, args=arguments, env=env)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        listed = (await session.list_tools()).tools
        brief = await session.call_tool("brief", {})
        last = await session.call_tool("declare_infeasible", {"p": 0.1})
        print(json.dumps([
            listed[0].name, listed[0].description,
            brief.content[0].text, last.content[0].text,
        ]))

asyncio.run(main())
"""


def run_in(folder, command, **variables):
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def stub_of(layout, home):
    """Return a model that knows the tasks and scripts of a run to come."""
    return StubModel(
        lambda: dict(zip(tasks_of(layout, home), scripts_of(layout, home), strict=True))
    )


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("name", "packages"),
    [("openai_agents", ["openai-agents"]), ("smolagents", ["smolagents[mcp,openai]", "mcp<2"])],
)
def test_an_example_plays_to_success(name, packages, tmp_path):
    programs = environment_of(name, *packages)
    script = REPOSITORY / "examples" / "clients" / f"with_{name}.py"
    layout, home = RunLayout(tmp_path / "run"), tmp_path / "home"
    with stub_of(layout, home) as model:
        run_in(
            tmp_path,
            [str(programs / "python"), str(script), str(layout.root)],
            MODEL="scripted",
            OPENAI_API_KEY="none",
            OPENAI_BASE_URL=model.address,
            OWA_BENCH=str(Path(sys.executable).parent / "owa-bench"),
            OWA_BENCH_HOME=str(home),
        )
    (leaf,) = files.read_leaves(layout)
    assert files.read_trace(layout, leaf).end.q_state == 1.0


@pytest.mark.part(4)
def test_inspect_reads_the_brief_from_a_tool_and_plays_to_success(tmp_path):
    programs = environment_of("inspect", "inspect_ai", "openai", "-e", str(REPOSITORY))
    layout, home = RunLayout(tmp_path / "run"), tmp_path / "home"
    with stub_of(layout, home) as model:
        command = [
            *(str(programs / "inspect"), "eval", "owa_bench/recorded_episodes"),
            *("--model", "openai-api/stub/scripted", "--display", "none"),
            *("--log-dir", str(tmp_path / "logs"), "--log-format", "json"),
            *("-T", f"out={layout.root}", "-T", "family=reconcile", "-T", "episodes=2"),
        ]
        run_in(
            tmp_path,
            command,
            OWA_BENCH_HOME=str(home),
            STUB_API_KEY="none",
            STUB_BASE_URL=model.address,
        )
    first = model.requests[0]
    asked = json.dumps(first["messages"])
    assert not any(task in asked for task in tasks_of(layout, home))
    assert first["tools"][0]["function"]["name"] == "brief"
    ends = [files.read_trace(layout, leaf).end for leaf in files.read_leaves(layout)]
    assert [end.q_state for end in ends] == [1.0, 1.0]
    assert [end.steps for end in ends] == [len(s) for s in scripts_of(layout, home)]
    (log,) = (tmp_path / "logs").glob("*.json")
    scores = json.loads(log.read_text())["results"]["scores"]
    means = {score["name"]: score["metrics"]["mean"]["value"] for score in scores}
    assert means == {"success": 1.0, "q_state": 1.0}
    judged = statement.write(layout.root, keys.load(home, keys.DEFAULT))
    assert judged.verdicts[0].counted == 2
    assert [check for check in verify.verify(layout.root) if not check.ok] == []


def test_a_client_on_mcp_1_reads_the_brief_and_is_told_the_result(tmp_path):
    programs = environment_of("mcp1", "mcp<2")
    server = [sys.executable, "-m", "owa_bench", "serve", "--family", "reconcile"]
    command = [str(programs / "python"), "-c", OLD_CLIENT, *server, "--out", "run"]
    told = run_in(tmp_path, command, OWA_BENCH_HOME=str(tmp_path / "home"))
    name, about, brief, last = json.loads(told)
    (task,) = tasks_of(RunLayout(tmp_path / "run"), tmp_path / "home")
    assert name == "brief"
    assert task[:500] in about
    assert task in brief
    assert "reconcile: infeasible, no success, q_state 0.000" in last
