"""Gate: the core score (equal-weight geometric mean of G, P, M, W) is high enough."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult
from owa_bench.scoring.gate import Findings, result, verdict


class CoreGate:
    """Reads tau_AGI from the norms."""

    name = "core"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return the core score against tau_AGI."""
        required = findings.protocol.norms.core
        score = findings.indices["core"]
        return result(
            rule,
            "core score",
            verdict(
                score.value, findings.lower.get("core"), required, findings.protocol
            ),
            required=f"geometric mean of G, P, M, W >= {required:g}",
            measured="nothing" if score.value is None else f"{score.value:.3f}",
            interval=score.tasks_like_these,
            reason=score.reason
            or ("" if findings.lower.get("core") else "no lower bound"),
            evidence=() if score.value is None else findings.evidence,
        )


GATE = CoreGate()
