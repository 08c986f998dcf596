"""Environments of clients that cannot live in ours, and a model server by script."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from owa_bench.bridges.client_calls import ALL_PLAYED

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = REPOSITORY / "pyproject.toml"
INSTALL_S = 900


def environment_of(name, *packages):
    """Return the folder of programs of an environment with packages.

    It is made once and brought up to pyproject.toml. Skips the test where it cannot be
    made, such as on a machine without an index.
    """
    folder = Path(sys.prefix) / "clients" / name
    done = folder / "done"
    if not done.exists() or done.stat().st_mtime < PROJECT.stat().st_mtime:
        _run(name, sys.executable, "-m", "venv", "--without-pip", str(folder))
        python = ("--python", str(folder / "bin" / "python"))
        # Only what a test imports is compiled, when it does.
        pip = (sys.executable, "-m", "pip", *python, "install", "-q", "--no-compile")
        if find_spec("uv") is not None:  # several times as fast
            pip = (sys.executable, "-m", "uv", "pip", "install", "-q", *python)
        _run(name, *pip, *packages)
        done.touch()
    return folder / "bin"


def _run(name, *command):
    """Run a command that makes an environment; skip the test where it fails."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
        pytest.skip(f"no environment for {name}: {last}")


class StubModel:
    """A chat endpoint whose model knows the way of every task, but not which it has.

    Until a tool's result holds a task that it knows, all it does is call `brief`.
    """

    def __init__(self, scripts_by_task):
        self._scripts_by_task = scripts_by_task  # () -> {text of the task: calls}
        self.requests = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def next_call(self, given):
        """Return the name and arguments of the model's next call; None: it is done."""
        told = [_text(m) for m in given["messages"] if _holds_result(m)]
        if any(ALL_PLAYED in text for text in told):
            names = [tool["function"]["name"] for tool in given["tools"]]
            return ("final_answer", {"answer": "done"}) if names[-1:] == ["final_answer"] else None
        script = next(
            (
                script
                for task, script in self._scripts_by_task().items()
                if any(task in text for text in told)
            ),
            None,
        )
        if script is None:
            return "brief", {}
        step = script[min(len(told) - 1, len(script) - 1)]
        return step["tool"], step["arguments"]

    def _handler(self):
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                size = int(self.headers["Content-Length"])
                given = json.loads(self.rfile.read(size))
                stub.requests.append(given)
                call = stub.next_call(given)
                reply = _completion(given["model"], len(stub.requests), call)
                kind, text = "application/json", json.dumps(reply)
                if given.get("stream"):
                    kind, text = "text/event-stream", _stream_of(reply)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        return Handler


def _holds_result(message):
    """Return whether a message holds a tool's result (smolagents: as the user's)."""
    text = _text(message)
    return message["role"] == "tool" or text.startswith("Observation:")


def _text(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _completion(model, number, call):
    message = {"role": "assistant", "content": "done"}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        asked = {"id": f"call_{number}", "type": "function", "function": function}
        message |= {"content": "", "tool_calls": [asked]}
    return {
        "id": "stub",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _stream_of(reply):
    """Return a completion as the events of a stream: all of it, then why it ended."""
    (choice,) = reply["choices"]
    calls = [{**call, "index": i} for i, call in enumerate(choice["message"].get("tool_calls", ()))]
    delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
    chunk = {name: reply[name] for name in ("id", "created", "model")}
    chunk["object"] = "chat.completion.chunk"
    ended = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    chunks = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [ended], "usage": reply["usage"]},
    ]
    return "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
