"""kappa: slopes, Sen's interval, and when there is none."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.events import Resource
from owa_bench.records.trace import Trace
from owa_bench.scoring.improvement.kappa import inversions, theil_sen
from tests.builders.episodes import episode
from tests.builders.verdicts import verdict


def campaign(
    days: int, gain: float = 0.0, practice: float = 10.0, checkpoint: str = "evaluation"
) -> list[Trace]:
    """Return days of one practice episode and one checkpoint of two tasks.

    A call costs 100 micro-USD; a checkpoint is 20 calls, one kappa unit.
    """
    traces = []
    for day in range(days):
        traces.append(
            episode(
                index=len(traces),
                pair=f"practice{day}",
                day=day,
                delta=None,
                phase="practice",
                costs=(("api_calls", practice, "agent"),),
            )
        )
        for k in range(2):
            traces.append(
                episode(
                    index=len(traces),
                    pair=f"p{k}",
                    day=day,
                    delta=None,
                    phase="checkpoint",
                    q_state=min(0.5 + gain * day, 0.94),
                    stated=0.0,
                    costs=(("api_calls", 10.0, checkpoint),),
                )
            )
    return traces


def test_inversions_are_those_of_kendall() -> None:
    assert inversions(7).sum() == pytest.approx(1.0)
    assert inversions(4) * 24 == pytest.approx([1, 3, 5, 6, 5, 3, 1])


def test_a_line_is_its_own_slope() -> None:
    x = np.arange(10.0)
    assert theil_sen(x, 0.3 * x + 1, 0.95) == pytest.approx((0.3, 0.3, 0.3))


def test_slope_agrees_with_scipy() -> None:
    rng = np.random.default_rng(1)
    x = np.sort(rng.random(12))
    y = 2 * x + rng.standard_normal(12)
    assert theil_sen(x, y, 0.95).value == pytest.approx(stats.theilslopes(y, x).slope)


def test_three_points_bound_nothing() -> None:
    slope = theil_sen(np.arange(3.0), np.array([0.0, 1.0, 2.0]), 0.95)
    assert math.isinf(slope.low)
    assert math.isinf(slope.high)


def test_sens_interval_covers_a_planted_slope() -> None:
    rng = np.random.default_rng(2)
    x, hits, rounds = np.arange(12.0), 0, 400
    for _ in range(rounds):
        slope = theil_sen(x, 0.1 * x + rng.standard_normal(12), 0.95)
        hits += slope.low <= 0.1 <= slope.high
    assert hits / rounds >= 0.93


@pytest.mark.parametrize(
    ("x", "y"),
    [([0.0], [1.0]), ([0.0, 0.0], [1.0, 2.0]), ([0.0, 1.0], [1.0, math.nan])],
)
def test_bad_points_are_refused(x: list[float], y: list[float]) -> None:
    with pytest.raises(ScoringError):
        theil_sen(np.array(x), np.array(y), 0.95)


def test_three_days_are_too_few_and_the_agent_names_its_axes() -> None:
    found = verdict(campaign(3))
    whole, family = found.kappas
    assert whole.family is None
    assert whole.reason is not None
    head, _, axes = whole.reason.partition(" on ")
    assert head == "not computable: no evidence"
    assert {"M", "S"} <= set(axes.split(", "))
    assert family.reason == "too few checkpoints: 3 of 7"
    assert (family.slope, family.interval.low, family.checkpoints) == (None, None, 3)
    assert [x for x, _ in family.points] == [0.5, 1.0, 1.5]


def test_a_family_slope_is_gain_per_kappa_unit() -> None:
    family = verdict(campaign(8, gain=0.02)).kappas[1]
    assert family.slope == pytest.approx(0.9 * 0.02 / 0.5, rel=1e-4)
    assert family.interval.low == pytest.approx(family.slope, rel=1e-4)


def test_learning_only_during_checkpoints_has_no_kappa() -> None:
    family = verdict(campaign(8, gain=0.02, practice=0.0)).kappas[1]
    assert family.slope is None
    assert family.reason == "too few checkpoints with new spending: 1 of 7"


def test_a_run_without_checkpoints_has_no_kappa() -> None:
    assert verdict([episode()]).kappas == ()


def test_free_checkpoints_have_no_unit() -> None:
    traces = campaign(8)
    free = [
        t
        if t.start.phase == "practice"
        else episode(
            index=t.start.index,
            pair=t.start.pair,
            day=t.start.day,
            delta=None,
            phase="checkpoint",
            costs=(),
        )
        for t in traces
    ]
    assert "no kappa unit" in str(verdict(free).kappas[1].reason)


def test_usage_that_nobody_saw_leaves_no_kappa_and_says_why() -> None:
    traces = campaign(8, gain=0.02)
    first = traces[0]
    declared = Resource(step=1, source="agent", meter="tokens_in", amount=1.0)
    events = (first.events[0], declared, *first.events[1:])
    traces[0] = replace(first, events=events)
    family = verdict(traces).kappas[1]
    assert family.slope is None
    assert "an agent declared usage that no gateway saw" in str(family.reason)
