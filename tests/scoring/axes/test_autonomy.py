"""A by hand."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.axes.autonomy import autonomy
from tests.builders.episodes import episode
from tests.builders.verdicts import axis


def test_worked_example() -> None:
    traces = [
        episode(index=0, pair="a"),  # success unaided: 1
        episode(index=1, pair="b", verified=8, hints_after=(2,)),  # helped: 6 of 8
        episode(index=2, pair="c", verified=2, q_state=0.0),  # failed: 2 of 8
    ]
    score = axis(traces, "A")
    assert score.raw == score.value == pytest.approx((1 + 6 / 8 + 2 / 8) / 3)
    assert score.details["beside"]["finished unaided"]["value"] == pytest.approx(1 / 3)
    assert (score.used, score.cells) == (3, 3)


def test_the_horizon_is_capped_by_the_protocol() -> None:
    long = episode(horizon=200, verified=25, q_state=0.0)
    assert axis([long], "A").raw == 0.5  # H = 50


def test_an_agent_that_does_nothing_has_none() -> None:
    traces = [episode(index=i, pair=str(i), verified=0, q_state=0.0) for i in range(3)]
    assert axis(traces, "A").value == 0.0


@pytest.mark.parametrize(
    "bad", [np.array([]), np.array([np.nan]), np.array([1.0, 2.0])]
)
def test_bad_arrays_are_refused(bad: np.ndarray) -> None:
    one = np.ones(1)
    with pytest.raises(ScoringError):
        autonomy(one, one, bad, one if bad.size == 1 else np.ones(len(bad) + 1))
