"""One episode: who failed, what is written, budgets, streams, sessions."""

import json

import pytest

from owa_bench.errors import InfrastructureFailure
from owa_bench.records.events import (
    AGENT_RECORD,
    Action,
    Belief,
    EpisodeStart,
    Evidence,
    Intervention,
    Message,
    ModelCall,
    Resource,
    Subgoal,
    SubgoalGraph,
)
from owa_bench.records.packs import Transcripts
from owa_bench.records.plan import Budget
from owa_bench.records.trace import replay_line
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.budget import EpisodeSink
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.play import episode_setup
from owa_bench.runs.store import files
from owa_bench.shells.tool_env import ToolEnv


def traces(layout):
    return [files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)]


def only(layout):
    (trace,) = traces(layout)
    return trace


def test_an_episode_is_written_from_start_to_end(played, small):
    layout = played(small("fixed"))
    trace = only(layout)
    plan = read_plan(layout)
    entry = plan.entries[0]
    assert trace.start.pair == entry.pair
    assert trace.start.agent == "fixed"
    assert trace.start.fingerprint == plan.arms[0].fingerprint
    assert trace.start.horizon > 0
    assert trace.start.depth > 0
    assert trace.end.outcome == "finished"
    assert trace.end.q_state == 1.0
    assert trace.end.steps == len(list(trace.of(Action)))
    rewards = sum(action.reward for action in trace.of(Action))
    assert rewards == pytest.approx(trace.end.quality)
    assert trace.leaf.status == "complete"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Raises", "ValueError: boom"),
        ("RaisesInReset", "no reset today"),
        ("Nonsense", "got 7"),
        ("Exits", "SystemExit: 3"),
    ],
)
def test_the_agents_failure_is_scored(played, small, name, reason):
    trace = only(played(small(f"odd_agents:{name}")))
    assert (trace.leaf.status, trace.end.outcome) == ("complete", "agent_raised")
    assert reason in trace.end.reason
    assert not trace.end.timed


def test_a_killed_agent_process_is_the_agents_failure(played, small):
    trace = only(played(small("odd_agents:Dies"), in_process=False))
    assert (trace.leaf.status, trace.end.outcome) == ("complete", "agent_raised")
    assert "SIGKILL" in trace.end.reason


def test_a_hanging_agent_dies_at_its_deadline_and_the_run_goes_on(played, small):
    request = small("odd_agents:Hangs", "odd_agents:Quiet", budget=Budget(act_s=0.5))
    hung, quiet = traces(played(request, in_process=False))
    assert (hung.leaf.status, hung.end.outcome) == ("complete", "agent_timeout")
    assert hung.leaf.timed  # a deadline is wall clock: no part of the replay root
    assert quiet.end.outcome == "finished"


def test_an_agents_last_words_are_no_part_of_the_replay_root(played, small):
    end = only(played(small("odd_agents:Raises"))).end
    line = replay_line(end)
    assert line is not None
    assert b"boom" not in line
    assert b"agent_raised" in line


def record_of(layout, trace):
    """Return the event and the text of what the agent of a trace left."""
    (event,) = [e for e in trace.of(Evidence) if e.source == "agent"]
    return event, Transcripts(layout).read(event.blob).decode()


@pytest.mark.parametrize("in_process", [True, False])
def test_what_a_raising_agent_left_is_evidence_without_secrets(
    played, small, monkeypatch, in_process
):
    monkeypatch.setenv("OWN_API_KEY", "sk-0123456789abcdef")
    layout = played(small("odd_agents:RaisesSecret"), in_process=in_process)
    trace = only(layout)
    event, text = record_of(layout, trace)
    assert (event.name, event.step) == (AGENT_RECORD, 1)
    assert "raise ValueError(" in text
    assert "sk-0123456789abcdef" not in text + trace.end.reason
    assert ("{secret:env:OWN_API_KEY:" in text) is in_process  # a sandbox does not have it
    assert replay_line(event) is None


@pytest.mark.parametrize("in_process", [True, False])
def test_an_error_too_long_for_the_trace_is_the_agents_failure_all_the_same(
    played, small, in_process
):
    trace = only(played(small("odd_agents:RaisesLong"), in_process=in_process))
    assert (trace.leaf.status, trace.end.outcome) == ("complete", "agent_raised")
    assert trace.end.reason.startswith("ValueError: short; xxx")
    assert len(trace.end.reason) <= 2000


def test_an_agent_that_did_not_fail_leaves_nothing(played, small):
    layout = played(small("odd_agents:Quiet"))
    assert [e for e in only(layout).of(Evidence) if e.source == "agent"] == []


def test_the_graph_of_subgoals_is_in_the_trace_and_in_no_replay(played, small):
    trace = only(played(small("fixed")))
    (graph,) = trace.of(SubgoalGraph)
    assert {e.node for e in trace.of(Subgoal)} <= {name for name, _ in graph.nodes}
    assert replay_line(graph) is None


def test_the_harness_failure_is_never_scored_and_tried_again(played, small, monkeypatch):
    working = episode_setup.env_for
    calls = []

    def failing(*arguments, **options):
        calls.append(1)
        if len(calls) < 3:
            raise OSError("no socket left")
        return working(*arguments, **options)

    monkeypatch.setattr(episode_setup, "env_for", failing)
    layout = played(small("noop"))
    leaves = files.read_leaves(layout)
    assert [leaf.status for leaf in leaves] == ["infrastructure", "infrastructure", "complete"]
    assert [leaf.attempt for leaf in leaves] == [0, 1, 2]
    failed = files.read_trace(layout, leaves[0])
    assert failed.end.outcome == "infrastructure"
    assert "no socket left" in failed.end.reason
    assert failed.start.horizon == 0


def test_after_three_failures_of_the_harness_the_entry_is_left(played, small, monkeypatch):
    def failing(*_, **__):
        raise OSError("no socket left")

    monkeypatch.setattr(episode_setup, "env_for", failing)
    leaves = files.read_leaves(played(small("noop")))
    assert [leaf.status for leaf in leaves] == ["infrastructure"] * 3


def test_an_env_that_raises_in_a_step_is_the_harness(played, small, monkeypatch):
    def broken(self, action):
        raise InfrastructureFailure("the database is gone")

    monkeypatch.setattr("owa_bench.shells.tool_env.ToolEnv.step", broken)
    leaves = files.read_leaves(played(small("noop")))
    assert {leaf.status for leaf in leaves} == {"infrastructure"}


def test_an_attempt_that_the_harness_failed_replays_to_its_last_action(
    played, small, monkeypatch, run_options
):
    working, steps = ToolEnv.step, []

    def failing(self, action):
        steps.append(action)
        if len(steps) == 3:
            raise OSError("no socket left")
        return working(self, action)

    monkeypatch.setattr(ToolEnv, "step", failing)
    layout = played(small("fixed"))
    monkeypatch.undo()
    statuses = [leaf.status for leaf in files.read_leaves(layout)]
    assert statuses == ["infrastructure", "complete"]
    escrow.reveal(run_options.home, layout)
    replays = replay.replay_run(layout)
    assert [attempt.outcome for attempt in replays.attempts] == ["same", "same"]


def test_an_exhausted_budget_truncates_and_is_scored(played, small):
    budget = Budget(episode_meters=(("api_calls", 2.0),))
    trace = only(played(small("fixed", budget=budget)))
    assert (trace.end.outcome, trace.end.reason) == ("truncated", "budget:api_calls")
    assert trace.leaf.status == "complete"
    assert not trace.leaf.timed


def test_the_step_budget_holds(played, small):
    trace = only(played(small("fixed", budget=Budget(steps=3))))
    assert (trace.end.outcome, trace.end.reason) == ("truncated", "budget:steps")
    assert trace.end.steps == 3


def test_a_run_budget_stops_later_episodes_as_timed(played, small):
    budget = Budget(run_meters=(("api_calls", 3.0),))
    first, second = traces(played(small("fixed", budget=budget, episodes=2)))
    assert first.end.reason == second.end.reason == "budget:api_calls"
    assert second.end.steps == 0
    assert second.leaf.timed


def test_the_intervention_budget_is_the_entrys(played, small):
    layout = played(small("odd_agents:Asks", interventions=(0, 1)))
    kinds = [[i.kind for i in trace.of(Intervention)] for trace in traces(layout)]
    assert kinds == [["refused"], ["hint"]]


def test_what_an_agent_declares_is_marked_and_comes_before_its_step(played, small):
    trace = only(played(small("odd_agents:Declares")))
    events = list(trace.events)
    declared = [
        event
        for event in events
        if isinstance(event, ModelCall | Message)
        or (isinstance(event, Resource) and event.source == "agent")
    ]
    assert {type(event) for event in declared} == {ModelCall, Message, Resource}
    assert all(event.source == "agent" and event.step == 1 for event in declared)
    first_action = next(i for i, e in enumerate(events) if isinstance(e, Action))
    assert all(events.index(event) < first_action for event in declared)
    (call,) = trace.of(ModelCall)
    assert len(call.prompt) == 64  # the words lie in a blob
    (belief,) = [b for b in trace.of(Belief) if b.kind == episode_setup.INTERIM]
    assert belief.p == 0.75


def test_the_harness_sets_the_stream():
    seen = []

    class Inner:
        active = True

        def emit(self, event):
            seen.append(event)

    sink = EpisodeSink(Inner(), evaluation=True)
    sink.emit(Resource(step=1, meter="api_calls", amount=1))
    sink.emit(Resource(step=1, meter="supervisor_min", amount=2, stream="human"))
    assert [event.stream for event in seen] == ["evaluation", "evaluation"]


def test_a_later_session_is_a_fresh_process_with_the_same_memory(played, small, monkeypatch):
    from owa_bench.shells.tool_env import ToolEnv

    step = ToolEnv.step

    def in_a_new_sitting(self, action):
        observation, reward, terminated, truncated, info = step(self, action)
        return observation, reward, terminated, truncated, {**info, "sitting": 1}

    monkeypatch.setattr(ToolEnv, "step", in_a_new_sitting)
    trace = only(played(small("odd_agents:TwoSessions"), in_process=False))
    assert trace.end.outcome == "finished", trace.end.reason
    first, second, *_ = trace.of(Action)
    assert json.loads(first.action)["tool"] == "note"
    assert json.loads(second.action)["arguments"]["answer"] == "session 1, note found"


def test_transcripts_may_be_left_out(played, small):
    layout = played(small("fixed", transcripts=False))
    assert not layout.blobs.exists()
    assert isinstance(only(layout).events[0], EpisodeStart)
