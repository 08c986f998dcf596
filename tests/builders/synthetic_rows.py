"""The AAI paper's synthetic rows (section 5), and what has to be assumed to place them.

The row is the seed's; every line of `SUPPLEMENT` is assumed.
"""

from typing import Any

import numpy as np

from owa_bench.records.score import (
    AxisScore,
    ClosureResult,
    IndexScore,
    Interval,
    KappaScore,
    TotalGain,
)
from owa_bench.scoring.estimate.composites import composite
from owa_bench.scoring.estimate.gate_statistics import ProjectOutcomes
from owa_bench.scoring.gate import Findings, GateReading
from tests.builders.episodes import PROTOCOL

AXES = tuple("AGPMTRSW$")
ROWS: dict[str, tuple[float, ...]] = {
    "RPA Bot": (0.98, 0.06, 0.03, 0.12, 0.12, 0.00, 0.00, 0.32, 0.41),
    "Agentic LLM": (0.64, 0.33, 0.47, 0.43, 0.59, 0.00, 0.18, 0.58, 0.37),
    "Self-Improving": (0.68, 0.36, 0.54, 0.51, 0.63, 0.27, 0.23, 0.61, 0.42),
    "Orchestrator": (0.73, 0.41, 0.66, 0.60, 0.76, 0.38, 0.46, 0.65, 0.48),
}
SEED_INDEX = {"RPA Bot": 0.13, "Agentic LLM": 0.40, "Self-Improving": 0.47, "Orchestrator": 0.59}
SEED_KAPPA = {"RPA Bot": 0.0, "Agentic LLM": 0.0, "Self-Improving": 0.007, "Orchestrator": 0.012}
# (slope, low, high, days) by family; assumed but for the paper's narrative intervals
KAPPAS = {
    "Self-Improving": ((0.007, 0.004, 0.010, 9),),
    "Orchestrator": ((0.012, 0.009, 0.015, 9), (0.012, 0.009, 0.015, 9), (0.002, -0.001, 0.005, 9)),
}
CLOSURES = {"Self-Improving": {"maintenance"}, "Orchestrator": {"maintenance", "expansion"}}
SUPPLEMENT = (
    "axis bounds = points: assumed",
    "S_net = S: assumed",
    "3 tools at .6 under mild drift: assumed",
    "kappa intervals and days: narrative; p values: assumed",
    "closures: narrative; maintenance of the Orchestrator: assumed",
    "cognitive gate, core score, assurance V3, project delivered: assumed",
)
_BLANK = Interval(low=None, high=None, method="none", reason="the seed gives none")


def _axis(symbol: str, value: float | None, *, supplied: bool) -> AxisScore:
    beside: dict[str, Any] = {}
    if supplied and symbol == "T":
        beside = {
            "categories used": {"value": 3.0},
            "success at 0.25": {"value": 0.6, "lower": 0.6, "highest": 0.6},
        }
    if supplied and symbol == "S":
        bounds = dict.fromkeys(("value", "lower", "highest"), value)
        beside = {"S_net": bounds | {"low": None, "high": None}}
    return AxisScore(
        name=symbol,
        symbol=symbol,
        raw=value,
        value=value,
        low_anchor=0.0,
        high_anchor=1.0,
        used=0,
        cells=0,
        reason=None if value is not None else "the seed gives none",
        same_tasks=_BLANK,
        tasks_like_these=_BLANK,
        lower=value if supplied else None,
        highest=value if supplied else None,
        gated="S_net" if supplied and symbol == "S" else None,
        details={"beside": beside, "categories": ["browser", "files", "http_api"]},
    )


def _kappa(place: int, numbers: tuple[float, float, float, int]) -> KappaScore:
    slope, low, high, days = numbers
    return KappaScore(
        family=f"family {place}",
        slope=slope,
        interval=Interval(low=low, high=high, method="narrative"),
        checkpoints=days,
        reason=None,
        points=((0.0, 0.4), (10.0, 0.4 + 10 * slope)),
        p=0.001 if low > 0 else 0.2,
        gain=TotalGain(
            value=10 * slope,
            low=10 * low,
            p=0.001 if low > 0 else 0.2,
            units=10.0,
            usd=40.0,
            unit_usd=4.0,
            per_unit=slope,
            days=4,
            tasks=20,
        ),
    )


def findings(name: str, *, supplied: bool) -> Findings:
    """Return what the gates read of an archetype, with or without the supplement."""
    row = dict(zip(AXES, ROWS[name], strict=True))
    axes = {s: _axis(s, row.get(s), supplied=supplied) for s in (*AXES, "E")}
    core = float(composite([np.array([row[s]]) for s in "GPMW"], [1.0] * 4)[0])
    score = IndexScore(
        name="core", value=core, missing=(), tasks_like_these=_BLANK, same_tasks=_BLANK
    )
    kappas = enumerate(KAPPAS.get(name, ()))
    closed = CLOSURES.get(name, set())
    whole: dict[str, Any] = {
        "axes": axes,
        "indices": {"core": score},
        "kappas": tuple(_kappa(i, k) for i, k in kappas) if supplied else (),
        "closures": {
            kind: ClosureResult(
                name=kind, status="PASS" if kind in closed else "FAIL", reason="assumed"
            )
            for kind in ("maintenance", "expansion")
            if supplied
        },
        "assurance": 3 if supplied else None,
        "evidence": (),
        "protocol": PROTOCOL,
    }
    if supplied:
        whole["core"] = GateReading(core, core, core)
        held = {"vrp": 0.9, "truthful": 0.95, "span": 5.0, "delayed": 0.6}
        whole["cognition"] = {k: GateReading(v, v, v) for k, v in held.items()}
        whole["projects"] = ProjectOutcomes(number=20, days=30.0, cost=2.0)
        whole["delivered"] = GateReading(0.7, 0.6, 0.8)
    return Findings(**whole)


def recomputed(name: str) -> float:
    """Return the index of eq 12 on a row, software annex."""
    row = dict(zip(AXES, ROWS[name], strict=True))
    weights = {str(s): w for s, w in PROTOCOL.index.weights.items() if w > 0}
    return float(composite([np.array([row[s]]) for s in weights], list(weights.values()))[0])
