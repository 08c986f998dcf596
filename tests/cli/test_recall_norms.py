"""A level on Recall: whose norms it rests on, from `run`, `play`, `norms`, `report`."""

import json
import tempfile
from pathlib import Path

import pytest

from owa_bench.agents.solvers.recall.induction import ListMemory
from owa_bench.agents.solvers.recall.player import RecallPlayer
from owa_bench.agents.solvers.recall.stores import FadingStore
from owa_bench.bridges import person, person_terminal
from owa_bench.reports.read import bundle
from owa_bench.runs.store import keys
from tests.builders import recall_battery

FAMILIES = ("learning", "retrieval", "working_memory")
DELTAS = (0.0, 0.25, 1.0)
# A level that rests on norms, low enough for one suite to give it.
GATES = """\
[[gates]]
level = 1
gate = "axis"
of = "M"
required = 0.50

[[gates]]
level = 1
gate = "cognitive"
numbers = { vrp = 0.8, hallucination = 0.1 }

"""
PEOPLE = ("ada", "ben", "cy", "di", "ed")


class Program:
    """Plays at the terminal's place: spans of six words, facts with a half-life."""

    def __init__(self, answers, screen):
        self.brief = None

    def begin(self, view):
        if self.brief.session == 0:
            self.folder = Path(tempfile.mkdtemp(dir="."))
        else:
            self.player.close()
        self.player = RecallPlayer(self.store, ListMemory(6), lambda prompt, pages: None)
        self.player.reset(self.brief, (), self.folder)

    def store(self, goal, quota, seed):
        made = FadingStore(goal, quota)
        made.half_life, made.seed = 60.0, seed
        return made

    def ask(self, view, desk, deadline_s):
        call = json.loads(self.player.act({"text": view.text or view.task}, {}))
        return desk.called(call["tool"], call["arguments"])


@pytest.fixture
def programs(monkeypatch):
    """Programs sit at the terminal, and are given what an agent's brief says."""
    begin = person.PersonSeats.begin

    def told(seats, brief):
        seats.screen.brief = brief
        return begin(seats, brief)

    class Terminal:
        def isatty(self):
            return True

    monkeypatch.setattr(person_terminal, "TerminalScreen", Program)
    monkeypatch.setattr(person.PersonSeats, "begin", told)
    monkeypatch.setattr("sys.stdin", Terminal())


@pytest.mark.part(4)
@pytest.mark.slow
def test_the_mark_on_a_level_says_whose_norms_it_rests_on(owa, place, programs, monkeypatch):
    recall_battery.write_terms(
        place,
        deltas=DELTAS,
        families=FAMILIES,
        tiers=(1,),
        episodes=2,
        gates=GATES,
        gate_slack=1.0,
        span_trials=8,
        step_s_min=1e-9,
    )
    assert owa("run --battery battery.toml --agent exact_store --out r").code == 0
    assert owa("report r").code == 0
    assert level(place) == "AAI-1 (provisional norms)"
    draw = f"--suite recall --family {','.join(FAMILIES)} --tier 1"
    draw += f" --delta {','.join(map(str, DELTAS))} --protocol protocol.toml"
    write_registries(place, owa)
    for flag, mark in (("--scripted", " (synthetic norms)"), ("", "")):
        runs = [f"{who}{flag}" for who in PEOPLE]
        for who, out in zip(PEOPLE, runs, strict=True):
            found = owa(f"play {draw} --person {who} {flag} --out {out}")
            assert found.code == 0, found.err
        made = owa(f"norms {' '.join(runs)} --out n{flag}.json")
        assert made.code == 0, made.err
        # The attack: five programs that nobody watched. The control: the old rule.
        report = f"report r --norms n{flag}.json --registry trusted.toml"
        assert owa(report).code == 0
        assert level(place) == "AAI-1 (provisional norms)"
        assert "unattended (ada, ben" in owa("verify r").out
        with monkeypatch.context() as patch:
            patch.setattr(bundle, "unattended", lambda *_: ())
            assert owa(report).code == 0
            assert level(place) == f"AAI-1{mark}"
        for run in runs:
            assert owa(f"attend {run} --key invigilator").code == 0
        assert owa(f"norms {' '.join(runs)} --out n{flag}.json").code == 0
        assert owa(report).code == 0
        assert level(place) == f"AAI-1{mark}"
        assert owa("verify r").code == owa("recompute r").code == 0
        other = owa("verify r --registry other.toml")
        assert other.code == 1
        assert "nobody that 'other' names watched ada" in other.out
        (place / "r" / "norms.dsse.json").unlink()
    few = owa(f"norms {' '.join(runs[:4])} --out few.json")
    assert few.code == owa("report r --norms few.json").code == 0
    assert level(place) == "AAI-1 (provisional norms)"


def write_registries(place, owa):
    """Write one registry that names the invigilator, and one that names nobody."""
    assert owa("keygen invigilator").code == 0
    key = keys.public_hex(keys.load(keys.data_folder(), "invigilator"))
    watcher = f'[[watcher]]\nname = "a lab"\nkey = "{key}"\n'
    (place / "trusted.toml").write_text(f'name = "lab"\n{watcher}')
    (place / "other.toml").write_text('name = "other"\n')


def level(place):
    report = json.loads((place / "r" / "report.json").read_text())
    (verdict,) = report["judgement"]["verdicts"]
    own, _, level = verdict["level_text"].partition("; by them ")
    assert own.startswith("not placed (own terms: ")
    return level
