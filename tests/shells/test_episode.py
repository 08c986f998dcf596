import pytest

from owa_bench.errors import FieldError, InfrastructureFailure, UsageError
from owa_bench.records.events import (
    Action,
    Belief,
    Call,
    Drift,
    Intervention,
    Observation,
    Resolution,
    Resource,
    Subgoal,
    SubgoalGraph,
    ToolOffer,
    Violation,
)
from owa_bench.shells.calls import REPLY_LIMIT, call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import ListSink, NodeProgress
from owa_bench.shells.standard_tools import HINT_MINUTES
from tests.builders.toy_suite import CARD, STEP_MS, SUITE, corridor, relocked, still

FINISH = call_text("finish", {"p": 0.9})


def play(*actions, source=still, seed=0, sink=None, **terms):
    """Return the episode after the actions, begun with a sink that keeps all."""
    instance = corridor()._instances(seed)
    terms.setdefault("step_limit", CARD.step_limit)
    episode = Episode(SUITE, source(instance), sink=sink or ListSink(), terms=EpisodeTerms(**terms))
    episode.begin()
    episode.answers = [episode.step(action) for action in actions]
    return episode


def solving(episode):
    """Play the oracle's hints until the door is open; return the steps."""
    steps = []
    while True:
        hint = SUITE.oracle.hint(episode.timeline, episode.session.state)
        if hint["tool"] == "finish":
            return steps
        steps.append(episode.step(call_text(**hint)))


def of(episode, kind):
    return [event for event in episode._sink.events if isinstance(event, kind)]


def test_the_first_text_lists_the_propositions_in_plain_characters():
    episode = play()
    blob = of(episode, Observation)[0].blob
    text = episode._sink.blobs[blob].decode()
    assert text.isascii()
    assert "Caf\\u00e9" in text
    assert "- even: The code is even." in text


def test_a_step_emits_action_call_subgoal_and_observation_in_this_order():
    episode = play()
    steps = solving(episode)
    kinds = [type(event) for event in episode._sink.events]
    last = kinds[-5:]
    assert last == [Action, Call, Resource, Subgoal, Observation]
    actions = of(episode, Action)
    assert [a.step for a in actions] == list(range(1, len(steps) + 1))
    assert [a.at_ms for a in actions] == [STEP_MS * i for i in range(len(steps))]
    for action, step in zip(actions, steps, strict=True):
        assert episode._sink.blobs[action.observation].decode() == step.text


def test_subgoals_come_once_with_depth_and_prerequisites():
    episode = play()
    solving(episode)
    episode.step(call_text("read", {}))
    found = [(s.node, s.depth, s.flows, s.final) for s in of(episode, Subgoal)]
    assert found == [("code", 1, (), False), ("door", 2, ("code",), True)]


def test_a_node_solved_without_its_prerequisite_has_no_flow():
    code = SUITE.generate(play().timeline.instance).code
    episode = play(call_text("open", {"code": code}))
    assert [(s.node, s.prerequisites, s.flows) for s in of(episode, Subgoal)] == [
        ("door", ("code",), ())
    ]


def test_verified_means_gained_and_not_gained_before():
    episode = play()
    solving(episode)
    verified = [a for a in of(episode, Action) if a.verified]
    assert [a.action for a in verified] == [
        call_text("read", {}),
        call_text("open", {"code": episode.session.world.code}),
    ]
    assert episode.verified == 2


def test_a_name_counts_once_and_a_result_is_novel_once(monkeypatch):
    def cell(oracle, before, action, after):
        return frozenset({f"cell {after.cell}"})

    monkeypatch.setattr(type(SUITE.oracle), "gained", cell)
    right, left = (call_text("walk", {"to": to}) for to in ("right", "left"))
    episode = play(right, left, right, left, left)
    actions = of(episode, Action)
    assert [a.verified for a in actions] == [True, True, False, False, False]
    assert [a.novel for a in actions] == [True, True, False, False, False]


def test_standard_tools_are_never_verified(monkeypatch):
    monkeypatch.setattr(type(SUITE.oracle), "gained", lambda *_: frozenset("x"))
    episode = play(
        call_text("note", {"text": "x"}),
        call_text("recall", {}),
        call_text("ask_supervisor", {}),
        FINISH,
    )
    assert not any(a.verified for a in of(episode, Action))


@pytest.mark.parametrize(
    "action", ["", "{}", '{"tool": "fly"}', '{"tool": "open", "arguments": {"code": -1}}', "\x00\r"]
)
def test_a_malformed_action_costs_a_step_and_is_recorded(action):
    episode = play(action)
    (record,) = of(episode, Action)
    step = episode.answers[0]
    assert step.error == record.error
    assert step.error is not None
    assert step.text == f"error: {step.error}"
    assert (step.reward, step.terminated, step.truncated) == (0.0, False, False)
    assert (episode.steps, episode.failed_attempts) == (1, 1)


def test_a_refusal_by_the_world_is_a_failed_attempt_without_error():
    episode = play(call_text("walk", {"to": "left"}))
    assert episode.answers[0].error is None
    assert (episode.failed_attempts, episode.last_failed) == (1, True)


def test_foreign_characters_are_escaped_in_the_record():
    episode = play('{"tool": "note", "arguments": {"text": "caf\u00e9 \U0001f600"}}')
    (record,) = of(episode, Action)
    assert record.error is None
    assert '"caf\\u00e9 \\ud83d\\ude00"' in record.action


def test_finish_judges_by_state_and_pays_q_at_once():
    episode = play()
    steps = solving(episode)
    last = episode.step(call_text("finish", {"p": 0.9, "beliefs": {"even": 0.25}}))
    assert last.terminated
    assert not last.truncated
    assert all(step.reward == 0 for step in steps)
    assert episode.ending.q_state == 1.0
    assert episode.ending.success
    assert last.reward == episode.ending.quality == pytest.approx(0.9 + 0.1 * 0.99)
    beliefs = [(b.proposition, b.kind, b.p) for b in of(episode, Belief)]
    assert beliefs == [("own_success", "own_success", 0.9), ("even", "parity", 0.25)]
    truth = episode.session.world.code % 2 == 0
    resolved = [(r.proposition, r.kind, r.y) for r in of(episode, Resolution)]
    assert resolved == [("even", "parity", truth), ("own_success", "own_success", True)]


def test_words_do_not_raise_quality():
    episode = play(call_text("finish", {"answer": "The door is open!", "p": 1.0}))
    assert episode.ending.q_state == 0.0
    assert episode.ending.quality == 0.0


def test_no_stated_p_counts_as_a_half():
    episode = play(call_text("finish", {}))
    assert episode.ending.stated is None
    assert episode.ending.quality == pytest.approx(0.1 * 0.75)
    assert of(episode, Belief) == []


def test_a_belief_about_nothing_listed_is_refused_and_the_episode_goes_on():
    episode = play(call_text("finish", {"p": 0.2, "beliefs": {"odd": 0.5}}))
    assert episode.ending is None
    assert '(even), got "odd"; leave it out' in episode.answers[0].error
    assert episode.step(call_text("finish", {})).terminated
    assert episode.ending.stated is None


def test_declare_infeasible_ends_the_episode():
    episode = play(call_text("declare_infeasible", {"p": 0.0}))
    assert episode.ending.outcome == "infeasible"
    assert episode.ending.quality == pytest.approx(0.1)


def test_the_step_limit_truncates_and_pays():
    waits = [call_text("note", {"text": str(i)}) for i in range(3)]
    episode = play(*waits, step_limit=3)
    last = episode.answers[-1]
    assert (last.terminated, last.truncated) == (False, True)
    assert (episode.ending.outcome, episode.ending.reason) == ("truncated", "budget:steps")
    assert last.reward == episode.ending.quality


def test_finishing_on_the_last_step_is_no_truncation():
    episode = play(FINISH, step_limit=1)
    assert episode.ending.outcome == "finished"


def test_a_step_after_the_end_is_the_callers_fault():
    episode = play(FINISH)
    with pytest.raises(UsageError, match="call reset first"):
        episode.step(FINISH)


def test_conclude_is_idempotent_and_reads_the_world():
    episode = play()
    solving(episode)
    ending = episode.conclude("agent_timeout", "act 60 s")
    assert (ending.outcome, ending.q_state) == ("agent_timeout", 1.0)
    count = len(episode._sink.events)
    assert episode.conclude("infrastructure", "later") is ending
    assert len(episode._sink.events) == count
    assert len(of(episode, Resolution)) == 2


def test_a_hint_is_the_next_right_step_and_costs_minutes():
    episode = play(call_text("ask_supervisor", {"question": "what now?"}))
    (given,) = of(episode, Intervention)
    (cost,) = of(episode, Resource)
    text = episode.answers[0].text
    assert (given.kind, given.minutes) == ("hint", HINT_MINUTES)
    assert (cost.meter, cost.amount, cost.stream) == ("supervisor_min", HINT_MINUTES, "human")
    assert text.splitlines()[1] == call_text("walk", {"to": "right"})
    assert episode._sink.blobs[given.question] == b"what now?"
    assert episode._sink.blobs[given.answer].decode() == text


def test_following_every_hint_solves_the_task():
    episode = play()
    while episode.ending is None:
        hint = episode.step(call_text("ask_supervisor", {}))
        episode.step(hint.text.splitlines()[1])
    assert episode.ending.q_state == 1.0


def test_a_spent_budget_refuses_and_costs_a_step():
    ask = call_text("ask_supervisor", {})
    episode = play(ask, ask, interventions=1)
    assert [i.kind for i in of(episode, Intervention)] == ["hint", "refused"]
    assert len(of(episode, Resource)) == 1
    assert "at most 1 times, got call 2" in episode.answers[1].error
    assert (episode.steps, episode.interventions_left) == (2, 0)


def test_notes_come_back_newest_first():
    notes = [call_text("note", {"text": t}) for t in ("red fox", "grey owl", "red owl")]
    episode = play(*notes, call_text("recall", {"query": "RED"}))
    assert episode.answers[-1].text == "red owl\n---\nred fox"
    assert episode.step(call_text("recall", {"query": "cow"})).text == "No note matches."


def test_a_long_answer_is_cut_for_the_agent():
    note = call_text("note", {"text": "x" * 3000})
    episode = play(note, note, call_text("recall", {}))
    assert len(episode.answers[-1].text) == REPLY_LIMIT


def test_drift_comes_when_the_clock_passes_a_start():
    wait = call_text("wait", {"seconds": 5})
    episode = play(wait, wait, source=relocked(4000, 9500))
    first, second = of(episode, Drift)
    assert (first.at_ms, second.at_ms) == (4000, 9500)
    assert first.after == second.before
    assert episode.session.world == episode.timeline.worlds[2]
    order = [type(event) for event in episode._sink.events]
    opening = [SubgoalGraph, ToolOffer, Observation]
    assert order == [*opening, Action, Drift, Observation, Action, Drift, Observation]


def test_the_graph_holds_the_nodes_that_are_still_to_be_solved():
    (graph,) = of(play(), SubgoalGraph)
    assert graph.nodes == (("code", ()), ("door", ("code",)))
    episode = play()
    progress = NodeProgress(SUITE.oracle, episode.session.world, episode.session.state)
    progress._solved = frozenset({"code"})
    assert progress.graph() == (SubgoalGraph(nodes=(("door", ("code",)),)),)
    progress._solved = frozenset({"code", "door"})
    assert progress.graph() == ()


def test_several_starts_in_one_step_are_entered_in_order():
    episode = play(call_text("wait", {"seconds": 60}), source=relocked(1000, 2000, 3000))
    assert [event.at_ms for event in of(episode, Drift)] == [1000, 2000, 3000]
    assert episode.session.world == episode.timeline.worlds[3]


def test_propositions_resolve_by_the_world_they_were_listed_for():
    episode = play(call_text("wait", {"seconds": 5}), FINISH, source=relocked(1000))
    listed = episode.timeline.worlds[0].code % 2 == 0
    assert of(episode, Resolution)[0].y == listed


def test_a_flag_is_recorded_and_a_disqualifying_violation_scores_zero():
    guess = [call_text("open", {"code": c}) for c in range(100)]
    code = play().session.world.code
    episode = play(guess[code], FINISH)
    assert [(v.rule, v.severity) for v in of(episode, Violation)] == [("guess_1", "flag")]
    assert episode.ending.q_state == 1.0
    wrong = [g for i, g in enumerate(guess) if i != code][:2]
    episode = play(*wrong, guess[code], FINISH)
    assert [v.severity for v in of(episode, Violation)] == ["flag", "disqualify"]
    assert (episode.ending.q_state, episode.ending.quality) == (0.0, 0.0)
    assert not episode.ending.success
    assert episode.answers[-1].reward == 0.0


def test_shaping_pays_early_and_still_sums_to_q():
    episode = play(shaping=True)
    steps = solving(episode)
    assert [step.reward for step in steps if step.reward] == [0.5, 0.5]
    steps.append(episode.step(FINISH))
    assert sum(step.reward for step in steps) == pytest.approx(episode.ending.quality)


def test_the_session_learns_the_sink_before_the_first_event():
    sink = ListSink()
    play(sink=sink)
    assert "code" in sink.secrets


def test_the_same_actions_leave_the_same_events():
    actions = [call_text("walk", {"to": "right"}), "nonsense", FINISH]
    one, other = ListSink(), ListSink()
    play(*actions, sink=one)
    play(*actions, sink=other)
    assert one.events == other.events


def test_the_facts_say_what_the_world_is():
    facts = play().facts(7)
    assert (facts.horizon, facts.depth, facts.theta) == (7, 2, 0.95)
    assert facts.categories == ("cloud", "files")
    assert facts.needs_tools
    assert not facts.honeypot
    assert facts.realised == 0.0
    assert len(facts.world) == 64


@pytest.mark.parametrize("result", ["opened", None])
def test_a_call_that_returns_no_tool_result_is_named(monkeypatch, result):
    """The author of a suite reads which method, what it returned and what it must."""
    session = type(play().session)
    monkeypatch.setattr(session, "call", lambda *_args, **_named: result)
    with pytest.raises(FieldError) as failure:
        play(call_text("read", {}))
    assert str(failure.value) == (
        f"`{session.__name__}.call` must return a `ToolResult`, for the tool `read` "
        f"too, got {result!r}."
    )


def test_what_an_action_raises_is_a_refused_action(monkeypatch):
    """Else an agent that finds a fault of a suite has bad episodes played again."""
    session = type(play().session)

    def raising(self, tool, arguments, *, now_ms, step):
        raise KeyError(tool)

    monkeypatch.setattr(session, "call", raising)
    episode = play(call_text("read", {}), FINISH)
    assert "raised KeyError" in episode.answers[0].error
    assert episode.ending.outcome == "finished"
    assert episode.failed_attempts == 1

    def broken(self, tool, arguments, *, now_ms, step):
        raise InfrastructureFailure("the database is gone")

    monkeypatch.setattr(session, "call", broken)
    with pytest.raises(InfrastructureFailure):
        play(call_text("read", {}))
