"""Gates and levels: findings, the rule by which a gate passes, level placement."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

from owa_bench.discovery import get
from owa_bench.records.protocol import GateRule, Protocol
from owa_bench.records.score import (
    AxisScore,
    ClosureResult,
    GateResult,
    GateStatus,
    IndexScore,
    Interval,
    KappaScore,
)
from owa_bench.scoring.gate_statistics import ProjectOutcomes

HIGHEST = 5
NOT_PLACED = "not placed"


class GateReading(NamedTuple):
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
    protocol: Protocol
    cognition: Mapping[str, GateReading] = {}
    projects: ProjectOutcomes = ProjectOutcomes()
    delivered: GateReading = GateReading()


class Gate(NamedTuple):
    """A gate: judges the lines of a protocol's gate table that carry its name."""

    name: str
    judge: Callable[[GateRule, Findings], GateResult]


def reaches(value: float, required: float, decimals: int) -> bool:
    """Return whether a value is at least the required one in fixed decimals.

    Args:
        value: Number to compare.
        required: Threshold.
        decimals: Decimals that both are rounded to.

    Returns:
        Whether value >= required.

    >>> reaches(0.1 + 0.2, 0.3, 6), reaches(0.2999994, 0.3, 6)
    (True, False)
    """
    step = Decimal(1).scaleb(-decimals)
    one, other = (Decimal(repr(float(x))).quantize(step) for x in (value, required))
    return one >= other


def gate_status(read: GateReading, required: float, protocol: Protocol) -> GateStatus:
    """Return PASS if a value reaches `required` and its lower bound comes close to it.

    Formula:
        PASS iff point >= required and lower bound >= required - slack
        (one-sided 95 percent bound over *tasks like these*)
    Shapes: scalars. Units: those of the statistic.
    Missing: NO EVIDENCE without a point or, where the point would pass, a bound.
    Errors: none.
    Source: [D] docs/scoring.md#gates.
    """
    rules = protocol.statistics
    if read.value is None:
        return "NO EVIDENCE"
    if not reaches(read.value, required, rules.gate_decimals):
        return "FAIL"
    if read.lower is None:
        return "NO EVIDENCE"
    near = reaches(read.lower, required - rules.gate_slack, rules.gate_decimals)
    return "PASS" if near else "FAIL"


def gated_statistic(axis: AxisScore, lower: float | None) -> GateReading:
    """Return the statistic of an axis that gates read.

    Args:
        axis: Score of the axis.
        lower: Lower bound of its value.

    Returns:
        The value, or the secondary statistic that the axis declares in its place.
    """
    if axis.gated is None or axis.value is None:
        return GateReading(axis.value, lower)
    table = axis.details["beside"][axis.gated]
    return GateReading(table["value"], table["lower"])


def gate_result(
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
    """Return a line of the gate table.

    Args:
        rule: The protocol's line.
        gate: Name to print.
        status: PASS, FAIL or NO EVIDENCE.
        required: Requirement in words.
        measured: Measurement in words.
        reason: Why there is no evidence, or what else to know.
        interval: Interval of the statistic.
        evidence: Attempts that the line rests on.

    Returns:
        The line.
    """
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


class LevelPlacement(NamedTuple):
    """A level (None: not placed), its words, and whether it rests on provisional norms.

    `gates` are all lines of the gate table, in the protocol's order.
    """

    level: int | None
    text: str
    provisional: bool
    gates: tuple[GateResult, ...]


def judge_gates(findings: Findings) -> tuple[GateResult, ...]:
    """Return the result of every line of the protocol's gate table."""
    rules = findings.protocol.gates
    return tuple(get("gates", rule.gate).judge(rule, findings) for rule in rules)


def place(gates: tuple[GateResult, ...], protocol: Protocol) -> LevelPlacement:
    """Return the highest level all of whose gates, and those below it, pass.

    NO EVIDENCE is never a pass. AAI-0 is given only where a gate of AAI-1 FAILs;
    otherwise the agent is not placed.

    Args:
        gates: Judged lines of the gate table.
        protocol: Published numbers.

    Returns:
        The level and its words.
    """
    for level in range(HIGHEST, 0, -1):
        below = all(g.status == "PASS" for g in gates if g.level <= level)
        if below and any(g.level == level for g in gates):
            provisional = _provisional(level, protocol)
            mark = " (provisional norms)" if provisional else ""
            return LevelPlacement(level, f"AAI-{level}{mark}", provisional, gates)
    failed = [g.gate for g in gates if g.level == 1 and g.status == "FAIL"]
    if failed:
        return LevelPlacement(0, f"AAI-0 ({', '.join(failed)} FAIL)", False, gates)
    lacking = [g.gate for g in gates if g.level == 1 and g.status == "NO EVIDENCE"]
    return no_level(f"no evidence on {', '.join(lacking)}", gates)


def _provisional(level: int, protocol: Protocol) -> bool:
    """Return whether a level rests on norms that no human set."""
    return protocol.norms.provisional and any(
        rule.gate in {"cognitive", "core"} and rule.level <= level
        for rule in protocol.gates
    )


def no_level(reason: str, gates: tuple[GateResult, ...] = ()) -> LevelPlacement:
    """Return the placement of a run that gives no level.

    Args:
        reason: Why not.
        gates: Judged lines of the gate table.

    Returns:
        A placement without a level.
    """
    return LevelPlacement(None, f"{NOT_PLACED} ({reason})", False, gates)
