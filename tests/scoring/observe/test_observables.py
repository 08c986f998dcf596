"""Observables: what a trace says, by hand."""

import math

import msgspec
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import (
    Action,
    Belief,
    Exposure,
    Incident,
    Intervention,
    Resolution,
    Resource,
    Subgoal,
    Tracking,
)
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.observables import NO_DAY, PRICED, SEVERITIES, SPENT, UNLIMITED
from owa_bench.records.trace import Trace
from owa_bench.scoring.observe.observables import longest_run, observe, solved_depth
from tests.builders.episodes import PRICES, episode


def node(name: str, *needs: str) -> Subgoal:
    return Subgoal(step=1, node=name, depth=1, prerequisites=needs, flows=needs)


def test_n_is_the_longest_run_between_interventions() -> None:
    assert longest_run(episode(verified=10, hints_after=(3, 8))) == 5


def test_a_refused_request_breaks_no_run() -> None:
    trace = episode(verified=10)
    refused = Intervention(step=4, kind="refused", minutes=0.0)
    events = (*trace.events[:5], refused, *trace.events[5:])
    assert longest_run(Trace(trace.leaf, events)) == 10
    table = observe([Trace(trace.leaf, events)], PRICES)
    assert table.helped.tolist() == [0]


def final(name: str, *needs: str) -> Subgoal:
    return msgspec.structs.replace(node(name, *needs), final=True)


def test_d_follows_flows_between_solved_nodes_only() -> None:
    chain = [node("a"), node("b", "a"), final("c", "b"), node("x"), node("z", "y")]
    assert solved_depth(chain) == 3
    assert solved_depth([final("c", "b"), node("a")]) == 1
    assert solved_depth([]) == 0


def test_what_nobody_used_is_worth_one_less() -> None:
    assert solved_depth([node("a"), node("b", "a"), node("c", "b")]) == 2
    assert solved_depth([node("a")]) == 0
    # A prerequisite that was solved and did not flow adds nothing.
    late = msgspec.structs.replace(final("c"), prerequisites=("b",))
    assert solved_depth([node("a"), node("b", "a"), late]) == 1


def test_d_does_not_depend_on_the_order_of_solving() -> None:
    assert solved_depth([final("c", "b"), node("b", "a"), node("a")]) == 3


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ScoringError, match="cycle"):
        solved_depth([node("a", "b"), node("b", "a")])


def test_a_disqualified_episode_scores_zero() -> None:
    cheat = episode(
        violations=(("hard_coded_credential", "disqualify"),), beliefs=(("unit", 0.9, True),)
    )
    table = observe([cheat], PRICES)
    for name in ("q", "q_state", "u", "n", "d"):
        assert getattr(table, name).tolist() == [0]
    assert not table.used.any()
    assert math.isnan(table.beliefs.p[0])
    assert "hard_coded_credential (disqualify): seen" in table.breach[0]


def test_a_flag_alone_scores_nothing_away() -> None:
    table = observe([episode(violations=(("odd", "flag"),))], PRICES)
    assert table.u.tolist() == [1.0]


def test_infrastructure_is_not_scored() -> None:
    traces = [episode(index=0), episode(index=1, outcome="infrastructure")]
    assert observe(traces, PRICES).index.tolist() == [0]


def test_unknown_cost_is_nan_and_the_streams_stay_apart() -> None:
    costs = (("api_calls", 10.0, "agent"), ("supervisor_min", 2.0, "human"))
    table = observe([episode(costs=costs)], PRICES)
    assert table.cost_agent.tolist() == [1000.0]
    assert table.cost_human.tolist() == [2_000_000.0]


def test_beliefs_keep_the_last_word_and_leave_own_success_out() -> None:
    said = (("unit", 0.9, True), ("own_success", 0.7, True), ("docs", None, False))
    table = observe([episode(beliefs=said)], PRICES)
    assert table.beliefs.kind.tolist() == ["toolquest/unit", "toolquest/docs"]
    assert table.beliefs.p[0] == 0.9
    assert math.isnan(table.beliefs.p[1])


def test_probabilities_outside_are_clipped_and_nan_is_refused() -> None:
    table = observe([episode(beliefs=(("unit", 1.7, True),))], PRICES)
    assert table.beliefs.p.tolist() == [1.0]
    with pytest.raises(ScoringError, match="must be a number"):
        observe([episode(beliefs=(("unit", math.nan, True),))], PRICES)


@pytest.mark.parametrize("bad", [-0.1, 1.2, math.nan])
def test_a_quality_out_of_range_is_refused(bad: float) -> None:
    with pytest.raises(ScoringError, match=r"must lie in \[0, 1\]"):
        observe([episode(q_state=bad, stated=1.0)], PRICES)


def test_take_keeps_beliefs_with_their_rows() -> None:
    said = (("unit", 0.2, False),)
    traces = [episode(index=i, pair=f"p{i}", beliefs=said * (i + 1)) for i in range(3)]
    table = observe(traces, PRICES)
    part = table.take(table.index != 1)
    assert part.index.tolist() == [0, 2]
    assert part.beliefs.row.tolist() == [0, 1, 1, 1]


def test_no_episode_is_an_empty_table() -> None:
    assert len(observe([], PRICES)) == 0


@pytest.mark.parametrize(
    ("error", "tolerance"), [(math.nan, 0.1), (0.2, 0.0), (0.2, -1.0), (0.2, math.nan)]
)
def test_tracking_without_an_error_or_a_band_is_refused(error, tolerance) -> None:
    sample = Tracking(step=1, task="hold", error=error, tolerance=tolerance)
    with pytest.raises(ScoringError, match=r"needs an error and a\s+tolerance above 0"):
        observe([episode(extra=(sample,))], PRICES)
    whole = Tracking(step=1, task="hold", error=0.0, tolerance=0.1)
    assert len(observe([episode(extra=(whole,))], PRICES)) == 1


def test_terms_that_an_episode_lacks_have_values_of_their_own() -> None:
    bare = episode(delta=None, day=None, interventions=None, memory=None)
    table = observe([bare], PRICES)
    assert math.isnan(table.delta[0])
    assert (table.day[0], table.since[0]) == (NO_DAY, NO_DAY)
    assert (table.interventions[0], table.memory[0]) == (UNLIMITED, "")
    whole = episode(index=3, delta=0.25, day=4, window=(2, 5), interventions=7, memory="m", tier=2)
    table = observe([whole], PRICES)
    assert (table.delta[0], table.day[0], table.since[0]) == (0.25, 4, 2)
    assert (table.interventions[0], table.memory[0], table.tier[0]) == (7, "m", 2)
    assert (table.attempt[0], table.family[0], table.suite[0]) == (
        *("000003.0", "toolquest/reconcile", "toolquest"),
    )
    priced = observe([episode(interventions=7, priced=True)], PRICES)
    assert priced.interventions[0] == PRICED


def test_success_is_at_the_threshold_and_an_outcome_is_read_from_the_end() -> None:
    table = observe([episode(index=i, q_state=q) for i, q in enumerate((0.95, 0.949999))], PRICES)
    assert table.u.tolist() == [1.0, 0.0]
    found = observe([episode(verified=5, solved=3, stated=0.5)], PRICES)
    assert (found.n[0], found.d[0], found.stated[0]) == (5, 2, 0.5)
    assert not found.disqualified[0]
    assert math.isnan(observe([episode(stated=None)], PRICES).stated[0])


def test_actions_that_wait_are_counted() -> None:
    trace = episode(verified=4)
    waits = [
        msgspec.structs.replace(event, waiting=event.step in (1, 3))
        if isinstance(event, Action)
        else event
        for event in trace.events
    ]
    assert observe([Trace(trace.leaf, tuple(waits))], PRICES).waits.tolist() == [2]


def test_help_is_what_was_not_refused() -> None:
    helps = (
        Intervention(step=1, kind="refused", minutes=8.0),
        Intervention(step=1, kind="hint", minutes=2.0),
        Intervention(step=2, kind="patch", minutes=0.5),
    )
    table = observe([episode(extra=helps)], PRICES)
    assert (table.helped[0], table.patched[0], table.minutes[0]) == (2, 1, 2.5)


def test_a_price_that_lacks_leaves_its_stream_unknown() -> None:
    costs = (("toolquest/unpriced", 1.0, "agent"), ("api_calls", 1.0, "human"))
    table = observe([episode(costs=costs)], PRICES)
    assert math.isnan(table.cost_agent[0])
    assert table.cost_human[0] == 100.0


def test_what_was_spent_stands_by_stream_and_meter_with_a_suites_own_last() -> None:
    first = episode(index=0, costs=(("toolquest/z", 2.0, "agent"),))
    second = episode(index=1, costs=(("toolquest/a", 3.0, "agent"), ("api_calls", 4.0, "human")))
    table = observe([first, second], PRICES)
    known = len(SPENT)
    assert table.spent_by[:known] == SPENT
    assert table.spent_by[known:] == (("agent", "toolquest/a"), ("agent", "toolquest/z"))
    assert table.spent[:, known:].tolist() == [[0.0, 2.0], [3.0, 0.0]]
    assert table.spent[:, SPENT.index(("human", "api_calls"))].tolist() == [0.0, 4.0]


def test_incidents_are_counted_by_severity_and_exposure_is_added() -> None:
    extra = (
        Incident(step=1, severity="minor"),
        Incident(step=2, severity="minor"),
        Incident(step=3, severity="critical"),
        Exposure(step=1, moved_s=2.5, most_s=9.0),
        Exposure(step=2, moved_s=1.5, most_s=9.0),
        Resource(step=2, meter="exposure_s", amount=7.0),
    )
    table = observe([episode(extra=extra)], PRICES)
    counts = dict(zip(SEVERITIES, table.incidents[0].tolist(), strict=True))
    assert counts == dict.fromkeys(SEVERITIES, 0) | {"minor": 2, "critical": 1}
    assert table.exposure_s[0] == 4.0


@pytest.mark.parametrize(
    ("at_ms", "deadline_ms", "p"), [(9, 10, 0.8), (10, 10, 0.1), (11, 10, 0.1), (99, None, 0.8)]
)
def test_a_forecast_counts_before_its_deadline(at_ms, deadline_ms, p) -> None:
    extra = (
        Belief(step=1, proposition="x", kind="unit", p=0.1, at_ms=1),
        Belief(step=2, proposition="x", kind="unit", p=0.8, at_ms=at_ms),
        Resolution(proposition="x", kind="unit", y=True, deadline_ms=deadline_ms),
    )
    table = observe([episode(extra=extra)], PRICES)
    assert table.beliefs.p.tolist() == [p]
    assert table.beliefs.y.tolist() == [True]


def test_a_kind_of_tool_is_used_by_what_served_a_success_that_needs_it() -> None:
    def act(step: int, category: str, *, verified: bool) -> Action:
        fields = {"action": "{}", "reward": 0.0, "terminated": False, "truncated": False}
        return Action(
            step=step, category=category, verified=verified, observation="o", at_ms=step, **fields
        )

    needed = ("browser", "code", "files", "http_api")
    extra = (
        act(1, "http_api", verified=True),
        act(2, "files", verified=False),  # serves step 3
        act(3, "", verified=True),
        act(4, "code", verified=False),  # serves nothing
        act(5, "packages", verified=True),  # not needed
    )
    plain = {"verified": 0, "used": (), "categories": needed}
    won = episode(index=0, extra=extra[:4], **plain)
    lost = episode(index=1, extra=extra[:4], q_state=0.5, **plain)
    cheat = (("r", "disqualify"),)
    void = episode(index=2, extra=extra[:4], violations=cheat, **plain)
    more = episode(index=3, extra=extra, **plain)
    table = observe([won, lost, void, more], PRICES)
    assert table.categories == needed
    assert table.offered.all()
    assert table.used.tolist() == [
        [False, False, True, True],
        [False] * 4,
        [False] * 4,
        [False, True, True, True],  # the step after shows that code served
    ]


def test_rows_are_in_order_of_the_plan() -> None:
    table = observe([episode(index=i) for i in (2, 0, 1)], PRICES)
    assert table.index.tolist() == [0, 1, 2]


def test_drift_classes_are_those_in_effect() -> None:
    table = observe([episode(classes=("D0", "D3"))], PRICES)
    struck = dict(zip(ANNOUNCEMENTS, table.classes[0].tolist(), strict=True))
    assert {name for name, mark in struck.items() if mark} == {"D0", "D3"}


def test_an_action_that_was_not_verified_neither_counts_nor_breaks_a_run() -> None:
    trace = episode(verified=6)
    events = [
        msgspec.structs.replace(event, verified=event.step != 3)
        if isinstance(event, Action)
        else event
        for event in trace.events
    ]
    assert longest_run(Trace(trace.leaf, tuple(events))) == 5


@pytest.mark.parametrize("quality", [0.0, 1.0])
def test_the_ends_of_the_scale_are_qualities(quality: float) -> None:
    assert observe([episode(q_state=quality)], PRICES).q_state.tolist() == [quality]
