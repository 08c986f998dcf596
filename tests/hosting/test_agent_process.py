"""Agents in processes of their own: deadlines, deaths, noise, services."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from owa_bench.errors import AgentRaised, AgentTimeout
from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.sandbox import views
from tests.builders.sandboxes import needs_namespaces

HERE = Path(__file__).parents[1] / "builders"
OBSERVATION = {"text": "hello", "action_mask": np.ones(3, dtype=np.int8)}
INFO = {"step": np.int64(3), "tools": []}
TERMS = ResetRequest(brief=Brief(text="t", goal={}), tools=(), memory_dir="/nowhere")
# These hold wherever an agent's process runs: a machine may lack the sandbox.
HOSTING = "unsandboxed" if views.namespaces_fault() else "sandboxed"
QUICK_S = 20.0  # far above what an answer takes on a busy machine
SHORT_S = 0.3


@pytest.fixture(scope="module")
def fork_server():
    with ForkServer() as made:
        yield made


@pytest.fixture
def launcher(fork_server):
    return AgentLauncher(fork_server)


@pytest.fixture(
    params=[pytest.param("sandboxed", marks=needs_namespaces), "unsandboxed", "in-process"]
)
def hosting(request):
    return request.param


def one_move(launcher, spec, deadline_s=QUICK_S, hosting=HOSTING):
    origin = load_agent(spec, folder=HERE).origin
    connection = launcher.connect(origin, hosting=hosting)
    try:
        connection.reset(TERMS, QUICK_S)
        move = connection.act(OBSERVATION, INFO, deadline_s)
        connection.close(QUICK_S)
    finally:
        connection.end()
    return move


@pytest.mark.parametrize("name", ["Quiet", "RaisesInClose", "plain"])
def test_plays(launcher, hosting, name):
    move = one_move(launcher, f"odd_agents:{name}", hosting=hosting)
    assert json.loads(move.action)["tool"] == "finish"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Raises", r"ValueError: boom at 0x7f00 \(odd_agents.py:\d+\)"),
        ("RaisesInReset", "RuntimeError: no reset today"),
        ("Nonsense", "text or an object, got 7"),
        ("Unspeakable", "a object has no JSON form"),
        ("BadUsage", "answered nonsense"),
        ("Exits", "SystemExit: 3"),
    ],
)
def test_the_agents_own_failures(launcher, hosting, name, words):
    with pytest.raises(AgentRaised, match=words):
        one_move(launcher, f"odd_agents:{name}", hosting=hosting)


def test_the_traceback_is_kept_with_its_lines_of_code(launcher, hosting):
    with pytest.raises(AgentRaised) as raised:
        one_move(launcher, "odd_agents:Raises", hosting=hosting)
    record = raised.value.record
    assert record.startswith("Traceback (most recent call last):\n")
    assert 'raise ValueError("boom at 0x7f00")\n' in record
    assert record.endswith("ValueError: boom at 0x7f00\n")


def test_a_failure_without_an_exception_leaves_no_traceback(launcher, hosting):
    with pytest.raises(AgentRaised) as raised:
        one_move(launcher, "odd_agents:Nonsense", hosting=hosting)
    assert raised.value.record == ""


def test_what_a_late_agent_printed_is_kept(fork_server):
    with pytest.raises(AgentTimeout) as late:
        one_move(AgentLauncher(fork_server), "odd_agents:Mutters", 2.0)
    assert late.value.record == "still thinking\n"


@pytest.mark.parametrize("name", ["Hangs", "HangsInPython"])
def test_a_hanging_agent_dies_at_its_deadline(fork_server, name):
    with pytest.raises(AgentTimeout, match="no reply within"):
        one_move(AgentLauncher(fork_server), f"odd_agents:{name}", SHORT_S)


def test_a_killed_agent_raised_and_its_last_words_are_kept(fork_server):
    with pytest.raises(AgentRaised, match="signal SIGKILL; its last words: farewell") as raised:
        one_move(AgentLauncher(fork_server), "odd_agents:Dies")
    assert raised.value.record == "farewell\n"


def test_prints_do_not_stand_in_the_protocols_way(fork_server):
    move = one_move(AgentLauncher(fork_server), "odd_agents:Noisy")
    assert json.loads(move.action)["tool"] == "finish"


def test_every_episode_is_a_fresh_process(fork_server):
    moves = [one_move(AgentLauncher(fork_server), "odd_agents:Counts") for _ in range(3)]
    assert [move.action for move in moves] == ["1", "1", "1"]


def test_an_import_that_raises_is_told_each_time(fork_server, tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    origin = load_agent("broken.py", folder=tmp_path).origin
    for _ in range(2):
        with pytest.raises(AgentRaised, match="importing the agent: ZeroDivisionError") as raised:
            AgentLauncher(fork_server).connect(origin, hosting=HOSTING)
        assert raised.value.record.endswith("ZeroDivisionError: division by zero\n")


def test_an_import_that_ends_its_process_harms_no_other(fork_server, tmp_path):
    (tmp_path / "suicide.py").write_text("import os\nos._exit(1)\n")
    origin = load_agent("suicide.py", folder=tmp_path).origin
    with pytest.raises(AgentRaised, match="ended its process"):
        AgentLauncher(fork_server).connect(origin, hosting=HOSTING)
    assert one_move(AgentLauncher(fork_server), "odd_agents:Quiet")


def test_a_file_must_hold_one_agent(fork_server, tmp_path):
    (tmp_path / "two.py").write_text(
        "class A:\n    def act(self): ...\nclass B:\n    def act(self): ...\n"
    )
    origin = load_agent("two.py", folder=tmp_path).origin
    with pytest.raises(AgentRaised, match="classes with `act`: A, B"):
        AgentLauncher(fork_server).connect(origin, hosting=HOSTING)


@pytest.mark.parametrize("more", ["needs='script'", "required=('x',)"])
def test_a_file_whose_card_needs_what_only_an_entry_point_gives_is_refused(
    fork_server, tmp_path, more
):
    (tmp_path / "needy.py").write_text(
        "from owa_bench.interfaces import AgentCard\n"
        f"AGENT = AgentCard(name='n', about='N.', make=lambda c: None, {more})\n"
    )
    origin = load_agent("needy.py", folder=tmp_path).origin
    with pytest.raises(AgentRaised, match="only an agent with an entry point is given"):
        AgentLauncher(fork_server).connect(origin, hosting=HOSTING)


def test_command(fork_server):
    move = one_move(AgentLauncher(fork_server), f"{sys.executable} command_agent.py")
    assert json.loads(move.action)["arguments"]["p"] == 0.25
    assert move.usage == (("tokens_in", 12.0),)


@needs_namespaces
def test_a_command_whose_script_lies_elsewhere(fork_server, tmp_path):
    """Sandboxed, it sees the files that it names, and no other of their folder."""
    (tmp_path / "other").mkdir()
    script = tmp_path / "elsewhere" / "agent.py"
    script.parent.mkdir()
    (script.parent / "secret").write_text("")
    script.write_text(
        f"import os\nassert os.listdir({str(script.parent)!r}) == ['agent.py']\n"
        + (HERE / "command_agent.py").read_text()
    )
    command = f"{sys.executable} {script}"
    origin = load_agent(command, folder=tmp_path / "other").origin
    connection = AgentLauncher(fork_server).connect(origin, hosting=HOSTING)
    assert json.loads(connection.act({}, {}, QUICK_S).action)["arguments"]["p"] == 0.25
    connection.end()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--nonsense", "answered nonsense.*'hello'"),
        ("--die", "exit code 1; its last words: .*out of ideas"),
    ],
)
def test_command_that_fails(fork_server, flag, words):
    with pytest.raises(AgentRaised, match=words):
        one_move(AgentLauncher(fork_server), f"{sys.executable} command_agent.py {flag}")


def test_no_agent_outlives_its_nursery():
    fork_server = ForkServer()
    origin = load_agent("odd_agents:Hangs", folder=HERE).origin
    child = fork_server.start(origin)
    fork_server.close()
    until = time.monotonic() + QUICK_S
    while _lives(child.pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _lives(child.pid)


def _lives(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


class _Service(BaseHTTPRequestHandler):
    """An agent behind an address; `/slow` never answers in time."""

    episodes: set = set()

    def do_POST(self):
        length = int(self.headers["content-length"])
        request = json.loads(self.rfile.read(length))
        self.episodes.add(request["episode"])
        if self.path == "/slow" and "act" in request:
            time.sleep(1.0)
        status = 500 if self.path == "/broken" else 200
        call = {"tool": "finish", "arguments": {}}
        body = json.dumps({"action": call} if "act" in request else {}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def service():
    server = HTTPServer(("127.0.0.1", 0), _Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_address(fork_server, service):
    _Service.episodes.clear()
    for _ in range(2):
        move = one_move(AgentLauncher(fork_server), f"{service}/play")
        assert json.loads(move.action)["tool"] == "finish"
    assert len(_Service.episodes) == 2


def test_address_that_fails(fork_server, service):
    with pytest.raises(AgentRaised, match="HTTP 500"):
        one_move(AgentLauncher(fork_server), f"{service}/broken")
    with pytest.raises(AgentTimeout, match="no reply within"):
        one_move(AgentLauncher(fork_server), f"{service}/slow", SHORT_S)
    with pytest.raises(AgentRaised, match="ConnectError"):
        one_move(AgentLauncher(fork_server), "http://127.0.0.1:9/nobody")
