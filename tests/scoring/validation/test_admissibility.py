"""Admissibility (a) to (f): a named error each."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from owa_bench.errors import (
    AnchorError,
    CostSchema,
    DriftSupport,
    HelpBudgets,
    ImproperQuality,
    SeedCommitment,
    SmallFamily,
)
from owa_bench.interfaces import stated_quality
from owa_bench.records.plan import Plan
from owa_bench.records.score import AgentVerdict
from owa_bench.scoring.pipeline import judge
from owa_bench.scoring.validation.admissibility import (
    check,
    check_anchors,
    check_budgets,
    check_cost_schema,
    check_drift_support,
    check_family_sizes,
    check_proper,
    check_seeds,
    unchecked_anchors,
)
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of, with_help
from tests.builders.verdicts import verdict


def battery(tasks: int = 20) -> Plan:
    grid = PROTOCOL.drift.magnitudes
    alone = [
        episode(index=k * len(grid) + i, pair=f"p{k}", delta=delta)
        for k in range(tasks)
        for i, delta in enumerate(grid)
    ]
    return plan_of(with_help(alone))


def test_a_sound_battery_passes() -> None:
    assert check(battery(), PROTOCOL) == ()


def test_a_stated_quality_is_proper() -> None:
    check_proper(lambda q, p, u: stated_quality(q, p, u, 0.1))


@pytest.mark.parametrize("share", [0.0, -0.1])
def test_a_improper_rules_are_named(share: float) -> None:
    with pytest.raises(ImproperQuality, match=r"\(a\)"):
        check_proper(lambda q, p, u: stated_quality(q, p, u, share))


def test_a_linear_rules_are_improper() -> None:
    with pytest.raises(ImproperQuality, match=r"peaks at p"):
        check_proper(lambda q, p, u: 1 - abs(p - float(u)))


def test_a_is_asked_over_a_grid_of_twentieths_at_success_and_half_of_theta() -> None:
    """The rule of Brier, with what it is asked; one tie of two p is one too many."""
    asked = set()

    def rule(q: float, p: float, success: bool) -> float:
        asked.add((q, round(float(p), 9), success))
        return -((p - float(success)) ** 2)

    check_proper(rule, theta=0.8)
    grid = [round(i / 20, 9) for i in range(21)]
    assert asked == {(q, p, success) for q, success in ((1.0, True), (0.4, False)) for p in grid}
    asked.clear()
    check_proper(rule)
    assert {q for q, _, _ in asked} == {1.0, 0.475}
    with pytest.raises(ImproperQuality, match=r"of 0\.95 .* at p = 0\.95"):
        check_proper(lambda q, p, u: -((min(p, 0.95) - float(u)) ** 2))


def test_a_rule_without_a_number_is_improper() -> None:
    with pytest.raises(ImproperQuality, match=r"\(a\)"):
        check_proper(lambda q, p, u: float("nan"))


def test_b_small_families_are_named() -> None:
    with pytest.raises(SmallFamily, match=r"\(b\).*19 of toolquest/reconcile"):
        check_family_sizes(battery(19), PROTOCOL)


def test_c_absent_magnitudes_are_named() -> None:
    plan = battery()
    kept = tuple(entry for entry in plan.entries if entry.delta != 0.5)
    with pytest.raises(DriftSupport, match=r"\(c\).*never played at 0.5"):
        check_drift_support(msgspec.structs.replace(plan, entries=kept), PROTOCOL)


def test_c_a_suite_without_tools_needs_no_drift() -> None:
    """T does not read it; a suite with tools beside it still needs every magnitude."""
    plan = battery()
    still = tuple(entry for entry in plan.entries if entry.delta == 0.0)
    (suite,) = plan.suites
    body = msgspec.structs.replace(suite, name="body", native=True)
    moved = tuple(msgspec.structs.replace(entry, suite="body") for entry in still)
    mixed = msgspec.structs.replace(plan, suites=(suite, body), entries=(*plan.entries, *moved))
    check_drift_support(mixed, PROTOCOL)
    with pytest.raises(DriftSupport, match="toolquest/reconcile"):
        check_drift_support(msgspec.structs.replace(mixed, entries=(*still, *moved)), PROTOCOL)


def test_d_another_price_card_is_named() -> None:
    plan = msgspec.structs.replace(battery(), price_digest="0" * 64)
    with pytest.raises(CostSchema, match=r"\(d\)"):
        check_cost_schema(plan, PROTOCOL)


@pytest.mark.parametrize("change", [{"commitment": ""}, {"transcripts": False}])
def test_e_uncommitted_seeds_are_named(change: dict[str, object]) -> None:
    with pytest.raises(SeedCommitment, match=r"\(e\)"):
        check_seeds(msgspec.structs.replace(battery(), **change))


@pytest.mark.parametrize("budget", [0, "protocol"])
def test_f_tasks_of_one_budget_alone_are_named(budget: object) -> None:
    plan = battery()
    kept = tuple(entry for entry in plan.entries if entry.interventions == budget)
    with pytest.raises(HelpBudgets, match=r"\(f\).*0 of them the same"):
        check_budgets(msgspec.structs.replace(plan, entries=kept))
    unlimited = tuple(msgspec.structs.replace(entry, interventions=None) for entry in kept)
    with pytest.raises(HelpBudgets, match="has 0 and 0"):
        check_budgets(msgspec.structs.replace(plan, entries=unlimited))


@pytest.mark.parametrize(
    "terms",
    [
        {"calendar": "weekly"},
        {"condition": "after", "window": (0, 1)},
        {"control": True},
        {"phase": "practice"},
    ],
)
def test_f_asks_nothing_of_what_is_played_on_other_terms(terms: dict[str, Any]) -> None:
    alone = episode(index=1, pair="p1")
    plan = plan_of(with_help([episode(), alone]))
    other = plan_of([episode(index=9, pair="p9", **terms)]).entries
    check_budgets(msgspec.structs.replace(plan, entries=(*plan.entries, *other)))
    plain = plan_of([episode(index=9, pair="p9")]).entries
    with pytest.raises(HelpBudgets, match="has 3 and 2, 2 of them the same"):
        check_budgets(msgspec.structs.replace(plan, entries=(*plan.entries, *plain)))


def test_b_an_underpowered_battery_needs_one_task() -> None:
    plan = msgspec.structs.replace(battery(1), underpowered="smoke")
    check_family_sizes(plan, PROTOCOL)
    with pytest.raises(SmallFamily, match="0 of toolquest/reconcile"):
        check_family_sizes(msgspec.structs.replace(plan, entries=()), PROTOCOL)


@pytest.mark.parametrize("arm", ["agent (frozen)", "agent (placebo)", "agent (baseline)"])
def test_b_a_control_plays_the_suites_of_the_days_alone(arm: str) -> None:
    day = {"phase": "checkpoint", "day": 1, "delta": None}
    traces = [
        episode(index=0, **day),
        episode(index=1, suite="codebase", family="f", pair="q"),
        episode(index=2, arm=arm, **day),
    ]
    plan = msgspec.structs.replace(plan_of(traces), underpowered="smoke")
    check_family_sizes(plan, PROTOCOL)
    arms = (plan.arms[0], msgspec.structs.replace(plan.arms[0], name=arm))
    with pytest.raises(SmallFamily, match="has 0 of codebase/f"):
        check_family_sizes(msgspec.structs.replace(plan, arms=arms), PROTOCOL)
    practised = msgspec.structs.replace(plan.entries[1], phase="practice")
    entries = (plan.entries[0], practised, plan.entries[2])
    with pytest.raises(SmallFamily, match="`agent` has 0 of codebase/f"):
        check_family_sizes(msgspec.structs.replace(plan, entries=entries), PROTOCOL)


def test_anchors_are_read_to_six_digits_on_five_axes() -> None:
    rules = PROTOCOL.admissibility

    def scores(value: float | None, symbol: str = "A") -> list[Any]:
        return [SimpleNamespace(symbol=symbol, value=value)]

    top, floor = rules.oracle_min, rules.floor_max
    check_anchors(scores(top - 4e-7), scores(floor + 4e-7), PROTOCOL)
    check_anchors(scores(None), scores(None), PROTOCOL)
    check_anchors(scores(0.1, "R"), scores(0.9, "R"), PROTOCOL)
    with pytest.raises(AnchorError, match="oracle policy"):
        check_anchors(scores(top - 1e-6), [], PROTOCOL)
    with pytest.raises(AnchorError, match="floor policy"):
        check_anchors([], scores(floor + 1e-6), PROTOCOL)
    for symbol in "AGPMT":
        with pytest.raises(AnchorError, match=f"on {symbol}, got 0.1000"):
            check_anchors(scores(0.1, symbol), [], PROTOCOL)
    assert unchecked_anchors(("noop", "oracle", "agent")) == ()
    (words,) = unchecked_anchors(("oracle",))
    assert words == "the anchors are not checked: noop did not play"


def test_check_returns_every_fault() -> None:
    plan = msgspec.structs.replace(battery(2), entries=(), commitment="", price_digest="")
    kinds = [type(fault) for fault in check(plan, PROTOCOL)]
    assert kinds == [SmallFamily, DriftSupport, CostSchema, SeedCommitment]


def test_controls_that_do_not_fit_their_anchors_are_named() -> None:
    oracle = verdict(with_help([episode()])).axes
    floor = verdict(with_help([episode(verified=0, solved=0, q_state=0.0)])).axes
    check_anchors(oracle, floor, PROTOCOL)
    with pytest.raises(AnchorError, match="oracle policy must read 1 on A"):
        check_anchors(floor, floor, PROTOCOL)
    with pytest.raises(AnchorError, match="floor policy must read at most"):
        check_anchors(oracle, oracle, PROTOCOL)


def test_a_run_whose_controls_do_not_fit_gives_nobody_a_level() -> None:
    def judged(oracle: float) -> list[AgentVerdict]:
        traces = [
            episode(index=0, arm="oracle", q_state=oracle, verified=0),
            episode(index=1, arm="noop", q_state=0.0, verified=0, solved=0, used=()),
            episode(index=2, arm="agent"),
        ]
        traces = with_help(traces)
        found = judge(plan_of(traces), traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT)
        return list(found.verdicts)

    for one in judged(0.5):
        assert any("must read 1 on A" in fault for fault in one.inadmissible)
        assert one.level is None
        assert one.level_text == "not placed (the battery is not admissible)"
    for one in judged(1.0):
        assert not any("must read" in fault for fault in one.inadmissible)
        assert not any("anchors are not checked" in words for words in one.warnings)
    words = "the anchors are not checked: oracle and noop did not play"
    assert words in verdict([episode()]).warnings
