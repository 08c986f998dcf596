"""Nothing but the quota of memory_dir outlasts a sitting of Recall, on real runs."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from owa_bench.envs.recall import session
from owa_bench.envs.recall.suite import RecallSuite
from owa_bench.records.events import Probe, Resource, Sitting
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from owa_bench.runs.store.memory_folder import MemoryFault, carry_over
from tests.builders import recall_episodes, restart_cheats
from tests.builders.sandboxes import needs_sandbox

CHEATS = Path(__file__).parents[1] / "builders" / "restart_cheats.py"


def owa(folder, *words):
    command = [sys.executable, "-m", "owa_bench", *map(str, words)]
    env = {**os.environ, "OWA_BENCH_HOME": str(folder / "data")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Return how each agent's episodes ended: family, tier, outcome, q_state, trace."""
    folder = tmp_path_factory.mktemp("cheats")
    shutil.copy(CHEATS, folder)
    found = {}
    agents = ("Honest", "Outside", "Global", "Notes", "Carrier", "Clock")
    for tier, names in ((1, agents), (4, ("Names",))):
        out = f"run{tier}"
        words = ("run", "--suite", "recall", "--family", "counterfactual")
        words += ("--tier", tier, "--episodes", 1, "--delta", 0, "--interventions", 0)
        agents = [w for name in names for w in ("--agent", f"restart_cheats:{name}")]
        done = owa(folder, *words, *agents, "--out", out)
        assert done.returncode == 0, done.stderr
        layout = RunLayout(folder / out)
        plan = read_plan(layout)
        for leaf in files.read_leaves(layout):
            found[plan.entries[leaf.index].arm] = files.read_trace(layout, leaf)
    return found


@pytest.mark.slow
@needs_sandbox
def test_what_is_kept_elsewhere_does_not_outlast_a_sitting(ends):
    assert ends["Honest"].end.q_state == 1.0
    for name in ("Outside", "Global", "Notes", "Carrier", "Clock"):
        assert ends[name].end.outcome == "finished"
        assert ends[name].end.q_state == 0.0


@pytest.mark.parametrize("name", ["Outside", "Global", "Carrier", "Clock", "Names"])
def test_each_cheat_works_where_nothing_guards_a_restart(name, tmp_path, monkeypatch):
    monkeypatch.setattr(restart_cheats, "PLACES", (str(tmp_path),))
    monkeypatch.setattr(restart_cheats, "KEPT", {})
    monkeypatch.setenv("HOME", str(tmp_path))
    cheat = getattr(restart_cheats, name)
    played = recall_episodes.play(cheat, tmp_path / "memory", "counterfactual", guarded=False)
    assert played.q_state == 1.0


def test_notes_would_do_where_they_are_on_offer_and_outlast_a_sitting(tmp_path, monkeypatch):
    card = replace(RecallSuite.card, keep_notes=True)
    monkeypatch.setattr(RecallSuite, "card", card)
    monkeypatch.setattr(session, "ZERO_TOOL", session.ASSISTED)
    cheat, folder = restart_cheats.Notes, tmp_path / "memory"
    assert recall_episodes.play(cheat, folder, "counterfactual").q_state == 1.0


@pytest.mark.slow
@needs_sandbox
def test_names_of_files_count_and_a_folder_over_its_quota_ends_the_episode(ends):
    end = ends["Names"].end
    assert end.outcome == "agent_raised"
    assert "names included, where 1024 are allowed" in end.reason
    probes = list(ends["Names"].of(Probe))
    assert len(probes) == 24
    assert not any(probe.correct for probe in probes)


@pytest.mark.slow
@needs_sandbox
def test_every_sitting_is_a_process_of_its_own(ends):
    trace = ends["Honest"]
    assert [event.number for event in trace.of(Sitting)] == [0, 1, 2, 3]
    measured = [e for e in trace.of(Resource) if e.meter == "cpu_s"]
    assert len(measured) == 4


@pytest.mark.slow
def test_one_process_for_all_sittings_is_refused(tmp_path):
    words = ("run", "--suite", "recall", "--agent", "no_memory", "--in-process")
    done = owa(tmp_path, *words, "--episodes", 1, "--out", "run")
    assert done.returncode == 2
    assert "--in-process" in done.stderr


@pytest.mark.slow
def test_an_agent_that_is_not_ended_between_sittings_is_refused(tmp_path):
    words = ("run", "--suite", "recall", "--agent", "http://127.0.0.1:9")
    done = owa(tmp_path, *words, "--no-preflight", "--episodes", 1, "--out", "run")
    assert done.returncode == 2
    assert "would outlast" in done.stderr


def test_nothing_but_names_modes_and_contents_is_carried_over(tmp_path):
    folder = tmp_path / "memory"
    (folder / "in").mkdir(parents=True)
    kept = folder / "in" / "kept"
    kept.write_text("seven b")
    os.utime(kept, ns=(123_456_789, 987_654_321))
    carry_over(folder, len("in") + len("kept") + len("seven b"))
    assert kept.read_text() == "seven b"
    assert kept.stat().st_mtime_ns != 987_654_321
    with pytest.raises(MemoryFault, match="has 13 bytes, names included"):
        carry_over(folder, 12)


def test_extended_attributes_are_not_carried_over(tmp_path):
    folder = tmp_path / "memory"
    folder.mkdir()
    kept = folder / "kept"
    kept.touch()
    try:
        os.setxattr(kept, "user.note", b"x" * 100)
    except OSError:
        pytest.skip("no extended attributes on this file system")
    carry_over(folder, 100)
    assert os.listxattr(kept) == []
