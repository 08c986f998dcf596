"""Kills of Ray actors: when, whom, and what ten million episodes cost on paper."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import actor_kills
import pytest


def test_kills_are_drawn_from_the_seed_and_lie_inside_the_run():
    moments = actor_kills.kills(1_000, 20, seed=3)
    assert moments == actor_kills.kills(1_000, 20, seed=3)
    assert moments != actor_kills.kills(1_000, 20, seed=4)
    after = [moment.after for moment in moments]
    assert after == sorted(after)
    assert after[0] >= 20
    assert after[-1] <= 900
    assert all(0 <= moment.whom < 1 for moment in moments)


def test_closed_episodes_are_counted_as_the_file_grows(tmp_path):
    path = tmp_path / "leaves.jsonl"
    closed = actor_kills.Closed(path)
    assert closed.look() == 0
    path.write_bytes(b"one\ntwo\nhal")
    assert closed.look() == 2
    with path.open("ab") as file:
        file.write(b"f\n")
    assert closed.look() == 3


def test_a_tree_of_processes_has_children_and_no_strangers():
    words = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        tree = actor_kills.processes(os.getpid())
        assert tree[0].pid == os.getpid()
        assert child.pid in {each.pid for each in tree}
        assert os.getppid() not in {each.pid for each in tree}
        child.kill()
    assert actor_kills.processes(child.pid) == []


def test_cpu_of_agents_is_that_of_the_server_which_reaped_them():
    server = f"python -m {actor_kills.FORKS} 8"
    tree = [
        actor_kills.Process(1, 0, "driver", 1.0, 50.0),
        actor_kills.Process(2, 1, actor_kills.ACTOR, 2.0, 50.0),
        actor_kills.Process(3, 2, server, 0.25, 4.0),
        actor_kills.Process(4, 3, server, 0.5, 0.0),
    ]
    assert actor_kills.cpu_of(tree) == {1: 1.0, 2: 2.0, 3: 4.25}


def test_ten_million_episodes_on_paper():
    figures = {"Ray: CPU ms": 36.0, "driver: CPU ms": 3.6, "bytes": 5_000.0}
    (row,) = actor_kills.paper(figures, 0.05).rows
    assert row.figures["core hours"] == pytest.approx(100.0)
    assert row.figures["USD"] == pytest.approx(5.0)
    assert row.figures["of them drivers' hours"] == pytest.approx(10.0)
    assert row.figures["cores a driver feeds"] == pytest.approx(10.0)
    assert row.figures["GB"] == pytest.approx(50.0)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(find_spec("ray") is None, reason="needs the [ray] extra")
def test_a_run_with_a_killed_actor_has_the_root_of_a_plain_one(tmp_path):
    row, fine = actor_kills.measure(400, 1, Path(tmp_path) / "run", workers=2, sandboxed=False)
    assert fine
    assert row.note == "same root"
    assert row.figures["kills"] == row.figures["deaths noted"] == 1
    assert row.figures["faults"] == 0
