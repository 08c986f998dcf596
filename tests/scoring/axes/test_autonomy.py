"""A by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes.autonomy import _horizon, autonomy
from tests.builders.episodes import episode
from tests.builders.verdicts import axis


def both(*terms: dict) -> list[Trace]:
    """Return each task without help, done perfectly, and under the priced budget."""
    alone = [episode(index=i, pair=str(i)) for i in range(len(terms))]
    priced = [
        episode(index=len(terms) + i, pair=str(i), interventions=4, priced=True, **term)
        for i, term in enumerate(terms)
    ]
    return [*alone, *priced]


def test_worked_example() -> None:
    traces = both(
        {},  # success unaided: 1
        {"verified": 8, "hints_after": (2,)},  # helped once: 6 of 8, halved
        {"verified": 2, "q_state": 0.5},  # failed: half of 2 of 8
        {"verified": 8, "hints_after": (2, 4), "q_state": 0.6},  # .6 x 4 of 8, by 3
    )
    score = axis(traces, "A")
    by_hand = (1 + 6 / 8 / 2 + 0.5 * 2 / 8 + 0.6 * 4 / 8 / 3) / 4
    assert score.raw == score.value == pytest.approx(by_hand)
    assert score.details["beside"]["finished unaided"]["value"] == 0.25
    assert score.details["beside"]["share at budget 0"]["value"] == 1.0
    assert (score.used, score.cells) == (4, 4)


def test_without_priced_help_there_is_none_and_budget_0_stands_beside() -> None:
    score = axis([episode(verified=2, q_state=0.5)], "A")
    assert score.value is None
    assert "no priced help" in str(score.reason)
    assert str(score.reason).endswith("at budget 0 the mean share is 0.125")


def test_help_without_limit_alone_is_no_evidence() -> None:
    score = axis([episode(interventions=None)], "A")
    assert score.reason == "no counted episode without help"


def test_one_hint_first_or_last_is_worth_a_half_at_most() -> None:
    for after in (1, 8):
        score = axis(both({"verified": 8, "hints_after": (after,)}), "A")
        assert score.raw == pytest.approx(0.5 * (7 / 8 if after == 1 else 1.0))


def test_the_horizon_is_capped_by_the_card() -> None:
    term = {"horizon": 200, "verified": 25, "q_state": 0.5}
    assert axis(both(term), "A").raw == 0.25  # H = 50


def test_an_agent_that_does_nothing_has_none() -> None:
    assert axis(both(*[{"verified": 0, "q_state": 0.0}] * 3), "A").value == 0.0


def test_no_horizon_counts_by_quality_alone() -> None:
    none = np.zeros(2)
    found = autonomy(np.array([1, 0]), np.array([1.0, 0.4]), none, none, none)
    assert found.tolist() == [1.0, 0.4]


@pytest.mark.parametrize("bad", [np.array([]), np.array([np.nan]), np.array([1.0, 2.0])])
def test_bad_arrays_are_refused(bad: np.ndarray) -> None:
    one = np.ones(1)
    with pytest.raises(ScoringError):
        autonomy(one, one, one, bad, one if bad.size == 1 else np.ones(len(bad) + 1))


def test_a_horizon_of_one_action_is_a_horizon() -> None:
    none = np.zeros(2)
    run, horizon = np.array([0.0, 1.0]), np.ones(2)
    assert autonomy(none, none + 0.5, none, run, horizon).tolist() == [0.0, 0.5]


def test_a_card_without_a_cap_leaves_the_horizon() -> None:
    table = SimpleNamespace(horizon=np.full(3, 9), horizon_cap=np.array([0, 1, 20]))
    assert _horizon(SimpleNamespace(table=table)).tolist() == [9, 1, 9]


def test_what_was_finished_unaided_and_how_long_runs_were_stands_beside() -> None:
    traces = both(
        {"verified": 3},  # success, unaided
        {"verified": 5, "q_state": 0.5},  # unaided, no success
        {"verified": 8, "hints_after": (2,)},
        {"verified": 8, "hints_after": (1, 4)},
        {"verified": 8, "hints_after": (4,)},
        {"verified": 2, "q_state": 0.96},  # success at less than all of it
    )
    score = axis(traces, "A")
    shares = (1 + 0.5 * 5 / 8 + 6 / 8 / 2 + 4 / 8 / 3 + 4 / 8 / 2 + 1) / 6
    assert score.raw == pytest.approx(shares)
    beside = score.details["beside"]
    assert beside["finished unaided"]["value"] == pytest.approx(2 / 6)
    runs, granted = [3, 5, 6, 4, 4, 2], [0, 0, 1, 2, 1, 0]
    for name, values in (("longest unaided run", runs), ("interventions", granted)):
        (found,) = (v for k, v in score.details.items() if k.startswith(name))
        assert found == np.percentile(values, [0, 25, 50, 75, 100]).tolist()


def test_without_evidence_no_cell_is_used() -> None:
    for traces, cells in (([episode()], 1), ([episode(interventions=None)], 0)):
        score = axis(traces, "A")
        assert (score.used, score.cells) == (0, cells)
