"""Exit codes and errors: one line, and never a traceback."""

import errno
import os
import subprocess
import sys

import pytest

from owa_bench import __main__
from owa_bench.cli import app, listing

VERBS = (
    *("list", "run", "report", "verify", "recompute", "replay", "witness", "keygen"),
    *("escrow commit", "escrow reveal", "doctor"),
)


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(owa, verb):
    said = owa(f"{verb} --help")
    assert said.code == 0
    assert f"owa-bench {verb}" in said.out.split("Usage:")[1].split("\n", 1)[1]


def test_verbs_above_are_all(owa):
    said = owa("--help")
    for verb in VERBS:
        assert f" {verb.split()[0]} " in said.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("rnu", "Did you mean 'run'"),
        ("run --out x --sute toolquest", "--suite"),
        ("run --out x --episodes many", "--episodes"),
        ("verify", "run_dir"),
    ],
)
def test_what_the_parser_refuses(owa, arguments, words):
    said = owa(arguments)
    assert said.code == 2
    assert words in said.err
    assert not said.out


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, 3), (errno.EACCES, 2), (errno.EISDIR, 2)]
)
def test_a_fault_of_the_system_is_one_line(owa, monkeypatch, number, code):
    def broken(kind):
        raise OSError(number, os.strerror(number), "/some/where")

    monkeypatch.setattr(listing, "_rows", broken)
    said = owa("list")
    assert (said.code, said.out) == (code, "")
    assert said.err == f"error: /some/where: {os.strerror(number)}.\n"


def test_ctrl_c_says_how_to_go_on(owa, monkeypatch):
    def stopped(kind):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "app", lambda: stopped("list"))
    said = owa("list")
    assert said.code == 130
    assert "--resume" in said.err


def test_ctrl_c_inside_a_command_says_so_too(owa, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(listing, "_rows", stopped)
    said = owa("list")
    assert said.code == 130
    assert "--resume" in said.err


def test_an_error_is_not_broken_into_lines(owa, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    said = owa("verify " + "very-long-name" * 20)
    assert said.code == 2
    assert said.err.count("\n") == 1


def test_python_m():
    assert __main__.main is app.main
    done = subprocess.run(
        [sys.executable, "-m", "owa_bench", "list", "suites"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0
    assert "toolquest" in done.stdout
    assert not done.stderr


def test_what_only_reports_need_is_not_imported_to_run():
    """SciPy and matplotlib take seconds to import: `run` and `--help` go without."""
    code = (
        "import sys, owa_bench.cli.playing, owa_bench.cli.judging; "
        "sys.exit('matplotlib' in sys.modules or 'scipy.stats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
