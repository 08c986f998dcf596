"""kappa: slopes, Sen's interval, and when there is none."""

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.events import Resource
from owa_bench.records.trace import Trace
from owa_bench.scoring import findings
from owa_bench.scoring.improvement.checkpoints import CheckpointSeries
from owa_bench.scoring.improvement.kappa import inversions, kappas, theil_sen
from owa_bench.scoring.pipeline import judge
from tests.builders.campaign import practice
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of
from tests.builders.verdicts import verdict

RULES = PROTOCOL.improvement


PRACTICE = RULES.practice_min


def campaign(
    days: int,
    gain: float = 0.0,
    *,
    calls: float = 1.0,
    first: int = 0,
    step: int = 1,
    drills: int = PRACTICE,
    checkpoint: float = 10.0,
    hints: tuple[int, ...] = (),
) -> list[Trace]:
    """Return days of practice and a checkpoint of two tasks of 8 actions.

    A kappa unit is a tenth of 16 minutes of an expert.
    """
    traces: list[Trace] = []
    for number in range(days):
        day = first + step * number
        asked = hints if day == 2 else ()
        traces += practice(
            day, len(traces), episodes=drills, calls=calls, hints_after=asked
        )
        for k in range(2):
            traces.append(
                episode(
                    index=len(traces),
                    pair=f"p{k}",
                    day=day,
                    delta=None,
                    phase="checkpoint",
                    q_state=min(0.5 + gain * number, 0.94),
                    stated=0.0,
                    costs=(("api_calls", checkpoint, "evaluation"),),
                )
            )
    return traces


UNIT = 0.1 * float(PRICES.cost("supervisor_min", 16.0) or 0)
DAILY = float(PRICES.cost("api_calls", float(PRACTICE)) or 0) / UNIT


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
    assert str(family.reason).startswith("too few days: 3 consecutive with 20 practice")
    assert (family.slope, family.interval.low, family.checkpoints) == (None, None, 3)
    shown = [x for x, _ in family.points]
    assert shown == pytest.approx([DAILY, 2 * DAILY, 3 * DAILY], rel=1e-3)


def test_an_axis_that_each_checkpoint_has_may_lack_in_the_run(monkeypatch) -> None:
    """As G of a frozen control does, which plays nothing of what is played once."""
    given: list[CheckpointSeries] = []

    def keep(points: CheckpointSeries, *_: object) -> tuple[()]:
        given.append(points)
        return ()

    monkeypatch.setattr(findings, "kappas", keep)
    verdict(campaign(8, gain=0.02))
    measured = np.linspace(0.3, 0.5, 8)
    whole = kappas(given[0], measured, PROTOCOL, ("G",), ROOT)[0]
    assert whole.reason is None
    assert whole.slope is not None
    assert whole.slope > 0
    measured[3] = math.nan
    whole = kappas(given[0], measured, PROTOCOL, ("G",), ROOT)[0]
    assert whole.reason == "not computable: no evidence on G"


def test_a_family_slope_is_gain_per_kappa_unit() -> None:
    family = verdict(campaign(8, gain=0.02)).kappas[1]
    assert family.slope == pytest.approx(0.9 * 0.02 / DAILY, rel=1e-3)
    assert family.interval.low == pytest.approx(family.slope, rel=1e-3)
    assert family.p == 0.0
    assert family.details["days"] == [0, 7]


def test_a_wasteful_checkpoint_changes_no_kappa() -> None:
    plain, dear = (
        verdict(campaign(8, gain=0.02, checkpoint=calls)).kappas[1]
        for calls in (10.0, 100_000.0)
    )
    assert plain.slope == dear.slope
    assert plain.details["kappa unit, USD"] == dear.details["kappa unit, USD"]


def test_learning_only_during_checkpoints_has_no_kappa() -> None:
    family = verdict(campaign(8, gain=0.02, calls=0.0)).kappas[1]
    assert family.slope is None
    assert str(family.reason).startswith("too few days: 0 consecutive")


@pytest.mark.parametrize(
    ("days", "consecutive"),
    [({"step": 10}, 1), ({"drills": PRACTICE - 1}, 0)],
)
def test_days_that_are_no_week_of_practice_do_not_count(
    days: dict[str, int], consecutive: int
) -> None:
    """Days 0, 10, .., 60 were read as 7 consecutive."""
    family = verdict(campaign(7, gain=0.02, **days)).kappas[1]
    assert (family.slope, family.checkpoints) == (None, consecutive)


def test_help_in_the_window_is_a_human_cost() -> None:
    family = verdict(campaign(8, gain=0.02, hints=(1,))).kappas[1]
    assert family.human == f"help in {PRACTICE} practice episodes"


def test_lost_attempts_are_spending_too() -> None:
    traces = campaign(8, gain=0.02)
    plan = plan_of(traces)
    lost = {0: DAILY * UNIT}
    found = judge(
        plan, traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT, lost=lost
    )
    first = found.verdicts[0].kappas[1].points[0]
    assert first[0] == pytest.approx(2 * DAILY, rel=1e-3)


def test_a_run_without_checkpoints_has_no_kappa() -> None:
    assert verdict([episode()]).kappas == ()


def test_without_a_price_of_minutes_there_is_no_unit() -> None:
    free = {k: v for k, v in PRICES.micro_usd_per_million.items() if "super" not in k}
    prices = msgspec.structs.replace(PRICES, micro_usd_per_million=free)
    family = verdict(campaign(8), prices=prices).kappas[1]
    assert "no kappa unit" in str(family.reason)


def test_usage_that_nobody_saw_leaves_no_kappa_and_says_why() -> None:
    traces = campaign(8, gain=0.02)
    first = traces[0]
    declared = Resource(step=1, source="agent", meter="tokens_in", amount=1.0)
    events = (first.events[0], declared, *first.events[1:])
    traces[0] = replace(first, events=events)
    family = verdict(traces).kappas[1]
    assert family.slope is None
    assert "an agent declared usage that no gateway saw" in str(family.reason)
