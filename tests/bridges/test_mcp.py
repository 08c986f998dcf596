"""The reference client of the `mcp` package plays over standard streams and HTTP."""

import json
import os
import socket
import subprocess
import sys

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.reports import statement, verify
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.store import files, keys
from tests.bridges.scripts import scripts_of

pytest.importorskip("mcp.server.lowlevel.server")

import anyio
import httpx2
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

pytestmark = pytest.mark.filterwarnings("default")  # those of the package are its own


@pytest.fixture
def place(tmp_path):
    """The layout of the run to come and the home of its keys."""
    return RunLayout(tmp_path / "run"), tmp_path / "home"


def command(layout, *more):
    words = ["-m", "owa_bench", "serve", "--family", "reconcile", "--client", "tester"]
    return [*words, "--out", str(layout.root), *more]


def environment(home):
    return {**os.environ, "OWA_BENCH_HOME": str(home)}


def pasted(line):
    """Return the transport of a client that was given the line."""
    (server,) = json.loads(line)["mcpServers"].values()
    client = httpx2.AsyncClient(headers=server["headers"], timeout=60)
    return streamable_http_client(server["url"], http_client=client)


async def played(target, layout, home):
    """Play the oracle's script through a client; what it was shown and answered."""
    if isinstance(target, str):
        target = pasted(target)
    async with Client(target, read_timeout_seconds=60) as client:
        listed = await client.list_tools()
        resource = await client.read_resource("owa-bench://brief")
        goal = await client.read_resource("owa-bench://goal")
        assert json.loads(goal.contents[0].text)["family"] == "reconcile"
        prompt = await client.get_prompt("brief")
        told = await client.call_tool("brief", {})
        results = [
            await client.call_tool(step["tool"], step["arguments"])
            for script in scripts_of(layout, home)
            for step in script
        ]
        after = await client.call_tool("vault", {})
        briefs = (
            client.instructions,
            resource.contents[0].text,
            prompt.messages[0].content.text,
            told.content[0].text,
            listed.tools[0].description,
        )
    return [tool.name for tool in listed.tools], briefs, results, after


def check(found, layout, home):
    tools, briefs, results, after = found
    assert tools[0] == "brief"
    assert {"http", "vault", "finish", "ask_supervisor"} <= set(tools)
    assert all("Reconcile" in brief for brief in briefs)
    assert not any(result.is_error for result in results)
    assert "reconcile: finished, success, q_state 1.000" in results[-1].content[0].text
    assert after.is_error
    (leaf,) = files.read_leaves(layout)
    trace = files.read_trace(layout, leaf)
    assert (trace.start.arm, trace.end.outcome) == ("tester", "finished")
    assert (trace.end.q_state, trace.end.steps) == (1.0, len(results))
    judged = statement.write(layout.root, keys.load(home, keys.DEFAULT))
    assert judged.verdicts[0].counted == 1
    assert [check for check in verify.verify(layout.root) if not check.ok] == []
    assert all(check.ok for check in verify.recompute(layout.root))
    escrow.reveal(home, layout)
    assert replay.replay_run(layout).passed


@pytest.mark.slow
def test_an_episode_over_standard_streams(place):
    layout, home = place
    target = StdioServerParameters(
        command=sys.executable, args=command(layout), env=environment(home)
    )
    check(anyio.run(played, target, layout, home), layout, home)


@pytest.mark.slow
def test_an_episode_over_http(place):
    layout, home = place
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, *command(layout, "--http", "--port", str(port))],
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = iter(server.stderr.readline, "")
        line = next(line for line in lines if line.startswith("{"))
        assert f"http://127.0.0.1:{port}/mcp" in line
        found = anyio.run(played, line, layout, home)
        _, told = server.communicate(timeout=120)  # it ends with the run
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 0
    assert "1 of 1 episodes complete" in told
    check(found, layout, home)


@pytest.mark.slow
def test_a_client_that_hangs_up_ends_the_server(place):
    layout, home = place
    server = subprocess.run(
        [sys.executable, *command(layout)],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert server.returncode == 0
    assert server.stdout == ""
    assert "0 of 1 episodes complete" in server.stderr
