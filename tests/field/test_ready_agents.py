"""mini-swe-agent, as people install it, plays a project with a scripted model.

Needs mini-swe-agent in an environment of its own, whose folder OWA_MINI_SWE_AGENT names.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from owa_bench.records.events import ModelCall
from owa_bench.records.layout import RunLayout
from owa_bench.runs.store.files import leaves_of_shards, read_trace
from owa_bench.sandbox import views
from tests.builders.stub_server import running

pytestmark = [pytest.mark.project, pytest.mark.slow]
AGENTS = Path(__file__).parents[2] / "examples" / "agents"
# A week of the example developer, what the model has the agent run in its clone.
WEEK = "for day in 1 2 3 4 5 6 7; do python3 {}; owa-tool next_day; done"
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def model(week: str) -> Starlette:
    """Return a chat server whose model asks for one command, then ends the task."""

    async def answer(request: Request) -> JSONResponse:
        body = await request.json()
        ended = any(message["role"] == "tool" for message in body["messages"])
        call = {"name": "bash", "arguments": json.dumps({"command": DONE if ended else week})}
        message = {
            "role": "assistant",
            "content": "I run it.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
        }
        reply = {
            "id": "reply",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
        }
        return JSONResponse(reply)

    return Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])


@pytest.mark.part(4)
def test_mini_swe_agent_plays_a_project_in_a_clone(tmp_path):
    installed = os.environ.get("OWA_MINI_SWE_AGENT", "")
    if not (Path(installed) / "bin" / "python").exists():
        pytest.skip("OWA_MINI_SWE_AGENT names no environment with mini-swe-agent")
    if fault := views.bubblewrap_fault():
        pytest.skip(f"bubblewrap: {fault}")
    place, home, out = tmp_path / "place", tmp_path / "home", tmp_path / "run"
    place.mkdir()
    home.mkdir()
    for name in ("ready/mini_swe_agent.sh", "clone_developer.py"):
        shutil.copy(AGENTS / name, place)
    shutil.copytree(installed, place / "mini", symlinks=True)
    with running(model(WEEK.format(place / "clone_developer.py"))) as url:
        options = (
            *("--suite", "projforge", "--family", "billing", "--tier", "1", "--delta", "0"),
            *("--interventions", "0", "--episodes", "1", "--act-seconds", "600"),
            *("--agent", "mini=clone:sh mini_swe_agent.sh scripted"),
            *("--model-url", f"{url}/v1", "--no-preflight", "--out", str(out)),
        )
        done = subprocess.run(
            [sys.executable, "-m", "owa_bench", "run", *options],
            cwd=place,
            env={**os.environ, "OWA_BENCH_HOME": str(home), "TMPDIR": str(home)},
            capture_output=True,
            text=True,
            timeout=1200,
        )
    assert done.returncode == 0, done.stderr
    layout = RunLayout(out)
    trace = read_trace(layout, leaves_of_shards(layout)[0])
    assert (trace.start.arm, trace.end.outcome) == ("mini", "finished")
    assert trace.end.q_state > 0.9
    assert any(trace.of(ModelCall)), "the model was reached by another way than the gateway"
