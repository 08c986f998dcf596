"""A job that stays open is reached, watched and ended in every backend."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from owa_bench.errors import InfrastructureFailure
from owa_bench.sandbox.job import Bind, Limits

_SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"probe me")
http.server.ThreadingHTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""
# Forks a child per line, which answers in its parent's stead.
_FORK_SERVER = """
import os, sys
loaded = object()
for line in sys.stdin:
    if os.fork() == 0:
        print(int(line) * 2, os.getppid() != 0, id(loaded) != 0, flush=True)
        os._exit(0)
    os.wait()
"""


def free_port(anywhere):
    """A port: this machine's is shared, that of a sandbox is its own."""
    if anywhere.name != "subprocess":
        return 8000
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def get(process, port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.sock = process.connect(port, 20)
    connection.request("GET", "/")
    body = connection.getresponse().read()
    connection.close()
    return body


def alive(word):
    """Whether a process with a word on its command line runs, zombies apart."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if word.encode() in file.read().split(b"\0"):
                    return True
        except OSError:
            continue
    return False


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_a_service_is_probed_from_outside(anywhere, python_job):
    port = free_port(anywhere)
    job = python_job(_SERVER.replace("{port}", str(port)), sandbox=anywhere)
    with anywhere.open(job) as process:
        assert [get(process, port) for _ in range(3)] == [b"probe me"] * 3
        assert process.alive
    result = process.close()
    assert result.limit is None
    assert result.output.count(b"GET / HTTP/1.1") == 3
    assert not process.alive


def test_a_service_in_its_own_network_is_not_on_this_machine(isolating, python_job):
    job = python_job(_SERVER.replace("{port}", "8017"))
    with isolating.open(job) as process:
        assert get(process, 8017) == b"probe me"
        with pytest.raises(OSError, match="refused"):
            http.client.HTTPConnection("127.0.0.1", 8017).connect()


def test_nothing_listening_is_refused_in_time(anywhere, python_job):
    job = python_job("import time; time.sleep(60)", sandbox=anywhere)
    with (
        anywhere.open(job) as process,
        pytest.raises(ConnectionRefusedError, match="nothing listens on port"),
    ):
        process.connect(free_port(anywhere), 0.5)


def test_a_fork_server_answers_over_its_pipes(anywhere, python_job):
    job = python_job(_FORK_SERVER, sandbox=anywhere)
    with anywhere.open(job) as process:
        for number in range(5):
            process.stdin.write(b"%d\n" % number)
            process.stdin.flush()
            assert process.stdout.readline() == b"%d True True\n" % (2 * number)


def test_closing_kills_everything_it_started(anywhere, python_job):
    word = f"marked-{anywhere.name}-{os.getpid()}"
    code = (
        "import os, subprocess, sys, time\n"
        "line = [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(99)', %r]\n"
        "subprocess.Popen(line); print('started'); time.sleep(99)"
    )
    process = anywhere.open(python_job(code % word, sandbox=anywhere))
    assert process.stdout.readline() == b"started\n"
    assert until(lambda: alive(word))
    process.close()
    assert until(lambda: not alive(word), 2)
    assert process.close() is process.close()


@pytest.mark.parametrize(
    ("code", "limits", "limit"),
    [
        ("held = bytearray(300 << 20)", Limits(memory=64 << 20), "memory"),
        (
            "import os\nfor _ in range(5): os.fork() and time.sleep(99)",
            Limits(processes=3),
            "processes",
        ),
        ("for n in range(300): open(f'{n}', 'w').close()", Limits(entries=200), "disk"),
        ("while True: print('x' * 999, file=sys.stderr)", Limits(output=9999), "output"),
    ],
)
def test_limits_hold_while_it_lives(anywhere, python_job, code, limits, limit):
    code = f"import sys, time\nsys.stdin.readline()\n{code}\ntime.sleep(99)"
    with anywhere.open(python_job(code, limits, sandbox=anywhere)) as process:
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert until(lambda: not process.alive, 30)
    assert process.close().limit == limit


@pytest.mark.slow
def test_its_wall_limit_counts_from_its_last_use(anywhere, python_job):
    code = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    job = python_job(code, Limits(wall_s=3), sandbox=anywhere)
    with anywhere.open(job) as process:
        begun = time.monotonic()
        while time.monotonic() < begun + 5:
            process.stdin.write(b"x\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"x\n"
            time.sleep(0.3)
        assert until(lambda: not process.alive)
    assert process.close().limit == "wall"


def test_it_tells_how_it_ended_by_itself(anywhere, python_job):
    code = "import sys; print('last'); print('why', file=sys.stderr); sys.exit(7)"
    with anywhere.open(python_job(code, sandbox=anywhere)) as process:
        assert until(lambda: not process.alive)
        assert process.stdout.read() == b"last\n"
    assert process.close().exit_code == 7
    assert process.close().output == b"why\n"


_PARENT = """
import sys, time
from pathlib import Path
from owa_bench.sandbox import backends, job as binds
from owa_bench.sandbox.job import SandboxJob
program = str(binds.interpreter())
line = (program, "-I", "-S", "-c", "import time; time.sleep(99)", sys.argv[2])
job = SandboxJob(argv=line, work=Path(sys.argv[3]), binds=binds.python())
process = backends.get(sys.argv[1]).open(job)
print("opened", flush=True)
time.sleep(99)
"""


@pytest.mark.slow
def test_it_dies_with_its_parent(anywhere, work):
    word = f"orphan-{anywhere.name}-{os.getpid()}"
    command = [sys.executable, "-c", _PARENT, anywhere.name, word, str(work)]
    # The word is on the parent's command line too: it is waited for first.
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"opened\n"
        time.sleep(1.5)
        parent.send_signal(signal.SIGKILL)
    assert until(lambda: not alive(word))


def test_a_sandbox_that_cannot_be_built_says_so(isolating, python_job, tmp_path):
    gone = Bind(source=tmp_path / "gone")
    job = python_job("pass", extra=(gone,))
    with pytest.raises(InfrastructureFailure, match="gone"), isolating.open(job) as process:
        until(lambda: not process.alive)
