"""Persons at a terminal, by script: what they see, how they leave, what is kept."""

import io
import json
from types import SimpleNamespace

import pytest

from owa_bench.bridges import person_terminal
from owa_bench.bridges.person import play_person
from owa_bench.bridges.person_terminal import TerminalScreen
from owa_bench.bridges.tool_forms import call_of, form_of
from owa_bench.errors import UsageError
from owa_bench.interfaces import ToolSpec
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Budget
from owa_bench.reports import statement, verify
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys
from tests.bridges.scripts import scripts_of

FINISH = 'finish {"p": 0.4}\n'


def request(families=("reconcile",), **changes):
    draw = Draw(name="toolquest", families=families, tiers=(1,), deltas=(0.0,), interventions=(0,))
    changes = {"agents": ("scripted-person:ada",)} | changes
    return Request(draws=(draw,), **changes)


@pytest.fixture
def play(tmp_path):
    """Return a function that plays typed lines; what the screen showed, the layout."""
    layout = RunLayout(tmp_path / "run")
    options = RunOptions(home=tmp_path / "home")

    def played(lines, asked=None):
        shown = io.StringIO()
        screen = TerminalScreen(io.StringIO(lines), shown)
        play_person(asked, layout.root, options, screen)
        return shown.getvalue()

    played.layout, played.home = layout, options.home
    return played


def ends(layout):
    leaves = [leaf for leaf in files.read_leaves(layout) if leaf.status == "complete"]
    return [files.read_trace(layout, leaf).end for leaf in leaves]


def test_a_person_is_shown_the_task_and_plays_a_run_like_any_other(play):
    play("leave\n", request())  # so that the plan and its answers are known
    (script,) = scripts_of(play.layout, play.home)
    lines = [f"{step['tool']} {json.dumps(step['arguments'])}" for step in script]
    shown = play("\n" + "\n".join(lines) + "\n")
    assert shown.count("ToolQuest: episode 1 of 1") == 1
    assert "Reconcile the ledger" in shown
    assert '"status":200' in shown
    (end,) = ends(play.layout)
    assert (end.outcome, end.q_state, end.steps) == ("finished", 1.0, len(script))
    (arm,) = read_plan(play.layout).arms
    assert (arm.name, arm.hosting) == ("ada", "person")
    judged = statement.write(play.layout.root, keys.load(play.home, keys.DEFAULT))
    assert judged.verdicts[0].counted == 1
    assert [check for check in verify.verify(play.layout.root) if not check.ok] == []
    assert all(check.ok for check in verify.recompute(play.layout.root))
    escrow.reveal(play.home, play.layout)
    assert replay.replay_run(play.layout).passed


def test_fields_are_asked_one_by_one_and_a_wrong_one_costs_no_step(play):
    typed = "\nfly\ntools\ntask\nwait\nsoon\nwait\n-3\nvault\n\nfinish\n\nmost" + (
        "\n" * 6 + "finish\ndone\n0.7\n.1\n.2\n.3\n.4\n.5\n"
    )
    shown = play(typed, request())
    for words in (
        "No tool on offer is called 'fly'",
        "`seconds` must be a number, got 'soon'",
        "`arguments.seconds` must be",
        "`p` must be a number, got 'most'",
    ):
        assert words in shown
    (end,) = ends(play.layout)
    assert (end.steps, end.failed_attempts, end.stated) == (2, 0, 0.7)


def test_leaving_between_episodes_stops_and_within_one_fails(play):
    two = request(("reconcile", "sla_report"))
    shown = play("\n" + FINISH + "leave\n", two)
    assert "ToolQuest: episode 2 of 2" in shown
    assert [end.outcome for end in ends(play.layout)] == ["finished"]
    play("\nvault {}\n")  # the end of the stream: Ctrl-D
    last = ends(play.layout)[-1]
    assert (last.outcome, last.steps) == ("agent_raised", 1)
    assert "person left" in last.reason
    statuses = [leaf.status for leaf in files.read_leaves(play.layout)]
    assert statuses == ["complete", "unfinished", "complete"]


@pytest.mark.parametrize(
    ("typed", "outcome"),
    [("\npause\n\n" + FINISH, "finished"), ("\ntask\n" + FINISH, "agent_timeout")],
)
def test_a_step_has_a_deadline_and_a_pause_stops_the_clock(play, monkeypatch, typed, outcome):
    now = iter(range(0, 10_000, 60))  # of it 60 s pass whenever it is asked
    ticking = SimpleNamespace(monotonic=lambda: float(next(now)))
    monkeypatch.setattr(person_terminal, "time", ticking)
    act_s = 130.0 if outcome == "finished" else 50.0
    play(typed, request(budget=Budget(act_s=act_s)))
    (end,) = ends(play.layout)
    assert end.outcome == outcome


def test_a_person_cannot_be_run_without_a_screen(tmp_path):
    with pytest.raises(UsageError, match="owa-bench play"):
        batch.play(request(), tmp_path / "run", RunOptions(home=tmp_path / "home"))


TOOL = ToolSpec(
    name="ask",
    about="Ask.",
    parameters={
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 1},
            "how": {"enum": ["fast", "slow"]},
            "deep": {"type": "boolean"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "rows": {"anyOf": [{"type": "array"}, {"type": "string"}]},
            "beliefs": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["count"],
        "additionalProperties": False,
    },
)


def test_a_form_has_a_field_for_each_argument_and_each_proposition():
    form = form_of(TOOL, {"a": "It rains.", "b": "It snows."})
    kinds = {field.name: field.kind for field in form.fields}
    assert kinds == {
        "count": "number",
        "how": "choice",
        "deep": "switch",
        "headers": "map",
        "rows": "json",
        "beliefs.a": "number",
        "beliefs.b": "number",
    }


def test_a_filled_in_form_makes_the_call():
    texts = {
        "count": "2",
        "how": "slow",
        "deep": "no",
        "headers": "A=1\nB = x=y",
        "rows": "art:3",
        "beliefs.a": ".25",
        "beliefs.b": "",
    }
    assert json.loads(call_of(TOOL, texts))["arguments"] == {
        "count": 2,
        "how": "slow",
        "deep": False,
        "headers": {"A": "1", "B": "x=y"},
        "rows": "art:3",
        "beliefs": {"a": 0.25},
    }


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({}, "count"),
        ({"count": "0"}, "at least 1"),
        ({"count": "1", "how": "never"}, "must be one of"),
        ({"count": "1", "deep": "maybe"}, "yes or no"),
        ({"count": "1", "headers": "A"}, "name=value"),
        ({"count": "1", "rows": "[1"}, "must be JSON"),
        ({"count": "1", "wings": "2"}, "must be a field of `ask`"),
    ],
)
def test_a_form_filled_in_wrong_names_the_field(texts, words):
    with pytest.raises(UsageError, match=words):
        call_of(TOOL, texts)


def test_tools_that_come_on_offer_in_mid_sitting_are_shown(play):
    recall = Draw(
        name="recall", families=("retrieval",), tiers=(2,), deltas=(0.0,), interventions=(0,)
    )
    asked = Request(agents=("scripted-person:ada",), draws=(recall,))
    shown = play("\n".join(["", *["go_on {}", ""] * 300]), asked)
    offers = [line for line in shown.splitlines() if " tools: " in line]
    assert any("tools: answer, go_on, finish" in line for line in offers)
    assert any("search, open" in line for line in offers)
    assert shown.count("The next sitting of the same episode begins.") == 5
