"""A by hand."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes.autonomy import autonomy
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


@pytest.mark.parametrize(
    "bad", [np.array([]), np.array([np.nan]), np.array([1.0, 2.0])]
)
def test_bad_arrays_are_refused(bad: np.ndarray) -> None:
    one = np.ones(1)
    with pytest.raises(ScoringError):
        autonomy(one, one, one, bad, one if bad.size == 1 else np.ones(len(bad) + 1))
