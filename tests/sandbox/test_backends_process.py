"""Limits hold in the plain backend."""

import sys
import threading
from pathlib import Path

import pytest

from owa_bench.errors import FieldError, UnknownNameError
from owa_bench.sandbox import backends
from owa_bench.sandbox.job import MEBIBYTE, Limits, Result, SandboxJob


def run_python(
    code: str, work: Path, limits: Limits | None = None, stdin: bytes = b""
) -> Result:
    job = SandboxJob(
        argv=(sys.executable, "-I", "-S", "-c", code),
        work=work,
        stdin=stdin,
        limits=limits or Limits(),
    )
    return backends.get("subprocess").run(job)


def test_returns_exit_code_output_and_time(tmp_path: Path) -> None:
    code = (
        "import sys; print(sys.stdin.read()); print('e', file=sys.stderr); sys.exit(4)"
    )
    result = run_python(code, tmp_path, stdin=b"given " * 50_000)
    assert result.exit_code == 4
    assert result.output.startswith(b"given given")
    assert b"e\n" in result.output
    assert result.limit is None
    assert 0 < result.cpu_s < 5
    assert 0 < result.wall_s < 10


def test_a_program_that_ignores_its_input_ends(tmp_path: Path) -> None:
    assert run_python("print(1)", tmp_path, stdin=b"x" * 10 * MEBIBYTE).exit_code == 0


def test_inherits_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "canary")
    result = run_python("import os; print(sorted(os.environ))", tmp_path)
    assert b"CANARY" not in result.output


@pytest.mark.parametrize(
    ("code", "limits", "limit"),
    [
        ("import time; time.sleep(60)", Limits(wall_s=0.5), "wall"),
        ("while True: pass", Limits(cpu_s=1), "cpu"),
        ("b = bytearray(300 << 20)\nwhile 1: pass", Limits(memory=64 << 20), "memory"),
        ("while True: print('x' * 10000)", Limits(output=50_000), "output"),
        ("open('f', 'wb').write(b'x' * 200000)", Limits(file=100_000), None),
        (
            "import os, time\nfor _ in range(5): os.fork() and time.sleep(9)",
            Limits(processes=3),
            "processes",
        ),
    ],
)
def test_names_the_limit_hit(
    code: str, limits: Limits, limit: str | None, tmp_path: Path
) -> None:
    result = run_python(code, tmp_path, limits)
    assert result.limit == limit
    assert result.exit_code != 0
    assert len(result.output) <= limits.output
    assert result.wall_s < 8


def test_kills_children_that_outlive_the_command(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    time.sleep(1)\n"
        "    open('survived', 'w').close()\n"
    )
    result = run_python(code, tmp_path, Limits(wall_s=0.6))
    assert result.exit_code == 0
    threading.Event().wait(1.0)
    assert not (tmp_path / "survived").exists()


def test_refuses_a_limit_nothing_can_run_under() -> None:
    with pytest.raises(FieldError, match="`wall_s` must be above 0"):
        Limits(wall_s=0)


def test_unknown_backend_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean `bubblewrap`"):
        backends.get("bubblewarp")
