"""G by hand."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.axes.generality import generality
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of
from tests.builders.verdicts import axis


def test_worked_example() -> None:
    traces = [
        episode(index=0, pair="a", family="x"),
        episode(index=1, pair="b", family="x", q_state=0.0, stated=0.0),  # mean .55
        episode(index=2, pair="c", family="y"),
    ]
    score = axis(traces, "G")
    assert score.raw == 0.5
    beside = score.details["beside"]
    assert beside["quality of toolquest/x"]["value"] == pytest.approx(0.55)
    assert beside["covered toolquest/x"]["value"] == 0.0
    assert beside["covered toolquest/y"]["value"] == 1.0


def test_a_threshold_met_exactly_covers() -> None:
    assert generality(np.array([[0.6, 0.5999994]]), np.full(2, 0.6)).tolist() == [0.5]
    assert generality(np.array([[0.6, 0.5999996]]), np.full(2, 0.6)).tolist() == [1.0]


def test_a_family_nobody_played_makes_it_missing() -> None:
    traces = [episode(index=0, family="x"), episode(index=1, family="y", pair="q")]
    plan = plan_of(traces)
    found = judge(plan, traces[:1], PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
    score = found.verdicts[0].axes[1]
    assert score.value is None
    assert "toolquest/y" in str(score.reason)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ScoringError, match=r"\(resamples, families\)"):
        generality(np.ones((2, 3)), np.ones(2))


def test_a_family_without_an_episode_leaves_the_share_unknown() -> None:
    quality = np.array([[0.9, np.nan], [0.9, 0.1]])
    found = generality(quality, np.full(2, 0.6))
    assert np.isnan(found[0])
    assert found[1] == 0.5
    assert generality(np.array([[0.5999996, 0.5999994]]), np.full(2, 0.6)) == [0.5]
