"""Gates on campaigns: improvement, closures, projects and the assurance of evidence."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult, GateStatus, KappaScore
from owa_bench.scoring.gate import Findings, Gate, gate_result, gate_status, reaches


def _kappa(rule: GateRule, findings: Findings) -> GateResult:
    """Judge whether the agent improves on enough families by its own spending.

    Reads `required` (slope), `count` (families, 0 all of them), `days` and `of` (the
    link on which a slope is asked for; empty: the plain slope). A family passes if its
    slope reaches the requirement, its interval lies above 0, it spent enough kappa
    units, and its gain over the window is large enough.
    """
    required = rule.required or 0.0
    families = [k for k in findings.kappas if k.family is not None]
    count = rule.count or len(families)
    whole = "every family" if not rule.count else f"{rule.count} families"
    asked = f"kappa >= {required:g} on {whole}, {rule.days} daily checkpoints"
    if rule.of:
        return _linked_kappa(rule, findings, families, asked)
    long = [k for k in families if k.slope is not None and k.checkpoints >= rule.days]
    if not families or len(long) < count:
        reasons = sorted({k.reason for k in families if k.reason})
        why = "; ".join(reasons) or (
            f"{len(long)} families with {rule.days} checkpoints"
            if families
            else "no checkpoints: not a campaign"
        )
        return gate_result(rule, "kappa", "NO EVIDENCE", asked, reason=why)
    passed = [str(k.family) for k in long if _improves(k, required, findings)]
    measured = f"{len(passed)} families: {', '.join(passed) or 'none'}"
    status: GateStatus = "PASS" if len(passed) >= count else "FAIL"
    seen = findings.evidence
    return gate_result(rule, "kappa", status, asked, measured, evidence=seen)


def _linked_kappa(
    rule: GateRule, findings: Findings, families: list[KappaScore], asked: str
) -> GateResult:
    """Judge slopes on the logit link; saturated families are exempt."""
    rules, decimals = findings.protocol.improvement, findings.protocol.statistics
    asked = asked.replace("kappa >=", f"kappa on the {rule.of} link >=")
    due = [k for k in families if k.floor is None or k.floor < rules.saturated]
    short = [k for k in due if k.logit is None or k.checkpoints < rule.days]
    if not families or short:
        names = ", ".join(str(k.family) for k in short) or "every family"
        why = f"the slope on the {rule.of} link is not known over the days: {names}"
        return gate_result(rule, "kappa", "NO EVIDENCE", asked, reason=why)
    passed = [
        k
        for k in due
        if k.logit_interval is not None
        and (k.logit_interval.low or 0.0) > 0
        and reaches(k.logit or 0.0, rule.required or 0.0, decimals.gate_decimals)
    ]
    measured = f"{len(passed)} of {len(due)} families below saturation"
    status: GateStatus = "PASS" if len(passed) == len(due) else "FAIL"
    seen = findings.evidence
    return gate_result(rule, "kappa", status, asked, measured, evidence=seen)


def _improves(score: KappaScore, required: float, findings: Findings) -> bool:
    rules = findings.protocol.improvement
    decimals = findings.protocol.statistics.gate_decimals
    low, points = score.interval.low, score.points
    if score.slope is None or low is None or low <= 0:
        return False
    spent = points[-1][0] - points[0][0]
    return (
        reaches(score.slope, required, decimals)
        and spent >= rules.spend_min
        and reaches(score.slope * spent, rules.gain_min, decimals)
    )


def _closure(rule: GateRule, findings: Findings) -> GateResult:
    """Judge whether the closure `of` holds, sustained over `days`."""
    found, gate = findings.closures.get(rule.of), f"{rule.of} closure"
    asked = "PASS" + (f", sustained {rule.days} days" if rule.days else "")
    if found is None:
        why = "no such closure is tested"
        return gate_result(rule, gate, "NO EVIDENCE", asked, reason=why)
    reason, evidence = found.reason, found.evidence
    status: GateStatus = "NO EVIDENCE"
    if found.status == "PASS" and found.days < rule.days:
        reason = f"tested on {found.days} consecutive days of {rule.days}"
    elif found.status != "NOT TESTED":
        status = found.status
    return gate_result(
        rule, gate, status, asked, found.status, reason=reason, evidence=evidence
    )


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
    reason = "" if read.lower is not None else "no lower bound"
    if rule.of and status == "PASS":
        cost = projects.cost
        measured += "" if cost is None else f", {cost:.3g} of the expert's cost"
        if cost is None:
            status, reason = "NO EVIDENCE", "the cost is unknown"
        elif cost > 1:
            status, reason = "FAIL", "dearer than an expert"
    seen = projects.attempts
    return gate_result(
        rule, "project", status, asked, measured, reason=reason, evidence=seen
    )


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
