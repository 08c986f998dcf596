"""Exit codes and errors: one line, and never a traceback."""

import errno
import importlib
import os
import signal
import subprocess
import sys
import time

import pytest

import owa_bench
from owa_bench import __main__
from owa_bench.cli import app, listing
from owa_bench.cli.console import ended_by_signals
from owa_bench.runs.play import batch, executors

VERBS = (
    *("list", "run", "report", "verify", "recompute", "replay", "witness", "keygen"),
    *("escrow commit", "escrow reveal", "doctor", "train", "power", "serve"),
    *("export", "visit", "measure novelty", "measure cartpole3d", "measure aiq"),
    *("measure intelligence-test", "measure generality", "measure entropy"),
)


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(owa, verb):
    said = owa(f"{verb} --help")
    assert said.code == 0
    assert f"owa-bench {verb}" in said.out.split("Usage:")[1].split("\n", 1)[1]


def test_version(owa):
    assert owa("--version") == (0, f"owa-bench {owa_bench.__version__}\n", "")


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
    ("arguments", "words"),
    [
        ("run --out x --episodes many", "unable to parse string"),
        ("run --out x --episodes many", "got 'many'. See `owa-bench run --help`."),
        ("run", "Missing option '--out'. See `owa-bench run --help`."),
        ("list agents more", "unexpected extra argument"),
        ("measure entropy f.txt --order 0", "got '0'. See `owa-bench measure entropy"),
        ("escrow foo", "No such command 'foo'. See `owa-bench escrow --help`."),
        ("rnu", "Did you mean 'run'? See `owa-bench --help`."),
    ],
)
def test_what_the_parser_refuses_is_one_line(owa, monkeypatch, arguments, words):
    monkeypatch.setenv("COLUMNS", "40")
    said = owa(arguments)
    assert said.code == 2
    assert said.err.startswith("error: ")
    assert words in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "code", "way_out"),
    [
        (errno.ENOSPC, 3, " Free some, or name a place on another disk."),
        (errno.EACCES, 2, " Name another, or change its permissions."),
        (errno.EISDIR, 2, " Name a file."),
        (errno.EIO, 2, ""),
    ],
)
def test_a_fault_of_the_system_is_one_line(owa, monkeypatch, number, code, way_out):
    def broken(kind):
        raise OSError(number, os.strerror(number), "/some/[b]where")

    monkeypatch.setattr(listing, "_rows", broken)
    said = owa("list")
    assert (said.code, said.out) == (code, "")
    assert said.err == f"error: /some/[b]where: {os.strerror(number)}.{way_out}\n"


def test_ctrl_c(owa, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(listing, "_rows", stopped)
    said = owa("list")
    assert (said.code, said.err) == (130, "Stopped.\n")


def test_ctrl_c_in_a_run_says_how_to_go_on(owa, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    run = "run --suite toolquest --tier 1 --agent noop --in-process --out 'a [b]'"
    monkeypatch.setattr(executors, "play_here", stopped)
    said = owa(run)
    assert said.code == 130
    first, *others = said.err.splitlines()
    assert first.startswith("playing 96 episodes")
    assert others == ["owa-bench run --out 'a [b]' --resume continues from here.", "Stopped."]
    monkeypatch.setattr(batch, "play", stopped)
    assert owa(run.replace("'a [b]'", "b")).err == "Stopped.\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_run_says_how_to_continue(owa, monkeypatch, number):
    def ended(*_, **__):
        os.kill(os.getpid(), number)
        time.sleep(10)

    monkeypatch.setattr(executors, "play_here", ended)
    said = owa("run --suite toolquest --tier 1 --agent noop --in-process --out x")
    assert said.code == 128 + number
    first, *others = said.err.splitlines()
    assert first.startswith("playing 96 episodes")
    assert others == ["owa-bench run --out x --resume continues from here.", "Stopped."]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so():
    """As under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_failed_check():
    command = f"{sys.executable} -m owa_bench list --json"
    code = f'set -o pipefail; {{ sleep 1; {command}; echo "left $?" >&2; }} | true'
    done = subprocess.run(["bash", "-c", code], capture_output=True, check=False, text=True)
    assert done.stderr == "left 141\n"


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


# Packages that take long to import, and what brings a half of ours with its own.
HEAVY = {"cryptography", "gymnasium", "httpx", "jinja2", "matplotlib", "numpy", "scipy"}
HEAVY |= {"scipy.special", "starlette", "uvicorn"}
HEAVY |= {f"owa_bench.{room}" for room in ("envs", "reports", "runs", "runs.plan")}


def heavy_after(words):
    """Return what is heavy and was imported when a command had ended."""
    code = f"""
import sys
from owa_bench.cli import app
try:
    app.app({words!r}, standalone_mode=False)
finally:
    print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert not done.returncode, done.stderr
    return HEAVY & set(done.stderr.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["measure", "--help"]])
def test_help_that_lists_commands_imports_nothing_heavy(words):
    assert heavy_after(words) == set()


def test_what_only_reports_need_is_not_imported_to_run():
    kinds = {"numpy", "matplotlib", "scipy", "httpx", "uvicorn", "owa_bench.reports"}
    assert heavy_after(["run", "--help"]) & kinds == {"numpy"}


def test_a_worker_without_a_model_imports_no_http_client_and_no_server():
    code = "import sys, owa_bench.runs.play.worker; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(out.stdout.split()) & {"httpx", "uvicorn", "starlette", "numpy"} == {"numpy"}


def test_a_run_is_verified_without_what_draws_or_plays(run):
    light = {"gymnasium", "jinja2", "matplotlib", "owa_bench.runs.plan"}
    assert heavy_after(["verify", str(run.root)]) & (light | {"scipy.special"}) == set()
    assert heavy_after(["report", str(run.root)]) & light == light


@pytest.mark.parametrize("group", ["COMMANDS", "ESCROW", "VERIFIER", "MEASURE"])
def test_the_line_of_a_command_in_help_is_the_first_of_its_docstring(group):
    for name, (place, line) in getattr(app, group).items():
        module, _, function = place.partition(":")
        command = getattr(importlib.import_module(f"owa_bench.cli.{module}"), function)
        assert (name, command.__doc__.partition("\n")[0]) == (name, line)


def test_a_command_imports_its_own_module_and_an_unknown_one_is_told_what_is_near():
    code = (
        "import sys; from owa_bench.cli import app; "
        "app.app(['keygen', '--help'], standalone_mode=False); "
        "sys.exit('owa_bench.cli.playing' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    unknown = subprocess.run(
        [sys.executable, "-m", "owa_bench", "repot"], capture_output=True, check=False, text=True
    )
    assert "Did you mean 'report'" in unknown.stderr


def test_help_keeps_the_extra_in_brackets(owa):
    assert "owa_bench[minari]" in owa("export --help").out
