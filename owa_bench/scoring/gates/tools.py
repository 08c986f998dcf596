"""Gate: enough tools are used, and they still work under mild drift."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult
from owa_bench.scoring.gate import Findings, result, verdict


class ToolsGate:
    """Reads `count` (tool categories used) and `required` (success at mild drift)."""

    name = "tools"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return FAIL where a part fails, else the status of the success rate."""
        required = rule.required or 0.0
        mild = findings.protocol.drift.mild
        asked = f"{rule.count} tools, success >= {required:g} at drift {mild:g}"
        axis = findings.axes["T"]
        if axis.value is None:
            return result(
                rule, "T", "NO EVIDENCE", required=asked, reason=axis.reason or ""
            )
        beside = axis.details.get("beside", {})
        if "categories used" not in beside or f"success at {mild:g}" not in beside:
            why = "the tools used and their success are not known"
            return result(rule, "T", "NO EVIDENCE", required=asked, reason=why)
        tools = int(beside["categories used"]["value"])
        success = beside[f"success at {mild:g}"]
        status = verdict(
            success["value"], success["lower"], required, findings.protocol
        )
        if tools < rule.count:
            status = "FAIL"
        return result(
            rule,
            "T",
            status,
            required=asked,
            measured=f"{tools} tools, success {success['value']:.3f}",
            evidence=findings.evidence,
        )


GATE = ToolsGate()
