"""Harbor: episodes as folders of tasks, the MCP server of each beside its agent.

    instruction.md                     the task
    task.toml                          names the MCP server
    environment/Dockerfile             where the agent is
    environment/docker-compose.yaml    the server, from an image of this package
    tests/test.sh                      asks the server for the reward

Format: Harbor 0.26, schema 1.4. Source: docs/train-a-language-model.md#harbor
"""

import json
from pathlib import Path
from typing import Any

from owa_bench.bridges.session_server import PORT
from owa_bench.errors import UsageError
from owa_bench.runs.episode_session import open_episode

SERVER = "episode"
_TASK = """\
schema_version = "1.4"

[task]
name = "owa-bench/{name}"

[metadata]
episode = {episode}

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = {agent_s:.1f}

[environment]
build_timeout_sec = 600.0

[[environment.mcp_servers]]
name = "{server}"
transport = "streamable-http"
url = "http://{server}:{port}/mcp"
"""
_HOW = """\
Carry the task below out by the tools of the MCP server `{server}` alone; each call of one is a \
step.

{prompt}
"""
_AGENT = "FROM docker.io/library/python:3.12-slim\nWORKDIR /app\n"
_ASK = """\
#!/bin/sh
# The server alone knows what the episode was worth.
python3 -c '
import json, urllib.request
with urllib.request.urlopen("http://{server}:{port}/reward", timeout=30) as answer:
    print(json.load(answer)["reward"])
' > /logs/verifier/reward.txt
"""


def export(
    folder: str | Path,
    suite: str,
    seeds: range,
    *,
    image: str = "owa-bench",
    agent_s: float = 1800.0,
    **options: Any,
) -> list[Path]:
    """Write a task for each seed.

    Args:
        folder: Gets a folder for each task.
        suite: Name of a suite with tools, one that needs no more than the image has.
        seeds: Of the instances.
        image: With this package and its extra `[mcp]`; the repository's Containerfile makes it.
        agent_s: Seconds for the agent.
        options: As for `open_episode`.
    Returns: The folders.
    Raises: UsageError: A task of this name is there already; as for `open_episode` too.
    """
    made = []
    for seed in seeds:
        episode = {"suite": suite, "seed": seed, **options}
        with open_episode(**episode) as session:
            one = session.instance
            family = one.family.replace("/", "-")
            name = f"{suite}-{family}-t{one.tier}-d{one.drift_step}-s{seed}"
            prompt = session.prompt
        text = json.dumps(episode)
        compose = _compose(image, text)
        files = {
            "instruction.md": _HOW.format(server=SERVER, prompt=prompt),
            "task.toml": _TASK.format(
                name=name, episode=json.dumps(text), agent_s=agent_s, server=SERVER, port=PORT
            ),
            "environment/Dockerfile": _AGENT,
            "environment/docker-compose.yaml": json.dumps(compose, indent=2) + "\n",
            "tests/test.sh": _ASK.format(server=SERVER, port=PORT),
        }
        task = Path(folder) / name
        if task.exists():
            raise UsageError(f"`folder` holds {name} already: name another folder, or remove it.")
        for place, content in files.items():
            file = task / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        (task / "tests" / "test.sh").chmod(0o755)
        made.append(task)
    return made


def _compose(image: str, episode: str) -> dict[str, Any]:
    """Return the compose file of a task; JSON is YAML."""
    ask = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{PORT}/reward')"
    server = {
        "image": image,
        "entrypoint": ["python3", "-m", "owa_bench.bridges.session_server"],
        # Compose reads a dollar sign as a variable.
        "command": [episode.replace("$", "$$")],
        "expose": [str(PORT)],
        "healthcheck": {
            "test": ["CMD", "python3", "-c", ask],
            "interval": "2s",
            "timeout": "5s",
            "retries": 30,
        },
    }
    main = {"depends_on": {SERVER: {"condition": "service_healthy"}}}
    return {"services": {"main": main, SERVER: server}}
