"""Gates and levels: what passes, what fails, and what nobody knows."""

from typing import Any

import msgspec
import pytest

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
from tests.builders.episodes import PROTOCOL

BAND = Interval(low=0.0, high=1.0, method="m")


def axis(symbol: str, value: float | None) -> AxisScore:
    beside = {
        "categories used": {"value": 3.0, "lower": 3.0},
        "success at 0.25": {"value": 0.6, "lower": 0.6},
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
        details={"beside": beside, "fewest tasks a family": 20},
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
        "lower": row | {"core": 0.66},
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
    ("value", "lower", "expected"),
    [
        (0.60, 0.55, "PASS"),
        (0.60, 0.549999, "FAIL"),
        (0.599999, 0.599999, "FAIL"),
        (0.5999999, 0.58, "PASS"),  # equal in six decimals
        (0.1 + 0.5, 0.55, "PASS"),
        (None, None, "NO EVIDENCE"),
        (0.9, None, "NO EVIDENCE"),
        (0.1, None, "FAIL"),
    ],
)
def test_pass_rule(value: float | None, lower: float | None, expected: str) -> None:
    assert gate_status(GateReading(value, lower), 0.6, PROTOCOL) == expected


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
        lower={},
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


def test_failing_level_one_is_level_zero() -> None:
    found = findings(row={"G": 0.06, "P": 0.03})
    placed = place(judge_gates(found), PROTOCOL)
    assert (placed.level, placed.text) == (0, "AAI-0, below AAI-1 (G, P FAIL)")


@pytest.mark.parametrize(
    ("row", "mild", "words"),
    [
        ({"G": 0.1, "P": 0.03}, 0.59, "fixed automation"),
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
    found.axes["T"].details["beside"]["success at 0.25"] |= {"value": mild}
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
    assert status(found, "T", 1).status == "FAIL"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "PASS"),
        ({"slope": None, "p": 1.0}, "PASS"),  # the paper's kappa is printed, not read
        ({"gain": gained(per_unit=0.0049)}, "FAIL"),
        ({"gain": gained(value=0.0199)}, "FAIL"),
        ({"gain": gained(value=0.0007, per_unit=43.978)}, "FAIL"),  # the fault: cheap and nothing
        ({"gain": gained(p=0.026)}, "FAIL"),
        ({"human": "help in 3 practice episodes"}, "FAIL"),
        ({"checkpoints": 6}, "NO EVIDENCE"),
        ({"gain": None, "reason": "too few checkpoints: 3 of 7"}, "NO EVIDENCE"),
        ({"gain": TotalGain(reason="no frozen control was played")}, "NO EVIDENCE"),
    ],
)
def test_kappa_gate(change: dict[str, Any], expected: str) -> None:
    score = msgspec.structs.replace(findings().kappas[0], **change)
    assert status(findings(kappas=(score,)), "kappa").status == expected


def test_holm_counts_every_planned_family() -> None:
    """One of two at .02 passes alone, and not beside a family that was dropped."""
    good = msgspec.structs.replace(findings().kappas[0], gain=gained(p=0.02))
    gone = msgspec.structs.replace(good, family="g", gain=None, reason="gone")
    assert status(findings(kappas=(good,)), "kappa").status == "PASS"
    assert status(findings(kappas=(good, gone)), "kappa").status == "FAIL"
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


def test_not_tested_is_no_evidence_and_fail_fails() -> None:
    for state, expected in (("NOT TESTED", "NO EVIDENCE"), ("FAIL", "FAIL")):
        closure = ClosureResult(name="maintenance", status=state, reason="because")
        found = findings(closures={"maintenance": closure})
        assert status(found, "maintenance closure").status == expected


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
