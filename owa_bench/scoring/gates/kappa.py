"""Gate: the agent improves on enough families by what it spends itself."""

from owa_bench.records.protocol import GateRule
from owa_bench.records.score import GateResult, KappaScore
from owa_bench.scoring.gate import Findings, reaches, result


class KappaGate:
    """Reads `required` (slope), `count` (families, 0 all of them), `days` and `of`.

    `of` names the link on which a slope is asked for; empty: the plain slope.

    A family passes if its slope reaches the requirement, its interval lies above 0,
    it spent enough kappa units and its gain over the window, at the slope's lower
    bound too, is positive and large enough.
    """

    name = "kappa"

    def judge(self, rule: GateRule, findings: Findings) -> GateResult:
        """Return PASS, FAIL or NO EVIDENCE over the families."""
        required = rule.required or 0.0
        families = [k for k in findings.kappas if k.family is not None]
        wanted = rule.count or len(families)
        whole = "every family" if not rule.count else f"{rule.count} families"
        asked = f"kappa >= {required:g} on {whole}, {rule.days} daily checkpoints"
        known = [k for k in families if k.slope is not None]
        long = [k for k in known if k.checkpoints >= rule.days]
        if rule.of:
            return self._linked(rule, findings, families, asked)
        if not families or len(long) < wanted:
            reasons = sorted({k.reason for k in families if k.reason})
            why = "; ".join(reasons) or (
                f"{len(long)} families with {rule.days} checkpoints"
                if families
                else "no checkpoints: not a campaign"
            )
            return result(rule, "kappa", "NO EVIDENCE", required=asked, reason=why)
        passed = [k.family for k in long if self._passes(k, required, findings)]
        return result(
            rule,
            "kappa",
            "PASS" if len(passed) >= wanted else "FAIL",
            required=asked,
            measured=f"{len(passed)} families: {', '.join(map(str, passed)) or 'none'}",
            evidence=findings.evidence,
        )

    def _linked(
        self, rule: GateRule, findings: Findings, families: list[KappaScore], asked: str
    ) -> GateResult:
        """Return the line of slopes on the logit link; saturated families are out."""
        rules, decimals = findings.protocol.improvement, findings.protocol.statistics
        asked = asked.replace("kappa >=", f"kappa on the {rule.of} link >=")
        due = [k for k in families if k.floor is None or k.floor < rules.saturated]
        short = [k for k in due if k.logit is None or k.checkpoints < rule.days]
        if not families or short:
            names = ", ".join(str(k.family) for k in short) or "every family"
            why = f"the slope on the {rule.of} link is not known over the days: {names}"
            return result(rule, "kappa", "NO EVIDENCE", required=asked, reason=why)
        passed = [
            k
            for k in due
            if k.logit_interval is not None
            and (k.logit_interval.low or 0.0) > 0
            and reaches(k.logit or 0.0, rule.required or 0.0, decimals.gate_decimals)
        ]
        return result(
            rule,
            "kappa",
            "PASS" if len(passed) == len(due) else "FAIL",
            required=asked,
            measured=f"{len(passed)} of {len(due)} families below saturation",
            evidence=findings.evidence,
        )

    def _passes(self, score: KappaScore, required: float, findings: Findings) -> bool:
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


GATE = KappaGate()
