"""Scores of axes and composites on estimates written by hand."""

import dataclasses
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from scipy import stats

from owa_bench.records.protocol import Anchor
from owa_bench.records.score import AxisScore, FrontierScore, Interval
from owa_bench.scoring.axes.self_revision import GATED
from owa_bench.scoring.axis import NO_GATE
from owa_bench.scoring.estimate.composites import FrontierGrid
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.attempt_sets import RevisionEvidence
from owa_bench.scoring.verdict.scores import (
    _falling,
    axis_scores,
    frontier_score,
    with_revision_bounds,
)
from tests.builders.episodes import PROTOCOL

BAND = Interval(low=0.0, high=1.0, method="m")


def score(value: float | None) -> AxisScore:
    return AxisScore(
        name="self-revision",
        symbol="R",
        value=value,
        used=1,
        cells=1,
        reason=None if value is not None else "nothing seen",
        same_tasks=BAND,
        tasks_like_these=BAND,
        iqr=(0.1, 0.2),
        details={"beside": {}, "kept": 1},
    )


def test_bounds_of_revisions_are_those_of_their_own_tasks() -> None:
    """R0 = .25 and anchors .1 and .9: a gain x reads (x / .25 - .1) / .8."""
    anchors = {**PROTOCOL.anchors, "R": Anchor(low=0.1, high=0.9)}
    protocol = msgspec.structs.replace(PROTOCOL, anchors=anchors)
    assert protocol.revision.full_gain == 0.25
    evidence = RevisionEvidence(
        sets=(), raw=0.125, gated=0.1, error=0.02, gated_error=0.01, freedom=9, clusters=8
    )
    sample = SimpleNamespace(revision=evidence, practised=None, protocol=protocol)
    found = with_revision_bounds(score(0.5), sample)
    two, one = stats.t.ppf(0.975, 9), stats.t.ppf(0.95, 9)
    most = stats.t.ppf(PROTOCOL.statistics.below_level, 9)

    def reads(gain: float) -> float:
        return pytest.approx((gain / 0.25 - 0.1) / 0.8, abs=1e-6)  # type: ignore[return-value]

    span = found.tasks_like_these
    assert (span.low, span.high) == (reads(0.125 - 0.02 * two), reads(0.125 + 0.02 * two))
    assert found.lower == reads(0.125 - 0.02 * one)
    assert found.highest == reads(0.125 + 0.02 * most)
    assert found.iqr is None
    assert found.details == {
        "kept": 1,
        "beside": {
            GATED: {
                "value": reads(0.1),
                "low": reads(0.1 - 0.01 * two),
                "high": reads(0.1 + 0.01 * two),
                "lower": reads(0.1 - 0.01 * one),
                "highest": reads(0.1 + 0.01 * most),
            }
        },
    }


def test_no_gate_passes_on_a_few_campaigns() -> None:
    """A gain is one of whole campaigns: seven are too few, eight are enough."""
    few = RevisionEvidence(
        sets=(), raw=0.2, gated=0.2, error=0.01, gated_error=0.01, freedom=6, clusters=7
    )
    for clusters, bounded in ((7, False), (8, True)):
        evidence = dataclasses.replace(few, clusters=clusters)
        found = with_revision_bounds(
            score(0.8), SimpleNamespace(revision=evidence, practised=None, protocol=PROTOCOL)
        )
        assert (found.details["beside"][GATED]["lower"] is not None) == bounded
        assert (NO_GATE in found.details) != bounded
        assert found.tasks_like_these.method == (
            "R of a given subject (SelfRev): "
            f"jackknife over {clusters} instances of the campaigns, 6 degrees of freedom"
        )
    assert "R rests on 7 instances of 8" in few_words(few)


def few_words(found: RevisionEvidence) -> str:
    sample = SimpleNamespace(revision=found, practised=None, protocol=PROTOCOL)
    return str(with_revision_bounds(score(0.8), sample).details[NO_GATE])


def test_bounds_of_revisions_stay_between_0_and_1() -> None:
    wide = RevisionEvidence(sets=(), raw=0.125, gated=0.125, error=9.0, gated_error=9.0, freedom=9)
    sample = SimpleNamespace(revision=wide, practised=None, protocol=PROTOCOL)
    found = with_revision_bounds(score(0.5), sample)
    assert (found.tasks_like_these.low, found.tasks_like_these.high) == (0.0, 1.0)
    assert (found.lower, found.highest) == (0.0, 1.0)
    for own, revision in ((score(None), wide), (score(0.5), None)):
        sample.revision = revision
        assert with_revision_bounds(own, sample) is own


def test_axes_that_nothing_measures_and_those_of_no_episode_say_so() -> None:
    axis = SimpleNamespace(symbol="A", name="autonomy")
    foreign = SimpleNamespace(symbol="Z", name="zest")
    found = axis_scores((axis, foreign), SimpleNamespace(), None)
    assert [one.symbol for one in found] == [*"AGPMTRSEW$", "Z"]
    assert {one.symbol: one.reason for one in found} == {
        **dict.fromkeys("GPMTRSEW$", "no module measures this axis"),
        **dict.fromkeys("AZ", "no counted episode"),
    }
    assert {(one.used, one.cells, one.value) for one in found} == {(0, 0, None)}
    assert found[-1].name == "zest"


def band(low: float | None, high: float | None) -> Interval:
    return Interval(low=low, high=high, method="m", reason=None if low else "why")


def test_bands_of_a_frontier_do_not_rise() -> None:
    bands = [band(0.5, 0.9), band(0.6, 0.95), band(0.2, 0.7), band(0.3, 0.8)]
    assert _falling(bands) == ((0.6, 0.6, 0.3, 0.3), (0.9, 0.9, 0.7, 0.7))
    assert _falling([]) == ((), ())
    assert _falling([band(None, None), band(0.1, 0.2)]) == ((0.1,), (0.2,))


def frontier(bands: list[Interval], reason: str | None = None) -> FrontierScore:
    """Return the score of a frontier at demands 0, .5 and 1, at three budgets."""
    grid = FrontierGrid((9, 2, 0), np.array([0.0, 0.5, 1.0]), 0.6, reason)
    points = {
        ("F", "fit"): (0.9, 0.6, 0.4),
        ("F_u", "fit"): (1.0, 0.8, 0.4),
        ("F_u", "seen"): (1.0, 0.75, 0.4),
    }
    point = {StatisticKey("AUF"): 0.625, StatisticKey("deleg"): 0.75}
    for name, values in points.items():
        point |= {StatisticKey(*name, place=i): x for i, x in enumerate(values)}  # type: ignore[arg-type]

    def over_tasks(key: StatisticKey) -> SimpleNamespace:
        return SimpleNamespace(interval=lambda level: bands[key.place])

    estimates = SimpleNamespace(grid=grid, point=point, over_tasks=over_tasks)
    return frontier_score(SimpleNamespace(protocol=PROTOCOL), estimates)  # type: ignore[arg-type]


def test_a_frontier_is_certified_by_its_lower_band() -> None:
    found = frontier([band(0.8, 1.0), band(0.6, 0.9), band(0.2, 0.95)])
    assert (found.low, found.high) == ((0.8, 0.6, 0.2), (1.0, 0.9, 0.9))
    assert found.deleg_cert == 0.5
    assert (found.auf, found.deleg, found.target) == (0.625, 0.75, 0.6)
    assert found.observed == (1.0, 0.75, 0.4)
    assert found.fitted == (1.0, 0.8, 0.4)
    assert found.quality == (0.9, 0.6, 0.4)
    assert found.auf_bounds == pytest.approx((0.3 + 0.2, 0.45 + 0.3))
    assert found.deleg_bounds == (0.5, 1.0)
    assert found.reason is None
    lacking = frontier([band(None, None), band(0.6, 0.9), band(0.2, 0.95)])
    assert (lacking.low, lacking.high, lacking.deleg_cert) == ((), (), None)
    assert (lacking.reason, lacking.auf) == ("why", 0.625)
    none = frontier([], "one intervention budget only")
    assert (none.reason, none.auf) == ("one intervention budget only", None)
    assert none.target == PROTOCOL.frontier.success_share
