"""Logs for Inspect AI: its own reader and viewer open them, counts are the report's."""

import json
import subprocess
import sys
import time
import urllib.request

import pytest

from owa_bench.bridges.inspect_log import SCORES, _tool_call, export_logs
from owa_bench.errors import MissingPartError
from owa_bench.reports import composition
from tests.bridges.client_environments import REPOSITORY, environment_of
from tests.builders.run_directory import ARMS, make_plan, make_run

READER = """
import json, sys
from inspect_ai.log import read_eval_log

for path in sys.argv[1:]:
    log = read_eval_log(path)
    sample = log.samples[0]
    print(json.dumps({
        "status": log.status,
        "samples": len(log.samples),
        "means": {s.name: s.metrics["mean"].value for s in log.results.scores},
        "roles": [message.role for message in sample.messages],
        "tool": sample.messages[0].tool_calls[0].function,
        "seen": sample.messages[1].text,
        "scores": {name: score.value for name, score in sample.scores.items()},
        "family": sample.metadata["family"],
    }))
"""


def test_an_action_is_its_tool_call_or_the_text_itself():
    text = '{"tool": "http", "arguments": {"url": "/x"}}'
    assert _tool_call(text) == ("http", {"url": "/x"})
    assert _tool_call('{"tool": "wait", "arguments": 3}') == ("wait", {})
    for text in ("2", "not JSON", '["a"]'):
        assert _tool_call(text) == ("act", {"action": text})


def test_without_inspect_the_install_line_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(MissingPartError, match="pip install inspect-ai"):
        export_logs(tmp_path, tmp_path / "logs")


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_inspects_own_reader_and_viewer_open_the_logs(tmp_path):
    programs = environment_of("inspect", "inspect_ai", "openai", "-e", str(REPOSITORY))
    layout = make_run(tmp_path / "run", make_plan(1))
    words = ["export", str(layout.root), "--to", "inspect", "--out", "logs", "--json"]
    said = call(tmp_path, programs / "owa-bench", *words)
    logs = {one["arm"]: one for one in json.loads(said)}
    verdicts = composition.score(layout.root)
    assert {arm: log["samples"] for arm, log in logs.items()} == {
        arm: verdicts[arm].counted for arm in ARMS
    }
    paths = [logs[arm]["path"] for arm in ARMS]
    lines = call(tmp_path, programs / "python", "-c", READER, *paths).splitlines()
    for arm, line in zip(ARMS, lines, strict=True):
        read = json.loads(line)
        assert (read["status"], read["samples"]) == ("success", verdicts[arm].counted)
        assert set(read["means"]) == set(read["scores"]) == set(SCORES)
        assert read["roles"] == ["assistant", "tool"] * 4
        assert read["tool"] == "http"
        assert "toolquest/v1/reconcile/t1/0 1" in read["seen"]
    again = subprocess.run(
        [programs / "owa-bench", *words], cwd=tmp_path, capture_output=True, check=False
    )
    assert again.returncode == 2
    assert b"is there already" in again.stderr
    assert served(programs / "inspect", tmp_path / "logs") == {
        path.rpartition("/")[2] for path in paths
    }


def call(folder, *command):
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def served(program, folder):
    """Return the names of the logs that `inspect view` offers."""
    port = "7591"
    command = [program, "view", "start", "--log-dir", folder, "--port", port]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as viewer:
        try:
            for _ in range(120):
                try:
                    url = f"http://127.0.0.1:{port}/api/logs"
                    with urllib.request.urlopen(url) as answer:
                        files = json.load(answer)["files"]
                    return {one["name"].rpartition("/")[2] for one in files}
                except OSError:
                    time.sleep(0.5)
        finally:
            viewer.terminate()
    raise AssertionError("inspect view did not answer")
