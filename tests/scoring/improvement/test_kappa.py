"""kappa: slopes, Sen's interval, and when there is none."""

import itertools
import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.events import Resource
from owa_bench.records.trace import Trace
from owa_bench.scoring.improvement import kappa as module
from owa_bench.scoring.improvement.checkpoints import CheckpointSeries, FamilyCells
from owa_bench.scoring.improvement.kappa import (
    after_spending,
    block_interval,
    differences,
    inversions,
    kappas,
    per_resource,
    theil_sen,
    widening,
    window_pace,
)
from owa_bench.scoring.pipeline import judge
from owa_bench.scoring.statistics.bootstrap import block_bootstrap
from owa_bench.scoring.verdict import findings
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
        traces += practice(day, len(traces), episodes=drills, calls=calls, hints_after=asked)
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
    for count in (2, 3):
        slope = theil_sen(np.arange(count), np.arange(count), 0.95)
        assert slope == (1.0, -math.inf, math.inf)


def test_sens_interval_covers_a_planted_slope() -> None:
    rng = np.random.default_rng(2)
    x, hits, rounds = np.arange(12.0), 0, 400
    for _ in range(rounds):
        slope = theil_sen(x, 0.1 * x + rng.standard_normal(12), 0.95)
        hits += slope.low <= 0.1 <= slope.high
    assert hits / rounds >= 0.93


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([0.0], [1.0]),
        ([0.0, 0.0], [1.0, 2.0]),
        ([0.0, 2.0, 1.0], [1.0, 2.0, 3.0]),
        ([0.0, 1.0, 2.0], [1.0, 2.0]),
        ([[0.0, 1.0]] * 2, [[1.0, 2.0]] * 2),
        ([0.0, 1.0], [1.0, math.nan]),
        ([0.0, 1.0, math.inf], [1.0, 2.0, 3.0]),
    ],
)
def test_bad_points_are_refused(x: list[float], y: list[float]) -> None:
    with pytest.raises(ScoringError, match="A slope"):
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
        verdict(campaign(8, gain=0.02, checkpoint=calls)).kappas[1] for calls in (10.0, 100_000.0)
    )
    assert plain.slope == dear.slope
    assert plain.details["kappa unit, USD"] == dear.details["kappa unit, USD"]


def test_learning_only_during_checkpoints_has_no_kappa() -> None:
    family = verdict(campaign(8, gain=0.02, calls=0.0)).kappas[1]
    assert family.slope is None
    assert str(family.reason).startswith("too few days: 0 consecutive")


@pytest.mark.parametrize(
    ("days", "consecutive"), [({"step": 10}, 1), ({"drills": PRACTICE - 1}, 0)]
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
    found = judge(plan, traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT, lost=lost)
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


def test_sens_interval_lies_between_the_slopes_of_its_ranks() -> None:
    """Five points: P(inversions <= 0, 1) = 1 / 120, 5 / 120; .025 is half between."""
    x = np.array([0.0, 1.0, 2.0, 4.0, 7.0])
    y = np.array([0.0, 1.5, 1.0, 4.5, 5.0])
    first, second = np.triu_indices(5, k=1)
    ordered = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    middle = (ordered[4] + ordered[5]) / 2
    wider = widening(y - middle * x, 0.95)
    found = theil_sen(x, y, 0.95)
    assert found.value == pytest.approx(middle)
    low, high = (ordered[0] + ordered[1]) / 2, (ordered[-1] + ordered[-2]) / 2
    assert found.low == pytest.approx(middle - wider * (middle - low))
    assert found.high == pytest.approx(middle + wider * (high - middle))
    exact = theil_sen(x, y, 1 - 2 / 120)  # a whole rank: the ends themselves
    wider = widening(y - middle * x, 1 - 2 / 120)
    assert exact.low == pytest.approx(middle - wider * (middle - ordered[0]))


def test_an_interval_widens_by_the_autocorrelation_of_its_residuals() -> None:
    """Residuals -1, -1, 0, 0, 1, 1 about 0: lag 2 / 4; r1 = (6 lag + 2) / 2 > 5 / 6."""
    alike = (1 + 5 / 6) / (1 - 5 / 6)
    wider = stats.t.ppf(0.975, 4) / stats.t.ppf(0.975, 4)
    found = widening(np.array([-1.0, -1.0, 0.0, 0.0, 1.0, 1.0]), 0.95)
    assert found == pytest.approx(math.sqrt(alike) * wider)
    # Twenty: four runs of five, lag (20 - 4 - 3) / 20; r1 = (20 lag + 2) / 16.
    runs = np.repeat([1.0, -1.0, 1.0, -1.0], 5)
    r1 = (16 - 3 + 2) / 16
    alike = (1 + r1) / (1 - r1)
    left = max(20 / alike - 2, 4.0)
    wider = stats.t.ppf(0.975, left) / stats.t.ppf(0.975, 18)
    assert widening(runs, 0.95) == pytest.approx(math.sqrt(alike) * wider)
    mild = np.tile([1.0, 1.0, -1.0, -1.0], 25)  # lag 1 / 100, r1 3 / 96
    alike = (1 + 3 / 96) / (1 - 3 / 96)
    wider = stats.t.ppf(0.975, 100 / alike - 2) / stats.t.ppf(0.975, 98)
    assert widening(mild, 0.95) == pytest.approx(math.sqrt(alike) * wider)
    assert widening(np.array([1.0, -1.0, 1.0, -1.0]), 0.95) == 1.0
    assert widening(np.full(6, 0.3), 0.95) == 1.0


def test_few_residuals_are_corrected_from_five_on_and_widen_by_no_quantile() -> None:
    """Five: lag 2 / 4, r1 = 4.5 cut to 4 / 5. Four: r1 = lag = 1 / 4."""
    assert widening(np.array([-1.0, -1.0, 0.0, 1.0, 1.0]), 0.95) == pytest.approx(3.0)
    four = widening(np.array([-1.0, -1.0, 1.0, 1.0]), 0.95)
    assert four == pytest.approx(math.sqrt((5 / 4) / (3 / 4)))


def test_residuals_that_are_nothing_but_rounding_widen_no_interval() -> None:
    """A sum of squares of 1e-12, or of that share of their own, is none."""
    alike = np.array([-1.0, -1.0, 0.0, 0.0, 1.0, 1.0]) / 2  # sum of squares 1
    assert widening(alike * math.sqrt(0.9e-12), 0.95) == 1.0
    assert widening(alike * math.sqrt(1.1e-12), 0.95) == pytest.approx(math.sqrt(11))
    assert widening(1e6 + alike, 0.95) == 1.0
    assert widening(1e5 + alike, 0.95) == pytest.approx(math.sqrt(11))


def test_slopes_between_neighbours_leave_out_days_without_spending() -> None:
    spent, values = np.array([0.0, 2.0, 2.0, 6.0]), np.array([0.1, 0.2, 0.5, 0.3])
    found = differences(spent, values)
    assert found[[0, 2]] == pytest.approx([0.05, -0.05])
    assert np.isnan(found[1])
    assert after_spending(spent).tolist() == [True, True, False, True]
    for wrong in (values[1:], np.ones((4, 1))):
        with pytest.raises(ScoringError, match="Checkpoints differ"):
            differences(spent, wrong)


def test_the_pace_of_a_window_is_its_slope_times_what_is_spent_a_day() -> None:
    days = np.array([2.0, 3.0, 7.0])
    found = window_pace(days, np.array([1.0, 3.0, 11.0]), np.array([0.2, 0.9, 0.7]))
    assert found == pytest.approx((0.05, 2.0, 0.1))
    cheap = window_pace(days, np.array([0.0, 0.1, 0.5]), np.array([0.2, 0.3, 0.7]))
    assert cheap.kappa == pytest.approx(1.0)
    thirds = window_pace(np.array([0.0, 7.0]), np.array([0.0, 2.0]), days[:2] / 3)
    assert (thirds.kappa, thirds.time_slope) == (0.166666666667, 0.047619047619)
    still = window_pace(days, np.ones(3), np.array([0.2, 0.3, 0.7]))
    assert math.isnan(still.kappa)
    assert still.spend_rate == 0.0
    for wrong in (days[:1], np.array([2.0, 3.0, 2.0])):
        with pytest.raises(ScoringError, match="two rising days"):
            window_pace(wrong, wrong, wrong)
    assert per_resource(0.3, 0.4, 0.5) == pytest.approx((0.6, 1.6))
    with pytest.raises(ScoringError, match="above 0"):
        per_resource(0.3, 0.4, 0.0)


def test_the_bootstrap_over_checkpoints_has_ends_unless_levels_lack() -> None:
    spent = np.arange(8.0)
    low, high = block_interval(spent, 0.1 * spent, 0.95, ROOT, 200)
    assert (low, high) == pytest.approx((0.1, 0.1))
    noisy = 0.1 * spent + np.tile([0.05, -0.05], 4)
    wide, narrow = (block_interval(spent, noisy, p, ROOT, 200) for p in (0.95, 0.5))
    medians = [
        np.median(
            [
                (noisy[j] - noisy[i]) / (spent[j] - spent[i])
                for i, j in itertools.combinations(rows, 2)
                if i != j
            ]
        )
        for rows in block_bootstrap(8, 200, ROOT, "kappa")
    ]
    assert wide == pytest.approx(np.quantile(medians, [0.025, 0.975]))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    still = block_interval(np.zeros(8), spent, 0.95, ROOT, 200)
    assert np.isnan(still).all()


@pytest.mark.parametrize(("single", "known"), [(1, True), (2, False)])
def test_one_resample_in_twenty_may_hold_one_level(monkeypatch, single, known) -> None:
    rows = np.array([[0, 1]] * (20 - single) + [[0, 0]] * single)
    monkeypatch.setattr(module, "block_bootstrap", lambda *_: rows)
    spent = np.array([1.0, 3.0])
    ends = block_interval(spent, 0.1 * spent, 0.95, ROOT, 20)
    assert ends == pytest.approx((0.1, 0.1) if known else (math.nan,) * 2, nan_ok=True)


def series(days: int, **changes: object) -> CheckpointSeries:
    """Return days of two kappa units each, one more for humans, a unit of 4 USD."""
    spent = 2.0 * np.arange(days)
    quality = {"s/f": 0.2 + 0.03 * spent}
    made = CheckpointSeries(tuple(range(3, 3 + days)), spent, 4e6, quality)
    cells = FamilyCells(np.array(["p", "q", "r"]), np.tile(quality["s/f"], (3, 1)))
    whole = {
        "counted": tuple(range(days)),
        "total": 1.5 * spent,
        "floor": {"s/f": 0.1},
        "cells": {"s/f": cells},
    }
    return made._replace(**(whole | changes))


def test_figures_beside_kappa_by_hand() -> None:
    days = RULES.checkpoints_min
    points = series(days)
    (agent, family) = kappas(points, 0.3 + 0.01 * points.spent, PROTOCOL, (), ROOT)
    assert (agent.slope, family.slope) == pytest.approx((0.01, 0.03))
    assert (agent.floor, family.floor) == (None, 0.1)
    assert (family.p, family.checkpoints) == (pytest.approx(0.0, abs=1e-9), days)
    details = family.details
    assert details["days"] == [3, 2 + days]
    assert (details["kappa unit, USD"], details["per USD"]) == (4.0, 0.0075)
    assert details["kappa_total, agent and human"] == pytest.approx(0.02)
    assert details["Theil-Sen"] == pytest.approx(0.03)
    assert details["spend rate a day"] == 2.0
    assert details["pace, kappa times spend rate"] == pytest.approx(0.06)
    assert details["window mean"] == pytest.approx(0.03)
    assert details["finite differences"] == pytest.approx([0.03] * (days - 1))
    ends = details["interval by bootstrap over checkpoints"]
    assert ends == pytest.approx([0.03, 0.03])
    assert family.points[1] == (2.0, 0.26)
    assert family.logit is not None
    assert family.logit > family.slope


def test_the_bootstrap_beside_kappa_has_a_thousand_resamples(monkeypatch) -> None:
    asked = []

    def draw(*arguments: object) -> np.ndarray:
        asked.append(arguments)
        return np.array([[0, 1, 2, 3, 4, 5, 6, 7]] * 1000)

    monkeypatch.setattr(module, "block_bootstrap", draw)
    points = series(8)
    kappas(points, 0.3 + 0.01 * points.spent, PROTOCOL, (), ROOT)
    assert asked == [(8, 1000, ROOT, "kappa")] * 2


@pytest.mark.parametrize(
    ("changes", "place", "value", "reason"),
    [
        ({}, 0, 0.2, None),
        ({}, 1, 0.0, "not computable: an axis stands at 0 at a checkpoint"),
        ({}, 1, math.nan, "AAI_dyn is not measured at each checkpoint"),
        ({"reason": "no kappa unit"}, 0, 0.2, "no kappa unit"),
        ({"counted": tuple(range(RULES.checkpoints_min - 1))}, 0, 0.2, "too few days"),
    ],
)
def test_why_an_agent_has_no_kappa(changes, place, value, reason) -> None:
    points = series(RULES.checkpoints_min, **changes)
    dynamic = 0.2 + 0.01 * points.spent
    dynamic[place] = value
    agent = kappas(points, dynamic, PROTOCOL, (), ROOT)[0]
    assert (agent.slope is None) == (reason is not None)
    assert (reason or "None") in str(agent.reason)
    assert bool(agent.points) == (reason is None or reason == "too few days")


def test_a_family_at_0_on_a_day_has_a_slope_and_none_on_the_logit() -> None:
    points = series(RULES.checkpoints_min)
    values = points.quality["s/f"].copy()
    values[0] = 0.0
    points = points._replace(quality={"s/f": values})
    family = kappas(points, 0.3 + 0.01 * points.spent, PROTOCOL, (), ROOT)[1]
    assert family.slope is not None
    assert (family.logit, family.logit_interval, family.logit_p) == (None, None, None)
    values[0] = math.nan
    family = kappas(points, 0.3 + 0.01 * points.spent, PROTOCOL, (), ROOT)[1]
    assert family.reason == "a checkpoint holds no counted episode"
    assert len(family.points) == len(values) - 1
    empty = series(0, reason="no checkpoint")
    assert kappas(empty, np.zeros(0), PROTOCOL, (), ROOT) == ()


def test_the_slope_of_a_family_holds_the_error_over_its_tasks() -> None:
    """Three tasks on lines of slope .01, .03 and .05 without any noise of days."""
    points = series(8)
    steps = np.array([0.01, 0.03, 0.05])
    means = 0.2 + steps[:, None] * points.spent
    cells = {"s/f": FamilyCells(np.array(["p", "q", "r"]), means)}
    alike, apart = (
        kappas(p, 0.3 + 0.01 * p.spent, PROTOCOL, (), ROOT)[1]
        for p in (points, points._replace(cells=cells))
    )
    assert alike.interval.low == pytest.approx(0.03)
    assert apart.slope == pytest.approx(0.03)
    reach = stats.t.ppf(0.975, 2) * steps.std(ddof=1) / math.sqrt(3)
    assert apart.interval.low == pytest.approx(0.03 - reach, abs=1e-6)
    holed = means.copy()
    holed[0, 0] = math.nan
    unknown = points._replace(cells={"s/f": FamilyCells(np.array(["p", "q", "r"]), holed)})
    found = kappas(unknown, 0.3 + 0.01 * points.spent, PROTOCOL, (), ROOT)[1]
    assert found.interval.low == pytest.approx(0.03)
