"""A suite of two seats and three sittings: played, verified, replayed, reported."""

import json

import pytest

from owa_bench.records.events import Action, Message, Observation, Resource, Sitting, ToolOffer
from owa_bench.records.packs import Transcripts
from owa_bench.records.trace import replay_root
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files
from tests.builders import plugin_package
from tests.builders.crew_runs import Crew, traces

pytestmark = pytest.mark.slow  # programs in processes of their own

TERMS = (
    *("--suite", "relay", "--delta", "0,1", "--episodes", 3, "--repeats", 2),
    *("--crews", "1,2,2:muted"),
)


@pytest.fixture(scope="module")
def crew(tmp_path_factory):
    """Return the folder of a stranger's crew suite."""
    return Crew(tmp_path_factory.mktemp("crew"))


@pytest.fixture(scope="module")
def planned(crew):
    """Return the plan of the team alone, in full and muted, with and without drift."""
    return crew.plan("plan", "crew:Team", *TERMS)


@pytest.fixture(scope="module")
def played(crew, planned):
    """Return the run of that plan."""
    return crew.play(planned, "one")


def rate(found, **terms):
    chosen = [
        trace.end.q_state
        for trace in found
        if all(getattr(trace.start, name) == value for name, value in terms.items())
    ]
    return sum(chosen) / len(chosen)


def trace_text(layout, trace, place):
    action = list(trace.of(Action))[place]
    return Transcripts(layout).read(action.observation).decode()


def axis_s(run):
    report = json.loads((run / "report.json").read_text())
    (verdict,) = report["judgement"]["verdicts"]
    (axis,) = [axis for axis in verdict["axes"] if axis["symbol"] == "S"]
    return axis


def test_two_seats_open_more_doors_than_one_and_than_a_muted_crew(played):
    found = traces(played)
    ends = {(trace.end.outcome, trace.end.reason) for trace in found}
    assert ends == {("finished", "the last day is over")}
    full = rate(found, role_cap=2, muted=False)
    assert full > rate(found, role_cap=2, muted=True)
    assert full > rate(found, role_cap=1)


def test_every_event_of_a_turn_names_its_seat(played):
    trace = next(t for t in traces(played) if t.start.role_cap == 2)
    assert trace.start.seats == ("opener", "scout")
    roles = [action.role for action in trace.of(Action)]
    assert roles == ["opener", "scout"] * (len(roles) // 2)
    for kind in (Observation, ToolOffer, Sitting):
        assert {event.role for event in trace.of(kind)} == {"opener", "scout"}
    sittings = [(event.role, event.number) for event in trace.of(Sitting)]
    assert sittings == [(s, day) for day in range(3) for s in ("opener", "scout")]


def test_messages_are_the_fabrics_and_counted_by_the_suites_own_meter(played):
    for trace in traces(played):
        messages = list(trace.of(Message))
        assert {message.source for message in messages} <= {"env"}
        metered = [r for r in trace.of(Resource) if r.meter == "relay/messages"]
        assert len(metered) == len(messages)
        alone = trace.start.role_cap == 1 or trace.start.muted
        assert bool(messages) != alone


def test_cap_and_mute_are_told_to_nobody(played):
    """The opener's first text is the same, byte for byte, in all arms of a pair."""
    texts = {}
    for trace in traces(played):
        first = next(iter(trace.of(Observation)))
        texts.setdefault(trace.start.pair, set()).add(first.blob)
    assert all(len(blobs) == 1 for blobs in texts.values())


@pytest.mark.part(4)
def test_any_number_of_workers_leaves_one_replay_root(crew, planned, played):
    two = crew.play(planned, "two", "--workers", 2)
    roots = [
        replay_root(read_plan(layout), files.rebuild_leaves(layout)) for layout in (played, two)
    ]
    assert roots[0] == roots[1]


@pytest.mark.part(4)
def test_the_run_is_replayed_reported_and_verified(crew, played):
    run = played.root
    crew.owa("escrow", "reveal", run)
    assert "event by event" in crew.owa("replay", run)
    crew.owa("report", run)
    crew.owa("verify", run)
    crew.owa("recompute", run)
    assert axis_s(run)["value"] > 0.1


def test_notes_do_not_outlast_a_day(crew):
    terms = ("--suite", "relay", "--delta", "0", "--crews", "2", "--interventions", "0")
    layout = crew.play(crew.plan("notes", "crew:Forgetful", *terms), "noted")
    (trace,) = traces(layout)
    asked = [n for n, a in enumerate(trace.of(Action)) if '"recall"' in a.action]
    answers = [trace_text(layout, trace, place) for place in asked]
    assert len(answers) == 2
    assert all(answer == "No note matches." for answer in answers)


def test_seats_refuse_a_shared_process(crew):
    words = ("run", *TERMS, "--agent", "crew:Team", "--in-process")
    words = (*words, "--out", crew.folder / "shared")
    done = plugin_package.owa(crew.env, *words, folder=crew.folder)
    assert done.returncode == 2
    assert "`relay`" in done.stderr
    assert "--in-process" in done.stderr
