"""A project that is killed on day 17 is played anew, to the same root."""

import shutil
import signal
import subprocess
import sys

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.sandbox import views

pytestmark = [pytest.mark.project, pytest.mark.slow]
RUN = ("--suite", "projforge", "--agent", "oracle", "--family", "billing")
RUN += ("--tier", "1", "--delta", "0.5", "--episodes", "1", "--interventions", "0")
LAST_DAY = 17
# Kills the process that plays when the day closes, so whatever it held is lost.
KILLED = f"""
import os, runpy, signal, sys
from owa_bench.envs.projforge import forge_session
closed = forge_session.day_closed
def kill(scores, world, day, **shares):
    if day == {LAST_DAY}:
        os.kill(os.getpid(), signal.SIGKILL)
    return closed(scores, world, day, **shares)
forge_session.day_closed = kill
sys.argv[0] = "owa-bench"
runpy.run_module("owa_bench", run_name="__main__")
"""


def owa(*words, program=("-m", "owa_bench")):
    line = [sys.executable, *program, "run", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=300)


def root(done):
    assert done.returncode == 0, done.stderr
    [line] = [x for x in done.stdout.splitlines() if x.startswith("replay root")]
    return line.split()[-1]


@pytest.mark.part(4)
def test_a_killed_project_is_played_anew_to_the_same_root(tmp_path):
    if fault := views.bubblewrap_fault():
        pytest.skip(f"bubblewrap: {fault}")
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    planned = owa(*RUN, "--plan-only", "--out", whole)
    assert planned.returncode == 0, planned.stderr
    shutil.copytree(whole, broken)  # one plan draws one project
    asked = ("--resume", "--out")
    stopped = owa(*asked, broken, program=("-c", KILLED))
    assert stopped.returncode == -signal.SIGKILL, stopped.stderr
    leaves = RunLayout(broken).leaves
    assert not leaves.exists() or not leaves.read_text().strip()
    assert root(owa(*asked, broken)) == root(owa(*asked, whole))
