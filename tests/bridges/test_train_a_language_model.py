"""The page for trainers: every block is run, a script in the model's place.

Blocks of a bridge are run with its package, in an environment of its own: the episode must be the
native one, by its texts' sum of rewards and by its events.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bridges.client_environments import REPOSITORY, StubModel, environment_of
from tests.builders.episode_scripts import event_lines, native_episode

PAGE = REPOSITORY / "docs" / "train-a-language-model.md"
MODEL = """
import json
calls = json.loads({calls!r})
def model(messages, tools):
    call = calls[len(messages) // 2 - 1]
    return call["tool"], call["arguments"]
def said(messages):
    call = calls[len(messages) // 2 - 1]
    call = {{"name": call["tool"], "arguments": call["arguments"]}}
    return f"I go on.\\n<tool_call>{{json.dumps(call)}}</tool_call>"
"""
TELL = "\nprint(json.dumps({'reward': total}))\n"


def blocks(section):
    """Return the Python blocks of a section of the page."""
    (text,) = re.findall(rf"^## {section}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    found = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert found
    return found


@pytest.fixture(scope="module")
def native():
    return native_episode()


def test_every_block_is_of_a_section_that_is_run():
    whole = re.findall(r"^```python$", PAGE.read_text(), re.M)
    sections = ("open_episode", "OpenEnv", "SkyRL-gym", "verifiers", "Harbor")
    assert len(whole) == sum(len(blocks(section)) for section in sections)


def test_the_blocks_of_open_episode_run(native, tmp_path, monkeypatch, capsys):
    """One after the other, in one namespace, as a reader would."""
    monkeypatch.chdir(tmp_path)
    script = [(call["tool"], call["arguments"]) for call in native.calls]
    turns = {"model": 0}

    def model(messages, tools):
        assert len(tools) > 5
        turns["model"] += 1
        return (
            script[min(len(messages) // 2 - 1, len(script) - 1)] if len(messages) > 2 else script[0]
        )

    def said(messages):
        assert "<tools>" in messages[0]["content"]
        return '<tool_call>{"name": "finish", "arguments": {"p": 0.0}}</tool_call>'

    names = {"model": model, "said": said}
    first, record, group, *giving_up, tasks = blocks("open_episode")
    exec(first, names)
    assert capsys.readouterr().out == "1.0 True\n"
    assert turns["model"] == len(script)
    exec(record, names)
    assert '"p":0.0' in capsys.readouterr().out
    names["model"] = lambda _messages, _tools: ("finish", {"p": 0.0})
    exec(group, names)
    assert names["rewards"] == [0.1] * 8
    for block in giving_up:
        exec(block, names)
    exec(tasks, names)
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 * 8
    assert rows[0].split()[1:4] == ["1", "0.0", "train"]


def test_the_block_of_harbor_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("Harbor")
    names = {}
    exec(code, names)
    assert len(names["folders"]) == 3
    assert all((folder / "task.toml").exists() for folder in names["folders"])


# --- bridges --------------------------------------------------------------------------


def run_in(programs, folder, code, native):
    """Run code with a bridge's package; return what it told."""
    prelude = MODEL.format(calls=json.dumps(native.calls))
    done = subprocess.run(
        [str(programs / "python"), "-c", prelude + code],
        cwd=folder,
        env={**os.environ, "OWA_BENCH_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def programs_of(extra):
    return environment_of(extra, "-e", f"{REPOSITORY}[{extra}]")


def bridge(test):
    """Mark a test that installs a package; a commit plays one of three."""
    for mark in (pytest.mark.slow, pytest.mark.part(3), pytest.mark.timeout(1200)):
        test = mark(test)
    return test


@bridge
def test_skyrl_plays_the_native_episode(native, tmp_path):
    (code,) = blocks("SkyRL-gym")
    told = run_in(programs_of("skyrl"), tmp_path, code + TELL, native)
    assert told == {"reward": native.reward}
    assert event_lines(tmp_path / "records" / "000000.jsonl") == native.lines


@pytest.fixture
def port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@bridge
def test_openenv_plays_the_native_episode(native, tmp_path, port):
    server, client = blocks("OpenEnv")
    programs = programs_of("openenv")
    (tmp_path / "server.py").write_text(server)
    command = [str(programs / "python"), "-m", "uvicorn", "server:app", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as serving:
        try:
            wait_for(port)
            code = client.replace(":8000", f":{port}")
            told = run_in(programs, tmp_path, code + TELL, native)
        finally:
            serving.terminate()
    assert told == {"reward": native.reward}
    assert event_lines(tmp_path / "records" / "000000.jsonl") == native.lines


class Scripted(StubModel):
    """A model that plays one script."""

    def next_call(self, given):
        number = sum(message["role"] == "tool" for message in given["messages"])
        calls = self._scripts_by_task()
        return (calls[number]["tool"], calls[number]["arguments"]) if number < len(calls) else None


@bridge
def test_verifiers_plays_the_native_episode(native, tmp_path):
    (taskset,) = blocks("verifiers")
    (tmp_path / "episodes.py").write_text(taskset)
    command = re.findall(r"^```shell\n(PYTHONPATH=.*?)^```", PAGE.read_text(), re.M | re.S)[0]
    programs = programs_of("verifiers")
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    with Scripted(lambda: native.calls) as model:
        command = command.replace("http://127.0.0.1:8000/v1", model.address)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "API_KEY": "none", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("outputs/*/traces.jsonl")
    (trace,) = json.loads(file.read_text())["traces"]
    assert trace["rewards"]["quality"]["score"] == native.reward
    assert trace["metrics"]["success"] == 1.0
    assert event_lines(tmp_path / "records" / "000000.jsonl") == native.lines


def wait_for(port):
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the server did not begin to listen")
