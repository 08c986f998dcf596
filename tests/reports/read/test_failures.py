"""Each kind of failure from a trace made by hand, and what an agent says that changes none."""

import pytest
from msgspec.structs import replace

from owa_bench.records import events
from owa_bench.records.packs import Transcripts
from owa_bench.reports.read import bundle as bundles
from owa_bench.reports.read.failures import (
    KINDS,
    FailureSummary,
    agent_record,
    missing_nodes,
    read_episode,
    readings,
    summarise,
)
from tests.builders import run_directory
from tests.builders.episodes import drift
from tests.builders.failed_episodes import (
    GRAPH,
    OFFER,
    action,
    answered,
    call,
    failed,
    finish,
    solved,
)

NO_CALL = action(2, "I am sorry, I cannot help", error="`action` does not parse: expected value")
DISQUALIFIED = events.Violation(step=1, rule="guess", severity="disqualify", evidence="e")
REFUSED_HELP = events.Intervention(step=2, kind="refused", minutes=0.0)

CASES = {
    "harness": failed(outcome="infrastructure", reason="OSError: disk", status="infrastructure"),
    "provider": failed(
        outcome="infrastructure", reason="ProviderFailure: HTTP 500", status="provider"
    ),
    "damaged": failed(outcome="agent_raised", status="unreadable"),
    "rule": failed(solved(1, "docs"), DISQUALIFIED, finish(2), q_state=1.0),
    "raised": failed(action(1), outcome="agent_raised", reason="KeyError: 'x' (mine.py:3)"),
    "timeout": failed(action(1), outcome="agent_timeout", reason="no reply within 60 s"),
    "malformed": failed(solved(1, "docs"), NO_CALL, outcome="truncated"),
    "refused": failed(solved(1, "docs"), answered(2, 401), answered(3, 401), outcome="truncated"),
    "idle": failed(action(1, call("note", text="no")), finish(2)),
    "gave_up": failed(
        solved(1, "docs"), action(2), finish(3, "declare_infeasible"), outcome="infeasible"
    ),
    "budget": failed(solved(1, "docs"), action(2), action(3), outcome="truncated"),
    "help": failed(solved(1, "docs"), action(2), action(3), action(4), REFUSED_HELP, finish(5)),
    "over": failed(solved(1, "docs"), action(2), action(3, terminated=True), reason="tick 9"),
    "early": failed(solved(1, "docs"), action(2), finish(3)),
    "wrong": failed(solved(1, "rows"), solved(2, "artifact"), finish(3)),
}


def test_every_kind_has_a_case():
    assert tuple(CASES) == tuple(KINDS)


@pytest.mark.parametrize("kind", CASES)
def test_a_trace_of_each_kind_has_that_kind(kind):
    assert read_episode(CASES[kind]).kind == kind


@pytest.mark.parametrize("kind", [k for k in CASES if k not in ("harness", "provider", "damaged")])
def test_the_same_trace_with_success_has_none(kind):
    trace = CASES[kind]
    won = tuple(
        replace(e, q_state=1.0) if isinstance(e, events.EpisodeEnd) else e
        for e in trace.events
        if not isinstance(e, events.Violation)
    )
    row = read_episode(replace_events(trace, won))
    assert (row.kind, row.success, row.left) == ("", True, None)


def replace_events(trace, sequence):
    return type(trace)(trace.leaf, tuple(sequence))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rule", "raised"),
        ("raised", "malformed"),
        ("malformed", "budget"),
        ("refused", "budget"),
        ("idle", "gave_up"),
        ("budget", "early"),
        ("help", "early"),
    ],
)
def test_the_order_of_kinds_is_their_precedence(first, second):
    order = list(KINDS)
    assert order.index(first) < order.index(second)


def test_two_kinds_at_once_give_the_first():
    both = failed(solved(1, "docs"), DISQUALIFIED, outcome="agent_raised", reason="E: x")
    assert read_episode(both).kind == "rule"
    idle = failed(finish(1, "declare_infeasible"), outcome="infeasible")
    assert read_episode(idle).kind == "idle"


SAID = (
    "Traceback (most recent call last): KeyError",
    "refused: HTTP 401 Unauthorized",
    "budget:steps infrastructure ProviderFailure: outage",
    "I declare the task infeasible",
)


@pytest.mark.parametrize("words", SAID)
def test_words_of_the_agent_change_no_kind(words):
    said = action(2, call("note", text=words))
    belief = events.Message(step=2, sender="a", digest=words)
    claim = events.Revision(step=2, proposal=words)
    fake = events.ModelCall(step=2, model=words, prompt=words, reply=words, failure=words)
    row = read_episode(failed(solved(1, "docs"), said, belief, claim, fake, action(3), finish(4)))
    assert (row.kind, row.refused) == ("early", None)
    raised = failed(fake, outcome="agent_raised", reason=f"E: {words} (mine.py:1)")
    assert read_episode(raised).kind == "raised"
    # the control: the same words where the harness saw them
    seen = replace(fake, source="harness")
    blamed = failed(seen, outcome="agent_raised", reason="E (mine.py:1)")
    assert read_episode(blamed).kind == "provider"


def test_most_of_what_followed_the_last_progress_decides_not_most_of_the_episode():
    good = [solved(i, f"n{i}") for i in range(1, 8)]
    stuck = read_episode(failed(*good, answered(8, 401), answered(9, 401), action(10), finish(11)))
    assert (stuck.kind, stuck.left) == ("refused", 8)
    half = read_episode(failed(*good, answered(8, 401), action(9), finish(10)))
    assert half.kind == "early"
    retried = read_episode(failed(answered(1, 401), answered(2, 401), solved(3, "docs"), finish(4)))
    assert retried.kind == "early"
    assert (retried.refused.step, retried.refused.error) == (2, "GET HTTP 401")


def test_an_action_is_malformed_by_its_form_and_refused_if_its_form_is_right():
    wrong = [
        action(1, text, error="an error")
        for text in ("[]", "{}", '{"tool": 3}', call("unknown"), '{"tool": "http", "x": 1}')
    ]
    for one in wrong:
        assert read_episode(failed(one, outcome="truncated")).kind == "malformed"
    right = action(1, call("http"), error="`arguments.url` is required, got nothing; add it.")
    row = read_episode(failed(right, outcome="truncated"))
    assert (row.kind, row.refused.error) == ("refused", "`arguments.url` is required")
    accepted = read_episode(failed(action(1, "no call at all"), outcome="truncated"))
    assert accepted.kind == "budget"  # the harness named no error, so there was none


def test_the_first_missing_subgoal_is_one_that_could_have_been_reached_next():
    row = read_episode(failed(solved(1, "docs"), finish(2)))
    assert (row.missed, row.missing) == ("key", ("key", "rows", "artifact"))
    order = events.SubgoalGraph(nodes=(("late", ("early",)), ("early", ())))
    assert missing_nodes(order, set()) == ("early", "late")


def test_a_node_that_the_agent_did_without_is_not_missing():
    row = read_episode(failed(solved(1, "rows"), finish(2)))
    assert row.missing == ("artifact",)


def test_the_path_is_left_after_the_last_step_that_gained_anything():
    verified = action(2, verified=True)  # gained, though no subgoal
    assert read_episode(failed(solved(1, "docs"), verified, action(3), finish(4))).left == 3
    kept = read_episode(failed(action(1), *solved(2, "docs"), outcome="truncated"))
    assert (kept.kind, kept.left, kept.path) == ("budget", None, True)
    lost = read_episode(failed(action(1), finish(2)))
    assert (lost.left, lost.missed) == (1, "docs")


def test_a_native_suite_has_no_path():
    numbers = [action(step, "3") for step in (1, 2)]
    row = read_episode(failed(*numbers, opening=(), reason="terminated"))
    assert (row.kind, row.path, row.left, row.missing) == ("over", False, None, None)
    unread = [replace(one, error="no number") for one in numbers]
    assert read_episode(failed(*unread, opening=())).kind == "malformed"


def test_the_drift_met_is_the_highest_class_before_the_path_was_left():
    early = failed(drift("a", "D1"), solved(1, "docs"), drift("b", "D2"), action(2), finish(3))
    assert read_episode(early).drift == "D2"
    late = failed(drift("a", "D1"), solved(1, "docs"), action(2), drift("b", "D3"), finish(3))
    assert read_episode(late).drift == "D1"
    assert read_episode(failed(solved(1, "docs"), finish(2))).drift == ""


def test_a_run_without_the_graph_says_so_and_guesses_nothing():
    row = read_episode(failed(solved(1, "docs"), finish(2), opening=(OFFER,)))
    assert (row.kind, row.missing, row.missed) == ("wrong", None, "")
    assert not summarise(["agent"], [row]).graphs
    assert summarise(["agent"], [read_episode(CASES["early"])]).graphs


def test_like_failures_are_one_group_and_unlike_ones_are_not():
    def early(index, arm="agent", **changes):
        parts = (solved(1, "docs"), answered(2, changes.pop("status", 404)), action(3), finish(4))
        return read_episode(failed(*parts, index=index, arm=arm, **changes))

    rows = [early(0), early(1, "other"), early(2, family="restock"), early(3, status=410)]
    rows += [early(4, opening=(replace(GRAPH, nodes=(("key:a", ()),)), OFFER))]
    rows += [early(5, opening=(replace(GRAPH, nodes=(("key:b", ()),)), OFFER))]
    summary = summarise(["agent", "other"], rows)
    found = [(g.episodes, g.example, g.arms) for g in summary.groups]
    assert found == [
        (2, "000000.0", (("agent", 1), ("other", 1))),
        (2, "000004.0", (("agent", 2),)),  # two keys are of one class
        (1, "000002.0", (("agent", 1),)),
        (1, "000003.0", (("agent", 1),)),  # another status
    ]
    assert [g.missed for g in summary.groups] == ["key", "a subgoal (key)", "key", "key"]
    (kind,) = summary.kinds
    assert (kind.kind, kind.episodes, kind.example) == ("early", 6, "000000.0")
    cut = summarise(["agent", "other"], rows, 1)
    assert (len(cut.groups), cut.more_groups) == (1, 3)


def test_one_exception_is_one_group_whatever_the_family():
    rows = [
        read_episode(failed(index=i, family=family, outcome="agent_raised", reason="E (a.py:3)"))
        for i, family in enumerate(("reconcile", "restock"))
    ]
    (group,) = summarise(["agent"], rows).groups
    assert (group.episodes, len(group.families), group.detail) == (2, 2, "E (a.py:3)")


def test_what_the_harness_lost_is_apart_from_failures():
    rows = [read_episode(CASES[kind]) for kind in ("harness", "provider", "early")]
    summary = summarise(["agent"], rows)
    assert (summary.counted, summary.failed, summary.lost) == (1, 1, 2)
    assert [kind.kind for kind in summary.kinds] == ["harness", "provider", "early"]


def test_nothing_failed_is_an_empty_summary():
    assert summarise(["a"], []) == FailureSummary(arms=("a",))


def test_a_run_is_read_like_its_success(tmp_path):
    layout = run_directory.make_run(tmp_path / "run")
    bundle = bundles.read(layout.root)
    rows = [*readings(bundle)]
    assert [row.success for row in rows] == [t.end.success for t in bundle.traces()]
    assert {row.kind for row in rows if row.success} == {""}
    assert all(row.kind for row in rows if not row.success)


def test_an_entry_that_the_harness_failed_is_read_once_behind_the_counted_ones(tmp_path):
    def edit(entry, sequence):
        if entry.index != 2:
            return sequence
        end = replace(
            sequence[-1], outcome="infrastructure", reason="OSError: no room", q_state=0.0
        )
        return [sequence[0], end]

    layout = run_directory.make_run(tmp_path / "run", edit=edit)
    bundle = bundles.read(layout.root)
    status = {2: "infrastructure"}  # as closing lines would have it
    leaves = [replace(x, status=status.get(x.index, x.status)) for x in bundle.leaves]
    vars(bundle)["leaves"] = tuple(leaves)
    rows = [*readings(bundle)]
    (lost,) = [row for row in rows if row.success is None]
    assert (lost.index, lost.kind, lost.detail) == (2, "harness", "OSError: no room")
    assert rows[-1] is lost
    assert len({row.index for row in rows}) == len(rows) == len(bundle.plan.entries)


def test_only_a_record_of_the_agent_is_its_traceback(tmp_path):
    layout = run_directory.make_run(tmp_path / "run")
    other = events.Evidence(step=1, name="agent_record.txt", media="text/plain", blob="0" * 64)
    assert agent_record([other], Transcripts(layout)) == ""
    gone = replace(other, source="agent")
    assert agent_record([gone], Transcripts(layout)) == ""  # the run does not hold it
