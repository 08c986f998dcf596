"""Axis S cannot be had by lying down where a control is guessed, nor by declaring talk.

Real runs: the toy suite with seats, whose fabric carries messages, and ToolQuest, which
has one seat.
"""

import json

import pytest

from owa_bench.records.layout import RunLayout
from tests.builders.crew_runs import Crew, traces
from tests.recompute.comparison import figures
from tests.recompute.reading import read_run
from tests.recompute.test_recompute import differences

pytestmark = pytest.mark.slow  # programs in processes of their own

TERMS = ("--delta", 0, "--interventions", 0, "--repeats", 2)
CREWS = ("--crews", "1,2,2:muted")


@pytest.fixture(scope="module")
def crew(tmp_path_factory):
    """Return the folder of a stranger's crew suite."""
    return Crew(tmp_path_factory.mktemp("sandbaggers"))


@pytest.fixture(scope="module")
def judged(crew):
    """Return the axes of an honest crew and of three that give up alone, by arm."""
    names = ("Team", "Sandbagger", "Patient", "Busy")
    agents = [word for name in names for word in ("--agent", f"crew:{name}")]
    terms = ("--suite", "relay", *TERMS, "--episodes", 2, *CREWS)
    return reported(crew, crew.folder / "run", *terms, *agents)


def reported(crew, place, *words):
    """Play and report a run; return its axes by arm and symbol."""
    crew.owa("run", *words, "--out", place)
    crew.owa("escrow", "reveal", place)
    crew.owa("report", place)
    crew.owa("recompute", place)
    report = json.loads((place / "report.json").read_text())
    return {
        verdict["arm"]: {axis["symbol"]: axis for axis in verdict["axes"]}
        for verdict in report["judgement"]["verdicts"]
    }


def test_an_honest_crew_has_s_and_no_more_of_s_net(judged):
    found = judged["Team"]["S"]
    assert 0.1 < found["value"] <= 1.0
    assert found["details"]["beside"]["S_net"]["value"] <= found["value"]


@pytest.mark.parametrize(
    ("name", "counted"), [("Sandbagger", "actions"), ("Patient", "new answers")]
)
def test_who_gives_up_alone_has_no_s(judged, name, counted):
    """Ending at once and letting every turn pass are both no control."""
    found = judged[name]["S"]
    assert found["value"] is None
    reason = found["reason"]
    assert reason.startswith("control not played: one role fails after"), reason
    assert counted in reason


@pytest.mark.parametrize("name", ["Sandbagger", "Patient", "Busy"])
@pytest.mark.usefixtures("judged")
def test_lying_down_costs_the_other_axes(crew, name):
    """Half of the base rows are of one role, and nobody can tell which."""
    layout = RunLayout(crew.folder / "run")
    base = [
        t.end.q_state if t.start.role_cap == 1 else None
        for t in traces(layout)
        if t.start.arm == name and not t.start.control
    ]
    assert base.count(0.0) == base.count(None) == len(base) / 2


@pytest.mark.usefixtures("judged")
def test_the_lift_is_counted_again_without_the_package(crew):
    """No stored run has a crew with a channel."""
    run = read_run(crew.folder / "run")
    shown = {n: p for n, p, _ in figures(run, run.report["judgement"]["verdicts"][0])}
    assert shown["lift"] > 0
    assert shown["S_net"] > 0
    assert not differences(crew.folder / "run")[1]


def test_words_between_parts_of_one_agent_are_shown_and_score_nothing(crew):
    words = ("--suite", "toolquest", "--family", "reconcile", "--tier", 1, *TERMS)
    arms = reported(crew, crew.folder / "declared", *words, *CREWS, "--agent", "orchestrator")
    found = arms["orchestrator"]["S"]
    assert found["value"] is None
    assert "no channel of the environment" in found["reason"]
    assert "the agent declared" in found["reason"]
