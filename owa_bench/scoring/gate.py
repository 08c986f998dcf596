"""Gates and levels: findings, the three answers of a gate, placement, AAI-5."""

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import msgspec

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
from owa_bench.scoring.estimate.gate_statistics import FamilyQuality, ProjectOutcomes, coverage
from owa_bench.scoring.observe.sample import NOT_APART, SURROGATE

HIGHEST = 5
# Thresholds of the norms that a gate reads.
_NORMS_READ = {"cognitive": ("span", "delayed_recall"), "core": ("core",)}
_OF_LANES = ("kappa", "closure")  # gates that read lanes against their controls
NOT_PLACED = "not placed"
CONTROL_POLICY = "a control policy, which knows the world"
UNDECIDED = "undecided between AAI-0 and AAI-1"
UNDERPOWERED = "under-powered, not a placement"
UNTESTED = "not reached; no test says BELOW"


class GateReading(NamedTuple):
    """A statistic with the one-sided bounds that gates read; None: no evidence.

    `lower` is the lower bound at the protocol's `gate_level`, `highest` the upper one at its
    `below_level`, infinite for a count without an error.
    """

    value: float | None = None
    lower: float | None = None
    highest: float | None = None

    def against(self, required: float) -> str:
        """Return value and bounds against what is required, in words.

        >>> GateReading(0.58, 0.52, 0.64).against(0.6)
        '0.580 [0.520, 0.640] against 0.60'
        >>> GateReading(4.0, 4.0, math.inf).against(5)
        '4 against 5'
        """
        if self.highest == math.inf:
            return f"{self.value:g} against {required:g}"
        ends = ["?" if x is None else f"{x:.3f}" for x in (self.lower, self.highest)]
        return f"{self.value or 0.0:.3f} [{', '.join(ends)}] against {required:.2f}"


class Findings(NamedTuple):
    """Everything judged about one agent before its gates."""

    axes: Mapping[str, AxisScore]
    indices: Mapping[str, IndexScore]
    kappas: tuple[KappaScore, ...]
    closures: Mapping[str, ClosureResult]
    assurance: int | None
    evidence: tuple[str, ...]
    protocol: Protocol
    core: GateReading = GateReading()
    cognition: Mapping[str, GateReading] = {}
    projects: ProjectOutcomes = ProjectOutcomes()
    delivered: GateReading = GateReading()
    shared_root: str = ""


class Gate(NamedTuple):
    """A gate: judges the lines of a protocol's gate table that carry its name."""

    name: str
    judge: Callable[[GateRule, Findings], GateResult]


@lru_cache(maxsize=4096)
def reaches(value: float, required: float, decimals: int) -> bool:
    """Return whether a value is at least the required one in fixed decimals.

    Args:
        value: Number to compare.
        required: Threshold.
        decimals: Decimals that both are rounded to.

    >>> reaches(0.1 + 0.2, 0.3, 6), reaches(0.2999994, 0.3, 6)
    (True, False)
    """
    if math.isinf(value):
        return value > 0
    step = Decimal(1).scaleb(-decimals)
    one, other = (Decimal(repr(float(x))).quantize(step) for x in (value, required))
    return one >= other


def gate_status(read: GateReading, required: float, protocol: Protocol) -> GateStatus:
    """Return whether a value reaches `required`, lies BELOW it, or cannot be told from it.

    Formula:
        PASS iff point >= required and lower bound >= required - slack
        BELOW iff upper bound < required; UNDECIDED else
        (one-sided bounds over *tasks like these*: lower at `gate_level`, upper at
        `below_level`, so that a level says BELOW for nothing in 1 - `gate_level` at most)
    Shapes: scalars. Units: those of the statistic.
    Missing: NO EVIDENCE without a point, or without the bound that its side asks for.
    Errors: none.
    Source: [D] docs/scoring.md#gates.
    """
    rules = protocol.statistics
    if read.value is None:
        return "NO EVIDENCE"
    reached = reaches(read.value, required, rules.gate_decimals)
    bound = read.lower if reached else read.highest
    if bound is None:
        return "NO EVIDENCE"
    if not reached:
        told = not reaches(bound, required, rules.gate_decimals)
        return "BELOW" if told else "UNDECIDED"
    near = reaches(bound, required - rules.gate_slack, rules.gate_decimals)
    return "PASS" if near else "UNDECIDED"


def status_reason(status: GateStatus, read: GateReading, required: float) -> str:
    """Return what a status rests on: "" for PASS, else the bounds or that one is missing.

    Args:
        status: Status of the statistic.
        read: The statistic with its bounds.
        required: What is required.
    """
    if status in ("BELOW", "UNDECIDED"):
        return read.against(required)
    return "" if status == "PASS" else "without a bound"


def beside_reading(table: Mapping[str, float | None]) -> GateReading:
    """Return what gates read of a row of an axis' secondary statistics."""
    return GateReading(table["value"], table["lower"], table["highest"])


def gated_statistic(axis: AxisScore) -> GateReading:
    """Return the statistic of an axis that gates read.

    Args:
        axis: Score of the axis.
    Returns: The value, or the secondary statistic that the axis declares in its place.
    """
    if axis.gated is None or axis.value is None:
        return GateReading(axis.value, axis.lower, axis.highest)
    return beside_reading(axis.details["beside"][axis.gated])


def gate_result(
    rule: GateRule,
    gate: str,
    status: GateStatus,
    required: str,
    measured: str = "nothing",
    *,
    reason: str = "",
    interval: Interval | None = None,
    evidence: tuple[str, ...] = (),
) -> GateResult:
    """Return a line of the gate table.

    Args:
        rule: The protocol's line.
        gate: Name to print.
        status: PASS, BELOW, UNDECIDED or NO EVIDENCE.
        required: Requirement in words.
        measured: Measurement in words.
        reason: Why it does not pass, or what else to know.
        interval: Interval of the statistic.
        evidence: Attempts that the line rests on.
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
    """A level (None: not placed), its words, and whether its norms are no humans'.

    `gates` are all lines of the gate table, in the protocol's order.
    """

    level: int | None
    text: str
    provisional: bool
    gates: tuple[GateResult, ...]


def judge_gates(findings: Findings) -> tuple[GateResult, ...]:
    """Return the result of every line of the protocol's gate table."""
    protocol = findings.protocol
    return tuple(
        _if_covered(
            rule.of if rule.gate == "closure" else rule.gate,
            _if_apart(get("gates", rule.gate).judge(rule, findings), rule, findings),
            protocol,
        )
        for rule in protocol.gates
    )


def _if_apart(result: GateResult, rule: GateRule, findings: Findings) -> GateResult:
    """Return NO EVIDENCE in place of a result that rests on lanes not kept apart."""
    if not findings.shared_root or rule.gate not in _OF_LANES:
        return result
    why = f"{NOT_APART}: {findings.shared_root}"
    return msgspec.structs.replace(result, status="NO EVIDENCE", reason=why)


def _if_covered(name: str, result: GateResult, protocol: Protocol) -> GateResult:
    """Return NO EVIDENCE in place of a result whose interval covers too little.

    Args:
        name: Name of the gate, or of the closure that it asks for.
        result: Result of the gate.
        protocol: Published numbers; `statistics.uncovered` names the gates.
    """
    if name not in protocol.statistics.uncovered or result.status == "NO EVIDENCE":
        return result
    why = "its interval covers less than it states (docs/tables/interval_coverage.md)"
    return msgspec.structs.replace(result, status="NO EVIDENCE", reason=why)


def is_fixed_automation(axes: Mapping[str, AxisScore], protocol: Protocol) -> bool:
    """Return whether G and P are at the floor and success under mild drift is BELOW.

    Args:
        axes: Scores of the axes by symbol.
        protocol: Published numbers.
    Returns: False where one of the three has no evidence.
    """
    most, mild = protocol.levels.automation_max, protocol.drift.mild
    asked = (r.required for r in protocol.gates if (r.level, r.gate) == (1, "tools"))
    drift = axes["T"].details.get("beside", {}).get(f"success at {mild:g}", {})
    highest, required = drift.get("highest"), next(asked, None)
    floor = [axes[symbol].value for symbol in "GP"]
    return (
        all(value is not None and value <= most for value in floor)
        and highest is not None
        and required is not None
        and not reaches(highest, required, protocol.statistics.gate_decimals)
    )


def place(
    gates: tuple[GateResult, ...], protocol: Protocol, *, automation: bool = False
) -> LevelPlacement:
    """Return the highest level all of whose gates, and those below it, pass.

    NO EVIDENCE is never a pass. AAI-0 is given only where a gate of AAI-1 says BELOW; otherwise no
    level is given, and the words name what is undecided with its bounds, and what has no evidence.

    Args:
        gates: Judged lines of the gate table.
        protocol: Published numbers.
        automation: Whether AAI-0 is called fixed automation, not "below AAI-1".
    Returns: The level and its words.
    """
    for level in range(HIGHEST, 0, -1):
        below = all(g.status == "PASS" for g in gates if g.level <= level)
        if below and any(g.level == level for g in gates):
            mark = norms_mark(level, protocol)
            words = f" ({mark} norms)" if mark else ""
            if any(SURROGATE in g.gate for g in gates if g.level <= level):
                words += f", E on a {SURROGATE}, not hardware"
            return LevelPlacement(level, f"AAI-{level}{words}", bool(mark), gates)
    first = [g for g in gates if g.level == 1]
    short = [g.gate for g in first if g.status == "BELOW"]
    if short:
        words = "fixed automation" if automation else "below AAI-1"
        text = f"AAI-0, {words} ({', '.join(short)} BELOW)"
        return LevelPlacement(0, text, False, gates)
    lacking = [g.gate for g in first if g.status == "NO EVIDENCE"]
    undecided = "; ".join(f"{g.gate} {g.reason}" for g in first if g.status == "UNDECIDED")
    if lacking:
        beside = f"; undecided: {undecided}" if undecided else ""
        return no_level(f"no evidence on {', '.join(lacking)}{beside}", gates)
    return LevelPlacement(None, f"{UNDECIDED} ({undecided})", False, gates)


def marked_underpowered(placement: LevelPlacement) -> LevelPlacement:
    """Return a placement of a battery that is too small to place an agent.

    Its gates stand as they were judged; where AAI-1 does not pass, the words name the gates.

    Args:
        placement: The placement by the rules of a whole battery.
    Returns: The placement without a level.
    """
    text = f"{placement.text} ({UNDERPOWERED})"
    return placement._replace(level=None, text=text)


def norms_mark(level: int, protocol: Protocol) -> str:
    """Return what a level's norms are short of.

    Args:
        level: Number of the level.
        protocol: Published numbers with the norms that were given.
    Returns: "provisional" where no person set a threshold that the level rests on, "synthetic"
        where programs set one, "" otherwise.
    """
    norms = protocol.norms
    read = {
        name
        for rule in protocol.gates
        if rule.level <= level
        for name in _NORMS_READ.get(rule.gate, ())
    }
    if not norms.provisional or not read:
        return ""
    if not read <= set(norms.measured):
        return "provisional"
    return "synthetic" if norms.synthetic else ""


def no_level(reason: str, gates: tuple[GateResult, ...] = ()) -> LevelPlacement:
    """Return the placement of a run that gives no level.

    Args:
        reason: Why not.
        gates: Judged lines of the gate table.
    Returns: A placement without a level.
    """
    return LevelPlacement(None, f"{NOT_PLACED} ({reason})", False, gates)


class SuperhumanEvidence(NamedTuple):
    """Statistics of AAI-5 that are no axis; None: no evidence."""

    families: Mapping[str, FamilyQuality] = {}
    curvature_low: float | None = None
    innovation: float | None = None
    link_steps: int | None = None


def superhuman_gates(
    evidence: SuperhumanEvidence, axes: Mapping[str, AxisScore], protocol: Protocol
) -> tuple[GateResult, ...]:
    """Return the six gates of AAI-5 (eqs 24-29 of the AAI paper).

    Args:
        evidence: Statistics that are no axis.
        axes: Scores of the axes by symbol.
        protocol: Published numbers; without norms of experts no line has evidence.
    Returns: A line per gate, G1 to G6.
    """
    rules, experts = protocol.superhuman, protocol.norms.experts
    decimals = protocol.statistics.gate_decimals
    body = axes["E"].lower
    covered = None
    if experts:
        covered = coverage(evidence.families, experts, rules.z, rules.lead)
    social = rules.sociality if body is not None else rules.sociality_alone
    bend, found, steps = evidence.curvature_low, evidence.innovation, evidence.link_steps
    lines: list[tuple[str, str, float | None, GateStatus, str]] = [
        (
            "G1 coverage",
            f">= {rules.coverage:g}",
            *_point(covered, covered is not None and reaches(covered, rules.coverage, decimals)),
        ),
        ("G2 acceleration", "mean c_g lower bound > 0", *_point(bend, (bend or 0.0) > 0)),
        ("G3 sociality", f"S >= {social:g}", *_axis_line(axes["S"], social, protocol)),
        (
            "G4 economics",
            f"$ >= {rules.economics:g}",
            *_axis_line(axes["$"], rules.economics, protocol),
        ),
        (
            "G5 innovation",
            f">= {rules.innovation:g}",
            *_point(found, (found or 0.0) >= rules.innovation),
        ),
        (
            "G6 link steps",
            f">= {rules.link_steps}",
            *_point(steps, (steps or 0) >= rules.link_steps),
        ),
    ]
    if body is not None:
        embodied = _axis_line(axes["E"], rules.embodiment, protocol)
        name = f"G3 {axes['E'].name}"
        lines.insert(3, (name, f"E >= {rules.embodiment:g}", *embodied))
    judged = (_line(*line, norms=bool(experts)) for line in lines)
    return tuple(_if_covered(one.gate, one, protocol) for one in judged)


def _axis_line(
    axis: AxisScore, required: float, protocol: Protocol
) -> tuple[float | None, GateStatus, str]:
    """Return the gated statistic of an axis, what the gate says, and why."""
    read = gated_statistic(axis)
    status = gate_status(read, required, protocol)
    value = None if status == "NO EVIDENCE" else read.value
    return value, status, status_reason(status, read, required)


def _point(value: float | None, enough: bool) -> tuple[float | None, GateStatus, str]:
    """Return a figure without an upper bound, what the gate says of it, and why."""
    return value, "PASS" if enough else "UNDECIDED", "" if enough else UNTESTED


def _line(
    gate: str, required: str, value: float | None, status: GateStatus, reason: str, *, norms: bool
) -> GateResult:
    if value is None or not norms:
        status = "NO EVIDENCE"
        reason = "not measured in this run" if norms else "no norms of experts"
    return GateResult(
        level=HIGHEST,
        gate=gate,
        required=required,
        measured="nothing" if value is None else f"{value:.4g}",
        status=status,
        reason=reason,
    )
