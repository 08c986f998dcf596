"""P by hand."""

import numpy as np
import pytest
from msgspec import structs

from owa_bench.errors import ScoringError
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes.planning import planning
from tests.builders.episodes import episode
from tests.builders.verdicts import axis


def test_worked_example() -> None:
    traces = [
        episode(index=0, pair="a", depth=5, solved=5),  # 5 of 5
        episode(index=1, pair="b", depth=8, solved=8),  # capped: 6 of 6
        episode(index=2, pair="c", depth=6, solved=0, q_state=0.0),  # 0 of 6
    ]
    score = axis(traces, "P")
    assert score.raw == pytest.approx(11 / 17)
    assert score.details["episodes by solved depth"] == [1, 0, 0, 0, 0, 1, 0, 0, 1]


def test_partial_plans_get_partial_depth() -> None:
    # Three solved in a row, the third of which nobody used; a fifth was delivered.
    found = axis([episode(solved=3, q_state=0.2)], "P").raw
    assert found == pytest.approx(0.2 * 2 / 6)


def test_what_was_fetched_and_not_delivered_has_no_depth() -> None:
    assert axis([episode(depth=8, solved=8, q_state=0.0)], "P").raw == 0.0


def test_a_shallow_suite_is_refused_and_says_so() -> None:
    score = axis([episode(depth=4)], "P")
    assert score.value is None
    assert "and P needs 4.5" in str(score.reason)


def test_no_depth_is_missing_and_shapes_must_fit() -> None:
    assert np.isnan(planning(np.zeros(1), np.zeros(1))).all()
    assert np.isnan(planning(np.array([np.nan]), np.ones(1))).all()
    with pytest.raises(ScoringError, match="one shape"):
        planning(np.ones(2), np.ones(1))
    with pytest.raises(ScoringError, match="empty"):
        planning(np.ones(0), np.ones(0))


def test_a_suite_at_the_least_depth_is_scored_and_the_shallow_one_named() -> None:
    """Depths of 4 and 5 have the mean 4.5, which is .75 of 6."""
    traces = [episode(index=i, pair=f"p{i}", depth=4 + i) for i in range(2)]
    assert axis(traces, "P").value is not None
    other = episode(index=2, pair="q", suite="changesurf", depth=3)
    assert str(axis([*traces, other], "P").reason).startswith(
        "plans of changesurf are 3.00 steps deep on average, and P needs 4.5"
    )


def test_depth_beyond_the_instance_counts_nothing_and_without_a_cap_all_of_it() -> None:
    beyond = [episode(index=0, pair="a", depth=5, solved=8), episode(index=1, pair="b")]
    assert axis(beyond, "P").raw == 1.0
    start = structs.replace(beyond[0].start, depth=8, depth_cap=0)
    free = Trace(beyond[0].leaf, (start, *beyond[0].events[1:]))
    lost = episode(index=1, pair="b", depth=8, solved=0, q_state=0.0)
    assert axis([free, lost], "P").raw == pytest.approx(7 / (8 + 6))
    found = axis([episode(depth=6, solved=3, q_state=0.2)], "P").details
    assert found["beside"]["mean solved depth"]["value"] == pytest.approx(0.2 * 2)
