"""A sandboxed program sees its binds and nothing else."""

import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from owa_bench.errors import InfrastructureFailure, MissingPartError
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.backends import BubblewrapSandbox
from owa_bench.sandbox.job import Bind, Limits, Result, SandboxJob


def unusable() -> str:
    """Return why this machine cannot build a sandbox; in CI it has to."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed"
    line = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode and "CI" not in os.environ:
        return f"no namespaces here (a container?): {done.stderr.strip()}"
    return ""


WHY_NOT = unusable()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def run_python(code: str, work: Path, limits: Limits | None = None) -> Result:
    job = SandboxJob(
        argv=(str(binds.interpreter()), "-I", "-c", code),
        work=work,
        binds=binds.python(),
        hidden=binds.python_hidden(),
        limits=limits or Limits(),
    )
    return BubblewrapSandbox().run(job)


def lines(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return result.output.decode().splitlines()


def test_sees_no_other_process(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    print(repr(open(f'/proc/{pid}/cmdline').read()))\n"
    )
    seen = lines(run_python(code, tmp_path))
    assert 1 <= len(seen) <= 2
    assert not any(str(tmp_path) in line for line in seen)


def test_holds_no_descriptor_of_the_harness(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "place = '/proc/self/fd/{}'.format\n"
        "print([f for f in range(3, 256) if os.path.exists(place(f))])"
    )
    assert lines(run_python(code, tmp_path)) == ["[]"]


def test_sees_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary-7d1f")
    code = (
        "import os, glob\n"
        "print(sorted(os.environ))\n"
        "for p in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try: print(open(p).read())\n"
        "    except OSError: pass\n"
    )
    output = "\n".join(lines(run_python(code, tmp_path)))
    assert "canary-7d1f" not in output
    assert "HOME" not in output


def test_sees_no_site_packages(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u\n"
        "print([n for n in ('owa_bench', 'numpy', 'msgspec', 'pip') if u.find_spec(n)])"
    )
    assert lines(run_python(code, tmp_path)) == ["[]"]


def test_sees_no_files_beyond_its_binds(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    code = (
        "import os\n"
        f"print([p for p in ({str(outside)!r}, '/etc/passwd', '/etc/shadow', '/home',"
        "'/var', '/sys') if os.path.exists(p)], sorted(os.listdir('/tmp')))"
    )
    assert lines(run_python(code, work)) == ["[] []"]


def test_reaches_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            "print(sorted(n for _, n in socket.if_nameindex()))\n"
            f"for place in (('127.0.0.1', {port}), ('192.0.2.1', 80)):\n"
            "    try: socket.create_connection(place, 1); print('reached')\n"
            "    except OSError: print('closed')\n"
        )
        seen = lines(run_python(code, tmp_path))
    assert seen == ["['lo']", "closed", "closed"]


def test_writes_only_to_work(tmp_path: Path) -> None:
    target = tmp_path / "bound"
    target.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    job = SandboxJob(
        argv=("/bin/sh", "-c", "echo a > a; echo b > /bound/b; echo c > /c; exit 3"),
        work=work,
        binds=(*binds.programs("sh"), Bind(source=target, target="/bound")),
    )
    job = SandboxJob(
        argv=(shutil.which("sh") or "", *job.argv[1:]), work=work, binds=job.binds
    )
    result = BubblewrapSandbox().run(job)
    assert result.exit_code == 3
    assert (work / "a").read_text() == "a\n"
    assert list(target.iterdir()) == []


def test_is_nobody_without_rights(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "print(os.getuid())\n"
        "print([l for l in open('/proc/self/status') if l.startswith('CapEff')])\n"
    )
    uid, capabilities = lines(run_python(code, tmp_path))
    assert uid == "65534"
    assert "0000000000000000" in capabilities


def test_kills_the_whole_tree_at_the_deadline(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    time.sleep(1.5)\n"
        "    open('survived', 'w').close()\n"
        "time.sleep(60)\n"
    )
    result = run_python(code, tmp_path, Limits(wall_s=0.7))
    assert result.limit == "wall"
    threading.Event().wait(1.2)
    assert not (tmp_path / "survived").exists()


def test_stops_a_fork_bomb(tmp_path: Path) -> None:
    # 512 processes at most: a bomb that got away would take the machine with it.
    code = "import os, time\nfor _ in range(9): os.fork()\ntime.sleep(60)\n"
    result = run_python(code, tmp_path, Limits(processes=8, wall_s=20))
    assert result.limit == "processes"


def test_a_program_that_is_not_bound_does_not_start(tmp_path: Path) -> None:
    job = SandboxJob(argv=("/usr/bin/no-such",), work=tmp_path, binds=binds.libraries())
    assert BubblewrapSandbox().run(job).exit_code == 127


def test_a_bind_that_is_missing_is_the_harness_fault(tmp_path: Path) -> None:
    gone = Bind(source=tmp_path / "gone")
    job = SandboxJob(argv=("sh",), work=tmp_path, binds=(gone,))
    with pytest.raises(InfrastructureFailure, match="gone"):
        BubblewrapSandbox().run(job)


def test_missing_program_gives_the_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(MissingPartError, match="apt-get install bubblewrap"):
        BubblewrapSandbox()
