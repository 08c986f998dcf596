"""Tables of a campaign whose series are planted: every figure by its formula."""

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from owa_bench.records.score import CellTable, ClosureResult, Interval, KappaScore
from owa_bench.scoring.estimate.composites import needed
from owa_bench.scoring.estimate.gate_statistics import FamilyQuality
from owa_bench.scoring.improvement import tables
from owa_bench.scoring.improvement.checkpoints import (
    AREA,
    DYNAMIC,
    CampaignWindow,
    CheckpointSeries,
    DailyEstimates,
    Dynamics,
    FrozenControl,
)
from owa_bench.scoring.improvement.continuous_score import innovation
from owa_bench.scoring.improvement.curvature import on_link
from owa_bench.scoring.improvement.dynamics import (
    dynamics,
    marginal_return_table,
    time_based_curvature,
)
from owa_bench.scoring.observe.attempt_sets import RevisionEvidence, RevisionGain
from owa_bench.scoring.statistics import slopes
from tests.builders.episodes import PROTOCOL

COUNT = 16
DAYS = tuple(range(3, 3 + 2 * COUNT, 2))  # every second day
SPENT = 1.5 * np.arange(COUNT)
RULES = PROTOCOL.improvement
SYMBOLS = needed(PROTOCOL.index)[DYNAMIC]
AREAS = 0.3 + 0.004 * np.arange(COUNT)


def revisions(*rows: tuple[tuple[str, ...], RevisionGain]) -> RevisionEvidence:
    """Return revisions of (tool families that were installed, gain)."""
    sets = tuple(SimpleNamespace(installed=families) for families, _ in rows)
    return RevisionEvidence(sets=sets, gains=tuple(gain for _, gain in rows))  # type: ignore[arg-type]


def window(
    dynamic: np.ndarray | None = None,
    *,
    spent: np.ndarray = SPENT,
    days: tuple[int, ...] = DAYS,
    frozen: np.ndarray | None = None,
    **changes: Any,
) -> CampaignWindow:
    """Return a campaign in which every axis follows AAI_dyn."""
    if dynamic is None:
        dynamic = 0.3 + 0.02 * spent
    values = {DYNAMIC: dynamic, AREA: AREAS[: len(days)]}
    values |= dict.fromkeys(SYMBOLS, dynamic * 0.9)
    quality = {"toolquest/reconcile": dynamic}
    points = CheckpointSeries(days, spent, 2e6, quality)
    daily = DailyEstimates(
        values,
        tuple((0.9, 0.5 + 0.01 * i) for i in range(len(days))),
        tuple({"toolquest/reconcile": FamilyQuality(q, 0.03)} for q in dynamic),
    )
    control = None
    if frozen is not None:
        held = CheckpointSeries(days, spent, 2e6, {"toolquest/reconcile": frozen})
        control = FrozenControl(held, DailyEstimates(values | {DYNAMIC: frozen}, (), ()))
    made = CampaignWindow(
        points=points,
        daily=daily,
        frozen=control,
        table=SimpleNamespace(),  # type: ignore[arg-type]
        closures={},
        kappas=(),
        flow=0.5,
        protocol=PROTOCOL,
    )
    return made._replace(**changes)


def table(found: Dynamics, title: str) -> CellTable:
    return next(t for t in found.tables if t.title.startswith(title))


def rows(found: Dynamics, title: str) -> dict[Any, tuple]:
    return {row[0]: row[1:] for row in table(found, title).rows}


def slope_on_spent(y: np.ndarray) -> float:
    return float(slopes.slope(SPENT, y).value)


@pytest.fixture(scope="module")
def planted() -> Dynamics:
    return dynamics(window())


def test_plain_aai_is_the_weighted_mean_with_the_runs_flow() -> None:
    one = window()
    weights = {str(s): w for s, w in PROTOCOL.index.weights.items() if w > 0}
    logs = sum(w * np.log(0.5 if s == "R" else one.daily.values[s]) for s, w in weights.items())
    expected = np.exp(logs / sum(weights.values()))
    assert tables.plain(one) == pytest.approx(expected, abs=1e-9)
    assert np.isnan(tables.plain(one._replace(flow=None))).all()


def test_a_row_a_checkpoint_holds_resources_and_every_axis(planted: Dynamics) -> None:
    found = table(planted, "Checkpoints in order")
    assert found.columns[4:] == SYMBOLS
    assert AREA not in found.columns
    day, spent, plain, dynamic, *axes = found.rows[2]
    assert (day, spent) == (7, 3.0)
    assert dynamic == pytest.approx(0.36)
    assert axes == pytest.approx([0.36 * 0.9] * len(SYMBOLS))
    assert plain == pytest.approx(tables.plain(window())[2], abs=1e-6)


def test_curves_stand_where_any_checkpoint_is_known() -> None:
    one = window()
    names = [curve.name for curve in tables.checkpoint_curves(one)]
    assert names == [f"{n} over agent-initiated resources" for n in ("AAI", DYNAMIC)]
    without = tables.checkpoint_curves(one._replace(flow=None))
    assert [curve.name.split()[0] for curve in without] == [DYNAMIC]
    holed = window(np.where(SPENT == 3.0, np.nan, 0.4))
    curve = tables.checkpoint_curves(holed)[1]
    assert curve.y[2] is None
    assert curve.y[3] == pytest.approx(0.4)
    assert (curve.x[3], curve.used) == (4.5, (1,) * COUNT)
    unknown = np.where(SPENT == 3.0, np.nan, SPENT)
    assert tables.checkpoint_curves(window(np.full(COUNT, 0.4), spent=unknown)) == ()


def test_responses_are_slopes_on_resources_with_the_targets_of_aai_4(planted: Dynamics) -> None:
    found = rows(planted, "Axis responses")
    targets = tables.axis_thresholds(PROTOCOL)
    asked = {
        rule.of: rule.required
        for rule in PROTOCOL.gates
        if rule.gate == "axis" and rule.level == 4 and rule.required is not None
    }
    assert targets == asked
    assert set(found) == set(SYMBOLS)
    last, target, slope, low, high, why = found["A"]
    assert last == pytest.approx(0.9 * (0.3 + 0.02 * SPENT[-1]))
    assert (target, why) == (asked["A"], None)
    assert (slope, low, high) == pytest.approx((0.018, 0.018, 0.018))
    assert planted.responses == pytest.approx(dict.fromkeys(SYMBOLS, 0.018))


def test_delegation_by_its_areas(planted: Dynamics) -> None:
    found = {key: value[0] for key, value in rows(planted, "Delegability").items()}
    assert found["AUF, first checkpoint"] == pytest.approx(0.3)
    assert found["AUF, last checkpoint"] == pytest.approx(0.36)
    shift = found["shift of the frontier (integral of the difference)"]
    assert shift == pytest.approx(0.06)
    assert found["progress: F fell at no demand"] == "yes"
    slope = found["delegation slope, AUF per kappa unit"]
    assert slope == pytest.approx(0.004 / 1.5, abs=1e-6)
    assert found["its lower bound"] <= slope <= found["its upper bound"]


@pytest.mark.parametrize(
    ("first", "last", "progress"),
    [
        ((0.9, 0.5), (0.9, 0.5), "yes"),
        ((0.9, 0.5), (0.95, 0.4), "no"),
        ((0.9, 0.5), (0.9,), None),
        ((), (), None),
    ],
)
def test_progress_is_a_frontier_that_fell_nowhere(
    first: tuple, last: tuple, progress: str | None
) -> None:
    one = window()
    fits = (first, *one.daily.frontier[1:-1], last)
    found = tables.delegation_table(one._replace(daily=one.daily._replace(frontier=fits)))
    assert found is not None
    assert dict(found.rows)["progress: F fell at no demand"] == progress


def test_no_frontier_no_delegation() -> None:
    one = window()
    values = {**one.daily.values, AREA: np.full(COUNT, np.nan)}
    assert tables.delegation_table(one._replace(daily=one.daily._replace(values=values))) is None


def test_the_counterfactual_takes_the_control_from_the_agent() -> None:
    noise = 0.003 * np.sin(np.arange(COUNT))
    agent, control = 0.3 + 0.02 * SPENT + noise, 0.4 - 0.01 * SPENT
    one = window(agent, frozen=control)
    found = {row[0]: row[1:] for row in tables.counterfactual_table(one).rows}  # type: ignore[union-attr]
    assert set(found) == {DYNAMIC, "toolquest/reconcile"}
    for series in found.values():
        own, frozen, least, most, gap, low, high = series[:7]
        assert own == pytest.approx(slope_on_spent(agent), abs=1e-6)
        assert frozen == pytest.approx(-0.01, abs=1e-6)
        assert least <= frozen <= most
        assert gap == pytest.approx(slope_on_spent(agent - control), abs=1e-6)
        assert low < gap < high
        assert series[7] == one.curvature_of(agent, RULES.link).curvature
        assert series[8] == one.curvature_of(control, RULES.link).curvature
    assert tables.counterfactual_table(window()) is None
    shifted = one.frozen.points._replace(days=DAYS[1:])  # type: ignore[union-attr]
    other = one._replace(frozen=one.frozen._replace(points=shifted))  # type: ignore[union-attr]
    assert tables.counterfactual_table(other) is None


def kappa(slope: float | None, low: float | None, family: str | None = "f") -> KappaScore:
    return KappaScore(
        family=family,
        slope=slope,
        interval=Interval(low=low, high=None, method="m"),
        checkpoints=9,
        reason=None,
        points=(),
    )


def gate(level: int, name: str, *kappas: KappaScore, **closures: str) -> tuple:
    held = {
        kind: ClosureResult(name=kind, status=status, reason="")  # type: ignore[arg-type]
        for kind, status in closures.items()
    }
    found = tables.optional_gates({}, kappas, held, None, RULES)
    one = next(x for x in found if (x.level, x.gate) == (level, name))
    return one.measured, one.met


def test_a_kappa_rises_from_its_threshold_on_with_a_bound_above_0() -> None:
    least = RULES.kappa_min
    good = kappa(least, 1e-9)
    assert gate(2, "kappa", good) == ("1 of 1 measured, 1 families", True)
    assert gate(2, "kappa", kappa(least - 1e-9, 1e-9))[1] is False
    assert gate(2, "kappa", kappa(least, 0.0))[1] is False
    assert gate(2, "kappa", kappa(-least, 1e-9))[1] is False
    for unknown in (kappa(None, 0.1), kappa(least, None)):
        assert gate(2, "kappa", unknown) == ("0 of 0 measured, 1 families", None)
    assert gate(3, "kappa", good, good, kappa(least, None))[1] is None
    assert gate(3, "kappa", good, good, good)[1] is True
    assert gate(3, "kappa", good, good)[1] is False
    assert gate(2, "kappa", kappa(least, 0.1, family=None))[1] is None


def test_closures_that_were_not_tested_decide_nothing() -> None:
    assert gate(2, "maintenance closure") == ("NOT TESTED", None)
    assert gate(2, "maintenance closure", maintenance="PASS") == ("PASS", True)
    assert gate(3, "expansion closure", expansion="FAIL") == ("FAIL", False)
    assert gate(3, "expansion closure", maintenance="PASS")[1] is None


@pytest.mark.parametrize(
    ("steps", "one", "two"),
    [(0, False, False), (1, True, False), (2, True, True), (None, None, None)],
)
def test_link_steps_are_asked_one_then_two(steps, one, two) -> None:
    found = tables.optional_gates({}, (), {}, steps, RULES)
    met = {(x.level, x.gate): x for x in found}
    assert met[3, "link step"].met is one
    assert met[4, "link steps"].met is two
    assert met[3, "link step"].required.startswith("1 of ")
    assert met[3, "link step"].measured == ("unknown" if steps is None else str(steps))


def test_time_based_curvature_converts_days_to_resources() -> None:
    """A = .2 + .01 d + .0005 (d - c)^2 over days, .75 kappa units a day."""
    days = np.array(DAYS, dtype=float)
    centre = (days[0] + days[-1]) / 2
    values = 0.2 + 0.01 * days + 0.0005 * (days - centre) ** 2
    slope, bend = time_based_curvature(window(values))
    assert slope == pytest.approx(0.01 / 0.75, abs=1e-6)
    assert bend == pytest.approx(0.001 / 0.75**2, abs=1e-6)
    later = time_based_curvature(window(values, spent=SPENT + 7.0))
    assert later == (slope, bend)


def test_time_based_curvature_needs_days_spending_and_every_value() -> None:
    least = RULES.curvature_days_min
    short = {"days": DAYS[:least], "spent": SPENT[:least]}
    assert time_based_curvature(window(**short))[0] is not None
    shorter = {"days": DAYS[: least - 1], "spent": SPENT[: least - 1]}
    nothing = (None, None)
    assert time_based_curvature(window(**shorter)) == nothing
    still = np.full(COUNT, 3.0)
    assert time_based_curvature(window(SPENT / 100, spent=still)) == nothing
    assert time_based_curvature(window(np.where(SPENT == 3, np.nan, 0.4))) == nothing
    unknown = np.where(SPENT == 3, np.nan, SPENT)
    assert time_based_curvature(window(np.full(COUNT, 0.4), spent=unknown)) == nothing


def test_bends_by_link_and_family_and_by_time_stand_in_one_table(planted: Dynamics) -> None:
    found = rows(planted, "Curvature")
    for link in planted.bends:
        bend = planted.bends[link]
        assert found[f"AAI_dyn, {link}"][:2] == (bend.slope, bend.curvature)
    last = found["AAI_dyn by time: A'/r, A''/r^2"]
    assert last[:2] == (pytest.approx(0.02, abs=1e-6), pytest.approx(0.0, abs=1e-9))


def test_innovation_counts_revisions_whose_sets_show_a_gain() -> None:
    found = revisions(
        (("ocr",), RevisionGain({}, 0.1, 0.1, 1.0, True)),
        (("ocr",), RevisionGain({}, 0.1, 0.1, 1.0, True)),
        ((), RevisionGain({}, 0.1, 0.1, 1.0, True)),
        (("sql",), RevisionGain({}, -0.1, -0.1, 1.0, True)),
        (("csv",), RevisionGain({}, 0.1, 0.1, 1.0, False)),
        (("pdf",), RevisionGain({}, 0.1, 0.1, 0.0, True)),
    )
    months = (DAYS[-1] - DAYS[0] + 1) / 30
    rules = PROTOCOL.telemetry
    expected = innovation(1 / months, 3 / months, rules.tools_a_month, rules.revisions_a_month)
    assert dynamics(window(practised=found)).innovation == pytest.approx(expected)
    assert dynamics(window()).innovation is None
    unread = dataclasses.replace(found, reason="an attempt set holds 3 tasks of 110")
    assert dynamics(window(practised=unread)).innovation is None


def test_link_steps_lie_between_the_first_and_the_last_checkpoint() -> None:
    before, after = 0.3, 0.8
    g = on_link(np.array([before, after]), RULES.link, RULES.link_clip)
    steps = math.floor((g[1] - g[0]) / RULES.step + 1e-9)
    values = np.linspace(before, after, COUNT)
    assert dynamics(window(values)).link_steps == steps > 0
    assert dynamics(window(np.full(COUNT, 0.4))).link_steps == 0
    for end in (0.0, 1.0):
        edge = values.copy()
        edge[5] = end
        assert dynamics(window(edge)).link_steps is None
    two = dynamics(window(np.array([0.3, 0.8]), spent=SPENT[:2], days=DAYS[:2]))
    assert two.link_steps == steps
    one = dynamics(window(np.array([0.3]), spent=SPENT[:1], days=DAYS[:1]))
    assert one.link_steps is None


def theorem_row(found: Dynamics, name: str) -> tuple:
    return rows(found, "Theorem 3.1")[name][1:5]


def test_the_spend_rate_is_the_least_a_day_between_neighbours() -> None:
    spent = SPENT.copy()
    spent[5:] += 4.0
    spent[9:] -= 0.5
    found = theorem_row(dynamics(window(0.3 + 0.01 * spent, spent=spent)), "(ii)")
    assert found == (0.5, 0.5, None, "HOLDS")
    assert theorem_row(dynamics(window()), "(ii)")[0] == pytest.approx(0.75)
    unknown = np.where(SPENT == 3, np.nan, SPENT)
    holed = dynamics(window(np.full(COUNT, 0.4), spent=unknown))
    assert theorem_row(holed, "(ii)")[0] is None


def test_closures_and_innovation_enter_the_theorem() -> None:
    def closed(*states: str) -> dict[str, ClosureResult]:
        names = ("maintenance", "expansion")
        return {
            n: ClosureResult(name=n, status=s, reason="")  # type: ignore[arg-type]
            for n, s in zip(names, states, strict=True)
        }

    for states, row in (
        (("PASS", "PASS"), (1.0, 1.0, 1.0, "HOLDS")),
        (("PASS", "FAIL"), (0.0, None, None, "FAILS")),
        (("PASS", "NOT TESTED"), (None, None, None, "NO EVIDENCE")),
    ):
        found = dynamics(window(closures=closed(*states)))
        assert theorem_row(found, "(iv)") == row
    useful = revisions((("ocr",), RevisionGain({}, 0.1, 0.1, 1.0, True)))
    found = dynamics(window(practised=useful))
    assert theorem_row(found, "(v)")[:2] == (
        pytest.approx(found.innovation, abs=1e-6),
        pytest.approx(found.innovation, abs=1e-6),
    )


def test_rate_escape_is_read_over_disjoint_weeks_from_the_end() -> None:
    """Sixteen checkpoints: two weeks of seven, the first two left out."""
    values = 0.3 + 0.0006 * SPENT**2
    g = on_link(values, RULES.link, RULES.link_clip)
    k, middle = [], []
    for week in (slice(2, 9), slice(9, 16)):
        x = SPENT[week]
        at = x - (x[0] + x[-1]) / 2
        slope = np.polyfit(at, g[week], 2)[1]
        k.append(slope / (slope + PROTOCOL.telemetry.rate_normaliser))
        middle.append(x.mean())
    power = PROTOCOL.telemetry.escape_power
    line = (1 - (1 - np.array(k)) ** (1 - power)) / (1 - power)
    c = (line[1] - line[0]) / (middle[1] - middle[0])
    found = theorem_row(dynamics(window(values)), "(i)")
    assert found[0] == pytest.approx(c, abs=1e-6)


def test_the_trajectory_reads_the_elasticity_of_rolling_weeks() -> None:
    """Slopes that grow with resources have an elasticity above 0, M3 with them."""

    def trajectory(values: np.ndarray, count: int = COUNT) -> str:
        held = window(values[:count], spent=SPENT[:count], days=DAYS[:count])
        return str(rows(dynamics(held), "Continuous score")["M3"][0])

    rising = 0.3 + 0.0006 * SPENT**2
    assert trajectory(rising) == "yes"
    slowing = 0.3 + 0.08 * np.sqrt(SPENT)
    assert trajectory(slowing) == "no"
    assert trajectory(rising, 7) == "NO EVIDENCE"
    assert trajectory(np.full(COUNT, 0.4)) == "NO EVIDENCE"


def test_margins_over_experts_have_the_superhuman_target() -> None:
    norms = msgspec.structs.replace(PROTOCOL.norms, experts={"toolquest/reconcile": (0.9, 0.04)})
    protocol = msgspec.structs.replace(PROTOCOL, norms=norms)
    found = rows(dynamics(window(protocol=protocol)), "Superhuman margins")
    last, target, slope = found["toolquest/reconcile"][:3]
    assert last == pytest.approx((0.75 - 0.9) / 0.05, abs=1e-6)
    assert target == PROTOCOL.superhuman.z
    assert slope == pytest.approx(0.02 / 0.05, abs=1e-6)


def test_no_checkpoints_no_dynamics() -> None:
    none = window(np.zeros(0), spent=np.zeros(0), days=())
    assert dynamics(none) == Dynamics()


def test_marginal_returns_need_every_axis_of_the_index() -> None:
    used = {str(s): w for s, w in PROTOCOL.index.weights.items() if w > 0}
    values: dict[str, float | None] = dict.fromkeys(used, 0.5)
    found = marginal_return_table(0.4, values | {"E": 0.3}, PROTOCOL, {"A": 0.1})
    assert found is not None
    lines = {row[0]: row[1:] for row in found.rows}
    assert set(lines) == set(used)
    share = used["A"] / sum(used.values())
    assert lines["A"] == pytest.approx((0.4 * share / 0.5, 0.1, share * 0.1 / 0.5))
    other = next(s for s in used if s != "A")
    assert lines[other][1:] == (None, None)
    for index, axes in (
        (None, values),
        (0.0, values),
        (0.4, values | {"A": None}),
        (0.4, values | {"A": 0.0}),
    ):
        assert marginal_return_table(index, axes, PROTOCOL, {}) is None


def test_a_revision_without_a_gain_is_no_innovation() -> None:
    still = (("xml",), RevisionGain({}, 0.0, 0.0, 1.0, True))
    assert dynamics(window(practised=revisions(still))).innovation == 0.0


def test_an_axis_of_weight_0_has_no_marginal_return() -> None:
    weights = dict.fromkeys(PROTOCOL.index.weights, 0.0) | {"A": 1.0, "G": 3.0}
    index = msgspec.structs.replace(PROTOCOL.index, weights=weights)
    protocol = msgspec.structs.replace(PROTOCOL, index=index)
    found = marginal_return_table(0.4, {"A": 0.5, "G": 0.8, "P": 0.7}, protocol, {"G": 0.2})
    assert found is not None
    assert found.rows == (
        ("G", pytest.approx(0.4 * 0.75 / 0.8), 0.2, pytest.approx(0.75 * 0.2 / 0.8)),
        ("A", pytest.approx(0.4 * 0.25 / 0.5), None, None),
    )
