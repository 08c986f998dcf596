"""Earlier attempts of an entry: help that was given, and workers that died."""

import signal
import subprocess
import sys

import pytest

from owa_bench.records.events import Action, Intervention, Resource
from owa_bench.records.layout import RunLayout
from owa_bench.reports.check.integrity_checks import check_attempts
from owa_bench.reports.read.bundle import read
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.request import RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files

HOME_AND_RUN = """
import sys
from pathlib import Path
from owa_bench.runs.plan.request import RunOptions
from owa_bench.runs.play import batch

home, run, folder = map(Path, sys.argv[1:4])
batch.resume(run, RunOptions(home=home, folder=folder, in_process=True))
"""


def with_options(run_options, **changes):
    return RunOptions(
        **{name: getattr(run_options, name) for name in RunOptions.__slots__} | changes
    )


@pytest.fixture
def planned(tmp_path, run_options, small, monkeypatch):
    """Return a function that signs a plan of one entry and returns its layout."""
    monkeypatch.setenv("OWA_TEST_MARK", str(tmp_path / "mark"))

    def plan(agent, **changes):
        request = small(f"odd_agents:{agent}", **changes)
        batch.play(request, tmp_path / "run", run_options, plan_only=True)
        return RunLayout(tmp_path / "run")

    return plan


def attempts(layout):
    return [files.read_trace(layout, leaf) for leaf in files.leaves_of_shards(layout)]


def refuse_faults(layout, home):
    """Refuse a run whose attempts do not verify or do not happen again."""
    faults = check_attempts(read(layout.root)).faults
    assert {name: found for name, found in faults.items() if found} == {}
    escrow.reveal(home, layout)
    assert replay.replay_run(layout).passed


@pytest.mark.slow
def test_a_second_death_of_a_worker_scores_0(planned, run_options, monkeypatch):
    monkeypatch.setenv("OWA_TEST_ALWAYS", "1")
    layout = planned("KillsItsWorker")
    summary = batch.resume(layout.root, with_options(run_options, workers=2))
    assert (summary.complete, summary.missing) == (1, 0)
    first, second, last = attempts(layout)
    assert [t.leaf.status for t in (first, second)] == ["unfinished"] * 2
    assert [t.start.worker_deaths for t in (first, second, last)] == [0, 1, 2]
    assert (last.end.outcome, last.end.q_state) == ("agent_raised", 0.0)
    assert last.end.reason == "2 workers died under this entry"
    assert not list(last.of(Action))
    refuse_faults(layout, run_options.home)


def killed_driver(layout, run_options):
    """Play in a process of its own until it kills itself."""
    script = [sys.executable, "-c", HOME_AND_RUN]
    places = (run_options.home, layout.root, run_options.folder)
    ended = subprocess.run([*script, *map(str, places)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_help_of_a_lost_attempt_counts_as_used(planned, run_options, workers):
    """The attack: collect hints, write them down, kill, play the same instance."""
    layout = planned("CollectsHintsAndKills", interventions=(3,))
    if workers == 1:
        killed_driver(layout, run_options)
    batch.resume(layout.root, with_options(run_options, workers=workers))
    lost, last = attempts(layout)
    assert [given_help.kind for given_help in lost.of(Intervention)] == ["hint", "hint"]
    given = list(last.of(Intervention))
    assert [(given_help.source, given_help.kind) for given_help in given] == [
        ("harness", "hint"),
        ("harness", "hint"),
        ("env", "hint"),
        ("env", "refused"),
    ]
    assert [given_help.answer for given_help in given[:2]] == [
        given_help.answer for given_help in lost.of(Intervention)
    ]
    minutes = [r.amount for r in last.of(Resource) if r.meter == "supervisor_min"]
    assert sum(minutes) == 3 * given[0].minutes
    assert last.start.worker_deaths == (workers == 2)
    refuse_faults(layout, run_options.home)


@pytest.mark.slow
def test_the_death_of_the_driver_never_counts(planned, run_options, monkeypatch):
    monkeypatch.setenv("OWA_TEST_ALWAYS", "1")
    layout = planned("CollectsHintsAndKills", interventions=(3,))
    for _ in range(3):
        killed_driver(layout, run_options)
    monkeypatch.delenv("OWA_TEST_ALWAYS")
    batch.resume(layout.root, run_options)
    last = attempts(layout)[-1]
    assert (last.leaf.attempt, last.start.worker_deaths) == (3, 0)
    assert last.end.outcome == "finished"
