"""Gate: a closure holds."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult, GateStatus
from owa_bench.scoring.gate import Findings, result


class ClosureGate:
    """Reads `of`, the closure's name, and the `days` that it must hold."""

    name = "closure"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return the closure's own status."""
        found = findings.closures.get(rule.of)
        status: GateStatus = "NO EVIDENCE"
        if found is not None and found.status != "NOT TESTED":
            status = found.status
        reason = found.reason if found else "no such closure is tested"
        if status == "PASS" and found is not None and found.days < rule.days:
            status = "NO EVIDENCE"
            reason = f"tested on {found.days} consecutive days of {rule.days}"
        return result(
            rule,
            f"{rule.of} closure",
            status,
            required="PASS" + (f", sustained {rule.days} days" if rule.days else ""),
            measured=found.status if found else "nothing",
            reason=reason,
            evidence=found.evidence if found else (),
        )


GATE = ClosureGate()
