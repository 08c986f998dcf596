"""Checkpoints by hand, and a campaign in which every axis has evidence."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from owa_bench.records.trace import Trace
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.improvement import checkpoints
from owa_bench.scoring.improvement.checkpoints import (
    DayEstimator,
    checkpoint_series,
    closures_hold,
    kappa_unit,
)
from owa_bench.scoring.observe.observables import observe
from tests.builders.campaign import judged
from tests.builders.columns import Columns
from tests.builders.episodes import PRICES, PROTOCOL, episode

SLOW = pytest.mark.slow  # judges a campaign of fourteen days
FAMILIES = ("toolquest/reconcile", "toolquest/restock")
CALL = float(PRICES.cost("api_calls", 1.0) or 0)
MINUTE = float(PRICES.cost("supervisor_min", 1.0) or 0)
LEAST = PROTOCOL.improvement.practice_min


def day_of(day: int, first: int, *, drills: int = LEAST, **changes: Any) -> list[Trace]:
    """Return a day: practice of a call each, and a checkpoint of two tasks."""
    traces = [
        episode(
            index=first + i,
            pair=f"x{first + i}",
            day=day,
            delta=None,
            phase="practice",
            costs=(("api_calls", 1.0, "agent"), ("supervisor_min", 0.5, "human")),
        )
        for i in range(drills)
    ]
    for place, quality in enumerate((0.25, 0.75)):
        terms: dict[str, Any] = {
            "index": first + 100 + place,
            "pair": f"p{place}",
            "day": day,
            "delta": None,
            "phase": "checkpoint",
            "q_state": quality,
            "stated": None,
            "costs": (("api_calls", 9.0, "evaluation"),),
        }
        traces.append(episode(**(terms | changes)))
    return traces


def series(*days: list[Trace], lost: Any = None) -> Any:
    table = observe([trace for day in days for trace in day], PRICES)
    return checkpoint_series(table, FAMILIES, PROTOCOL, PRICES, lost or {})


def test_the_unit_is_a_share_of_an_experts_pass_over_the_largest_checkpoint() -> None:
    table = observe([*day_of(0, 0), *day_of(1, 500, horizon=20)], PRICES)
    minutes = 2 * 20  # decisions of ToolQuest
    cost = PRICES.cost("supervisor_min", minutes)
    assert cost is not None
    unit = kappa_unit(table, PROTOCOL, PRICES)
    assert unit == PROTOCOL.improvement.unit_share * cost
    for changes in ({"interventions": 3}, {"calendar": "other"}, {"phase": "holdout"}):
        more = [*day_of(0, 0), *day_of(1, 500, horizon=20, **changes)]
        less = kappa_unit(observe(more, PRICES), PROTOCOL, PRICES)
        assert less == pytest.approx(unit * 8 / 20)


def test_spending_is_what_the_lane_had_cost_up_to_each_day() -> None:
    outside = episode(index=9999, pair="z", costs=(("api_calls", 1e6, "agent"),))
    found = series(day_of(3, 0), day_of(4, 500), [outside], lost={4: CALL, 5: 7.0})
    assert found.days == (3, 4)
    spent = np.array([LEAST * CALL, 2 * LEAST * CALL + CALL]) / found.unit
    assert found.spent == pytest.approx(spent)
    human = np.array([1, 2]) * LEAST * 0.5 * MINUTE / found.unit
    assert found.total == pytest.approx(spent + human)
    assert (found.counted, found.reason) == ((0, 1), None)
    quality = found.quality["toolquest/reconcile"]
    assert quality == pytest.approx([quality[0], quality[0]])
    assert np.isnan(found.quality["toolquest/restock"]).all()
    early = series(day_of(3, 0), day_of(4, 500), lost={3: CALL})
    assert early.spent[0] == pytest.approx((LEAST * CALL + CALL) / early.unit)


def test_no_checkpoint_and_no_price_are_said() -> None:
    none = series([episode(phase="practice", day=1)])
    assert none.reason == "no checkpoints: not a campaign"
    assert (none.days, none.unit) == ((), 0.0)
    free = series(day_of(0, 0, horizon=0))
    assert "no kappa unit" in str(free.reason)
    unpriced = day_of(0, 0)
    unpriced[0] = episode(index=0, day=0, phase="practice", costs=(("toolquest/x", 1.0, "agent"),))
    assert "unknown" in str(series(unpriced).reason)


@pytest.mark.parametrize(
    ("days", "drills", "spent", "counted"),
    [
        ([0, 1, 2], [2, 2, 2], [1, 2, 3], (0, 1, 2)),
        ([0, 1, 3], [2, 2, 2], [1, 2, 3], (0, 1)),
        ([0, 2, 3], [2, 2, 2], [1, 2, 3], (1, 2)),
        ([0, 1, 3, 4], [2] * 4, [1, 2, 3, 4], (2, 3)),
        ([0, 1, 2], [2, 1, 2], [1, 2, 3], (2,)),
        ([0, 1, 2], [2, 3, 2], [1, 1, 2], (2,)),
        ([0, 1], [2, 2], [0, 1], (1,)),
        ([0, 1], [1, 1], [1, 2], ()),
    ],
)
def test_the_longest_run_of_days_with_practice_and_new_spending(
    days, drills, spent, counted
) -> None:
    rows = [day for day, count in zip(days, drills, strict=True) for _ in range(count)]
    table: Any = Columns(
        day=np.array([*rows, *days]),
        phase=np.array(["practice"] * len(rows) + ["checkpoint"] * len(days)),
    )
    found = checkpoints._counted_days(table, days, np.array(spent, float), 2)
    assert found == counted


def test_a_floor_is_the_lower_bound_of_a_mean_over_tasks() -> None:
    table: Any = Columns(
        family=np.array(["f", "f", "f", "f", "g", "f"]),
        pair=np.array(["a", "a", "b", "c", "d", "e"]),
        q=np.array([0.2, 0.4, 0.6, 0.9, 0.1, 1.0]),
    )
    rows = np.array([True] * 5 + [False])
    means = np.array([0.3, 0.6, 0.9])
    bound = means.mean() - stats.t.ppf(0.9, 2) * means.std(ddof=1) / math.sqrt(3)
    assert checkpoints._floor(table, rows, "f", 0.9) == pytest.approx(bound)
    assert math.isnan(checkpoints._floor(table, rows, "g", 0.9))
    two = rows & (table.pair != "c")
    assert math.isfinite(checkpoints._floor(table, two, "f", 0.9))


def test_help_counts_up_to_the_last_day_that_counts() -> None:
    late = day_of(4, 1000, drills=1)
    late[0] = episode(index=1000, day=4, phase="practice", interventions=2, hints_after=(1,))
    days = (day_of(2, 0), day_of(3, 500), late)
    found = series(*days)
    assert found.counted == (0, 1)
    assert "help in 40 practice" in found.human  # each cost the human stream
    assert series(day_of(0, 0, drills=1)).human == ""


def test_days_alone_are_estimated_from_their_checkpoints(monkeypatch) -> None:
    """A and AUF of each day, the frontier up to its first gap, NaN where none is."""
    points = {
        1: {StatisticKey("F", "fit", place=i): x for i, x in {0: 0.9, 1: 0.8, 3: 0.1}.items()}
        | {StatisticKey("A"): 0.5, StatisticKey("AUF"): 0.25},
        2: {StatisticKey("A"): 0.75},
    }
    monkeypatch.setattr(
        checkpoints, "point_estimates", lambda sample, _: points[int(sample.table.day[0])]
    )
    monkeypatch.setattr(checkpoints, "family_qualities", lambda sample: {"n": sample})
    table: Any = Columns(
        day=np.array([1, 1, 2, 3]),
        phase=np.array(["checkpoint", "practice", "checkpoint", "practice"]),
    )
    axes: Any = [SimpleNamespace(symbol="A")]
    made = DayEstimator(table, axes, lambda rows: SimpleNamespace(table=rows))  # type: ignore[arg-type,return-value]
    found = made.points([1, 2, 3])
    assert found.values["A"].tolist()[:2] == [0.5, 0.75]
    assert found.values["AUF"][0] == 0.25
    assert np.isnan([*found.values["AUF"][1:], found.values["A"][2]]).all()
    assert np.isnan(found.dynamic).all()
    assert found.frontier == ((0.9, 0.8), (), ())
    assert len(found.families[0]["n"].table) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("states", "held"),
    [
        (("PASS", "PASS"), True),
        (("PASS", "FAIL"), False),
        (("NOT TESTED", "FAIL"), False),
        (("PASS", "NO EVIDENCE"), None),
        ((), None),
    ],
)
def test_closures_hold_where_every_one_passed(states, held) -> None:
    closures: Any = {i: SimpleNamespace(status=s) for i, s in enumerate(states)}
    assert closures_hold(closures) is held


@pytest.mark.part(4)
@SLOW
def test_aai_dyn_has_a_slope_where_every_axis_has_evidence() -> None:
    whole = judged(0.01).kappas[0]
    assert whole.family is None
    assert whole.slope is not None, whole.reason
    assert whole.slope > 0
    assert whole.logit is not None
    assert {"per USD", "kappa_total, agent and human"} <= set(whole.details)
    flat = judged().kappas[0].slope
    assert flat == pytest.approx(0.0)


@pytest.mark.part(4)
@SLOW
def test_the_tables_of_a_campaign_are_there() -> None:
    titles = {table.title for table in judged(0.01).tables}
    assert {
        "Curvature of self-improvement",
        "Continuous score",
        "Theorem 3.1: what its assumptions measure here",
    } <= titles


@SLOW
def test_the_last_lines_are_those_of_level_five() -> None:
    lines = [gate for gate in judged(0.01).gates if gate.level == 5]
    assert len(lines) == 6
    assert {line.status for line in lines} == {"NO EVIDENCE"}
