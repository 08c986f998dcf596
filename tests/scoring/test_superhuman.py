"""AAI-5: margins over experts, and six gates that need norms."""

import msgspec
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.score import GateResult
from owa_bench.scoring.estimate.gate_statistics import FamilyQuality, coverage, margin
from owa_bench.scoring.gate import SuperhumanEvidence, judge_gates, place, superhuman_gates
from tests.builders.episodes import PROTOCOL
from tests.scoring.test_levels import axis, findings

EXPERTS = {"s/a": (0.80, 0.02), "s/b": (0.70, 0.02)}
NORMED = msgspec.structs.replace(
    PROTOCOL, norms=msgspec.structs.replace(PROTOCOL.norms, experts=EXPERTS, provisional=False)
)
AHEAD = {"s/a": FamilyQuality(0.95, 0.01), "s/b": FamilyQuality(0.9, 0.01)}
WHOLE = SuperhumanEvidence(AHEAD, curvature_low=0.01, innovation=0.8, link_steps=2)


def gates(held: SuperhumanEvidence = WHOLE, value: float = 0.97) -> tuple[GateResult, ...]:
    axes = {s: axis(s, value) for s in "AGPMTRSW$"} | {"E": axis("E", None)}
    return superhuman_gates(held, axes, NORMED)


def test_a_lead_must_be_significant_and_large() -> None:
    small = {"s/a": FamilyQuality(0.815, 0.0001), "s/b": FamilyQuality(0.75, 0.2)}
    tight = {"s/a": (0.80, 0.0001), "s/b": (0.70, 0.02)}
    assert coverage(small, tight, 1.96, 0.02) == 0.0
    assert coverage(AHEAD, EXPERTS, 1.96, 0.02) == 1.0
    assert coverage({}, EXPERTS, 1.96, 0.02) == 0.0


def test_every_gate_passes_and_each_can_be_missed() -> None:
    assert [g.status for g in gates()] == ["PASS"] * 6
    for change, gate in (
        ({"families": {}}, "G1 coverage"),
        ({"curvature_low": -0.01}, "G2 acceleration"),
        ({"innovation": 0.5}, "G5 innovation"),
        ({"link_steps": 1}, "G6 link steps"),
    ):
        [short] = [g for g in gates(WHOLE._replace(**change)) if g.status != "PASS"]
        assert (short.gate, short.status) == (gate, "UNDECIDED")
        assert short.reason == "not reached; no test says BELOW"
    low = {g.gate: g.reason for g in gates(value=0.85) if g.status == "BELOW"}
    assert low == {
        "G3 sociality": "0.850 [0.850, 0.850] against 0.95",
        "G4 economics": "0.850 [0.850, 0.850] against 0.90",
    }


def test_without_norms_nothing_is_known() -> None:
    axes = {s: axis(s, 0.99) for s in "AGPMTRSW$E"}
    found = superhuman_gates(WHOLE, axes, PROTOCOL)
    assert len(found) == 7
    assert {g.status for g in found} == {"NO EVIDENCE"}
    assert {g.reason for g in found} == {"no norms of experts"}


def test_level_five_needs_every_level_below() -> None:
    below = tuple(msgspec.structs.replace(g, status="PASS") for g in judge_gates(findings()))
    assert place(below, NORMED).level == 4
    assert place((*below, *gates()), NORMED).level == 5


def test_bad_input_is_refused() -> None:
    for numbers in ((0.9, 0.0, 0.8, 0.0), (0.9, -1.0, 0.8, 1.0), (1.9, 0.1, 0.8, 0.1)):
        with pytest.raises(ScoringError):
            margin(*numbers)
    with pytest.raises(ScoringError):
        coverage(AHEAD, {}, 1.96, 0.02)
