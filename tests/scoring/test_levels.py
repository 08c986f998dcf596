"""Gates and levels: what passes, what fails, and what nobody knows."""

import math
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from owa_bench.discovery import find
from owa_bench.records.protocol import GateRule
from owa_bench.records.score import (
    AxisScore,
    ClosureResult,
    GateResult,
    IndexScore,
    Interval,
    KappaScore,
    TotalGain,
)
from owa_bench.scoring.gate import (
    Findings,
    GateReading,
    gate_status,
    is_fixed_automation,
    judge_gates,
    place,
)
from owa_bench.scoring.statistics.jackknife import Clusters, jackknife_estimate
from tests.builders.episodes import PROTOCOL

BAND = Interval(low=0.0, high=1.0, method="m")


def axis(symbol: str, value: float | None) -> AxisScore:
    beside = {
        "categories used": {"value": 3.0, "lower": 3.0, "highest": 3.0},
        "success at 0.25": {"value": 0.6, "lower": 0.6, "highest": 0.6},
    }
    return AxisScore(
        name=symbol,
        symbol=symbol,
        raw=value,
        value=value,
        low_anchor=0.0,
        high_anchor=1.0,
        used=1,
        cells=1,
        reason=None if value is not None else "nothing seen",
        same_tasks=BAND,
        tasks_like_these=BAND,
        lower=value,
        highest=value,
        details={"beside": beside, "categories": ["a", "b", "c"], "fewest tasks a family": 20},
    )


GAINED = TotalGain(
    value=0.06,
    low=0.03,
    p=0.001,
    units=8.5,
    usd=34.0,
    unit_usd=4.0,
    per_unit=0.007,
    logit_per_unit=0.03,
    days=4,
    tasks=20,
)


def gained(**changes: Any) -> TotalGain:
    """Return a gain that every line of kappa passes on, with changes."""
    return msgspec.structs.replace(GAINED, **changes)


def findings(**changes: Any) -> Findings:
    """Return an agent that meets every gate of AAI-2 that can be met by evidence."""
    row = dict.fromkeys("AGPMTRSEW$", 0.66) | changes.pop("row", {})
    axes = {symbol: axis(symbol, value) for symbol, value in row.items()}
    core = IndexScore(name="core", value=0.66, missing=(), tasks_like_these=BAND, same_tasks=BAND)
    kappa = KappaScore(
        family="f",
        slope=0.007,
        interval=Interval(low=0.004, high=0.01, method="m"),
        checkpoints=9,
        reason=None,
        points=((0.0, 0.4), (9.0, 0.46)),
        p=0.001,
        gain=GAINED,
    )
    closures = {
        name: ClosureResult(name=name, status="PASS", reason="")
        for name in ("maintenance", "expansion")
    }
    whole = {
        "axes": axes,
        "core": GateReading(0.66, 0.66, 0.66),
        "indices": {"core": core},
        "kappas": (kappa,),
        "closures": closures,
        "assurance": 3,
        "evidence": ("000000.0",),
        "protocol": PROTOCOL,
    }
    return Findings(**(whole | changes))


def status(found: Findings, gate: str, level: int = 2) -> GateResult:
    results = judge_gates(found)
    return next(r for r in results if r.gate == gate and r.level == level)


@pytest.mark.parametrize(
    ("value", "lower", "highest", "expected"),
    [
        (0.60, 0.55, 0.65, "PASS"),
        (0.60, 0.549999, 0.65, "UNDECIDED"),
        (0.599999, 0.599999, 0.61, "UNDECIDED"),
        (0.5999999, 0.58, 0.5999999, "PASS"),  # equal in six decimals
        (0.1 + 0.5, 0.55, None, "PASS"),
        (0.1, 0.05, 0.599999, "BELOW"),
        (0.1, 0.05, 0.6, "UNDECIDED"),
        (0.1, 0.05, 0.5999999, "UNDECIDED"),  # equal in six decimals
        (0.1, None, 0.2, "BELOW"),
        (None, None, None, "NO EVIDENCE"),
        (0.9, None, 0.95, "NO EVIDENCE"),
        (0.1, 0.05, None, "NO EVIDENCE"),
    ],
)
def test_the_three_answers_of_a_gate(
    value: float | None, lower: float | None, highest: float | None, expected: str
) -> None:
    assert gate_status(GateReading(value, lower, highest), 0.6, PROTOCOL) == expected


BELOW_LEVEL = PROTOCOL.statistics.below_level


def share(ones: int, tasks: int, level: float = BELOW_LEVEL) -> GateReading:
    """Return the reading of a share of tasks that were solved."""
    solved = np.arange(tasks) < ones
    left_out = (ones - solved) / (tasks - 1)
    how = Clusters("", "tasks", np.arange(tasks), np.zeros(tasks, dtype=int), "")
    found = jackknife_estimate(ones / tasks, left_out, how)
    lower = found.lower(PROTOCOL.statistics.gate_level)
    return GateReading(ones / tasks, lower, found.upper(level))


def test_below_begins_where_the_upper_bound_by_hand_ends() -> None:
    """Nothing of n tasks: the upper bound is 1 - .0033^(1/n), .0033 = 1 - below_level."""
    for tasks in (5, 20, 80):
        read = share(0, tasks)
        bound = 1 - (1 - BELOW_LEVEL) ** (1 / tasks)
        assert read.highest == pytest.approx(bound, abs=1e-6)
        assert gate_status(read, bound + 1e-5, PROTOCOL) == "BELOW"
        assert gate_status(read, bound - 1e-5, PROTOCOL) == "UNDECIDED"
    # 40 of 80: logit 0 +- t s, s^2 = 79/80 (40 (logit 39/79)^2 + 40 (logit 40/79)^2)
    error = math.sqrt(79 * math.log(40 / 39) ** 2)
    reach = float(stats.t.ppf(BELOW_LEVEL, 79)) * error
    bound = 1 / (1 + math.exp(-reach))
    assert share(40, 80).highest == pytest.approx(bound, abs=1e-6)
    assert gate_status(share(40, 80), 0.66, PROTOCOL) == "BELOW"
    assert gate_status(share(40, 80), 0.64, PROTOCOL) == "UNDECIDED"
    assert 0.64 < bound < 0.66


def test_a_value_under_the_threshold_with_a_wide_interval_is_undecided() -> None:
    """Both read .5 against .6; only 400 tasks tell them apart."""
    assert share(5, 10).value == share(200, 400).value == 0.5
    assert gate_status(share(5, 10), 0.6, PROTOCOL) == "UNDECIDED"
    assert gate_status(share(200, 400), 0.6, PROTOCOL) == "BELOW"


def test_a_level_at_its_requirements_is_seldom_called_below() -> None:
    """Every gate of the fullest level reads a share of 60 tasks whose truth is .6."""
    gates = max(Counter(rule.level for rule in PROTOCOL.gates).values())
    drawn = np.random.default_rng(0).binomial(60, 0.6, (2000, gates))

    def called(level: float) -> float:
        answers = [gate_status(share(ones, 60, level), 0.6, PROTOCOL) for ones in range(61)]
        return float((np.array(answers) == "BELOW")[drawn].any(axis=1).mean())

    assert called(BELOW_LEVEL) <= 0.05
    assert called(PROTOCOL.statistics.gate_level) > 0.3  # one bound for each gate alone


@pytest.mark.parametrize("name", sorted(find("gates")))
def test_every_gate_says_required_measured_and_why(name: str) -> None:
    rules = [rule for rule in PROTOCOL.gates if rule.gate == name]
    assert rules, f"no line of the default protocol uses gate {name}"
    empty = findings(
        row=dict.fromkeys("AGPMTRSEW$"),
        indices={
            "core": IndexScore(
                name="core",
                value=None,
                missing=("M",),
                tasks_like_these=BAND,
                same_tasks=BAND,
                reason="no evidence on M",
            )
        },
        core=GateReading(),
        kappas=(),
        closures={},
        assurance=None,
    )
    for rule in rules:
        found = find("gates")[name].plugin.judge(rule, empty)
        assert found.status == "NO EVIDENCE"
        assert found.required
        assert found.reason
        assert found.level == rule.level


def test_all_gates_of_level_one_place_an_agent() -> None:
    found = findings(assurance=None)
    placed = place(judge_gates(found), PROTOCOL)
    assert (placed.level, placed.text) == (1, "AAI-1")


def test_level_two_waits_for_its_evidence() -> None:
    results = judge_gates(findings())
    open_gates = [r.gate for r in results if r.level == 2 and r.status != "PASS"]
    assert open_gates == ["cognitive"]


def test_a_level_that_rests_on_provisional_norms_says_so() -> None:
    passed = tuple(
        msgspec.structs.replace(result, status="PASS")
        for result in judge_gates(findings())
        if result.level <= 2
    )
    high = tuple(r for r in judge_gates(findings()) if r.level > 2)
    placed = place((*passed, *high), PROTOCOL)
    assert (placed.level, placed.text) == (2, "AAI-2 (provisional norms)")
    assert placed.provisional


def test_a_gap_below_stops_a_level_above() -> None:
    results = tuple(
        msgspec.structs.replace(r, status="NO EVIDENCE" if r.level == 2 else "PASS")
        for r in judge_gates(findings())
    )
    assert place(results, PROTOCOL).level == 1


def test_a_gate_of_level_one_that_is_below_is_level_zero() -> None:
    found = findings(row={"G": 0.06, "P": 0.03})
    placed = place(judge_gates(found), PROTOCOL)
    assert (placed.level, placed.text) == (0, "AAI-0, below AAI-1 (G, P BELOW)")


def wide(found: Findings, **bounds: tuple[float, float, float]) -> Findings:
    """Return findings whose axes have these values between these bounds."""
    axes = dict(found.axes)
    for symbol, (value, lower, highest) in bounds.items():
        changes = {"value": value, "lower": lower, "highest": highest}
        axes[symbol] = msgspec.structs.replace(axes[symbol], **changes)
    return found._replace(axes=axes)


@pytest.mark.parametrize("automation", [False, True])
def test_level_zero_is_never_said_of_what_is_undecided(automation: bool) -> None:
    """With a true G of .256 against .20, AAI-0 was said in .62 to .96 of the runs."""
    found = wide(findings(), G=(0.15, 0.02, 0.4), A=(0.58, 0.44, 0.7))
    placed = place(judge_gates(found), PROTOCOL, automation=automation)
    assert placed.level is None
    assert placed.text == (
        "undecided between AAI-0 and AAI-1 (A 0.580 [0.440, 0.700] against 0.50; "
        "G 0.150 [0.020, 0.400] against 0.20)"
    )
    told = wide(found, P=(0.1, 0.05, 0.299))
    placed = place(judge_gates(told), PROTOCOL)
    assert (placed.level, placed.text) == (0, "AAI-0, below AAI-1 (P BELOW)")


def test_what_is_undecided_and_what_has_no_evidence_are_both_named() -> None:
    found = wide(findings(row={"P": None}), A=(0.45, 0.3, 0.6))
    placed = place(judge_gates(found), PROTOCOL)
    assert placed.level is None
    assert placed.text == (
        "not placed (no evidence on P; undecided: A 0.450 [0.300, 0.600] against 0.50)"
    )


def test_a_level_above_that_is_undecided_leaves_the_level_below() -> None:
    found = wide(findings(assurance=3), A=(0.55, 0.5, 0.65))
    assert status(found, "A").status == "UNDECIDED"
    placed = place(judge_gates(found), PROTOCOL)
    assert (placed.level, placed.text) == (1, "AAI-1")


@pytest.mark.parametrize(
    ("row", "mild", "words"),
    [
        ({"G": 0.1, "P": 0.03}, 0.599, "fixed automation"),
        ({"G": 0.1, "P": 0.03}, 0.6, "below AAI-1"),
        ({"G": 0.11, "P": 0.03}, 0.0, "below AAI-1"),
        ({"A": 0.49}, 0.9, "below AAI-1"),
        ({"G": 0.1, "P": None}, 0.0, "below AAI-1"),
        ({"G": 0.1, "P": 0.03}, None, "below AAI-1"),
    ],
)
def test_fixed_automation_is_said_of_nothing_else(
    row: dict[str, Any], mild: float | None, words: str
) -> None:
    found = findings(row=row)
    # Its value lies under .6 in each row: only the upper bound says that it is tested.
    found.axes["T"].details["beside"]["success at 0.25"] |= {"value": 0.5, "highest": mild}
    automation = is_fixed_automation(found.axes, PROTOCOL)
    placed = place(judge_gates(found), PROTOCOL, automation=automation)
    assert placed.text.startswith(f"AAI-0, {words} (")


def test_lacking_evidence_is_not_level_zero() -> None:
    placed = place(judge_gates(findings(row={"P": None})), PROTOCOL)
    assert (placed.level, placed.text) == (None, "not placed (no evidence on P)")


def test_tools_gate_reads_both_parts() -> None:
    assert status(findings(), "T", 1).status == "PASS"
    found = findings()
    few = axis("T", 0.66)
    few.details["beside"]["categories used"]["value"] = 2.0
    found.axes["T"] = few  # type: ignore[index]
    line = status(found, "T", 1)
    assert (line.status, line.reason) == ("UNDECIDED", "2 kinds of tool against 3")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "PASS"),
        ({"slope": None, "p": 1.0}, "PASS"),  # the paper's kappa is printed, not read
        ({"gain": gained(per_unit=0.0049)}, "UNDECIDED"),
        ({"gain": gained(value=0.0199)}, "UNDECIDED"),
        # the fault: cheap and nothing
        ({"gain": gained(value=0.0007, per_unit=43.978)}, "UNDECIDED"),
        ({"gain": gained(p=0.026)}, "UNDECIDED"),
        ({"human": "help in 3 practice episodes"}, "UNDECIDED"),
        ({"checkpoints": 6}, "NO EVIDENCE"),
        ({"gain": None, "reason": "too few checkpoints: 3 of 7"}, "NO EVIDENCE"),
        ({"gain": TotalGain(reason="no frozen control was played")}, "NO EVIDENCE"),
    ],
)
def test_kappa_gate(change: dict[str, Any], expected: str) -> None:
    score = msgspec.structs.replace(findings().kappas[0], **change)
    line = status(findings(kappas=(score,)), "kappa")
    assert line.status == expected
    assert bool(line.reason) == (expected != "PASS")


def test_holm_counts_every_planned_family() -> None:
    """One of two at .02 passes alone, and not beside a family that was dropped."""
    good = msgspec.structs.replace(findings().kappas[0], gain=gained(p=0.02))
    gone = msgspec.structs.replace(good, family="g", gain=None, reason="gone")
    assert status(findings(kappas=(good,)), "kappa").status == "PASS"
    assert status(findings(kappas=(good, gone)), "kappa").status == "UNDECIDED"
    strong = msgspec.structs.replace(good, gain=gained(p=0.0125))
    assert status(findings(kappas=(strong, gone)), "kappa").status == "PASS"


def test_none_of_no_families_is_no_evidence() -> None:
    for level in (2, 3, 4):
        found = status(findings(kappas=()), "kappa", level)
        assert found.status == "NO EVIDENCE"
        assert "no family was planned" in found.reason


def test_one_family_is_not_three() -> None:
    three = status(findings(), "kappa", 3)
    assert three.status == "NO EVIDENCE"
    assert three.required == (
        "over the frozen control >= 0.02 gained, >= 0.005 a kappa unit, on 3 families, "
        "7 days with spending"
    )


@pytest.mark.parametrize(
    ("rung", "expected"), [(3, "PASS"), (2, "NO EVIDENCE"), (None, "NO EVIDENCE")]
)
def test_assurance_gate(rung: int | None, expected: str) -> None:
    assert status(findings(assurance=rung), "assurance").status == expected


def test_a_closure_that_fails_is_undecided_until_it_is_tested_below() -> None:
    for state, below, expected in (
        ("NOT TESTED", False, "NO EVIDENCE"),
        ("NO EVIDENCE", True, "NO EVIDENCE"),
        ("FAIL", False, "UNDECIDED"),
        ("FAIL", True, "BELOW"),
    ):
        closure = ClosureResult(name="maintenance", status=state, reason="because", below=below)
        line = status(findings(closures={"maintenance": closure}), "maintenance closure")
        assert (line.status, line.measured, line.reason) == (expected, state, "because")


def test_what_level_four_asks_beyond_is_no_evidence_yet() -> None:
    for gate in ("kappa", "maintenance closure", "expansion closure"):
        assert status(findings(), gate, 4).status == "NO EVIDENCE"


def test_norms_gate_needs_norms_and_instances() -> None:
    rule = GateRule(level=4, gate="norms", count=20)
    gate = find("gates")["norms"].plugin
    assert "no human norms" in gate.judge(rule, findings()).reason

    def judged(rule: GateRule = rule, **changes: Any) -> GateResult:
        least = PROTOCOL.norms.experts_min
        given = {
            "provisional": False,
            "experts": {"s/f": (0.8, 0.02)},
            "expert_counts": {"s/f": least},
            "families": {"s/f": 0.8},
        } | changes
        limits = msgspec.structs.replace(PROTOCOL.generality, families=given.pop("families"))
        norms = msgspec.structs.replace(PROTOCOL.norms, **given)
        protocol = msgspec.structs.replace(PROTOCOL, norms=norms, generality=limits)
        found = findings(protocol=protocol)
        found.axes["G"].details["thresholds"] = {"s/f": 0.8}
        return gate.judge(rule, found)

    assert judged().status == "PASS"
    for changes, why in (
        ({"rule": msgspec.structs.replace(rule, count=21)}, "holds 20 instances"),
        ({"provisional": True}, "no human norms"),
        ({"expert_counts": {"s/f": 4}}, "fewer than 5 experts: s/f"),
        ({"experts": {}}, "no threshold from experts: s/f"),
        ({"families": {}}, "no threshold from experts: s/f"),
        ({"families": {"s/f": 0.6}}, "below its experts' mean: s/f"),
    ):
        result = judged(**changes)
        assert result.status == "NO EVIDENCE"
        assert why in result.reason
