"""Gates on campaigns: improvement, closures, projects and the assurance of evidence."""

from collections.abc import Sequence

from owa_bench.records.protocol import GateRule, Protocol
from owa_bench.records.score import GateResult, GateStatus, TotalGain
from owa_bench.scoring.closures.expansion import holm
from owa_bench.scoring.gate import (
    UNTESTED,
    Findings,
    Gate,
    gate_result,
    gate_status,
    reaches,
    status_reason,
)


def improving(
    rates: Sequence[float],
    gains: Sequence[float],
    p_values: Sequence[float],
    required: float,
    rules: Protocol,
) -> tuple[bool, ...]:
    """Return which families improve.

    Args:
        rates: Gain per kappa unit of each planned family, 0 where it has none.
        gains: Its total gain.
        p_values: Its p value of "there is no gain", 1 where it has none.
        required: The least rate.
        rules: Published numbers.
    Returns: Whether Holm's procedure rejects, the rate reaches the requirement and the gain the
        protocol's least.
    """
    decimals, least = rules.statistics.gate_decimals, rules.improvement.gain_min
    real = holm(p_values, rules.improvement.alpha)
    return tuple(
        rejected and reaches(rate, required, decimals) and reaches(gain, least, decimals)
        for rate, gain, rejected in zip(rates, gains, real, strict=True)
    )


def _kappa(rule: GateRule, findings: Findings) -> GateResult:
    """Judge whether the agent improves on enough families by its own spending.

    Reads `required` (gain per kappa unit), `count` (families, 0 all of them), `days` and `of` (the
    link on which the gain is read; empty: the plain one). A family passes if Holm's procedure over
    all planned families rejects "it gained nothing over its frozen control", and its gain reaches
    the requirement and the protocol's least. A family without a gain counts with p = 1; saturated
    families are exempt on a link. Nothing tests that too few families improve: what does not pass
    is UNDECIDED.
    """
    rules, required = findings.protocol.improvement, rule.required or 0.0
    families = [k for k in findings.kappas if k.family is not None]
    due = [k for k in families if not rule.of or (k.floor or 0.0) < rules.saturated]
    count = rule.count or len(due)
    whole = "every family" if not rule.count else f"{rule.count} families"
    on = f" on the {rule.of} link" if rule.of else ""
    asked = (
        f"over the frozen control >= {rules.gain_min:g} gained, >= {required:g} a kappa unit{on}, "
        f"on {whole}, {rule.days} days with spending"
    )
    gains = [k.gain or TotalGain(reason=k.reason) for k in due]
    rates = [g.logit_per_unit if rule.of else g.per_unit for g in gains]
    long = [
        rate is not None and k.checkpoints >= rule.days for k, rate in zip(due, rates, strict=True)
    ]
    if not families or sum(long) < count:
        reasons = sorted({g.reason for g in gains if g.reason})
        why = "; ".join(reasons) or (
            f"{sum(long)} families with a gain over {rule.days} days"
            if families
            else "no family was planned over checkpoints: not a campaign"
        )
        return gate_result(rule, "kappa", "NO EVIDENCE", asked, reason=why)
    seen = findings.evidence
    if human := "; ".join(sorted({k.human for k in due if k.human})):
        why = f"human cost: {human}"
        return gate_result(rule, "kappa", "UNDECIDED", asked, reason=why, evidence=seen)
    tested = list(zip(gains, long, strict=True))
    real = improving(
        [rate or 0.0 for rate in rates],
        [g.value or 0.0 for g in gains],
        [1.0 if g.p is None or not enough else g.p for g, enough in tested],
        required,
        findings.protocol,
    )
    passed = [str(k.family) for k, rises in zip(due, real, strict=True) if rises]
    measured = f"{len(passed)} of {len(due)} families: {', '.join(passed) or 'none'}"
    if len(passed) >= count:
        return gate_result(rule, "kappa", "PASS", asked, measured, evidence=seen)
    return gate_result(rule, "kappa", "UNDECIDED", asked, measured, reason=UNTESTED, evidence=seen)


def _closure(rule: GateRule, findings: Findings) -> GateResult:
    """Judge whether the closure `of` holds, sustained over `days`.

    BELOW where its own figures test that over so many days; else one that fails is UNDECIDED.
    """
    closure, gate = findings.closures.get(rule.of), f"{rule.of} closure"
    asked = "PASS" + (f", sustained {rule.days} days" if rule.days else "")
    if closure is None:
        why = "no such closure is tested"
        return gate_result(rule, gate, "NO EVIDENCE", asked, reason=why)
    reason, evidence = closure.reason, closure.evidence
    status: GateStatus = "NO EVIDENCE"
    if closure.status == "PASS" and closure.days < rule.days:
        reason = f"tested on {closure.days} consecutive days of {rule.days}"
    elif closure.status == "PASS":
        status = "PASS"
    elif closure.status == "FAIL":
        status = "BELOW" if closure.below and closure.days >= rule.days else "UNDECIDED"
    return gate_result(rule, gate, status, asked, closure.status, reason=reason, evidence=evidence)


def _project(rule: GateRule, findings: Findings) -> GateResult:
    """Judge whether enough projects of `days` were delivered.

    Reads `of` ("expert cost") for a ceiling on their cost.
    """
    share = findings.protocol.projects.delivered
    asked = f"{rule.days} days, {share:.0%} of the projects delivered"
    asked += f", at most {rule.of}" if rule.of else ""
    projects, read = findings.projects, findings.delivered
    if not projects.number or projects.days < rule.days:
        why = f"no project of {rule.days} days in this run"
        return gate_result(rule, "project", "NO EVIDENCE", asked, reason=why)
    status = gate_status(read, share, findings.protocol)
    measured = f"{projects.number} projects, {read.value or 0.0:.3f} delivered"
    reason = status_reason(status, read, share)
    if rule.of and status == "PASS":
        cost = projects.cost
        measured += "" if cost is None else f", {cost:.3g} of the expert's cost"
        if cost is None:
            status, reason = "NO EVIDENCE", "the cost is unknown"
        elif cost > 1:
            status, reason = "UNDECIDED", "dearer than an expert; no test says BELOW"
    seen = projects.attempts
    return gate_result(rule, "project", status, asked, measured, reason=reason, evidence=seen)


def _assurance(rule: GateRule, findings: Findings) -> GateResult:
    """Judge the rung of the assurance ladder: `count` or above.

    Below it there is no evidence that the plan precedes the first episode.
    """
    rung = findings.assurance
    asked, measured = f"V{rule.count}", "nothing" if rung is None else f"V{rung}"
    if rung is not None and rung >= rule.count:
        return gate_result(rule, "assurance", "PASS", asked, measured)
    why = "the plan was not witnessed beforehand"
    return gate_result(rule, "assurance", "NO EVIDENCE", asked, measured, reason=why)


GATES = (
    Gate("kappa", _kappa),
    Gate("closure", _closure),
    Gate("project", _project),
    Gate("assurance", _assurance),
)
