"""Gate: a project of many days was delivered."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult, GateStatus
from owa_bench.scoring.gate import Findings, result, verdict


class ProjectGate:
    """Reads `days`, and `of` ("expert cost") for what else is asked."""

    name = "project"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return whether enough projects of so many days were delivered."""
        share = findings.protocol.projects.delivered
        asked = f"{rule.days} days, {share:.0%} of the projects delivered"
        asked += f", at most {rule.of}" if rule.of else ""
        held, read = findings.projects, findings.delivered
        if not held.played or held.days < rule.days:
            why = f"no project of {rule.days} days in this run"
            return result(rule, "project", "NO EVIDENCE", required=asked, reason=why)
        status: GateStatus = verdict(read.value, read.lower, share, findings.protocol)
        measured = f"{held.played} projects, {read.value or 0.0:.3f} delivered"
        reason = "" if read.lower is not None else "no lower bound"
        if rule.of and status == "PASS":
            cost = held.cost
            measured += "" if cost is None else f", {cost:.3g} of the expert's cost"
            if cost is None:
                status, reason = "NO EVIDENCE", "the cost is unknown"
            elif cost > 1:
                status, reason = "FAIL", "dearer than an expert"
        return result(
            rule,
            "project",
            status,
            required=asked,
            measured=measured,
            reason=reason,
            evidence=held.attempts,
        )


GATE = ProjectGate()
