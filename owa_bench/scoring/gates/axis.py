"""Gate: an axis reaches its threshold, with its lower bound near it."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import AxisScore, GateResult, Interval
from owa_bench.scoring.gate import Findings, result, verdict


class AxisGate:
    """Reads `of` (an axis' symbol) and `required`.

    S is read net of the muted crew (S_net), R needs auditable diffs: both stand in the
    axis' own score.
    """

    name = "axis"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return PASS, FAIL or NO EVIDENCE for one axis."""
        required = rule.required or 0.0
        axis = findings.axes[rule.of]
        value, lower = axis.value, findings.lower.get(rule.of)
        interval, name = axis.tasks_like_these, rule.of
        if axis.gated is not None and value is not None:
            name, read = axis.gated, axis.details["beside"][axis.gated]
            value, lower = read["value"], read["lower"]
            interval = Interval(
                low=read["low"], high=read["high"], method=interval.method
            )
        return result(
            rule,
            rule.of,
            verdict(value, lower, required, findings.protocol),
            required=f"{name} >= {required:.2f}",
            measured="nothing" if value is None else f"{value:.3f}",
            interval=interval,
            evidence=() if value is None else findings.evidence,
            reason=_reason(axis, value, lower),
        )


def _reason(axis: AxisScore, value: float | None, lower: float | None) -> str:
    """Return why there is nothing to judge."""
    if value is None:
        return axis.reason or f"{axis.gated} has no evidence"
    if lower is None:
        return axis.tasks_like_these.reason or "no lower bound"
    return ""


GATE = AxisGate()
