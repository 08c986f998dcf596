"""Gates of AAI-3 and AAI-4 that read projects and the logit link."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from owa_bench.records.score import ClosureResult
from owa_bench.records.trace import Trace
from owa_bench.scoring.gate import judge_gates
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict
from tests.scoring.test_levels import findings, status


def projects(delivered: int, *, days: float = 30, spend: float = 1.0) -> list[Trace]:
    return [
        episode(
            index=k,
            pair=f"p{k}",
            suite="projforge",
            family="service",
            days=days,
            q_state=1.0 if k < delivered else 0.5,
            costs=(("supervisor_min", spend, "agent"),),
        )
        for k in range(20)
    ]


@pytest.mark.parametrize(
    ("traces", "level", "expected"),
    [
        (projects(19), 3, "PASS"),
        (projects(8), 3, "FAIL"),
        (projects(19, days=29), 3, "NO EVIDENCE"),
        (projects(19), 4, "PASS"),
        (projects(19, spend=100.0), 4, "FAIL"),
        ([episode()], 3, "NO EVIDENCE"),
    ],
)
def test_project_gate(traces: list[Trace], level: int, expected: str) -> None:
    gates = verdict(traces).gates
    found = next(g for g in gates if g.gate == "project" and g.level == level)
    assert found.status == expected, found.reason


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "PASS"),
        ({"logit": 0.019}, "FAIL"),
        ({"logit_p": 0.03}, "FAIL"),
        ({"checkpoints": 29}, "NO EVIDENCE"),
        ({"logit": None}, "NO EVIDENCE"),
        ({"logit": None, "floor": 0.96}, "PASS"),  # saturated families are exempt
    ],
)
def test_logit_slope_of_level_four(change: dict[str, Any], expected: str) -> None:
    fit = {
        "logit": 0.05,
        "logit_p": 0.001,
        "checkpoints": 30,
        "floor": 0.7,
    }
    score = msgspec.structs.replace(findings().kappas[0], **(fit | change))
    assert status(findings(kappas=(score,)), "kappa", 4).status == expected


@pytest.mark.parametrize(("days", "expected"), [(30, "PASS"), (29, "NO EVIDENCE")])
def test_closures_of_level_four_are_sustained(days: int, expected: str) -> None:
    held = ClosureResult(name="maintenance", status="PASS", reason="", days=days)
    found = findings(closures={"maintenance": held})
    assert status(found, "maintenance closure", 4).status == expected


@pytest.mark.parametrize(
    ("name", "gate"), [("axis", "A"), ("kappa", "kappa"), ("expansion", "expansion")]
)
def test_a_gate_whose_interval_covers_too_little_is_no_evidence(
    name: str, gate: str
) -> None:
    rules = msgspec.structs.replace(PROTOCOL.statistics, uncovered=(name,))
    uncovered = msgspec.structs.replace(PROTOCOL, statistics=rules)
    plain, changed = findings(), findings(protocol=uncovered)
    pairs = list(zip(judge_gates(plain), judge_gates(changed), strict=True))
    moved = [after for before, after in pairs if before != after]
    assert moved
    assert {result.status for result in moved} == {"NO EVIDENCE"}
    assert all(gate in result.gate for result in moved if name != "axis")
    assert all("interval_coverage.md" in result.reason for result in moved)


def test_the_protocol_names_the_gates_that_the_table_finds_below() -> None:
    table = Path(__file__).parents[2] / "docs" / "tables" / "interval_coverage.md"
    line = next(x for x in table.read_text().splitlines() if x.startswith("Gates with"))
    named = line.partition(": ")[2]
    below = () if named == "none" else tuple(named.split(", "))
    assert tuple(sorted(PROTOCOL.statistics.uncovered)) == below
