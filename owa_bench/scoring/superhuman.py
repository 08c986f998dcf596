"""AAI-5: margins over experts family by family, and its six gates."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AxisScore, GateResult, GateStatus
from owa_bench.scoring.gate import reaches
from owa_bench.scoring.sample import Sample

LEVEL = 5


def margin(agent: float, agent_se: float, expert: float, expert_se: float) -> float:
    """Return by how many standard errors an agent leads the experts of a family.

    Formula:
        z = (q_agent - q_expert) / sqrt(se_a^2 + se_e^2), se_e clustered by expert
    Shapes: scalars. Units: standard errors.
    Missing: none; two errors of 0 cannot tell and are refused.
    Errors: ScoringError for a negative error, two zeros or a value outside [0, 1].
    Source: [S] eq 19 of the AAI paper.

    >>> margin(0.9, 0.03, 0.8, 0.04)
    2.0
    """
    if min(agent_se, expert_se) < 0 or agent_se + expert_se <= 0:
        raise ScoringError(
            f"Standard errors must be >= 0, one above, got {agent_se}, {expert_se}."
        )
    if not (0 <= agent <= 1 and 0 <= expert <= 1):
        raise ScoringError(f"Qualities must lie in [0, 1], got {agent} and {expert}.")
    return round((agent - expert) / float(np.hypot(agent_se, expert_se)), 9)


class FamilyQuality(NamedTuple):
    """One family's mean quality and its standard error over tasks."""

    quality: float
    error: float


def family_qualities(sample: Sample) -> dict[str, FamilyQuality]:
    """Return each family's mean over tasks with its error, families of 2 tasks up."""
    table, found = sample.table, {}
    for family in sample.families:
        rows = sample.base & (table.family == family)
        pairs, code = np.unique(table.pair[rows], return_inverse=True)
        if len(pairs) < 2:
            continue
        means: Floats = np.bincount(code, table.q[rows]) / np.bincount(code)
        error = float(means.std(ddof=1) / np.sqrt(len(means)))
        found[family] = FamilyQuality(float(means.mean()), error)
    return found


def coverage(
    agent: Mapping[str, FamilyQuality],
    experts: Mapping[str, tuple[float, float]],
    z: float,
    lead: float,
) -> float:
    """Return the share of the experts' families with a margin and a lead.

    Formula:
        share of families with z >= 1.96 and q_agent - q_expert >= .02
    Shapes: mappings by family. Units: a share.
    Missing: a family that the agent did not play is not covered.
    Errors: ScoringError without an expert. Source: [S] eqs 20-21; the lead [D].

    >>> one = {"f": FamilyQuality(0.9, 0.03), "g": FamilyQuality(0.5, 0.03)}
    >>> coverage(one, {"f": (0.8, 0.04), "g": (0.8, 0.04)}, 1.96, 0.02)
    0.5
    """
    if not experts:
        raise ScoringError("Coverage needs the norms of experts, got none.")
    ahead = [
        family in agent
        and margin(*agent[family], *norm) >= z
        and agent[family].quality - norm[0] >= lead
        for family, norm in experts.items()
    ]
    return sum(ahead) / len(ahead)


class Evidence(NamedTuple):
    """What AAI-5 reads beside axes and norms; None: no evidence."""

    families: Mapping[str, FamilyQuality] = {}
    curvature_low: float | None = None
    innovation: float | None = None
    link_steps: int | None = None


def superhuman_gates(
    held: Evidence, axes: Mapping[str, AxisScore], protocol: Protocol
) -> tuple[GateResult, ...]:
    """Return the six gates G1 to G6 (eqs 24-29); without norms no line has evidence."""
    rules, experts = protocol.superhuman, protocol.norms.experts
    decimals = protocol.statistics.gate_decimals
    body = axes["E"].lower
    covered = coverage(held.families, experts, rules.z, rules.lead) if experts else None
    social = rules.sociality if body is not None else rules.sociality_alone
    bend = held.curvature_low
    lines: list[tuple[str, str, float | None, bool]] = [
        (
            "G1 coverage",
            f">= {rules.coverage:g}",
            covered,
            covered is not None and reaches(covered, rules.coverage, decimals),
        ),
        ("G2 acceleration", "mean c_g lower bound > 0", bend, (bend or 0.0) > 0),
        ("G3 sociality", f"S >= {social:g}", *_axis(axes["S"], social, protocol)),
        (
            "G4 economics",
            f"$ >= {rules.economics:g}",
            *_axis(axes["$"], rules.economics, protocol),
        ),
        (
            "G5 innovation",
            f">= {rules.innovation:g}",
            held.innovation,
            (held.innovation or 0.0) >= rules.innovation,
        ),
        (
            "G6 link steps",
            f">= {rules.link_steps}",
            held.link_steps,
            (held.link_steps or 0) >= rules.link_steps,
        ),
    ]
    if body is not None:
        found = _axis(axes["E"], rules.embodiment, protocol)
        lines.insert(3, ("G3 embodiment", f"E >= {rules.embodiment:g}", *found))
    return tuple(_line(*line, norms=bool(experts)) for line in lines)


def _axis(
    axis: AxisScore, required: float, protocol: Protocol
) -> tuple[float | None, bool]:
    """Return what a gate reads of an axis, and whether it is enough."""
    value, lower, rules = axis.value, axis.lower, protocol.statistics
    if axis.gated is not None and value is not None:
        read = axis.details["beside"][axis.gated]
        value, lower = read["value"], read["lower"]
    if value is None or lower is None:
        return None, False
    near = reaches(lower, required - rules.gate_slack, rules.gate_decimals)
    return value, near and reaches(value, required, rules.gate_decimals)


def _line(
    gate: str, required: str, value: float | None, enough: bool, *, norms: bool
) -> GateResult:
    status: GateStatus = "PASS" if enough else "FAIL"
    reason = ""
    if value is None or not norms:
        status = "NO EVIDENCE"
        reason = "not measured in this run" if norms else "no norms of experts"
    return GateResult(
        level=LEVEL,
        gate=gate,
        required=required,
        measured="nothing" if value is None else f"{value:.4g}",
        interval=None,
        status=status,
        reason=reason,
    )
