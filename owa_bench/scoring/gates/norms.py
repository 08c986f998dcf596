"""Gate: families are judged by human-professional thresholds on enough instances."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult
from owa_bench.scoring.gate import Findings, result


class NormsGate:
    """Reads `count`, the instances a family needs; norms must not be provisional."""

    name = "norms"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return PASS on recorded norms with enough instances, else NO EVIDENCE."""
        fewest = int(findings.axes["G"].details.get("fewest tasks a family", 0))
        lacks = []
        if findings.protocol.norms.provisional:
            lacks.append("no human norms are recorded")
        if fewest < rule.count:
            lacks.append(f"a family holds {fewest} instances")
        return result(
            rule,
            "human-pro norms",
            "NO EVIDENCE" if lacks else "PASS",
            required=f"norms per family, {rule.count} instances each",
            measured=f"{fewest} instances",
            reason="; ".join(lacks),
        )


GATE = NormsGate()
