"""Gate: the evidence itself is good enough (the plan was witnessed before)."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult, GateStatus
from owa_bench.scoring.gate import Findings, result


class AssuranceGate:
    """Reads `count`, the rung of the assurance ladder that a level needs."""

    name = "assurance"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return PASS at or above the rung; below it there is no evidence of time."""
        rung = findings.assurance
        status: GateStatus = (
            "PASS" if rung is not None and rung >= rule.count else "NO EVIDENCE"
        )
        return result(
            rule,
            "assurance",
            status,
            required=f"V{rule.count}",
            measured="nothing" if rung is None else f"V{rung}",
            reason="" if status == "PASS" else "the plan was not witnessed beforehand",
        )


GATE = AssuranceGate()
