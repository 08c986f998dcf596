"""Tasks for Harbor: their files, and the server that a task's compose file starts."""

import json
import socket
import stat
import subprocess
import sys
import time
import tomllib

import pytest

from owa_bench.bridges import harbor
from owa_bench.errors import UsageError
from tests.builders.episode_scripts import SEED, native_episode

pytest.importorskip("mcp.server.lowlevel.server")

import anyio
import httpx
from mcp.client.client import Client

pytestmark = pytest.mark.filterwarnings("default")  # those of the package are its own
OPTIONS = {"tier": 1, "family": "restock", "delta": 0.25}


@pytest.fixture
def task(tmp_path):
    (folder,) = harbor.export(tmp_path, "toolquest", range(SEED, SEED + 1), **OPTIONS)
    return folder


def test_a_task_names_the_server_that_its_compose_file_starts(task):
    settings = tomllib.loads((task / "task.toml").read_text())
    compose = json.loads((task / "environment" / "docker-compose.yaml").read_text())
    (server,) = settings["environment"]["mcp_servers"]
    assert server["name"] in compose["services"]
    assert server["url"] == f"http://{server['name']}:8000/mcp"
    (given,) = compose["services"]["episode"]["command"]
    assert json.loads(given) == json.loads(settings["metadata"]["episode"])
    assert json.loads(given) == {"suite": "toolquest", "seed": SEED, **OPTIONS}
    assert "Restock the warehouse" in (task / "instruction.md").read_text()
    test = task / "tests" / "test.sh"
    assert "/logs/verifier/reward.txt" in test.read_text()
    assert test.stat().st_mode & stat.S_IXUSR


def test_a_task_that_is_there_is_not_written_over(task):
    with pytest.raises(UsageError, match="holds toolquest-restock"):
        harbor.export(task.parent, "toolquest", range(SEED, SEED + 1), **OPTIONS)


async def played(url, calls):
    async with Client(f"{url}/mcp", read_timeout_seconds=60) as client:
        listed = await client.list_tools()
        results = [await client.call_tool(call["tool"], call["arguments"]) for call in calls]
        after = await client.call_tool("finish", {})
    return [tool.name for tool in listed.tools], results, after


def test_a_client_plays_the_native_episode_and_the_test_reads_its_reward(task, tmp_path):
    """The commands of the compose file and of test.sh, without containers."""
    native = native_episode()
    compose = json.loads((task / "environment" / "docker-compose.yaml").read_text())
    service = compose["services"]["episode"]
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    command = [sys.executable, *service["entrypoint"][1:], *service["command"], port]
    script = (task / "tests" / "test.sh").read_text()
    script = script.replace("episode:8000", f"127.0.0.1:{port}").replace("python3", sys.executable)
    script = script.replace("/logs/verifier", str(tmp_path))
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command) as server:
        try:
            wait_for(f"{url}/reward")
            assert httpx.get(f"{url}/reward").json() == {
                "reward": 0.0,
                "done": False,
                "success": False,
            }
            tools, results, after = anyio.run(played, url, native.calls)
            subprocess.run(["sh", "-c", script], check=True, timeout=60)
        finally:
            server.terminate()
    assert {"http", "finish"} <= set(tools)
    assert [result.content[0].text for result in results] == native.texts
    assert after.is_error
    assert float((tmp_path / "reward.txt").read_text()) == native.reward


def wait_for(url):
    for _ in range(300):
        try:
            httpx.get(url)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the server did not begin to listen")
