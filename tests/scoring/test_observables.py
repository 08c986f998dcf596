"""Observables: what a trace says, by hand."""

import math

import msgspec
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Intervention, Subgoal, Tracking
from owa_bench.records.trace import Trace
from owa_bench.scoring.observables import longest_run, observe, solved_depth
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
        violations=(("hard_coded_credential", "disqualify"),),
        beliefs=(("unit", 0.9, True),),
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
