"""What a gate is, what it may read, and the one rule by which gates pass."""

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple, Protocol

from owa_bench.records.protocol import GateRule
from owa_bench.records.protocol import Protocol as Numbers
from owa_bench.records.score import (
    AxisScore,
    ClosureResult,
    GateResult,
    GateStatus,
    IndexScore,
    Interval,
    KappaScore,
)
from owa_bench.scoring.projects import Projects


class Reading(NamedTuple):
    """A statistic with the one-sided bounds that gates read; None: no evidence."""

    value: float | None = None
    lower: float | None = None
    upper: float | None = None


class Findings(NamedTuple):
    """Everything judged about one agent before its gates."""

    axes: Mapping[str, AxisScore]
    lower: Mapping[str, float | None]
    indices: Mapping[str, IndexScore]
    kappas: tuple[KappaScore, ...]
    closures: Mapping[str, ClosureResult]
    assurance: int | None
    evidence: tuple[str, ...]
    protocol: Numbers
    cognition: Mapping[str, Reading] = {}
    projects: Projects = Projects()
    delivered: Reading = Reading()


class Gate(Protocol):
    """Judges the lines of a protocol's gate table that carry its name."""

    name: str

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return required, measured, interval, evidence and status of one line."""


def reaches(value: float, required: float, decimals: int) -> bool:
    """Return whether `value` >= `required` when both carry fixed decimals.

    >>> reaches(0.1 + 0.2, 0.3, 6), reaches(0.2999994, 0.3, 6)
    (True, False)
    """
    step = Decimal(1).scaleb(-decimals)
    one, other = (Decimal(repr(float(x))).quantize(step) for x in (value, required))
    return one >= other


def verdict(
    value: float | None, lower: float | None, required: float, protocol: Numbers
) -> GateStatus:
    """Return PASS if the point reaches `required` and its bound comes near enough.

    Formula:
        PASS iff point >= required and lower bound >= required - slack
        (one-sided 95 percent bound over *tasks like these*)
    Missing: NO EVIDENCE without a point or, where the point would pass, a bound.
    Source: [D] section 5 of `aai-scale.md`, procedure.
    """
    rules = protocol.statistics
    if value is None:
        return "NO EVIDENCE"
    if not reaches(value, required, rules.gate_decimals):
        return "FAIL"
    if lower is None:
        return "NO EVIDENCE"
    near = reaches(lower, required - rules.gate_slack, rules.gate_decimals)
    return "PASS" if near else "FAIL"


def result(
    rule: GateRule,
    gate: str,
    status: GateStatus,
    *,
    required: str,
    measured: str = "nothing",
    reason: str = "",
    interval: Interval | None = None,
    evidence: tuple[str, ...] = (),
) -> GateResult:
    """Return a line of the gate table."""
    return GateResult(
        level=rule.level,
        gate=gate,
        required=required,
        measured=measured,
        interval=interval,
        status=status,
        evidence=evidence,
        reason=reason,
    )
