"""The Python of an episode: what code prints, what lasts, and what it cannot do to a later call."""

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from owa_bench.errors import FieldError
from owa_bench.sandbox.python_desk import LIMITS, PythonDesk
from tests.sandbox.conftest import ISOLATING, sandbox

MEBIBYTE = 1 << 20
DIED = (
    "ended: the interpreter was killed; nothing it printed is kept; the next call starts a new one"
)


@pytest.fixture(params=ISOLATING)
def make(request, work):
    """Return a function that makes a desk of the work folder with other limits."""
    name = sandbox(request.param, request).name
    opened = []

    def desk(**limits):
        opened.append(PythonDesk(work, replace(LIMITS, **limits), backend=name))
        return opened[-1]

    yield desk
    for each in opened:
        each.close()


@pytest.fixture
def desk(make):
    return make()


def text_of(desk, code):
    output = desk.run(code)
    assert output.ok, output.text
    return output.text


# --- what code prints -----------------------------------------------------------------


def test_code_prints_and_its_memory_is_gone(desk):
    assert text_of(desk, "x = 1; print(x)") == "1"
    assert "NameError: name 'x' is not defined" in desk.run("print(x)").text


def test_numpy_and_the_standard_library_are_there(desk):
    code = "import numpy as np, statistics\nprint(np.arange(4).sum(), statistics.mean([1, 3]))"
    assert text_of(desk, code) == "6 2"


def test_nothing_is_started_before_the_first_call(work):
    desk = PythonDesk(work, backend="docker")
    desk.close()
    desk.close()


def test_a_backend_that_hides_nothing_is_refused(work):
    with pytest.raises(FieldError, match="must isolate"):
        PythonDesk(work, backend="subprocess")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print('ok'); raise SystemExit(3)", "ok\nexit code 3"),
        ("import sys; sys.exit('no')", "stderr: no\nexit code 1"),
        ("import sys; sys.exit()", ""),
        ("import os; print('lost'); os._exit(4)", "exit code 4"),
        ("import os; os.kill(os.getpid(), 9)", "ended: signal 9"),
        (
            "x = (",
            'stderr:   File "<code>", line 1\n    x = (\n        ^\n'
            "SyntaxError: '(' was never closed\nexit code 1",
        ),
        ("print('\\0')", "\0"),
        ("print('gr\u00fc\u00df \u6f22 \U0001f600')", "gr\u00fc\u00df \u6f22 \U0001f600"),
        ("print('\\ud800')", "\\ud800"),
        ("import os; os.write(1, b'\\xff\\n')", "\ufffd"),
        ("import sys; sys.stdout.close(); sys.stderr.close()", ""),
        ("import os; os.close(1); os.close(2); open('f', 'w').close()", ""),
        ("print(open(0).read() == '')", "True"),
        ("import atexit; atexit.register(print, 'end')", "end"),
        ("import threading; threading.Timer(0.1, print, ('late',)).start()", "late"),
        ("import os; os._exit = print; raise ValueError", None),
    ],
)
def test_an_end_is_told(desk, code, text):
    output = desk.run(code)
    assert output.text == text if text is not None else not output.ok
    assert output.ok == (text is not None and "exit code" not in text and "ended" not in text)
    assert not output.timed
    assert text_of(desk, "print('next')") == "next"


def test_text_that_no_file_can_hold_is_an_error_of_the_code(desk):
    assert "UnicodeEncodeError" in desk.run("print('\ud800')").text
    assert "null bytes" in desk.run("x = '\0'").text


def test_a_traceback_shows_the_code_alone(desk):
    text = desk.run("def f():\n    return 1 / 0\nprint('first')\nf()").text
    assert text.startswith('first\nstderr: Traceback (most recent call last):\n  File "<code>"')
    assert "return 1 / 0" in text
    assert "desk_server" not in text


def test_long_output_is_cut_and_counted(make):
    desk = make(output=10)
    assert text_of(desk, "print('\u00e9' * 25, end='')") == "\u00e9" * 10 + "\n[15 more characters]"
    text = desk.run("import sys; sys.stderr.write('a' * 5000 + 'b' * 1500); sys.exit(1)").text
    assert text == "stderr: " + "b" * 1500 + "\nexit code 1"


def test_a_hundred_megabytes_of_output_are_read_and_dropped(desk):
    text = text_of(desk, "for _ in range(100): print('x' * 999_999)\nopen('done', 'w').close()")
    assert text == "x" * 6000 + "\n[99994000 more characters]"
    assert text_of(desk, "import os; print(os.listdir())") == "['done']"


# --- what lasts -----------------------------------------------------------------------


def test_files_last_and_are_seen_on_both_sides(desk, work):
    (work / "in.json").write_text("[1, 2]")
    assert text_of(desk, "import json; print(sum(json.load(open('in.json'))))") == "3"
    desk.run("f = open('out', 'w'); f.write('not closed')")
    assert (work / "out").read_text() == "not closed"
    desk.run("open('helper.py', 'w').write('def f(): return 7')")
    assert text_of(desk, "import helper; print(helper.f())") == "7"
    assert sorted(os.listdir(work)) == ["helper.py", "in.json", "out"]


def test_nothing_but_the_folder_lasts(desk, work):
    code = (
        "import os, tempfile\n"
        "for place in ('/tmp', '/dev/shm'):\n"
        "    os.makedirs(f'{place}/a/b'); open(f'{place}/c', 'w').close()\n"
        "os.umask(0); os.chdir('/tmp/a'); os.environ['X'] = '1'\n"
        "for place in ('/', '/usr', '/packages', '/run', '/dev', '/etc'):\n"
        "    try: open(f'{place}/x', 'w'); print('wrote', place)\n"
        "    except OSError: pass"
    )
    assert text_of(desk, code) == ""
    code = (
        "import os\n"
        "print(os.listdir('/tmp'), os.listdir('/dev/shm'), os.getcwd(), 'X' in os.environ)"
    )
    assert text_of(desk, code) == "[] [] /work False"
    assert os.listdir(work) == []


def test_a_process_left_behind_is_killed_before_the_call_ends(desk, work):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        for n in range(9999): open('ticks', 'w').write(str(n)); time.sleep(.01)\n"
        "    os._exit(0)\n"
        "while not os.path.exists('ticks'): time.sleep(.01)\n"
        "print('left')"
    )
    assert text_of(desk, code) == "left"
    before = (work / "ticks").read_text()
    time.sleep(0.1)
    assert (work / "ticks").read_text() == before


@pytest.mark.parametrize(
    "code",
    [
        "import os, shutil; shutil.rmtree('a'); print(os.listdir())",
        "import os; os.chmod('.', 0)",
        "import os; os.rmdir('/work')",
        "import os; os.rename('/work', '/other')",
    ],
)
def test_what_code_does_to_its_folder_does_not_end_the_desk(desk, work, code):
    (work / "a").mkdir()
    (work / "a" / "b").write_text("b")
    desk.run(code)
    assert work.stat().st_mode & 0o777 == 0o755
    assert text_of(desk, "open('c', 'w').write('c'); import os; print(len(os.listdir()))") in "12"
    assert (work / "c").read_text() == "c"


@pytest.mark.parametrize("pause", ["", "\nimport time; time.sleep(9)"])
def test_folders_too_deep_end_the_call_and_are_removed(desk, work, pause):
    output = desk.run("import os\nfor n in range(900): os.mkdir('d'); os.chdir('d')" + pause)
    assert not output.ok
    assert output.text.endswith("the folder held folders more than 64 deep: it was emptied")
    assert os.listdir(work) == []
    assert text_of(desk, "print('next')") == "next"


# --- the same each time ---------------------------------------------------------------

_STABLE = """
import os, random, sys
import numpy as np
print({None, 'a', 'b', 1.5, print, object, len}, {str(n) for n in range(9)}, hash('x'))
print(random.random(), np.random.random(), sys.path, sys.argv, dict(os.environ), os.getcwd())
print(sorted(os.listdir()), __name__, sys.flags, sorted(os.listdir('/')))
import tempfile, threading
print(tempfile.gettempdir(), os.environ['OPENBLAS_NUM_THREADS'], threading.active_count())
1 / 0
"""


def test_the_same_code_prints_the_same_in_any_call_of_any_desk(make):
    first, second = make(), make()
    texts = [first.run(_STABLE).text]
    first.run("x = [object() for _ in range(9999)]; print('y' * 9999)")
    texts += [first.run(_STABLE).text, second.run(_STABLE).text]
    second.close()
    texts.append(second.run(_STABLE).text)
    assert len(set(texts)) == 1
    assert texts[0].startswith("{")
    assert "ZeroDivisionError" in texts[0]


# --- limits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "limits", "words", "timed"),
    [
        ("while True: pass", {"wall_s": 0.5}, "ended: it ran longer than 0.5 s", True),
        (
            "import signal, time\nfor s in (2, 15, 24): signal.signal(s, signal.SIG_IGN)\n"
            "while True: print('x' * 999)",
            {"wall_s": 0.5},
            "ended: it ran longer than 0.5 s",
            True,
        ),
        ("while True: pass", {"cpu_s": 1}, "ended: it used more than 1 s of processor time", True),
        (
            "import signal; signal.signal(24, signal.SIG_IGN)\nwhile True: pass",
            {"cpu_s": 1},
            "ended: it used more than 1 s of processor time",
            True,
        ),
        ("import os\nwhile True: os.fork()", {}, "ended: it had more processes", False),
        (
            "import os, time\nfor n in range(30): os.fork() or time.sleep(9)\ntime.sleep(9)",
            {},
            "ended: it had more processes",
            False,
        ),
        ("x = bytearray(200 << 20)", {"memory": 128 * MEBIBYTE}, "MemoryError", False),
        (
            "import mmap, time\nm = mmap.mmap(-1, 200 << 20)\n"
            "for n in range(0, len(m), 4096): m[n] = 1\ntime.sleep(9)",
            {"memory": 128 * MEBIBYTE},
            "ended: it used more memory than its limit",
            False,
        ),
        ("open('f', 'wb').write(bytes(2 << 20))", {"file": MEBIBYTE}, "File too large", False),
    ],
)
def test_limits_hold_and_the_next_call_goes_on(make, code, limits, words, timed):
    desk = make(**limits)
    output = desk.run(code)
    assert words in output.text
    assert (output.ok, output.timed) == (False, timed)
    assert output.wall_s < 20
    assert text_of(desk, "print('next')") == "next"


@pytest.mark.parametrize(
    ("limits", "fill"),
    [
        ({"entries": 50}, "for n in range(60): open(f'{n}', 'w').close()"),
        ({"disk": 3 * MEBIBYTE}, "for n in range(4): open(f'{n}', 'wb').write(bytes(1 << 20))"),
    ],
)
def test_a_folder_beyond_its_quota_ends_the_call_and_can_be_cleared(make, work, limits, fill):
    desk = make(**limits)
    output = desk.run(f"{fill}\nimport time; time.sleep(20)")
    assert output.text.startswith("ended: the folder holds more than ")
    assert output.text.endswith("; delete some")
    assert not output.ok
    assert (
        text_of(desk, "import os, time; time.sleep(.5)\nfor n in os.listdir(): os.remove(n)") == ""
    )
    assert os.listdir(work) == []


def test_a_folder_that_no_sandbox_can_hold_is_emptied_and_the_call_says_so(make, work):
    desk = make(entries=5)
    outside = work.parent / "outside"
    outside.write_text("kept")
    for number in range(50):
        (work / str(number)).mkdir()
    (work / "link").symlink_to(outside)
    output = desk.run("import os; print(os.listdir())")
    assert output.text.startswith("the folder held more than 40 files and folders: it was emptied")
    assert output.text.endswith("\n[]")
    assert outside.read_text() == "kept"


# --- attacks --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [9, 19, 15, 2, 11])
def test_code_cannot_end_or_stop_the_server(desk, number):
    code = f"import os, time; os.kill(os.getppid(), {number}); time.sleep(.1); print('alive')"
    assert text_of(desk, code) == "alive"
    assert text_of(desk, "print('next')") == "next"


@pytest.mark.parametrize(
    "code",
    [
        "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (40, 40))",
        "resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (9, 9))",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.sched_setaffinity(os.getppid(), [min(os.sched_getaffinity(0))])",
    ],
)
def test_what_code_sets_of_the_server_does_not_reach_the_next_call(desk, code):
    seen = (
        "import os, resource\n"
        "limits = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)\n"
        "print([resource.getrlimit(limit) for limit in limits])\n"
        "print(os.getpriority(0, 0), os.sched_getaffinity(0))"
    )
    before = text_of(desk, seen)
    assert text_of(desk, f"import os, resource; {code}; print('set')") == "set"
    assert text_of(desk, seen) == before


def test_a_server_that_dies_is_started_again_and_the_call_says_so(desk):
    desk.run("")
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(desk.run, "import time; print('lost', flush=True); time.sleep(20)")
        time.sleep(0.5)
        os.kill(desk._process._watcher.process.pid, 9)
        output = call.result()
    assert output.text == DIED
    assert (output.ok, output.timed) == (False, False)
    assert text_of(desk, "print('next')") == "next"
    os.kill(desk._process._watcher.process.pid, 9)
    time.sleep(0.5)  # between calls nothing is lost, and nothing is said
    assert text_of(desk, "print('next')") == "next"


def test_a_server_that_does_not_answer_is_given_up(make, monkeypatch):
    monkeypatch.setattr("owa_bench.sandbox.python_desk._GRACE_S", -1.0)
    desk = make(wall_s=2)
    output = desk.run("import time; time.sleep(20)")
    assert "a limit on time was broken" in output.text
    assert (output.ok, output.timed) == (False, True)
    assert text_of(desk, "print('next')") == "next"


# Writes an answer wherever a descriptor can be had: its own, those of all processes by /proc,
# by pidfd_getfd; and tries memory of others and the desk's socket.
_FORGE = """
import ctypes, glob, json, os, socket
text = json.dumps({"out": "FORGED", "more": 0, "err": "", "code": 0, "ended": "", "last": False})
data = len(text).to_bytes(4, "big") + text.encode()
opened = 0
def write(descriptor):
    global opened
    try:
        opened += os.write(descriptor, data) > 0
    except OSError:
        pass
for n in range(3, 1024):
    write(n)
for path in glob.glob("/proc/[0-9]*/fd/*"):
    if int(path.split("/")[2]) != os.getpid():
        try:
            write(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass
libc = ctypes.CDLL(None, use_errno=True)
for pid in [int(n) for n in os.listdir("/proc") if n.isdigit() and int(n) != os.getpid()]:
    pidfd = os.pidfd_open(pid)
    for n in range(64):
        taken = libc.syscall(438, pidfd, n, 0)
        if taken >= 0:
            print("took", pid, n)
            write(taken)
    for name in ("mem", "maps", "environ"):
        try:
            open(f"/proc/{pid}/{name}", "rb").read(1)
            print("read", pid, name)
        except OSError:
            pass
    if libc.ptrace(16, pid, 0, 0) == 0:
        print("traced", pid)
try:
    socket.socket(socket.AF_UNIX).connect("/run/desk.sock")
    print("connected")
except OSError:
    pass
print("tried")
"""


def test_no_child_can_forge_a_later_result(desk):
    assert text_of(desk, _FORGE) == "tried"
    assert [text_of(desk, f"print({n})") for n in range(3)] == ["0", "1", "2"]


def test_a_child_that_outlives_its_main_code_forges_nothing(desk):
    code = "import os\nfor _ in range(8): os.fork()\n" + _FORGE
    desk.run(code)
    for number in range(3):
        assert text_of(desk, f"print({number})") == str(number)


def test_links_out_of_the_folder_lead_nowhere(desk, work, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (work / "link").symlink_to(secret)
    code = (
        "import os\n"
        f"for path in ('link', {str(secret)!r}, '../secret', '/proc/1/root{secret}',\n"
        f"             '/proc/1/cwd/secret', '/proc/2/root{secret}'):\n"
        "    try: print(open(path).read())\n"
        "    except OSError: pass\n"
        f"os.symlink({str(secret)!r}, 'mine')\n"
        "try: os.link('/etc/hosts', 'hard')\n"
        "except OSError: pass\n"
        "open('mine', 'w').write('inside')"
    )
    output = desk.run(code)
    assert "secret\n" not in output.text.replace(str(secret), "")
    assert "FileNotFoundError" in output.text
    assert secret.read_text() == "secret"
    assert not (work / "hard").exists()


def test_no_file_of_the_package_is_readable(desk):
    code = """
import os, re, sys
found = []
for top, folders, files in os.walk("/", onerror=None):
    folders[:] = [n for n in folders if os.path.join(top, n) not in ("/proc", "/sys")]
    found += [os.path.join(top, n) for n in (*folders, *files) if re.match("owa[-_]", n)]
    for name in files:
        if name.endswith((".py", ".pyc", ".toml", ".txt")):
            try:
                if b"owa_bench" in open(os.path.join(top, name), "rb").read():
                    found.append(os.path.join(top, name))
            except OSError:
                pass
for name in ("owa_bench", "owa_bench.sandbox.first_process", "gymnasium", "scipy"):
    try:
        __import__(name); found.append(name)
    except ImportError:
        pass
numbers = [n for n in os.listdir("/proc") if n.isdigit()]
lines = b" ".join(open(f"/proc/{n}/cmdline", "rb").read() for n in numbers)
print(found, [n for n in sys.modules if "owa" in n], lines.count(b"/.venv/"))
"""
    assert text_of(desk, code) == "[] [] 0"


def test_there_is_no_network(desk):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            f"for host in ('127.0.0.1', '10.0.0.1', '8.8.8.8'):\n"
            f"    try: socket.create_connection((host, {port}), 1); print('reached')\n"
            "    except OSError: pass\n"
        )
        assert text_of(desk, code) == ""


def test_new_namespaces_are_refused(desk):
    code = "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"
    assert text_of(desk, code) == "-1"
