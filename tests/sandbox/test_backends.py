"""The same jobs end the same way in every backend."""

import os
import socket
import time

import pytest

from owa_bench.errors import FieldError, InfrastructureFailure, MissingPartError, UnknownNameError
from owa_bench.sandbox import backends, views
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.job import MEBIBYTE, Bind, Limits, Result, SandboxJob


@pytest.fixture
def run(anywhere, python_job):
    def run(code, limits=None, **options):
        return anywhere.run(python_job(code, limits, sandbox=anywhere, **options))

    return run


@pytest.fixture
def seen(isolating, python_job):
    """Return a function that gives the lines a job prints behind a sandbox."""

    def seen(code, *extra):
        result = isolating.run(python_job(code, extra=extra))
        assert result.exit_code == 0, result.output
        return result.output.decode().splitlines()

    return seen


# --- every backend --------------------------------------------------------------------


def test_returns_exit_code_output_and_time(run):
    code = "import sys; print(sys.stdin.read()); sum(range(10**7))\n"
    code += "print('e', file=sys.stderr); sys.exit(4)"
    result = run(code, stdin=b"given " * 50_000)
    assert result.exit_code == 4
    assert result.output.startswith(b"given given")
    assert b"e\n" in result.output
    assert result.limit is None
    assert not result.timed
    assert 0 < result.cpu_s < 5
    assert 0 < result.wall_s < 10


def test_a_program_that_ignores_its_input_ends(run):
    assert run("print(1)", stdin=b"x" * 10 * MEBIBYTE).exit_code == 0


def test_inherits_no_environment(run, monkeypatch):
    monkeypatch.setenv("CANARY", "canary-7d1f")
    code = (
        "import os, glob\n"
        "print(sorted(os.environ))\n"
        "for p in glob.glob('/proc/self/environ') + ['/proc/1/environ']:\n"
        "    try: print(open(p).read())\n"
        "    except OSError: pass\n"
    )
    assert b"canary-7d1f" not in run(code).output


_WRITER = """
import os, time
for number in range(20):
    with open(f"f{number}", "wb") as file:
        for _ in range(60):
            file.write(bytes(1 << 20))
            time.sleep(.01)
time.sleep(60)
"""
_DELETER = """
import os, time
held = [open(f"f{number}", "wb") for number in range(20)]
for number, file in enumerate(held):
    os.unlink(f"f{number}")
    file.write(bytes(10 << 20))
    file.flush()
time.sleep(60)
"""


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("code", "limits", "limit"),
    [
        ("import time; time.sleep(60)", Limits(wall_s=1), "wall"),
        ("while True: pass", Limits(cpu_s=1), "cpu"),
        ("b = bytearray(300 << 20)\nwhile 1: pass", Limits(memory=64 << 20), "memory"),
        ("while True: print('x' * 10000)", Limits(output=50_000), "output"),
        ("open('f', 'wb').write(b'x' * 200000)", Limits(file=100_000), None),
        (
            "import os, time\nfor _ in range(5): os.fork() and time.sleep(9)",
            Limits(processes=3),
            "processes",
        ),
        (_WRITER, Limits(disk=200 << 20, wall_s=40), "disk"),
        (_DELETER, Limits(disk=100 << 20, wall_s=40), "disk"),
        ("for n in range(300): open(f'{n}', 'w').close()", Limits(entries=200), "disk"),
        ("import os\nfor n in range(200): os.mkdir('d'); os.chdir('d')", Limits(), "disk"),
    ],
)
def test_names_the_limit_hit(run, work, code, limits, limit):
    result = run(code, limits)
    assert result.limit == limit
    assert result.timed == (limit in ("wall", "cpu"))
    assert result.exit_code != 0 or limit == "disk"
    assert len(result.output) <= limits.output
    assert result.wall_s < 30
    assert sum(path.stat().st_size for path in work.glob("f*")) < 900 << 20


# For half a minute, a number in a file that changes as long as the process lives.
BEATS = "for n in range(3000): open('beat', 'w').write(str(n)); time.sleep(.01)"


def stopped(work):
    """Return whether nothing writes numbers any more, where something has."""
    last = (work / "beat").read_text()
    time.sleep(0.5)
    return (work / "beat").read_text() == last


@pytest.mark.slow
def test_kills_children_that_outlive_the_command(run, work):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        f"    {BEATS}\n"
        "while not os.path.exists('beat'): time.sleep(.01)\n"
    )
    assert run(code).exit_code == 0
    assert stopped(work)


def test_files_of_a_job_belong_to_the_caller(run, work):
    (work / "given").write_text("3")
    code = "import os\nos.mkdir('d'); open('d/f', 'w').write(open('given').read())"
    assert run(code).exit_code == 0
    assert (work / "d" / "f").read_text() == "3"
    assert {path.stat().st_uid for path in work.rglob("*")} == {os.geteuid()}


def test_a_shell_runs_commands_and_scripts(anywhere, python_job, work):
    script = work / "script"
    script.write_text("#!/bin/sh\necho from $0\n")
    script.chmod(0o755)
    code = (
        "import subprocess as s\n"
        "print(s.run('echo $((40 + 2))', shell=True, capture_output=True).stdout)\n"
        "print(s.run(['./script'], capture_output=True).stdout)"
    )
    job = python_job(code, sandbox=anywhere, extra=binds.programs("sh"))
    result = anywhere.run(job)
    assert result.output == b"b'42\\n'\nb'from ./script\\n'\n"


# --- isolating backends ---------------------------------------------------------------


def test_sees_no_other_process(seen, tmp_path):
    code = (
        "import os\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    print(repr(open(f'/proc/{pid}/cmdline').read()))\n"
    )
    found = seen(code)
    assert 1 <= len(found) <= 2
    assert not any(str(tmp_path) in line for line in found)


def test_holds_no_descriptor_of_the_harness(seen):
    code = (
        "import os\n"
        "place = '/proc/self/fd/{}'.format\n"
        "print([f for f in range(3, 256) if os.path.exists(place(f))])"
    )
    assert seen(code) == ["[]"]


def test_has_the_same_environment_in_each(seen):
    code = "import os\nprint(sorted(os.environ), os.environ['HOME'], os.getcwd())"
    assert seen(code) == ["['HOME', 'PATH', 'PWD'] /tmp /work"]


def test_nothing_in_proc_names_the_work_directory(seen, tmp_path):
    code = (
        "for name in ('environ', 'cmdline'):\n"
        "    try: print(open(f'/proc/1/{name}').read())\n"
        "    except OSError: pass\n"
    )
    assert str(tmp_path) not in "".join(seen(code))


def test_sees_no_site_packages(seen):
    code = (
        "import importlib.util as u\n"
        "print([n for n in ('owa_bench', 'numpy', 'msgspec', 'pip') if u.find_spec(n)])"
    )
    assert seen(code) == ["[]"]


def test_sees_no_files_beyond_its_binds(seen, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    code = (
        "import os\n"
        f"print([p for p in ({str(outside)!r}, '/etc/passwd', '/etc/shadow', '/home',"
        "'/var', '/sys/class') if os.path.exists(p)], sorted(os.listdir('/tmp')))"
    )
    assert seen(code) == ["[] []"]


def test_reaches_no_network(seen):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            "print(sorted(n for _, n in socket.if_nameindex()))\n"
            f"for place in (('127.0.0.1', {port}), ('192.0.2.1', 80)):\n"
            "    try: socket.create_connection(place, 1); print('reached')\n"
            "    except OSError: print('closed')\n"
        )
        assert seen(code) == ["['lo']", "closed", "closed"]


def test_writes_only_to_work(isolating, tmp_path, work):
    target = tmp_path / "bound"
    target.mkdir()
    words = "echo a > a; echo b > /bound/b; echo c > /c; echo d > /dev/d; exit 3"
    job = SandboxJob(
        argv=("/bin/sh", "-c", words),
        work=work,
        binds=(*binds.programs("sh"), Bind(source=target, target="/bound")),
    )
    assert isolating.run(job).exit_code == 3
    assert (work / "a").read_text() == "a\n"
    assert list(work.iterdir()) == [work / "a"]
    assert list(target.iterdir()) == []


def test_tmp_is_bounded(isolating, python_job):
    code = (
        "for name in ('/tmp/f', '/dev/shm/f'):\n"
        "    try:\n"
        "        with open(name, 'wb') as f:\n"
        "            for _ in range(100): f.write(bytes(1 << 20))\n"
        "    except OSError as e: print(e.strerror)\n"
    )
    result = isolating.run(python_job(code, Limits(file=200 << 20)))
    assert result.output == b"No space left on device\n" * 2


def test_is_nobody_without_rights(seen):
    code = (
        "import os\n"
        "print(os.getuid())\n"
        "print([l for l in open('/proc/self/status') if l.startswith('CapEff')])\n"
    )
    uid, capabilities = seen(code)
    assert uid == "65534" or os.geteuid() != 0
    assert "0000000000000000" in capabilities


@pytest.mark.slow
def test_kills_the_whole_tree_at_the_deadline(isolating, python_job, work):
    code = f"import os, time\nif os.fork() == 0:\n    os.setsid()\n    {BEATS}\ntime.sleep(60)\n"
    assert isolating.run(python_job(code, Limits(wall_s=5))).limit == "wall"
    assert stopped(work)


def test_stops_a_fork_bomb(isolating, python_job):
    # 512 processes at most: a bomb that got away would take the machine with it.
    code = "import os, time\nfor _ in range(9): os.fork()\ntime.sleep(60)\n"
    result = isolating.run(python_job(code, Limits(processes=8, wall_s=20)))
    assert result.limit == "processes"


def test_a_program_that_is_not_bound_does_not_start(isolating, work):
    job = SandboxJob(argv=("/usr/bin/no-such",), work=work, binds=binds.libraries())
    assert isolating.run(job).exit_code == 127


def test_a_bind_that_is_missing_is_the_harness_fault(isolating, work, tmp_path):
    job = SandboxJob(argv=("sh",), work=work, binds=(Bind(source=tmp_path / "gone"),))
    with pytest.raises(InfrastructureFailure, match="gone"):
        isolating.run(job)


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "line"), [("bubblewrap", "bubblewrap"), ("docker", "docker.io")])
def test_missing_program_gives_the_install_line(name, line, monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    views.docker_fault.cache_clear()
    with pytest.raises(MissingPartError, match=f"apt-get install {line}"):
        backends.get(name)
    views.docker_fault.cache_clear()


def test_refuses_a_limit_nothing_can_run_under():
    with pytest.raises(FieldError, match="`wall_s` must be above 0"):
        Limits(wall_s=0)


def test_unknown_backend_offers_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean `bubblewrap`"):
        backends.get("bubblewarp")


def test_a_result_that_a_clock_ended_is_timed():
    end = {"exit_code": 1, "output": b"", "wall_s": 1.0, "cpu_s": 1.0}
    timed = [Result(**end, limit=limit).timed for limit in ("wall", "cpu", "disk")]
    assert timed == [True, True, False]
